"""Planning: one plan a run, whoever wins, loses, dies or comes late."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from docgen_core.errors import (
    BrowserMissing,
    DocgenError,
    FingerprintMismatch,
    PlanConflict,
    RunIncomplete,
    RunUnknown,
    RunWithdrawn,
    SelectionRefused,
    UsageError,
)
from docgen_core.runs import fingerprint
from docgen_core.runs.plan import create_run, fleet_warning, preview
from docgen_core.runs.selection import Selection
from docgen_core.runs.spec import usual_unit_size
from docgen_core.runs.withdraw import withdraw
from docgen_core.state.contract import RunMarker, StateStore


@pytest.fixture
def stage(stage: Any) -> Any:
    stage.catalogue()
    return stage


def marker_of(stage: Any, **changes: object) -> RunMarker:
    return preview(stage.state, stage.blobs, stage.request(**changes)).plan.marker


def test_planning_records_the_run_and_publishes_its_plan(stage: Any) -> None:
    planned = stage.plan(documents=5)
    assert planned.created and planned.run.planned and planned.warnings == ()
    plan = json.loads(stage.blobs.get("runs/r1/plan.json"))
    assert plan["format"] == 1 and plan["run_id"] == "r1" and plan["prefix"] == "runs/r1"
    assert (plan["total_items"], plan["unit_size"], plan["total_units"]) == (5, 2, 3)
    assert plan["spec"]["documents"] == 5 and plan["spec"]["catalogue"]["version"] == "v1"
    assert set(plan["fingerprint"]) == {"docgen", "pack", "chromium", "fonts", "libraries", "unicode"}
    assert planned.run.marker.spec_digest == plan["spec_digest"]


def test_a_plan_names_no_worker_no_clock_and_no_store(stage: Any) -> None:
    stage.plan()
    plan = stage.blobs.get("runs/r1/plan.json").decode()
    for word in (str(stage.folder), "worker", "created", "lease", "attempts"):
        assert word not in plan


@pytest.mark.parametrize(
    "changes",
    [
        *({"run_id": name} for name in ("", "A", "a/b", "../a", "a..b", ".a", "-a", "a b", "a\n", "ü", "a" * 101)),
        {"run_id": "catalogue-x"},
        *({"documents": number} for number in (0, -1, 10**9, True, 2.5, "7")),
        *({"seed": number} for number in (-1, 2**63)),
        *({"unit_size": number} for number in (0, -3, 10_001)),
        {"documents": 2_000_000, "unit_size": 1},
        {"catalogue": "absent"},
        {"catalogue": "../v1"},
        {"pin": ()},
        {"pin": "parts"},
        {"selection": Selection(conditions={"burnt": 1})},
        {"selection": Selection(companies=(100, 200))},
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_written(stage: Any, changes: dict[str, Any]) -> None:
    before = stage.digests("")
    with pytest.raises(DocgenError) as refused:
        create_run(stage.state, stage.blobs, replace(stage.request(), **changes))
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert stage.digests("") == before
    with pytest.raises(RunUnknown):
        stage.state.run("r1")


def test_a_machine_that_cannot_draw_records_nothing(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_browser(*_: object) -> dict[str, str]:
        raise BrowserMissing("no browser here")

    monkeypatch.setattr("docgen_core.runs.plan.current_fingerprint", no_browser)
    with pytest.raises(BrowserMissing):
        stage.plan()
    with pytest.raises(RunUnknown):
        stage.state.run("r1")


def test_an_unknown_pack_is_refused(stage: Any) -> None:
    for name in ("waybill", "no_such_module:PACK", "delivery_note_pack:NONE"):
        with pytest.raises(UsageError):
            create_run(stage.state, stage.blobs, replace(stage.request(), pack=name))


def test_a_catalogue_of_another_pack_is_refused(stage: Any) -> None:
    with pytest.raises(UsageError, match="was built for pack 'delivery_note_pack:PACK'"):
        stage.plan(pack="REFUSING")


def test_a_selection_that_no_company_serves_is_refused(stage: Any) -> None:
    with pytest.raises(SelectionRefused, match="no company of catalogue 'v1'"):
        stage.plan(selection=Selection(companies=(1_000, 2_000)))


def test_planning_again_joins_and_says_so(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    stage.plan()
    before = stage.digests("")
    with caplog.at_level(logging.INFO):
        again = stage.plan()
    assert not again.created and again.run.planned
    assert "already planned; resuming" in caplog.text
    assert stage.digests("") == before


def test_another_spec_under_the_same_id_is_a_conflict_naming_each_difference(stage: Any) -> None:
    stage.plan()
    with pytest.raises(PlanConflict) as conflict:
        stage.plan(documents=8, seed=9, unit_size=4, selection=Selection(locales=("ja-JP",)))
    assert conflict.value.differences == (
        "documents is 6, asked for 8",
        "seed is 7, asked for 9",
        "selection.locales is [], asked for ['ja-JP']",
        "unit_size is 2, asked for 4",
    )
    assert stage.plan().created is False


def test_a_loser_waits_for_the_winner(stage: Any) -> None:
    winner = marker_of(stage)
    stage.state.create_run(winner)
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            stage.state.mark_planned("r1", winner.spec_digest)

    planned = create_run(stage.state, stage.blobs, stage.request(), sleep=sleep)
    assert not planned.created and planned.run.planned
    assert len(waits) == 3
    assert not stage.blobs.exists("runs/r1/plan.json"), "the plan was the winner's to write"


def test_a_waiter_takes_over_from_a_dead_planner_and_a_late_one_changes_nothing(stage: Any) -> None:
    class DiesBeforePlanning(Exception):
        pass

    class DeadPlanner:
        """A state store whose process dies after the marker."""

        def __init__(self, state: StateStore) -> None:
            self._state = state

        def __getattr__(self, name: str) -> Any:
            if name == "mark_planned":
                raise DiesBeforePlanning
            return getattr(self._state, name)

    with pytest.raises(DiesBeforePlanning):
        create_run(DeadPlanner(stage.state), stage.blobs, stage.request())  # type: ignore[arg-type]
    stage.blobs.delete("runs/r1/plan.json")
    assert not stage.state.run("r1").planned

    waits: list[float] = []
    planned = create_run(stage.state, stage.blobs, stage.request(), takeover_seconds=5, sleep=waits.append)
    assert planned.run.planned and sum(waits) == 5
    assert stage.work().exit_code == 0

    before = stage.digests("")
    late = stage.state.mark_planned("r1", planned.run.marker.spec_digest)
    assert late.root_digest is not None and late.planned
    stage.blobs.put_same("runs/r1/plan.json", stage.blobs.get("runs/r1/plan.json"))
    assert stage.digests("") == before


def test_a_withdrawn_id_is_refused(stage: Any) -> None:
    stage.plan()
    withdraw("r1", stage.blobs)
    with pytest.raises(RunWithdrawn):
        stage.plan()
    with pytest.raises(RunWithdrawn):
        preview(stage.state, stage.blobs, stage.request())


def test_a_plan_outlives_its_state_store(stage: Any) -> None:
    stage.plan()
    (stage.folder / "state.db").rename(stage.folder / "lost.db")
    for suffix in ("-wal", "-shm"):
        (stage.folder / f"state.db{suffix}").unlink(missing_ok=True)
    fresh = stage.reopen()
    with pytest.raises(PlanConflict, match="seed is 7, asked for 8"):
        create_run(fresh, stage.blobs, stage.request(seed=8))
    with pytest.raises(RunUnknown):
        fresh.run("r1")
    assert create_run(fresh, stage.blobs, stage.request()).created


def test_a_preview_writes_nothing(stage: Any) -> None:
    before = stage.digests("")
    seen = preview(stage.state, stage.blobs, stage.request(selection=Selection(companies=(2, 4))))
    assert seen.companies == 3 and not seen.exists
    assert seen.plan.total_units == 3
    assert stage.digests("") == before
    with pytest.raises(RunUnknown):
        stage.state.run("r1")


@pytest.mark.parametrize(
    ("documents", "size"), [(1, 1), (64, 1), (65, 2), (1_000, 16), (12_800, 200), (12_801, 200), (1_000_000, 200)]
)
def test_a_run_is_cut_into_about_64_units_of_1_to_200_documents(documents: int, size: int) -> None:
    assert usual_unit_size(documents) == size


def test_fewer_than_two_units_a_worker_is_warned_of(stage: Any) -> None:
    assert fleet_warning(8, 4) is None and fleet_warning(1, 1) is None
    assert "5 workers share 8 units" in str(fleet_warning(8, 5))
    (warning,) = create_run(stage.state, stage.blobs, stage.request(), workers=2).warnings
    assert "2 workers share 3 units" in warning


def test_finished_parts_of_a_catalogue_that_is_being_built_can_be_pinned(open_stage: Any) -> None:
    stage = open_stage("half")
    stage.plan_catalogue()
    assert stage.work("catalogue-v1", within={1, 3}).kind == "SCOPE_DONE"
    planned = stage.plan(pin=(3, 1))
    pin = planned.run.marker.spec["catalogue"]["pin"]
    assert sorted(pin["parts"]) == ["1", "3"]
    assert stage.work().exit_code == 0
    with pytest.raises(RunIncomplete, match=r"units 0, 2.*docgen work catalogue-v1"):
        stage.plan("r2", pin=(0, 1, 2))
    with pytest.raises(RunIncomplete, match="no root manifest"):
        stage.plan("r2")
    assert stage.work("catalogue-v1").exit_code == 0
    assert stage.plan(pin=(1, 3)).created is False


def test_a_worker_with_other_software_stays_out_and_says_what_differs(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.plan()
    monkeypatch.setattr(fingerprint, "_drawing", lambda: {"chromium": "Chromium 1.0", "fonts": "0" * 64})
    with pytest.raises(FingerprintMismatch, match=r"chromium: the plan names .*, here is Chromium 1\.0; fonts: "):
        stage.work()
    assert stage.state.units("r1") == []
    with pytest.raises(FingerprintMismatch, match=r"libraries: .*pikepdf .*qpdf"):
        fingerprint.check_fingerprint("r1", {"libraries": "a"}, {"libraries": "b"})
