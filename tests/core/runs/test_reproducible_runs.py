"""The same run has the same bytes: any folder, any number of workers, any time zone, any order.

In `make test` nine documents in PDF; with DOCGEN_PROVE=1 100 of each output, one after the
other. All conditions are among them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from docgen_core.render.capture import CLEAN, CONDITIONS, SUFFIXES
from docgen_core.runs import fingerprint
from docgen_core.runs.fleet import LocalFleet
from docgen_core.runs.manifest import read_plan
from docgen_core.runs.selection import OUTPUTS, Output, Selection

DOCUMENTS, FULL_DOCUMENTS = 9, 100
UNIT_SIZE, FULL_UNIT_SIZE = 2, 10
PATIENCE_SECONDS = 3_600
"""For the full figures; the smaller ones take seconds."""
pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)
WORKER = """
import sys, time
from docgen_core.blobs import open_blobs
from docgen_core.runs.drain import work_run
from docgen_core.state import open_state
time.tzset()
for run in sys.argv[3:]:
    outcome = work_run(run, state=open_state(sys.argv[1]), blobs=open_blobs(sys.argv[2]), worker="w")
    assert outcome.exit_code == 0, outcome
assert not {"pandas", "duckdb", "dagster", "litellm"} & set(sys.modules), "a worker pays for none of these"
"""


def made_by(stage: Any, workers: int, packs: Path, outputs: tuple[Output, ...], **environment: str) -> dict[str, str]:
    """Digests of a catalogue and of runs over its first half, made by worker processes of their own."""
    stage.plan_catalogue()
    stage.work("catalogue-v1", within={0, 1})
    documents, unit_size = (DOCUMENTS, UNIT_SIZE) if len(outputs) == 1 else (FULL_DOCUMENTS, FULL_UNIT_SIZE)
    for output in outputs:
        conditions = dict.fromkeys((CLEAN,) if output == "html" else CONDITIONS, 1)
        selection = Selection(conditions=conditions, output=output, words=True, labels=True)
        stage.plan(output, documents=documents, unit_size=unit_size, pin=(0, 1), selection=selection)
    command = [sys.executable, "-c", WORKER, stage.state_uri, stage.blobs.uri, "catalogue-v1", *outputs]
    env = {**os.environ, "PYTHONPATH": str(packs), **environment}
    with LocalFleet(command, env=env) as fleet:
        fleet.start(workers)
        assert set(fleet.wait()) == {0}
    digests = dict(stage.digests(""))
    for output in outputs:
        files = [key.rpartition("/")[2] for key in digests if key.startswith(f"runs/{output}/documents/")]
        assert sum(name.endswith(".labels.json") for name in files) == documents
        assert sum(name.endswith(SUFFIXES[output]) for name in files) == len(files) - documents >= documents
    return digests


def test_two_folders_two_fleets_two_time_zones_one_set_of_bytes(
    open_stage: Any, packs_path: Path, full_figures: bool
) -> None:
    outputs: tuple[Output, ...] = OUTPUTS if full_figures else ("pdf",)
    alone = made_by(open_stage("a"), 1, packs_path, outputs, TZ="Asia/Tokyo", PYTHONHASHSEED="1")
    fleet = made_by(
        open_stage("b"), 4, packs_path, outputs, TZ="America/New_York", PYTHONHASHSEED="2", LC_ALL="C.UTF-8"
    )
    assert alone == fleet


def test_a_longer_run_begins_with_the_shorter_ones_documents(stage: Any) -> None:
    stage.catalogue()
    for run_id, documents in (("short", 4), ("long", 7)):
        stage.plan(run_id, documents=documents, unit_size=3)
        stage.work(run_id)
    files = {
        run_id: {key.rpartition("/")[2]: digest for key, digest in stage.digests(f"runs/{run_id}/documents/").items()}
        for run_id in ("short", "long")
    }
    assert len(files["short"]) == 4 and len(files["long"]) == 7
    assert files["short"].items() <= files["long"].items()


@pytest.mark.parametrize("changed", [{"seed": 8}, {"selection": Selection(companies=(0, 3))}])
def test_what_decides_content_decides_the_documents_names(stage: Any, changed: dict[str, Any]) -> None:
    stage.catalogue()
    streams = set()
    for run_id, changes in (("r1", {}), ("r2", changed)):
        stage.plan(run_id, documents=2, **changes)
        stage.work(run_id)
        streams.add(next(iter(stage.digests(f"runs/{run_id}/documents/"))).rpartition("/")[2].partition("-")[0])
    assert len(streams) == 2


def test_software_that_makes_the_same_catalogue_makes_the_same_documents(
    open_stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = open_stage("here")
    here.done(documents=3)
    monkeypatch.setattr(fingerprint, "_sources_digest", lambda: "0" * 12)
    later = open_stage("later")
    later.done(documents=3)
    assert later.digests("catalogue/v1/manifest.json") != here.digests("catalogue/v1/manifest.json")
    assert later.digests("runs/r1/documents/") == here.digests("runs/r1/documents/")


def test_a_catalogue_pinned_whole_or_part_by_part_is_the_same_content(stage: Any) -> None:
    stage.catalogue()
    for run_id, pin in (("whole", "root"), ("parts", (0, 1, 2, 3)), ("some", (0, 1, 2))):
        stage.plan(run_id, documents=2, pin=pin)
    streams = {
        run_id: read_plan(stage.blobs, f"runs/{run_id}").documents_spec.stream for run_id in ("whole", "parts", "some")
    }
    assert streams["whole"] == streams["parts"] != streams["some"]
