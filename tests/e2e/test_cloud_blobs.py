"""A corpus made into S3 and Cloud Storage is the one made into a folder, and is read from there alike."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.export import export_run, open_sink
from docgen_core.runs.gc import collect
from docgen_core.runs.withdraw import withdraw

RUN = "r1"
CATALOGUE = ("catalogue", "build", "small", "--companies", "24", "--products", "8", "--range", "12")
GENERATE = ("generate", RUN, "--documents", "8", "--unit-size", "2", "--seed", "16", "--condition", "clean,light_scan")
PREFIXES = ("catalogue/small/", f"runs/{RUN}/", "sealed/")
TABLES = ("documents", "invoices", "line_items", "tax_lines", "field_boxes")


def docgen(folder: Path, env: Mapping[str, str], *words: str) -> None:
    """The command, which must succeed, typed in this folder with no settings but these."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("DOCGEN_")}
    command = [sys.executable, "-m", "docgen_core.cli", *words]
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def digests(blobs: BlobStore) -> dict[str, str]:
    keys = [info.key for prefix in PREFIXES for info in blobs.iter_keys(prefix)]
    return {key: hashlib.sha256(blobs.get(key)).hexdigest() for key in keys}


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(folder / "golden.duckdb"), read_only=True) as golden:
        return {table: golden.execute(f"select * from {table} order by all").fetchall() for table in TABLES}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the corpus was made into files."""
    folder = tmp_path_factory.mktemp("local")
    for words in (CATALOGUE, GENERATE, ("export", RUN, "--sink", "golden.duckdb")):
        docgen(folder, {}, *words)
    return folder


@pytest.mark.parametrize(("fixture", "connect"), [("s3_ministack", s3_client), ("gcs_fake", gcs_client)])
def test_a_corpus_in_the_cloud_is_the_one_in_a_folder(
    fixture: str, connect: Any, local: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: BlobServer = request.getfixturevalue(fixture)
    client = connect(server.port)
    place, exports = (f"{server.scheme}://{BUCKET}/{prefix}" for prefix in ("corpora/one", "exports"))
    env = {**server.environment, "DOCGEN_BLOBS": place}
    blobs = open_blobs(place, client=client)

    docgen(tmp_path, env, *CATALOGUE)
    docgen(tmp_path, env, *GENERATE, "--workers", "2")
    expected = digests(open_blobs(str(local / ".docgen" / "blobs")))
    assert digests(blobs) == expected
    assert sum(key.endswith(".pdf") for key in expected) == 8

    docgen(tmp_path, env, "verify", RUN, "--deep")
    docgen(tmp_path, env, "export", RUN, "--sink", "golden.duckdb")
    assert rows(tmp_path) == rows(local)
    export_run(RUN, blobs=blobs, sink=open_sink(f"parquet://{exports}", client=client))
    exported = open_blobs(exports, client=client)
    shards = {hashlib.sha256(exported.get(info.key)).hexdigest() for info in exported.iter_keys("invoices/")}
    assert shards == {digest for key, digest in expected.items() if "/golden/invoices/" in key}

    withdraw(RUN, blobs)
    collect(blobs, withdrawn=True)
    assert list(blobs.iter_keys(f"runs/{RUN}/")) == []
    assert not (tmp_path / ".docgen" / "blobs").exists()
