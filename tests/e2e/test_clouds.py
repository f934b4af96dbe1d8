"""State and blobs in one cloud, four worker processes, two of them killed: the corpus is the one in a folder."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import psutil
import pytest
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.export import export_run, open_sink
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.gc import collect
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.withdraw import withdraw
from docgen_core.state import open_state
from docgen_core.state.contract import StateStore, UnitState

RUN = "r1"
GENERATE = ("generate", RUN, "--documents", "8", "--unit-size", "1", "--seed", "16")
PREFIXES = ("catalogue/small/", f"runs/{RUN}/", "sealed/")
TABLES = ("documents", "pages", "words", "invoices", "line_items", "tax_lines", "instalments", "codes", "field_boxes")
SETTINGS = "lease_seconds=3&max_attempts=50&skew_seconds=0"
CLOUDS = {
    "aws": ("dynamodb", "dynamodb_server", "s3_ministack", s3_client),
    "gcp": ("firestore", "firestore_server", "gcs_fake", gcs_client),
}


def digests(blobs: BlobStore) -> dict[str, str]:
    keys = [info.key for prefix in PREFIXES for info in blobs.iter_keys(prefix)]
    return {key: hashlib.sha256(blobs.get(key)).hexdigest() for key in keys}


def rows(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(folder / "golden.duckdb"), read_only=True) as golden:
        return {table: golden.execute(f"select * from {table} order by all").fetchall() for table in TABLES}


@pytest.fixture(scope="session")
def local(once: Any, desk_type: Any, catalogue: Path) -> Path:
    """The folder where one worker made the corpus, with its state in SQLite."""

    def make(folder: Path) -> Any:
        shutil.copytree(catalogue, folder, dirs_exist_ok=True)
        desk_type(folder).done(*GENERATE)
        return desk_type(folder).done("export", RUN, "--sink", "golden.duckdb")

    return once("in-a-folder", make)[0]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_killed_workers_or_not_the_corpus_is_the_one_in_a_folder(
    cloud: str, local: Path, desk: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    scheme, state_server, blob_server, connect = CLOUDS[cloud]
    server: BlobServer = request.getfixturevalue(blob_server)
    environment = request.getfixturevalue(state_server).environment
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    client, name = connect(server.port), f"docgen-{uuid4().hex[:16]}"
    place, exports = (f"{server.scheme}://{BUCKET}/{name}/{prefix}" for prefix in ("corpora/one", "exports"))
    places = {"DOCGEN_STATE": f"{scheme}://{name}?{SETTINGS}", "DOCGEN_BLOBS": place}
    here = replace(desk, env={**environment, **server.environment, **places})

    here.done("init")
    state, blobs = open_state(places["DOCGEN_STATE"]), open_blobs(place, client=client)
    build_catalogue_run(state, blobs, "small", CatalogueSpec(companies=24, products=8, range_width=12))
    work_run("catalogue-small", state=state, blobs=blobs, worker="here")
    generated_though_two_were_killed(here, state)
    expected = digests(open_blobs(str(local / ".docgen" / "blobs")))
    assert digests(blobs) == expected
    assert sum(key.endswith(".pdf") for key in expected) == state.progress(RUN).done == 8

    here.done("verify", RUN, "--deep")
    here.done("export", RUN, "--sink", "golden.duckdb")
    assert rows(here.folder) == rows(local)
    export_run(RUN, blobs=blobs, sink=open_sink(f"parquet://{exports}", client=client))
    exported = open_blobs(exports, client=client)
    shards = {hashlib.sha256(exported.get(info.key)).hexdigest() for info in exported.iter_keys("invoices/")}
    assert shards == {digest for key, digest in expected.items() if "/golden/invoices/" in key}

    withdraw(RUN, blobs)
    collect(blobs, withdrawn=True)
    assert list(blobs.iter_keys(f"runs/{RUN}/")) == []
    assert not (here.folder / ".docgen" / "blobs").exists()


def generated_though_two_were_killed(here: Any, state: StateStore) -> None:
    """By four workers; -9 for one that holds a lease when the first unit is done, and when the third is."""
    generate = here.start(*GENERATE, "--workers", "4")
    try:
        for done in (1, 3):
            here.until(lambda done=done: state.list_runs(after="catalogue-small") and state.progress(RUN).done >= done)
            here.until(lambda: killed_at_work(generate.pid, state))
        _, err = generate.communicate(timeout=240)
        assert generate.returncode == 0, err
        assert err.count("killed; started as many") in (1, 2), err
    finally:
        generate.kill()


def killed_at_work(fleet: int, state: StateStore) -> bool:
    holders = {str(unit.owner).split("-")[-2] for unit in state.units(RUN, {UnitState.RUNNING})}
    for worker in psutil.Process(fleet).children():
        if str(worker.pid) in holders and worker.is_running():
            os.kill(worker.pid, signal.SIGKILL)
            return True
    return False
