"""Parquet files: the shards byte for byte, under stable names, with a word on what is wholly there."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fabricated_run import ORDERS, orders_and_notes, seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import StorageFailed
from docgen_core.export import export_run, open_sink


def export(run_id: str, blobs: BlobStore, folder: Path) -> None:
    with closing(open_sink(str(folder))) as sink:
        export_run(run_id, blobs=blobs, sink=sink)


def digests(folder: Path) -> dict[str, str]:
    """sha256 by path of every file of the folder, whatever it is."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_names_follow_table_run_and_unit(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path / "out")
    assert sorted(digests(tmp_path / "out")) == [
        "_exports/r1.json",
        *(f"{table}/run_id=r1/unit-{unit:06d}.parquet" for table in ("notes", "orders") for unit in range(2)),
    ]


def test_case_21_exported_again_has_the_same_names_and_digests(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path / "out")
    first = digests(tmp_path / "out")
    export("r1", blobs, tmp_path / "out")
    assert digests(tmp_path / "out") == first


def test_case_21_every_part_has_the_declared_types(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path / "out")
    files = sorted((tmp_path / "out" / "orders").rglob("*.parquet"))
    assert len(files) == 2
    for file in files:
        assert pq.read_schema(file).equals(ORDERS, check_metadata=True)


def test_case_21_files_that_no_longer_belong_go(blobs: BlobStore, tmp_path: Path) -> None:
    for run_id in ("r1", "r2"):
        seal(blobs, run_id, orders_and_notes(run_id))
        export(run_id, blobs, tmp_path / "out")
    before = digests(tmp_path / "out")
    (tmp_path / "out" / "orders" / "run_id=r1" / "unit-000007.parquet").write_bytes(b"somebody's")
    with closing(open_sink(str(tmp_path / "out"))) as sink:
        export_run("r1", blobs=blobs, sink=sink, units=[0])
    after = digests(tmp_path / "out")
    assert before.keys() - after.keys() == {f"{table}/run_id=r1/unit-000001.parquet" for table in ("notes", "orders")}
    assert after.keys() < before.keys()
    assert {name for name in after if after[name] != before[name]} == {"_exports/r1.json"}


def test_strangers_files_are_left_alone_and_a_broken_one_is_named_and_mended(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path)
    sound, run = digests(tmp_path), tmp_path / "orders" / "run_id=r1"
    strangers = [run / "read me\n.txt", tmp_path / "my\nfolder" / "x"]
    for stranger in strangers:
        stranger.parent.mkdir(exist_ok=True)
        stranger.write_text("somebody's")
    with closing(open_sink(str(tmp_path))) as sink:
        assert sink.counts("r1") == {"notes": 0, "orders": 2}
        for broken in (run / "unit-000001.parquet", run / "unit-000001 (copy).parquet"):
            broken.write_bytes(b"PAR1 cut short")
            for ask in (lambda: sink.counts("r1"), lambda: list(sink.fetch("orders", "r1"))):
                with pytest.raises(StorageFailed, match=r"unit-000001.*export its run again"):
                    ask()
            export_run("r1", blobs=blobs, sink=sink)
        for stranger in strangers:
            assert stranger.read_text() == "somebody's"
            stranger.unlink()
    assert digests(tmp_path) == sound


def test_a_removed_run_leaves_no_file(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path / "out")
    with closing(open_sink(str(tmp_path / "out"))) as sink:
        sink.remove("r1")
    assert digests(tmp_path / "out") == {}


def test_the_manifest_names_every_file_with_digest_and_rows(blobs: BlobStore, tmp_path: Path) -> None:
    root = seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, tmp_path / "out")
    found = digests(tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "_exports" / "r1.json").read_bytes())
    assert manifest["root_sha256"] == root.digest
    assert manifest["rows"] == {"notes": 0, "orders": 2}
    assert {file["key"]: file["sha256"] for file in manifest["files"]} == {
        name: digest for name, digest in found.items() if name.endswith(".parquet")
    }
    assert sum(file["rows"] for file in manifest["files"]) == 2


