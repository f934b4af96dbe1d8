"""`docgen generate` with its state on DynamoDB and on Firestore: the blobs are those of SQLite and one worker."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from docgen_core.state import open_state
from docgen_core.state.contract import UnitState

ORDER = ("generate", "r1", "--catalogue", "small", "--documents", "8", "--seed", "7", "--unit-size", "1")
SETTINGS = "lease_seconds=3&max_attempts=50&skew_seconds=0"


@pytest.fixture(params=["dynamodb", "firestore"])
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of a store that is not there yet, on a server that is."""
    server = request.getfixturevalue(f"{request.param}_server")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    name = f"docgen-{uuid4().hex[:16]}"
    return f"{request.param}://{name}?{SETTINGS}"


@pytest.fixture
def on_sqlite(catalogue: Path, tmp_path_factory: pytest.TempPathFactory, stocked: Any) -> dict[str, str]:
    """The blobs that one worker makes with the state in a file; made once."""
    if not _made:
        folder = tmp_path_factory.mktemp("on-sqlite") / "desk"
        shutil.copytree(catalogue, folder)
        here = replace(stocked, folder=folder)
        here.done(*ORDER)
        _made.update(here.digests("runs/r1"))
    return _made


_made: dict[str, str] = {}


def test_two_workers_make_the_same_blobs(stocked: Any, cloud: str, on_sqlite: dict[str, str]) -> None:
    stocked.done("init", "--state", cloud)
    stocked.done(*ORDER, "--workers", "2", "--state", cloud)
    assert stocked.digests("runs/r1") == on_sqlite
    stocked.done("verify", "r1", "--state", cloud)
    status = stocked.done("status", "r1", "--json", "--state", cloud).json
    assert (status["units"]["done"], status["units"]["total"]) == (8, 8)


def test_killing_a_worker_meanwhile_changes_nothing(stocked: Any, cloud: str, on_sqlite: dict[str, str]) -> None:
    stocked.done("init", "--state", cloud)
    generate = stocked.start(*ORDER, "--workers", "2", "--state", cloud)
    try:
        with open_state(cloud) as state:
            stocked.until(lambda: state.list_runs() and state.units("r1", {UnitState.DONE}))
            workers = [child for child in psutil.Process(generate.pid).children() if "work" in child.cmdline()]
            os.kill(workers[0].pid, signal.SIGKILL)
            _, err = generate.communicate(timeout=240)
            assert generate.returncode == 0, err
            assert "killed; started as many" in err
            assert state.progress("r1").done == 8
    finally:
        generate.kill()
    assert stocked.digests("runs/r1") == on_sqlite


@pytest.mark.parametrize("cloud", ["dynamodb"], indirect=True)
def test_a_store_that_nobody_has_prepared_is_one_line_that_names_init(stocked: Any, cloud: str) -> None:
    refused = stocked.docgen(*ORDER, "--state", cloud)
    assert refused.code == 2
    assert f"docgen init --state {cloud.partition('?')[0]}" in refused.complaint
