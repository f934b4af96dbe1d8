"""Leases are renewed while a unit is worked on, and a holder stops itself before its lease ends."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from docgen_core.errors import LeaseLost, RunCancelled, StateUnusable, StorageFailed
from docgen_core.runs.keeper import QUIET_SECONDS, LeaseKeeper
from docgen_core.state.contract import RunState

RUN = "catalogue-v1"


def until(holds: Any) -> None:
    while not holds():
        threading.Event().wait(0.005)


@pytest.fixture
def held(open_stage: Any) -> Any:
    """A batch of three leases of 0.3 seconds, by index."""
    stage = open_stage("held", "?lease_seconds=0.3")
    stage.plan_catalogue()
    return stage, stage.state.claim_next_unit(RUN, "w", limit=3).leases


def rows(stage: Any) -> dict[int, Any]:
    return {unit.index: unit for unit in stage.state.units(RUN)}


def test_every_lease_of_a_batch_outlives_its_time(held: Any) -> None:
    stage, leases = held
    with LeaseKeeper(stage.state, leases, 0.3) as keeper:
        until(lambda: all(unit.heartbeat > 4 for unit in rows(stage).values()))
        keeper.check()
        assert stage.reopen().reclaim_expired_units(RUN) == 0
    beats = {index: unit.heartbeat for index, unit in rows(stage).items()}
    until(lambda: stage.state.progress(RUN).expired == 3)
    assert {index: unit.heartbeat for index, unit in rows(stage).items()} == beats, "no thread goes on"


def test_the_unit_in_hand_is_the_one_marked_as_worked_on(held: Any) -> None:
    stage, (first, second, third) = held
    with LeaseKeeper(stage.state, (first, second, third), 0.3) as keeper:
        assert [rows(stage)[lease.index].working for lease in (first, second, third)] == [True, False, False]
        stage.state.release(first)
        keeper.drop(first)
        keeper.take(second)
        until(lambda: rows(stage)[third.index].heartbeat > 2)
        assert [rows(stage)[lease.index].working for lease in (second, third)] == [True, False]


def test_a_taken_over_lease_is_lost(held: Any) -> None:
    stage, (first, second, _) = held
    with LeaseKeeper(stage.state, (first, second), 0.3) as keeper:
        stage.state.release(first)
        stage.state.claim_next_unit(RUN, "thief", within={first.index})

        def lost() -> bool:
            try:
                keeper.check()
            except LeaseLost:
                return True
            return False

        until(lost)
        keeper.drop(first)
        keeper.take(second)
        keeper.check()


def test_a_holder_whose_renewals_fail_stops_before_its_lease_ends(held: Any) -> None:
    _, leases = held

    class Unreachable:
        def renew(self, *_: object, **__: object) -> None:
            raise StorageFailed("out of reach")

    now = [leases[0].expires_monotonic - 0.001]
    with LeaseKeeper(Unreachable(), leases, 60.0, clock=lambda: now[0]) as keeper:  # type: ignore[arg-type]
        keeper.check()
        now[0] = leases[0].expires_monotonic
        with pytest.raises(LeaseLost, match="could not be renewed in time"):
            keeper.check()


def test_a_renewal_tells_of_pause_and_cancellation(held: Any) -> None:
    stage, leases = held
    with LeaseKeeper(stage.state, leases, 0.3) as keeper:
        stage.state.pause(RUN)
        until(lambda: keeper.run_state is RunState.PAUSED)
        keeper.check()
        stage.state.cancel(RUN)
        until(lambda: keeper.run_state is RunState.CANCELLED)
        with pytest.raises(RunCancelled):
            keeper.check()


def test_a_renewal_that_can_never_succeed_is_told_to_the_worker(held: Any) -> None:
    _, (first, second, _) = held

    class Unusable:
        def renew(self, *_: object, **__: object) -> None:
            raise StateUnusable("the table is gone; `docgen init` makes it")

    def told(ask: Any) -> bool:
        try:
            ask()
        except StateUnusable as error:
            return "the table is gone" in str(error)
        return False

    with LeaseKeeper(Unusable(), (first, second), 0.03, clock=lambda: 0.0) as keeper:  # type: ignore[arg-type]
        until(lambda: told(keeper.check))
        assert told(lambda: keeper.take(first)), "the unit in hand needs no renewal of its own to be told"
        until(lambda: not keeper._thread.is_alive())


def test_the_leases_of_a_worker_that_hangs_are_left_to_expire(held: Any) -> None:
    _, leases = held
    now, looks, renewals = [0.0], [0], [0]

    class Counting:
        def renew(self, lease: Any, *, working: bool) -> tuple[Any, RunState]:
            renewals[0] += 1
            return lease, RunState.RUNNING

    def clock() -> float:
        looks[0] += 1
        return now[0]

    def some_rounds() -> None:
        then = looks[0]
        until(lambda: looks[0] >= then + 3)

    with LeaseKeeper(Counting(), leases, 0.03, clock=clock) as keeper:  # type: ignore[arg-type]
        until(lambda: renewals[0] > 3)
        now[0] += QUIET_SECONDS
        some_rounds()
        before = renewals[0]
        some_rounds()
        assert renewals[0] == before
        now[0] = 0.5
        keeper.check()
        until(lambda: renewals[0] > before)
