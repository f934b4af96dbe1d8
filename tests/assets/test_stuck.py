"""A run that nobody works at is reported once it has stood still for long, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from docgen_core.state import open_state
from docgen_core.state.contract import Lease, Part, RunKind, RunMarker, StateStore
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

if TYPE_CHECKING:
    from docgen_assets.stuck import Watch
    from tests.assets.conftest import Location

RUN = "invoices-00000-00003"
RUNS = {RunKind.DOCUMENTS: "r1", RunKind.CATALOGUE: "catalogue-v1"}
LEASE_SECONDS = 60.0
LONG = 10 * 24 * 3600.0


class Clock:
    """One that moves when told."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(clock: Clock) -> StateStore:
    """A store with a planned run of three units."""
    settings = Settings(LEASE_SECONDS, 3, 0.0)
    store = SegmentStore(MemoryPrimitives(), settings, uri="test", clock=clock, monotonic=clock)
    for kind in RunKind:
        run_id = RUNS[kind]
        store.create_run(RunMarker(run_id, kind, f"runs/{run_id}", {}, "d", 3, 1, 3))
        store.mark_planned(run_id, "d")
    return store


def claimed(state: StateStore, run_id: str = "r1") -> Lease:
    (lease,) = state.claim_next_unit(run_id, "worker").leases
    return lease


def done(state: StateStore, run_id: str = "r1") -> None:
    lease = claimed(state, run_id)
    state.complete_unit(lease, Part(f"runs/{run_id}/manifest/unit-{lease.index:06d}.json", "0" * 64, 1))


def said(state: StateStore, run_id: str = "r1") -> tuple[str, str]:
    """What is wrong with the run if nothing moves, and what to do; two empty texts for nothing."""
    from docgen_assets.stuck import look

    trouble = look(state, state.run(run_id))
    return (trouble.what, trouble.do) if trouble else ("", "")


def test_a_run_that_nobody_has_begun_or_that_somebody_works_at_is_well(state: StateStore):
    assert said(state) == ("", "")
    done(state)
    state.fail_unit(claimed(state), "boom")
    claimed(state)
    assert said(state) == ("", ""), "a worker holds a unit, whatever else there is"


def test_leases_of_workers_that_are_gone_are_counted_beside_what_waits(state: StateStore, clock: Clock):
    claimed(state)
    clock.now += LEASE_SECONDS + 1
    what, do = said(state)
    assert what == "1 units are held by workers that are gone, 2 units wait for a worker"
    assert "resume_run with run_id r1" in do and "`docgen resume r1`" in do and "cancel_run" in do


def test_failed_units_are_named_with_their_error(state: StateStore):
    done(state)
    state.fail_unit(claimed(state), "no space left on device")
    done(state)
    assert re.fullmatch(r"1 units failed \(unit \d: no space left on device\)", said(state)[0])


def test_a_run_left_half_way_is_one_that_stands_still(state: StateStore):
    done(state)
    state.release(claimed(state))
    assert said(state)[0] == "2 units wait for a worker"


def test_a_catalogue_lacks_ranges_that_nobody_wanted_yet_and_that_is_no_trouble(state: StateStore):
    catalogue = RUNS[RunKind.CATALOGUE]
    done(state, catalogue)
    assert said(state, catalogue) == ("", "")
    state.fail_unit(claimed(state, catalogue), "the budget is used up")
    assert re.fullmatch(r"1 units failed \(unit \d: the budget is used up\)", said(state, catalogue)[0])


def test_a_drained_run_a_paused_one_and_one_without_a_plan(state: StateStore):
    for _ in range(3):
        done(state)
    assert said(state)[0] == "every unit is done, and nobody sealed it"
    state.begin_finalize("r1")
    assert said(state)[0] == "every unit is done, and nobody sealed it"
    state.create_run(RunMarker("r1-b", RunKind.DOCUMENTS, "runs/r1-b", {}, "d", 1, 1, 1))
    from docgen_assets.stuck import look

    planless = look(state, state.run("r1-b"))
    assert planless is not None and "planner" in planless.what
    state.mark_planned("r1-b", "d")
    state.pause("r1-b")
    paused = look(state, state.run("r1-b"))
    assert paused is not None and paused.what == "it is paused" and "resume_run" in paused.do


def reloaded(watch: Watch) -> Watch:
    from docgen_assets.stuck import Watch

    return Watch.load(watch.dump())


