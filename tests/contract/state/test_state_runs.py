"""A run's own row: created once, planned once, and every change of its state from every state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docgen_core.errors import (
    DocgenError,
    PlanConflict,
    RootConflict,
    RunCancelled,
    RunIncomplete,
    RunUnknown,
    UsageError,
    WrongRunState,
)
from docgen_core.state.contract import Outlook, RunState

MISSING = "no-such-run"


def test_a_run_is_stored_as_its_marker_says(world):
    store = world.store(attempts=4)
    run, created = store.create_run(world.marker(3))
    assert created
    assert run.marker == world.marker(3)
    assert (run.state, run.planned, run.epoch, run.root_digest) == (RunState.RUNNING, False, 0, None)
    assert (run.max_attempts, run.lease_seconds, run.created_at) == (4, 60.0, world.wall)
    assert world.store().run("r") == run


def test_creating_a_run_again_changes_nothing_whatever_its_spec(world):
    store = world.store()
    first, _ = store.create_run(world.marker(3))
    other = replace(world.marker(9), spec={"other": 1}, spec_digest="other")
    again, created = world.store(attempts=9).create_run(other)
    assert not created
    assert again == first


@pytest.mark.parametrize(("units", "size"), [(0, 10), (-1, 10), (3, 0)])
def test_a_run_without_units_is_refused(world, units, size):
    with pytest.raises(UsageError):
        world.store().create_run(replace(world.marker(3), total_units=units, unit_size=size))


def test_nothing_is_claimed_before_the_plan_is_there(world):
    store = world.store()
    store.create_run(world.marker(3))
    assert store.claim_next_unit("r", "w").outlook is Outlook.UNPLANNED
    assert store.mark_planned("r", "digest of r").planned
    assert store.claim_next_unit("r", "w").outlook is Outlook.CLAIMED


def test_planning_with_another_digest_is_a_conflict_naming_both(world):
    store = world.store()
    store.create_run(world.marker(3))
    with pytest.raises(PlanConflict, match="digest of r there, other given"):
        store.mark_planned("r", "other")
    assert not store.run("r").planned


def test_a_late_planner_resets_nothing(world):
    store = world.planned(3)
    world.finish(store)
    before = store.units("r")
    assert not store.create_run(world.marker(3))[1]
    store.mark_planned("r", "digest of r")
    assert store.units("r") == before


def test_every_operation_on_a_run_that_is_not_there_says_so(world):
    store = world.planned(3)
    lease = replace(store.claim_next_unit("r", "w").leases[0], run_id=MISSING)
    operations = [
        lambda: store.run(MISSING),
        lambda: store.mark_planned(MISSING, "d"),
        lambda: store.pause(MISSING),
        lambda: store.resume(MISSING),
        lambda: store.cancel(MISSING),
        lambda: store.claim_next_unit(MISSING, "w"),
        lambda: store.renew(lease),
        lambda: store.complete_unit(lease, world.part(lease)),
        lambda: store.fail_unit(lease, "e"),
        lambda: store.release(lease),
        lambda: store.reset_failed_units(MISSING),
        lambda: store.reclaim_expired_units(MISSING),
        lambda: store.units(MISSING),
        lambda: store.progress(MISSING),
        lambda: store.begin_finalize(MISSING),
        lambda: store.complete_run(MISSING, "root"),
    ]
    for operation in operations:
        with pytest.raises(RunUnknown):
            operation()


def _in_state(world, state):
    """A store whose run of one unit has been brought to a state by the front door."""
    store = world.planned(1)
    if state is RunState.PAUSED:
        store.pause("r")
    elif state is RunState.CANCELLED:
        store.cancel("r")
    elif state in (RunState.FINALIZING, RunState.COMPLETED):
        world.finish(store)
        store.begin_finalize("r")
        if state is RunState.COMPLETED:
            store.complete_run("r", "root")
    assert store.run("r").state is state
    return store


R, P, C, F, D = RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED, RunState.FINALIZING, RunState.COMPLETED


@pytest.mark.parametrize(
    ("operation", "outcomes"),
    [
        ("pause", {R: P, P: P, C: WrongRunState, F: WrongRunState, D: WrongRunState}),
        ("resume", {R: R, P: R, C: RunCancelled, F: F, D: D}),
        ("cancel", {R: C, P: C, C: C, F: WrongRunState, D: WrongRunState}),
        ("begin_finalize", {R: RunIncomplete, P: WrongRunState, C: RunCancelled, F: F, D: D}),
        ("reset_failed_units", {R: R, P: P, C: RunCancelled, F: WrongRunState, D: WrongRunState}),
        ("reclaim_expired_units", {R: R, P: P, C: C, F: F, D: D}),
    ],
)
@pytest.mark.parametrize("state", list(RunState))
def test_each_operation_in_each_state_of_the_run(world, operation, outcomes, state):
    store = _in_state(world, state)
    expected = outcomes[state]
    if isinstance(expected, RunState):
        getattr(store, operation)("r")
        assert store.run("r").state is expected
    else:
        with pytest.raises(expected) as refused:
            getattr(store, operation)("r")
        assert isinstance(refused.value, DocgenError)
        assert "\n" not in str(refused.value)
        assert store.run("r").state is state


@pytest.mark.parametrize(
    ("state", "expected"),
    [(R, WrongRunState), (P, WrongRunState), (C, RunCancelled), (F, None), (D, None)],
)
def test_a_run_completes_from_finalizing_only(world, state, expected):
    store = _in_state(world, state)
    if expected is None:
        assert store.complete_run("r", "root").state is RunState.COMPLETED
        assert store.run("r").root_digest == "root"
    else:
        with pytest.raises(expected):
            store.complete_run("r", "root")
        assert store.run("r").root_digest is None


def test_another_root_for_a_completed_run_is_a_loud_conflict(world):
    store = _in_state(world, RunState.COMPLETED)
    assert store.complete_run("r", "root").state is RunState.COMPLETED
    with pytest.raises(RootConflict, match=r"there \(root\).*give \(other\)"):
        store.complete_run("r", "other")
    assert store.run("r").root_digest == "root"


@pytest.mark.parametrize(
    ("state", "outlook"),
    [(P, Outlook.PAUSED), (C, Outlook.CANCELLED), (F, Outlook.CLOSED), (D, Outlook.CLOSED)],
)
def test_a_claim_says_why_the_run_gives_nothing(world, state, outlook):
    assert _in_state(world, state).claim_next_unit("r", "w").outlook is outlook


def test_where_reads_are_billed_a_claim_may_rest_on_a_run_read_a_moment_ago(world):
    store, other = world.planned(9), world.store()
    store.primitives.run_age_seconds = 2.0
    (lease,) = store.claim_next_unit("r", "w").leases
    other.pause("r")
    assert store.claim_next_unit("r", "w").outlook is Outlook.CLAIMED
    world.wait(2)
    assert store.claim_next_unit("r", "w").outlook is Outlook.PAUSED
    other.resume("r")
    assert store.claim_next_unit("r", "w").outlook is Outlook.CLAIMED
    other.pause("r")
    assert store.renew(lease)[1] is RunState.PAUSED
    assert store.claim_next_unit("r", "w").outlook is Outlook.PAUSED
    store.resume("r")
    store.cancel("r")
    assert store.claim_next_unit("r", "w").outlook is Outlook.CANCELLED


def test_a_finisher_never_overwrites_a_cancellation(world):
    finisher = world.planned(1, meddled=True)
    world.finish(finisher)
    finisher.primitives.once_before("replace_run", lambda *_: world.store().cancel("r"))
    with pytest.raises(RunCancelled):
        finisher.begin_finalize("r")
    assert finisher.run("r").state is RunState.CANCELLED


def test_a_resume_never_reopens_a_run_that_was_finished_meanwhile(world):
    store = world.planned(1, meddled=True)
    world.finish(store)
    store.pause("r")

    def peer_resumes_and_finishes(*_):
        peer = world.store()
        peer.resume("r")
        peer.begin_finalize("r")
        peer.complete_run("r", "root")

    store.primitives.once_before("replace_run", peer_resumes_and_finishes)
    assert store.resume("r").state is RunState.COMPLETED
    assert store.run("r").state is RunState.COMPLETED


def test_runs_are_listed_page_by_page_in_id_order(world):
    ids = [f"run-{number:03d}" for number in range(25)]
    for run_id in reversed(ids):
        store = world.planned(1, run_id=run_id)
    for run_id in ids[::3]:
        store.cancel(run_id)

    def pages(states):
        after, seen = "", []
        while page := store.list_runs(states, after=after, limit=4):
            assert len(page) <= 4
            seen += [run.run_id for run in page]
            after = page[-1].run_id
        return seen

    assert pages(None) == ids
    assert pages({RunState.CANCELLED}) == ids[::3]
    assert pages({RunState.CANCELLED, RunState.RUNNING}) == ids
    assert pages({RunState.COMPLETED}) == []
    assert pages(set()) == []
