"""One DuckDB file: declared types and descriptions, one transaction a run, and locks that are told of."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

import duckdb
import filelock
import pyarrow as pa
import pytest
from dagster_duckdb import DuckDBResource
from fabricated_run import ORDERS, keys, orders_and_notes, seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import Damage, StorageFailed, UsageError
from docgen_core.export import duckdb as duckdb_sink
from docgen_core.export import export_run, open_sink, spool
from docgen_core.export.contract import Shard
from docgen_core.golden import FIELD_BOXES, KEY_FIELDS, column
from docgen_core.runs.shards import encode_shard


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "golden.duckdb"


def export(run_id: str, blobs: BlobStore, file: Path, query: str = "?wait_seconds=0.2", client: object = None) -> None:
    with closing(open_sink(f"{file}{query}", client)) as sink:
        export_run(run_id, blobs=blobs, sink=sink)


def ask(file: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def sql(file: Path, statements: str) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute(statements)


def test_columns_have_their_declared_types_and_descriptions(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, file)
    found = ask(
        file,
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE table_name = 'orders' ORDER BY column_index",
    )
    assert found[4:] == [
        ("po_number", "VARCHAR", True, "The buyer's order number."),
        ("due", "DATE", True, "The day it is due; the seller's day."),
        ("rate", "DECIMAL(38,9)", False, "Rate, 0.19 for 19 %."),
        ("copies", "INTEGER", True, "Copies, where they are counted."),
    ]
    assert [(name, comment) for name, _, _, comment in found[:4]] == [
        (field.name, field.metadata[b"description"].decode()) for field in KEY_FIELDS
    ]


def test_decimals_are_exact_to_the_last_of_38_digits(blobs: BlobStore, file: Path) -> None:
    widest = Decimal("-12345678901234567890123456789.123456789")
    row = {**keys("r1", 0), "po_number": None, "due": None, "rate": widest, "copies": None}
    seal(blobs, "r1", {"orders": [encode_shard("orders", ORDERS, [row])]})
    export("r1", blobs, file)
    assert ask(file, "SELECT rate FROM orders") == [(widest,)]


def test_small_shards_are_gathered_and_large_ones_split_with_no_row_lost(
    blobs: BlobStore, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "GATHERED_BYTES", 2_000)
    rows = [
        [
            {**keys("r1", unit * 1000 + row), "po_number": str(row), "due": None, "rate": Decimal(row), "copies": row}
            for row in range(size)
        ]
        for unit, size in enumerate((0, 3, 700, 1, 0, 90))
    ]
    seal(blobs, "r1", {"orders": [encode_shard("orders", ORDERS, shard) for shard in rows]})
    export("r1", blobs, file)
    expected = [(row["document_id"], row["copies"]) for shard in rows for row in shard]
    assert ask(file, "SELECT document_id, copies FROM orders") == expected


def test_a_spool_that_a_killed_export_left_goes_and_a_strangers_file_in_it_stays(blobs: BlobStore, file: Path) -> None:
    spool = file.with_name(f"{file.name}.spool")
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, file)
    assert not spool.exists()
    spool.mkdir()
    for name in ("0.parquet", "17.parquet", "letters.txt"):
        (spool / name).write_bytes(b"half")
    export("r1", blobs, file)
    assert [left.name for left in spool.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize("linked", [True, False])
def test_what_stands_where_the_spool_is_to_be_is_named_and_left_alone(
    blobs: BlobStore, file: Path, linked: bool
) -> None:
    spool, mine = file.with_name(f"{file.name}.spool"), file.with_name("mine")
    mine.mkdir()
    (mine / "0.parquet").write_bytes(b"mine")
    if linked:
        spool.symlink_to(mine)
    else:
        spool.write_bytes(b"mine")
    seal(blobs, "r1", orders_and_notes("r1"))
    with pytest.raises(UsageError, match=r"\.spool is in the way"):
        export("r1", blobs, file)
    assert (mine / "0.parquet").read_bytes() == b"mine"
    assert not file.exists(), "an export that failed leaves no file that it made"


def test_what_is_held_stands_in_a_table(blobs: BlobStore, file: Path) -> None:
    roots = {run_id: seal(blobs, run_id, orders_and_notes(run_id)).digest for run_id in ("r1", "r2")}
    for run_id in ("r1", "r2", "r1"):
        export(run_id, blobs, file)
    held = ask(file, "SELECT run_id, table_name, row_count, root_sha256 FROM docgen_exports ORDER BY ALL")
    assert held == [(run, table, rows, roots[run]) for run in roots for table, rows in (("notes", 0), ("orders", 2))]
    with closing(open_sink(str(file))) as sink:
        sink.remove("r2")
    assert ask(file, "SELECT DISTINCT run_id FROM docgen_exports") == [("r1",)]


def test_tables_of_the_users_own_are_not_touched(blobs: BlobStore, file: Path) -> None:
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE scores AS SELECT 'r1' AS run_id, 0.9 AS score")
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, file)
    with closing(open_sink(str(file))) as sink:
        sink.remove("r1")
    assert ask(file, "SELECT run_id FROM scores") == [("r1",)]


def test_rows_of_other_columns_are_not_mixed_in(blobs: BlobStore, file: Path) -> None:
    for run_id in ("r1", "r2"):
        seal(blobs, run_id, orders_and_notes(run_id))
        export(run_id, blobs, file)
    newer = pa.schema([*(field for field in ORDERS if field.name != "copies"), column("terms", pa.string(), "Terms.")])
    row = {**keys("r1", 0), "po_number": None, "due": None, "rate": Decimal(1), "terms": "30 days"}
    seal(blobs, "r1", {"orders": [encode_shard("orders", newer, [row])]})
    with pytest.raises(UsageError, match=r"'orders' holds rows of other columns \(copies, terms\).*a new file"):
        export("r1", blobs, file)
    assert ask(file, "SELECT count(*) FROM orders") == [(4,)]
    with closing(open_sink(str(file))) as sink:
        sink.remove("r2")
    export("r1", blobs, file)
    assert ask(file, "SELECT terms FROM orders") == [("30 days",)]


def test_an_empty_table_of_somebody_else_is_left_alone(blobs: BlobStore, file: Path) -> None:
    with closing(duckdb.connect(str(file))) as theirs:
        theirs.execute("CREATE TABLE orders (dish TEXT)")
    seal(blobs, "r1", orders_and_notes("r1"))
    with pytest.raises(UsageError, match="table 'orders' is there and is not docgen's: rename it"):
        export("r1", blobs, file)
    assert ask(file, "SELECT column_name FROM duckdb_columns() WHERE table_name = 'orders'") == [("dish",)]


def test_a_column_type_with_no_place_is_refused(blobs: BlobStore, file: Path) -> None:
    odd = pa.schema([*KEY_FIELDS, column("at", pa.timestamp("us"), "When.")])
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(odd.empty_table(), sink)
    seal(blobs, "r1", {"odd": [sink.getvalue().to_pybytes()]})
    with pytest.raises(UsageError, match=r"odd\.at: a golden column of type timestamp"):
        export("r1", blobs, file)
    assert not file.exists()


def test_printed_values_are_a_view(blobs: BlobStore, file: Path) -> None:
    corners = {f"{axis}{corner}": 1.0 for corner in range(4) for axis in ("x", "y")}
    value = {"table_name": "orders", "column_name": "po_number", "value": "P1 long", **corners}
    places = [
        {"occurrence": 0, "part": 0, "page": 2, "text": "P1"},
        {"occurrence": 0, "part": 1, "page": 2, "text": "long"},
        {"occurrence": 1, "part": 0, "page": 1, "text": "P1 long"},
    ]
    boxes = encode_shard("field_boxes", FIELD_BOXES, [{**keys("r1", 0), **value, **place} for place in places])
    seal(blobs, "r1", {"field_boxes": [boxes]})
    for _ in range(2):
        export("r1", blobs, file)
    found = ask(file, "SELECT table_name, column_name, value, occurrences, first_page FROM golden_values")
    assert found == [("orders", "po_number", "P1 long", 2, 1)]


HOLD_OPEN = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "reading")
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def somebody(file: Path, doing: str) -> Iterator[int]:
    """Another process that holds the file open; its process id."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD_OPEN, str(file), doing], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == b"open\n"
        yield process.pid
    finally:
        process.communicate(timeout=60)