def test_only_what_stands_still_for_long_is_stuck_and_a_move_begins_anew():
    from docgen_assets.stuck import STILL_SECONDS, Trouble, Watch

    before, after = Trouble("r1", "2 units wait for a worker", "do"), Trouble("r1", "1 units wait for a worker", "do")
    watch = Watch()
    watch.note([before], "", 0.0)
    assert watch.stuck(STILL_SECONDS - 1) == []
    watch = reloaded(watch)
    watch.note([before], "", STILL_SECONDS)
    assert watch.stuck(STILL_SECONDS) == [before]
    watch.note([after], "", STILL_SECONDS + 1)
    assert watch.stuck(STILL_SECONDS + 2) == [], "it has moved"
    watch.note([], "", STILL_SECONDS + 3)
    assert watch.stuck(LONG) == []


def test_a_look_at_some_runs_forgets_no_other_and_the_cursor_stays_bounded():
    from docgen_assets.stuck import FOLLOWED, Trouble, Watch

    watch = Watch()
    watch.note([Trouble("a", "x", "do")], "b", 0.0)
    watch.note([Trouble("c", "x", "do")], "", 0.0)
    assert [trouble.run_id for trouble in watch.stuck(LONG)] == ["a", "c"]
    watch.note([Trouble(f"m{number:04d}", "x" * 400, "y" * 200) for number in range(1_000)], "", 0.0)
    assert len(watch.seen) == FOLLOWED
    assert len(watch.dump()) < 50_000
    assert reloaded(watch) == watch
    assert Watch.load('{"of": "another version"}') == Watch()


@pytest.mark.parametrize(
    "text", [None, "", "null", "[]", "no JSON", '{"after":5}', '{"told":5}', '{"seen":{"r1":[{},1]}}']
)
def test_a_cursor_that_somebody_mangled_is_begun_anew(text: str | None):
    from docgen_assets.stuck import Trouble, Watch

    kept = Watch(after="r3", seen={"r1": (Trouble("r1", "it is paused", "resume it"), 7.0)}, told=["r1"])
    assert Watch.load(kept.dump()) == kept
    assert Watch.load(text) == Watch()


def test_the_sensor_reports_a_stuck_run_at_the_check_once_and_that_it_is_well_again(
    planned: Location, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    from docgen_assets.defs import stuck

    monkeypatch.setattr(stuck, "_clock", clock)
    with open_state(planned.stores["state"]) as state:
        (lease,) = state.claim_next_unit(RUN, "a-worker-with-a-fault").leases
        state.fail_unit(lease, "no space left on device")
    tick = ticking(planned)
    assert tick() == [], "it may move yet"
    clock.now += LONG
    (report,) = tick()
    assert not report.passed and report.severity is dg.AssetCheckSeverity.WARN
    assert RUN in (report.description or "") and "resume_run" in (report.description or ""), report
    assert tick() == [], "told once"
    with open_state(planned.stores["state"]) as state:
        state.cancel(RUN)
    (report,) = tick()
    assert report.passed


def ticking(location: Location) -> Callable[[], list[dg.AssetCheckEvaluation]]:
    """Evaluates the sensor tick by tick; gives what it reports."""
    from docgen_assets.defs.stuck import stuck_run_sensor
    from docgen_assets.resources import Stores

    cursor: str | None = None

    def tick() -> list[dg.AssetCheckEvaluation]:
        nonlocal cursor
        context = dg.build_sensor_context(
            instance=location.instance, cursor=cursor, resources={"stores": Stores(**location.stores)}
        )
        answer = stuck_run_sensor(context)
        assert isinstance(answer, dg.SensorResult)
        cursor = answer.cursor
        for event in answer.asset_events:
            location.instance.report_runless_asset_event(event)
        return [event for event in answer.asset_events if isinstance(event, dg.AssetCheckEvaluation)]

    return tick


def test_the_check_run_by_hand_tells_what_stands_still_now(planned: Location, monkeypatch: pytest.MonkeyPatch):
    from docgen_assets.defs import stuck

    monkeypatch.setattr(stuck, "STILL_SECONDS", 0.001)
    key = dg.AssetCheckKey(dg.AssetKey("golden_shards"), stuck.NO_RUN_IS_STUCK)
    job = planned.defs.resolve_job_def("generate_corpus").get_subset(asset_selection=set(), asset_check_selection={key})
    config = {"resources": {"stores": {"config": planned.stores}}}
    with open_state(planned.stores["state"]) as state:
        (evaluation,) = job.execute_in_process(config, instance=planned.instance).get_asset_check_evaluations()
        assert evaluation.passed
        state.pause(RUN)
        (evaluation,) = job.execute_in_process(config, instance=planned.instance).get_asset_check_evaluations()
    assert not evaluation.passed
    assert RUN in str(evaluation.metadata["what to do"].value)
