"""Case 17 on every store: fifty workers, money for two, and what their guards make of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from docgen_core.llm.guard import REFUSED_SECONDS, DistributedBudgetGuard, Reservation
from docgen_core.state.budget import NANO, ExpiredGrants, ModelUsage

CAP = NANO
MODEL = "alpha"


def dollars(cents: int) -> ModelUsage:
    return ModelUsage(1, 300, 200, cents * NANO // 100)


class Fleet:
    """Guards of as many workers, each with a store of its own."""

    def __init__(self, world: Any, workers: int, policy: ExpiredGrants = ExpiredGrants.CHARGED) -> None:
        self.world = world
        self.state = world.planned(1)
        self.state.set_budget("r", CAP, expired_grants=policy)
        self.guards = [self.guard(f"w{number}") for number in range(workers)]

    def guard(self, worker: str) -> DistributedBudgetGuard:
        store = self.world.store()
        return DistributedBudgetGuard(store, "r", worker, CAP, clock=lambda: self.world.monotonic)

    def ask_at_once(self, cents: int) -> list[tuple[DistributedBudgetGuard, Reservation]]:
        """Those that were admitted; an exception of any is raised."""
        with ThreadPoolExecutor(len(self.guards)) as pool:
            asked = list(pool.map(lambda guard: (guard, guard.reserve(MODEL, dollars(cents))), self.guards))
        return [(guard, reservation) for guard, reservation in asked if reservation is not None]

    def admits(self, cents: int) -> bool:
        guard = self.guard("another")
        if (reservation := guard.reserve(MODEL, dollars(cents))) is None:
            return False
        guard.cancel(reservation)
        guard.close()
        return True


@pytest.mark.parametrize(
    ("real", "spent", "overshoot", "free"), [(50, 100, 0, 0), (60, 120, 20, 0), (30, 60, 0, 40)], ids=["a", "b", "c"]
)
def test_two_of_fifty_are_admitted_and_what_they_leave_is_free(
    world: Any, full_figures: bool, real: int, spent: int, overshoot: int, free: int
) -> None:
    workers = 50 if full_figures or not world.over_network else 10
    fleet = Fleet(world, workers)
    admitted = fleet.ask_at_once(50)
    assert len(admitted) == 2
    assert sum(guard.declined for guard in fleet.guards) == workers - 2
    for guard, reservation in admitted:
        guard.settle(reservation, dollars(real))
    told = fleet.state.spend("r")
    assert told.budget is not None and told.models[MODEL].calls == 2
    assert (told.total.cost, told.budget.overshoot) == (spent * NANO // 100, overshoot * NANO // 100)
    assert world.balance(fleet.state) == (free * NANO // 100, overshoot * NANO // 100)
    assert not fleet.admits(free + 1)
    assert not free or fleet.admits(free)


def test_a_dead_workers_reservation_is_free_again_when_it_expires_and_its_cost_is_booked_once(world: Any) -> None:
    fleet = Fleet(world, 3, ExpiredGrants.RETURNED)
    dead, second, third = fleet.guards
    lost = dead.reserve(MODEL, dollars(50))
    fits = second.reserve(MODEL, dollars(50))
    assert lost and fits and third.reserve(MODEL, dollars(50)) is None
    world.wait(30)
    second.beat()
    world.wait(31)
    after = third.reserve(MODEL, dollars(50))
    assert after is not None, "the dead one's has expired, the living one's has not"
    assert not fleet.admits(1)
    second.cancel(fits)
    third.cancel(after)
    second.close()
    third.close()
    assert fleet.admits(100), "money for two calls"
    dead.settle(lost, dollars(30))
    dead.close()
    dead.close()
    assert fleet.state.spend("r").total == ModelUsage(1, 300, 200, 30 * NANO // 100)


def test_a_dead_workers_grant_is_charged_whole_unless_told_otherwise(world: Any) -> None:
    fleet = Fleet(world, 2)
    dead, living = fleet.guards
    assert dead.reserve(MODEL, dollars(60))
    assert living.reserve(MODEL, dollars(50)) is None
    world.outlive_lease()
    assert living.reserve(MODEL, dollars(50)) is None
    world.wait(REFUSED_SECONDS)
    assert living.reserve(MODEL, dollars(40)) is not None
    figures = fleet.state.spend("r").budget
    assert figures is not None and figures.charged == 60 * NANO // 100