@pytest.mark.parametrize("doing", ["reading", "writing"])
def test_case_21_a_session_that_holds_the_file_is_named_in_a_line(blobs: BlobStore, file: Path, doing: str) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, file)
    seal(blobs, "r1", orders_and_notes("r1", units=2))
    with somebody(file, doing) as pid:
        with pytest.raises(StorageFailed) as caught:
            export("r1", blobs, file)
        assert str(caught.value) == (
            f"{file}: another process (PID {pid}) has it open; close it there, then export again"
        )
        if doing == "reading":
            assert ask(file, "SELECT count(*) FROM orders") == [(1,)]
    export("r1", blobs, file)
    assert ask(file, "SELECT count(*) FROM orders") == [(2,)]


def test_a_session_of_this_process_with_other_settings_is_named(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    with (
        duckdb.connect(str(file), config={"threads": "4"}),
        pytest.raises(StorageFailed, match="this process has it open with other settings; close it there"),
    ):
        export("r1", blobs, file)


def test_a_reader_between_commit_and_register_is_no_matter(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    with closing(open_sink(str(file))) as sink:
        with sink.replacing("r1", "0" * 64):
            sink.write("orders", ORDERS, [])
        with somebody(file, "reading"):
            sink.register()


def test_a_view_that_was_dropped_is_made_again(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", {"field_boxes": [encode_shard("field_boxes", FIELD_BOXES, [])]})
    export("r1", blobs, file)
    with duckdb.connect(str(file)) as connection:
        connection.execute("DROP VIEW golden_values")
    with closing(open_sink(str(file))) as sink:
        sink.register()
    assert ask(file, "SELECT count(*) FROM golden_values") == [(0,)]


def test_a_session_that_ends_in_time_is_waited_for(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, file)
    with somebody(file, "reading"):
        exporting = threading.Thread(target=export, args=("r1", blobs, file, "?wait_seconds=60"))
        exporting.start()
        # The lock file is held while the other's session is waited for.
        while not held(f"{file}.lock"):
            threading.Event().wait(0.01)
    exporting.join(60)
    assert not exporting.is_alive()
    assert ask(file, "SELECT count(*) FROM orders") == [(2,)]


def held(lock: str) -> bool:
    """Whether somebody holds the lock file."""
    try:
        with filelock.FileLock(lock, timeout=0, thread_local=False):
            return False
    except filelock.Timeout:
        return True


def test_exports_in_one_process_wait_for_one_another(blobs: BlobStore, file: Path) -> None:
    for run_id in ("r1", "r2", "r3"):
        seal(blobs, run_id, orders_and_notes(run_id))
    threads = [threading.Thread(target=export, args=(run_id, blobs, file)) for run_id in ("r1", "r2", "r3") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert ask(file, "SELECT run_id, count(*) FROM orders GROUP BY 1 ORDER BY 1") == [("r1", 2), ("r2", 2), ("r3", 2)]


def test_an_export_that_never_ends_is_told_of(blobs: BlobStore, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_sink, "PEER_WAIT_SECONDS", 0.1)
    seal(blobs, "r1", orders_and_notes("r1"))
    with closing(open_sink(str(file))) as first:
        first.begin("r0", "0" * 64)
        with pytest.raises(StorageFailed, match="another export has held it"):
            export("r1", blobs, file)
    export("r1", blobs, file)


def test_the_file_is_free_between_exports(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    with closing(open_sink(str(file))) as sink:
        export_run("r1", blobs=blobs, sink=sink)
        with somebody(file, "writing"):
            pass


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda file: file.write_bytes(b"not a database " * 1000), "is no DuckDB database; name another file"),
        (lambda file: file.mkdir(), "is a folder; name a file"),
        (lambda file: sql(file, "CREATE VIEW orders AS SELECT 1 AS x WHERE false"), "rename it, or export into a new"),
        (lambda file: sql(file, "CREATE TABLE docgen_exports (x INT)"), "rename it, or export into a new file"),
        (
            lambda file: sql(file, "CREATE TABLE golden_values (x INT); CREATE TABLE field_boxes AS SELECT 1"),
            "rename it",
        ),
        (lambda file: Path(f"{file}.lock").mkdir(), "give this user the right to it"),
    ],
)
def test_what_tables_cannot_go_into_is_told_in_a_line(blobs: BlobStore, file: Path, make: object, named: str) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    make(file)  # type: ignore[operator]
    with pytest.raises(StorageFailed if "right" in named else UsageError) as caught:
        export("r1", blobs, file)
    assert named in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_stream_raises_is_not_taken_for_a_fault_of_the_file(file: Path) -> None:
    def stream() -> Iterator[Shard]:
        yield from ()
        raise OSError("mine")

    with closing(open_sink(str(file))) as sink, pytest.raises(OSError, match=r"^mine$"), sink.replacing("r1", "0" * 64):
        sink.write("orders", ORDERS, stream())
    assert not file.exists()


def test_a_full_disk_is_told_in_a_line_and_loses_nothing(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, file)
    rows = [
        {**keys("r1", row), "po_number": os.urandom(64).hex(), "due": None, "rate": Decimal(row), "copies": row}
        for row in range(20_000)
    ]
    seal(blobs, "r1", {"orders": [encode_shard("orders", ORDERS, rows)]})
    script = (
        "import resource, signal, sys\n"
        "from docgen_core.blobs import open_blobs\n"
        "from docgen_core.errors import StorageFailed\n"
        "from docgen_core.export import export_run, open_sink\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "try:\n"
        "    export_run('r1', blobs=open_blobs(sys.argv[1]), sink=open_sink(sys.argv[2]))\n"
        "except StorageFailed as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, blobs.uri, str(file)], capture_output=True, text=True)
    assert ended.stdout.startswith(f"{file}: ")
    assert len(ended.stdout.splitlines()) == 1
    assert ask(file, "SELECT count(*) FROM orders") == [(1,)]
    export("r1", blobs, file)
    assert ask(file, "SELECT count(*) FROM orders") == [(20_000,)]


class WatchedClient:
    """A factory of connections that closes them only when nothing was raised, as some resources do."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.given: list[duckdb.DuckDBPyConnection] = []
        self.ended = 0

    @contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        self.given.append(duckdb.connect(str(self.file)))
        yield self.given[-1]
        self.given[-1].close()
        self.ended += 1


def test_a_clients_connection_is_used_and_closed_also_when_the_export_fails(file: Path) -> None:
    blobs = MemoryBlobStore()
    seal(blobs, "r1", orders_and_notes("r1"))
    blobs.put("runs/r1/golden/orders/unit-000001.parquet", b"x" * len(orders_and_notes("r1")["orders"][1]))
    client = WatchedClient(file)
    with pytest.raises(Damage):
        export("r1", blobs, file, client=client.get_connection)
    assert client.ended == len(client.given) == 1
    with pytest.raises(duckdb.ConnectionException):
        client.given[0].execute("SELECT 1")
    with somebody(file, "writing"):
        pass


def test_dagsters_resource_gives_the_connection(blobs: BlobStore, file: Path) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    resource = DuckDBResource(database=str(file))
    for _ in range(2):
        export("r1", blobs, file, client=resource.get_connection)
    assert ask(file, "SELECT count(*) FROM orders") == [(2,)]


def test_the_bounds_of_the_uri_reach_the_connection(blobs: BlobStore, file: Path) -> None:
    seen: list[tuple[object, ...]] = []

    def look(table: str, rows: int) -> None:
        connection = sink._connection  # type: ignore[attr-defined]
        seen.append(connection.execute("SELECT current_setting('memory_limit'), current_setting('threads')").fetchone())

    seal(blobs, "r1", orders_and_notes("r1"))
    with closing(open_sink(f"{file}?memory_mb=100")) as sink:
        export_run("r1", blobs=blobs, sink=sink, on_table=look)
    assert set(seen) == {("95.3 MiB", 1)}