class WatchedBlobs(MemoryBlobStore):
    """Keeps the order of changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[str] = []

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        self.changes.append(f"put {key}")
        super().put(key, data, create_only=create_only)

    def delete(self, key: str) -> None:
        self.changes.append(f"delete {key}")
        super().delete(key)


def test_the_manifest_stands_only_while_its_files_do(blobs: BlobStore) -> None:
    from docgen_core.export.parquet import ParquetSink

    place = WatchedBlobs()
    sink = ParquetSink(place)
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export_run("r1", blobs=blobs, sink=sink)
    assert place.changes[-1] == "put _exports/r1.json"

    place.changes.clear()
    export_run("r1", blobs=blobs, sink=sink)
    assert [change for change in place.changes if change.startswith("delete")] == []

    place.changes.clear()
    seal(blobs, "r1", orders_and_notes("r1", units=2))
    export_run("r1", blobs=blobs, sink=sink, units=[1])
    assert place.changes[0] == "delete _exports/r1.json"
    assert place.changes[-3:] == [
        "delete notes/run_id=r1/unit-000000.parquet",
        "delete orders/run_id=r1/unit-000000.parquet",
        "put _exports/r1.json",
    ]

    place.changes.clear()
    sink.remove("r1")
    assert place.changes[0] == "delete _exports/r1.json"


DIE_AFTER_PUTS = """
import os, signal, sys
from docgen_core.blobs import open_blobs
from docgen_core.blobs.file import FileBlobStore
from docgen_core.export import export_run, open_sink

left = int(sys.argv[3])
put = FileBlobStore.put

def dying_put(self, key, data, *, create_only=False):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    put(self, key, data, create_only=create_only)

FileBlobStore.put = dying_put
export_run("r1", blobs=open_blobs(sys.argv[1]), sink=open_sink(sys.argv[2]))
"""


@pytest.mark.parametrize("puts", [0, 2, 6])
def test_killed_while_publishing_no_manifest_stands_and_the_next_export_is_whole(
    blobs: BlobStore, tmp_path: Path, puts: int
) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=2))
    export("r1", blobs, tmp_path / "out")
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    export("r1", blobs, tmp_path / "expected")
    command = [sys.executable, "-c", DIE_AFTER_PUTS, blobs.uri, str(tmp_path / "out"), str(puts)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "_exports" / "r1.json").exists()
    for file in (tmp_path / "out").rglob("*.parquet"):
        assert pq.read_schema(file).names[0] == "run_id"
    export("r1", blobs, tmp_path / "out")
    assert digests(tmp_path / "out") == digests(tmp_path / "expected")


@pytest.mark.parametrize("run_id", ["r1", "007", "20250102", "2025-01-02"])
def test_the_documented_ways_to_read_give_the_run_id_as_text(blobs: BlobStore, tmp_path: Path, run_id: str) -> None:
    seal(blobs, run_id, orders_and_notes(run_id))
    export(run_id, blobs, tmp_path / "out")
    folder = tmp_path / "out" / "orders"
    by_duckdb = duckdb.sql(
        f"SELECT DISTINCT run_id FROM read_parquet('{folder}/*/*.parquet', hive_partitioning=false)"
    ).fetchall()
    assert by_duckdb == [(run_id,)]
    table = ds.dataset(folder, partitioning=None).to_table()
    assert table.schema.field("run_id").type == pa.string()
    assert set(table.column("run_id").to_pylist()) == {run_id}


def test_a_spool_that_cannot_be_made_is_told_in_a_line(
    blobs: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    seal(blobs, "r1", orders_and_notes("r1"))
    with pytest.raises(StorageFailed, match="set TMPDIR"):
        export("r1", blobs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_spool_that_is_full_is_told_in_a_line(blobs: BlobStore, tmp_path: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    script = (
        "import resource, signal, sys\n"
        "from docgen_core.blobs import open_blobs\n"
        "from docgen_core.export import export_run, open_sink\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "export_run('r1', blobs=open_blobs(sys.argv[1]), sink=open_sink(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", script, blobs.uri, str(tmp_path / "out")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("docgen_core.errors.StorageFailed")
    assert "free some space or set TMPDIR" in last
    assert not (tmp_path / "out").exists()
