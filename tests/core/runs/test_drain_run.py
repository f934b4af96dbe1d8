"""The drain loop: what a worker does with work, without work, and with trouble."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from docgen_core.errors import Damage, RunUnknown, RunWithdrawn, StorageFailed
from docgen_core.runs import drain
from docgen_core.runs.drain import reopen_run, resume_run
from docgen_core.runs.manifest import read_plan
from docgen_core.runs.outcomes import DrainEnd, UnitOutcome
from docgen_core.runs.plan import preview
from docgen_core.runs.selection import Selection
from docgen_core.runs.texts import WriterSettings
from docgen_core.runs.unit import RendererOnDemand, open_maker
from docgen_core.runs.verify import verify_run
from docgen_core.runs.withdraw import withdraw
from docgen_core.runs.worker import worker_identity
from docgen_core.state import open_state
from docgen_core.state.contract import Outlook, RunState, UnitState
from docgen_core.state.sqlite import SqlitePrimitives
from docgen_core.state.transitions import lease_of

FAST = "?lease_seconds=2&max_attempts=2"


class Interfering:
    """A blob store on which something happens at a put of a certain key."""

    def __init__(self, blobs: Any, part_of_key: str, act: Any) -> None:
        self._blobs, self._part, self._act = blobs, part_of_key, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        if self._part in key:
            self._act()
        self._blobs.put(key, data, create_only=create_only)


def test_one_worker_drains_and_seals(stage: Any) -> None:
    stage.catalogue()
    stage.plan()
    stage.events.clear()
    outcome = stage.work(worker="me")
    assert outcome.kind is DrainEnd.COMPLETED and outcome.exit_code == 0 and outcome.units == 3
    run = stage.state.run("r1")
    assert run.state is RunState.COMPLETED and run.root_digest == outcome.root_digest
    assert stage.blobs.get("sealed/r1").decode() == f"{outcome.root_digest}\n"
    assert sorted(event.unit for event in stage.events) == [0, 1, 2]
    assert {(event.outcome, event.worker, event.items) for event in stage.events} == {(UnitOutcome.DONE, "me", 2)}
    assert verify_run("r1", blobs=stage.blobs, state=stage.state, deep=True).findings == ()


def test_a_drained_run_needs_no_browser_and_no_work(stage: Any) -> None:
    stage.done()
    browser = RendererOnDemand()
    outcome = stage.work(renderer=browser)
    assert outcome.kind is DrainEnd.COMPLETED and outcome.units == 0
    assert browser._renderer is None


def test_a_catalogue_build_starts_no_browser(stage: Any) -> None:
    stage.plan_catalogue()
    browser = RendererOnDemand()
    assert stage.work("catalogue-v1", renderer=browser).kind is DrainEnd.COMPLETED
    assert browser._renderer is None


def test_many_workers_share_a_run_and_nothing_is_done_twice(stage: Any) -> None:
    stage.plan_catalogue(companies=120, range_width=1)
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda n: stage.work("catalogue-v1", f"w{n}", state=stage.reopen()), range(6)))
    assert {outcome.kind for outcome in outcomes} == {DrainEnd.COMPLETED}
    assert sum(outcome.units for outcome in outcomes) == 120
    assert sorted(event.unit for event in stage.events) == list(range(120))
    assert {unit.generation for unit in stage.state.units("catalogue-v1")} == {1}
    assert verify_run("catalogue-v1", blobs=stage.blobs, state=stage.state, deep=True).findings == ()


def test_quick_units_are_claimed_in_batches_without_counting_what_is_left(stage: Any) -> None:
    stage.plan_catalogue(companies=200, range_width=1)
    asked: list[tuple[str, Any]] = []

    class Listening:
        def __getattr__(self, name: str) -> Any:
            found = getattr(stage.state, name)

            def listening(*args: Any, **kwargs: Any) -> Any:
                asked.append((name, kwargs.get("limit")))
                return found(*args, **kwargs)

            return listening

    assert stage.work("catalogue-v1", state=Listening()).units == 200
    claims = [limit for name, limit in asked if name == "claim_next_unit"]
    assert claims[0] == 1 and max(claims) > 1
    assert not any(name == "progress" for name, _ in asked), "a count reads every segment of the run"


def test_a_clock_that_is_off_is_told_once_and_the_work_is_done(stage: Any, caplog: pytest.LogCaptureFixture) -> None:
    stage.plan_catalogue()
    stage.work("catalogue-v1", within={0})
    assert caplog.messages == []
    fast = open_state(stage.state_uri, clock=lambda: time.time() + 600)
    assert stage.work("catalogue-v1", state=fast, within={1}).kind is DrainEnd.SCOPE_DONE
    assert stage.work("catalogue-v1", state=fast).kind is DrainEnd.COMPLETED
    (told,) = caplog.messages
    assert "this machine's clock is" in told and "ahead of the state store's" in told and "\n" not in told


def test_a_store_that_does_not_tell_its_time_keeps_nobody_from_working(
    stage: Any, caplog: Any, monkeypatch: Any
) -> None:
    stage.plan_catalogue()

    def refuse(store: Any) -> float:
        raise StorageFailed("no answer")

    monkeypatch.setattr(SqlitePrimitives, "read_time", refuse)
    assert stage.work("catalogue-v1").kind is DrainEnd.COMPLETED
    assert caplog.messages == []


def test_an_unknown_or_withdrawn_run_is_refused(stage: Any) -> None:
    with pytest.raises(RunUnknown):
        stage.work("never")
    stage.catalogue()
    stage.plan()
    withdraw("r1", stage.blobs)
    with pytest.raises(RunWithdrawn):
        stage.work()


def test_a_scope_limits_the_work_to_its_units(stage: Any) -> None:
    stage.plan_catalogue()
    outcome = stage.work("catalogue-v1", within={0, 2})
    assert outcome.kind is DrainEnd.SCOPE_DONE and outcome.exit_code == 0
    assert [unit.index for unit in stage.state.units("catalogue-v1", {UnitState.DONE})] == [0, 2]
    assert not stage.blobs.exists("catalogue/v1/manifest.json")
    assert stage.work("catalogue-v1", within={1, 3}).kind is DrainEnd.COMPLETED, "whoever does the last unit seals"


def test_with_peers_at_work_a_worker_waits_and_without_waiting_leaves(stage: Any) -> None:
    stage.plan_catalogue()
    held = stage.state.claim_next_unit("catalogue-v1", "peer", limit=1).leases[0]
    left = stage.work("catalogue-v1", wait=False)
    assert left.kind is DrainEnd.PEERS_AT_WORK and left.exit_code == 0 and left.units == 3
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stage.work, "catalogue-v1", state=stage.reopen())
        stage.state.release(held)
        outcome = waiting.result()
    assert outcome.kind is DrainEnd.COMPLETED and outcome.units == 1


def test_who_only_waited_leaves_the_sealing_to_who_did_the_last_unit(stage: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(drain, "SEAL_SECONDS_A_UNIT", 1_000.0)
    monkeypatch.setattr(drain, "LONGEST_SEAL_SECONDS", 1_000.0)
    stage.plan_catalogue()
    assert stage.work("catalogue-v1", within={0, 1, 2}).kind is DrainEnd.SCOPE_DONE
    held = stage.state.claim_next_unit("catalogue-v1", "peer").leases[0]
    stop, hangs_back = threading.Event(), threading.Event()

    class Listening:
        """Tells when the worker is told that the run is drained."""

        def __init__(self) -> None:
            self.state = stage.reopen()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.state, name)

        def claim_next_unit(self, *args: Any, **kwargs: Any) -> Any:
            claim = self.state.claim_next_unit(*args, **kwargs)
            if claim.outlook is Outlook.BUSY and not stage.blobs.exists(last):
                part = maker.make(held, lambda: None)
                stage.state.complete_unit(held, part)
            elif claim.outlook is Outlook.DRAINED:
                hangs_back.set()
            return claim

    prefix = "catalogue/v1"
    last = f"{prefix}/manifest/unit-{held.index:06d}.json"
    plan = read_plan(stage.blobs, prefix)
    maker = open_maker(plan, stage.blobs, stage.renderer, state=stage.state, worker="peer", writing=WriterSettings())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stage.work, "catalogue-v1", state=Listening(), stop=stop)
        until(hangs_back.is_set)
        assert not stage.blobs.exists(f"{prefix}/manifest.json")
        assert stage.work("catalogue-v1").kind is DrainEnd.COMPLETED, "who did not wait seals at once"
        stop.set()
        assert waiting.result().kind is DrainEnd.COMPLETED


def test_the_last_owner_dies_and_a_waiting_peer_takes_over(open_stage: Any) -> None:
    stage = open_stage("tail", "?lease_seconds=0.3")
    stage.plan_catalogue()
    stage.state.claim_next_unit("catalogue-v1", "dead", limit=1)
    outcome = stage.work("catalogue-v1")
    assert outcome.kind is DrainEnd.COMPLETED and outcome.units == 4


def test_a_pause_lets_the_unit_in_hand_finish_and_hands_the_rest_back(stage: Any) -> None:
    stage.plan_catalogue(companies=40, range_width=1)
    paused = Interfering(stage.blobs, "manifest/unit-", lambda: stage.state.pause("catalogue-v1"))
    outcome = stage.work("catalogue-v1", blobs=paused)
    assert outcome.kind is DrainEnd.PAUSED and outcome.exit_code == 0 and outcome.units == 1
    progress = stage.state.progress("catalogue-v1")
    assert (progress.done, progress.running, progress.pending) == (1, 0, 39)
    assert stage.work("catalogue-v1").kind is DrainEnd.PAUSED
    done = resume_run("catalogue-v1", state=stage.state, blobs=stage.blobs, worker="w")
    assert done.kind is DrainEnd.COMPLETED and done.units == 39


def test_a_batch_in_waiting_goes_back_at_a_pause(open_stage: Any) -> None:
    stage = open_stage("batch")
    stage.plan_catalogue(companies=200, range_width=1)
    puts = iter(range(10_000))

    def pause_in_the_middle() -> None:
        if next(puts) == 60:
            stage.state.pause("catalogue-v1")

    outcome = stage.work("catalogue-v1", blobs=Interfering(stage.blobs, "manifest/unit-", pause_in_the_middle))
    progress = stage.state.progress("catalogue-v1")
    assert outcome.kind is DrainEnd.PAUSED
    assert (progress.done, progress.running) == (61, 0), "the renewal before each unit tells of the pause"
    assert all(unit.attempts == 0 for unit in stage.state.units("catalogue-v1", {UnitState.PENDING}))


def test_a_cancelled_run_stops_its_workers_at_the_next_renewal(open_stage: Any, monkeypatch: Any) -> None:
    stage = open_stage("cancel", "?lease_seconds=0.3")
    gate = stage.folder / "gate"
    monkeypatch.setenv("DELIVERY_NOTE_GATE", str(gate))
    stage.plan_catalogue("WAITING", companies=10, range_width=10)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(stage.work, "catalogue-v1", state=stage.reopen())
        until(lambda: stage.state.units("catalogue-v1", {UnitState.RUNNING}))
        stage.state.cancel("catalogue-v1")
        beats = stage.state.units("catalogue-v1")[0].heartbeat
        until(lambda: stage.state.units("catalogue-v1")[0].heartbeat > beats + 1)
        gate.touch()
        outcome = working.result()
    assert outcome.kind is DrainEnd.CANCELLED and outcome.exit_code == 4
    progress = stage.state.progress("catalogue-v1")
    assert (progress.running, progress.done) == (0, 0), "no lease is left behind"


def test_stopping_hands_leases_back_without_using_up_an_attempt(stage: Any) -> None:
    stage.catalogue()
    stage.plan(documents=12, unit_size=4)
    stop = threading.Event()
    first_document = Interfering(stage.blobs, "/documents/", stop.set)
    stage.events.clear()
    outcome = stage.work(blobs=first_document, stop=stop)
    assert outcome.kind is DrainEnd.STOPPED and outcome.exit_code == 143
    assert [event.outcome for event in stage.events] == [UnitOutcome.RELEASED]
    (unit,) = stage.state.units("r1")
    assert unit.state is UnitState.PENDING and unit.attempts == 0
    assert stage.work(stop=stop).kind is DrainEnd.STOPPED
    assert stage.work().kind is DrainEnd.COMPLETED


def test_a_refused_record_fails_its_unit_at_once_and_the_others_are_done(stage: Any) -> None:
    stage.plan_catalogue("REFUSING")
    outcome = stage.work("catalogue-v1")
    assert outcome.kind is DrainEnd.DRAINED_WITH_FAILURES and outcome.exit_code == 3
    assert outcome.failed == (2,) and outcome.units == 3
    (failed,) = stage.state.units("catalogue-v1", {UnitState.FAILED})
    assert failed.error == "parcels weigh more than the lorry" and failed.attempts == 1
    assert not stage.blobs.exists("catalogue/v1/manifest.json")


def test_a_bug_is_retried_until_the_attempts_are_used_up(open_stage: Any) -> None:
    stage = open_stage("bug", FAST)
    stage.plan_catalogue("CRASHING")
    outcome = stage.work("catalogue-v1")
    assert outcome.failed == (2,) and outcome.units == 3
    (failed,) = stage.state.units("catalogue-v1", {UnitState.FAILED})
    assert failed.error == "ZeroDivisionError: a bug of the pack" and failed.attempts == 2
    outcomes = [event.outcome for event in stage.events if event.unit == 2]
    assert outcomes == [UnitOutcome.RETRY, UnitOutcome.FAILED]


def test_failures_outside_the_scope_are_not_the_scopes(stage: Any) -> None:
    stage.plan_catalogue("REFUSING")
    stage.work("catalogue-v1")
    assert stage.work("catalogue-v1", within={0, 1}).kind is DrainEnd.SCOPE_DONE
    assert stage.work("catalogue-v1", within={1, 2}).kind is DrainEnd.DRAINED_WITH_FAILURES


def test_resuming_gives_failed_units_their_attempts_back(stage: Any) -> None:
    stage.plan_catalogue("REFUSING")
    stage.work("catalogue-v1")
    assert reopen_run(stage.state, "catalogue-v1").reset == 1
    assert stage.state.progress("catalogue-v1").failed == 0
    stage.work("catalogue-v1")
    (failed,) = stage.state.units("catalogue-v1", {UnitState.FAILED})
    assert failed.generation == 2, "the generation never goes down"


def test_a_full_disk_ends_the_worker_with_its_leases_handed_back(stage: Any) -> None:
    def full() -> None:
        raise StorageFailed("no space is left")

    stage.plan_catalogue()
    with pytest.raises(StorageFailed, match="no space is left"):
        stage.work("catalogue-v1", blobs=Interfering(stage.blobs, "/golden/", full))
    (unit,) = stage.state.units("catalogue-v1")
    assert unit.state is UnitState.PENDING and unit.attempts == 0
    assert stage.work("catalogue-v1").kind is DrainEnd.COMPLETED


def test_a_damaged_catalogue_ends_the_worker_and_fails_no_unit(stage: Any) -> None:
    stage.catalogue()
    stage.plan(selection=Selection(companies=(2, 3)))
    stage.blobs.put("catalogue/v1/golden/goods/unit-000001.parquet", b"other bytes")
    with pytest.raises(Damage, match="unit-000001"):
        stage.work()
    assert stage.state.progress("r1").failed == 0


def test_a_late_owner_is_not_believed(stage: Any) -> None:
    stage.plan_catalogue()
    stolen: list[int] = []

    def steal() -> None:
        for unit in stage.state.units("catalogue-v1", {UnitState.RUNNING}):
            if not stolen:
                stolen.append(unit.index)
                stage.state.release(lease_of(unit, asked_at=0.0, lease_seconds=60.0))
                stage.state.claim_next_unit("catalogue-v1", "thief", within={unit.index})

    stage.work("catalogue-v1", blobs=Interfering(stage.blobs, "manifest/unit-", steal), wait=False)
    lost = [event for event in stage.events if event.outcome is UnitOutcome.LOST]
    assert [event.unit for event in lost] == stolen
    (held,) = stage.state.units("catalogue-v1", {UnitState.RUNNING})
    assert held.owner == "thief" and held.generation == 2


def test_a_worker_takes_the_planning_over_when_the_planner_is_gone(stage: Any) -> None:
    stage.catalogue()
    stage.state.create_run(preview(stage.state, stage.blobs, stage.request()).plan.marker)
    assert stage.work(takeover_seconds=0.0).kind is DrainEnd.COMPLETED


def test_without_waiting_a_run_that_nobody_has_planned_is_no_success(stage: Any) -> None:
    stage.catalogue()
    stage.state.create_run(preview(stage.state, stage.blobs, stage.request()).plan.marker)
    outcome = stage.work(wait=False)
    assert outcome.kind is DrainEnd.UNPLANNED and outcome.exit_code == 3 and outcome.units == 0


def test_each_worker_process_is_an_owner_of_its_own() -> None:
    assert worker_identity({}) != worker_identity({})
    cloud = {"CLOUD_RUN_EXECUTION": "drain-x7", "CLOUD_RUN_TASK_INDEX": "3", "CLOUD_RUN_TASK_ATTEMPT": "1"}
    assert worker_identity(cloud).startswith("drain-x7.3.1-")
    assert worker_identity({"ECS_CONTAINER_METADATA_URI_V4": "http://169.254.170.2/v4/abc-1"}).startswith("ecs.abc-1-")
    assert worker_identity({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "drain-0"}).startswith("pod.drain-0-")


def until(holds: Any) -> None:
    """Wait for a condition; the test's own time-out is what gives up."""
    while not holds():
        threading.Event().wait(0.01)
