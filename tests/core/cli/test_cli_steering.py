"""init, pause, resume, status, failures, spend, cancel, withdraw and gc, typed against each state store there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from docgen_core.blobs import open_blobs
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.state import open_state
from docgen_core.state.budget import ModelUsage

REFUSED = 5
"""The unit that its pack refuses."""
UNITS = 7


@dataclass(frozen=True)
class Store:
    """A state store that is not there yet."""

    uri: str
    environment: Mapping[str, str]


@pytest.fixture(params=["sqlite", "dynamodb", "firestore"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    if request.param == "sqlite":
        return Store(f"sqlite://{tmp_path / 'state.db'}", {})
    environment = request.getfixturevalue(f"{request.param}_server").environment
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Store(f"{request.param}://docgen-{uuid4().hex[:16]}", environment)


def test_a_store_that_nobody_has_prepared_is_one_line_that_names_init(docgen: Any, dynamodb_server: Any) -> None:
    refused = docgen("generate", "r1", "--state", "dynamodb://docgen-nobody", **dynamodb_server.environment)
    assert refused.code == 2
    assert "docgen init --state dynamodb://docgen-nobody" in refused.complaint


def test_runs_are_steered_looked_at_and_taken_back(store: Store, docgen: Any, tmp_path: Path) -> None:
    def typed(*words: str) -> Any:
        places = {"DOCGEN_STATE": store.uri, "DOCGEN_BLOBS": str(tmp_path / "blobs")}
        return docgen(*words, **store.environment, **places)

    assert typed("init").code == 0
    state, blobs = open_state(store.uri), open_blobs(str(tmp_path / "blobs"))
    pack = "delivery_note_pack:REFUSING"
    build_catalogue_run(state, blobs, "v1", CatalogueSpec(pack=pack, companies=4, products=1, range_width=4))
    work_run("catalogue-v1", state=state, blobs=blobs, worker="here")
    for run, documents in (("r1", UNITS), ("r2", 1)):
        create_run(state, blobs, RunRequest(run, documents, 1, Selection(), "v1", unit_size=1, pack=pack))

    assert "has spent nothing" in typed("spend", "catalogue-v1").err
    state.set_budget("catalogue-v1", 10)
    state.add_spend("catalogue-v1", "unit 0", {"small": ModelUsage(1, 2, 3, 4)})
    spent = typed("spend", "catalogue-v1", "--json").json
    assert (spent["total"]["cost"], spent["budget"]["available"]) == (4, 6)

    refused = typed("budget", "r1", "5")
    assert refused.code == 2 and "run 'r1' makes documents, which asks no language model" in refused.complaint

    assert typed("pause", "r1").code == 0
    assert typed("status", "r1", "--wait").json["state"] == "PAUSED"
    idle = typed("work", "r1")
    assert idle.code == 0 and "`docgen resume r1` goes on" in idle.err
    assert state.progress("r1").pending == UNITS
    assert typed("resume", "r1").code == 3, "one of its units fails"
    failures = typed("failures", "r1")
    assert failures.code == 3 and failures.out == f"{REFUSED}\t1\tparcels weigh more than the lorry\n"
    stands = typed("status", "r1").json
    assert (stands["state"], stands["units"]["done"], stands["units"]["failed"]) == ("RUNNING", UNITS - 1, 1)
    again = typed("resume", "r1")
    assert again.code == 3 and "1 failed units reset" in again.err
    assert typed("cancel", "r1").code == 0
    assert typed("resume", "r1").code == typed("status", "r1", "--wait").code == 4

    assert typed("work", "r2").code == 0
    assert typed("failures", "r2").code == 0
    assert typed("withdraw", "r2").code == 0
    assert typed("gc", "--withdrawn").json["removed"] > 0
    assert list(blobs.iter_keys("runs/r2/")) == []
    listed = {run["run"]: (run["state"], run["withdrawn"]) for run in typed("status").json["runs"]}
    assert listed == {"catalogue-v1": ("COMPLETED", False), "r1": ("CANCELLED", False), "r2": ("COMPLETED", True)}
