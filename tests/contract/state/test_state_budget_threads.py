"""Fifty workers and money for two: never more is granted than there is, whoever asks at the same time."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from docgen_core.state.budget import NANO, ExpiredGrants, GrantState, ModelUsage, Settlement

WORKERS = 50
HALF, TENTH = NANO // 2, NANO // 10


def at_once(number, act):
    """What `number` threads get that all begin at the same time."""
    barrier = threading.Barrier(number)

    def one(position):
        barrier.wait()
        return act(position)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


@pytest.fixture
def stores(world):
    """Five processes' stores, and a run that may spend a dollar."""
    stores = [world.planned(1), *(world.store() for _ in range(4))]
    stores[0].set_budget("r", NANO)
    return stores


def fifty_ask(stores):
    """Fifty workers ask for half of it; the two who get it."""
    given = at_once(WORKERS, lambda n: stores[n % 5].open_grant("r", f"worker-{n}", HALF, f"grant-{n}"))
    admitted = [grant for grant in given if grant is not None]
    assert (len(admitted), given.count(None)) == (2, WORKERS - 2)
    return admitted


def settle(stores, admitted, cost):
    at_once(2, lambda n: stores[n].settle_grant("r", Settlement(admitted[n].id, 1, {"m": ModelUsage(1, 1, 1, cost)})))
    at_once(2, lambda n: stores[n].close_grant("r", admitted[n].id))


def test_a_two_are_admitted_and_spend_what_they_said(world, stores):
    settle(stores, fifty_ask(stores), HALF)
    spend = stores[0].spend("r")
    assert (spend.total.cost, spend.budget.committed, spend.budget.available) == (NANO, NANO, 0)
    assert world.balance(stores[0]) == (0, 0)


def test_b_two_that_cost_more_are_reported_and_nothing_more_is_admitted(world, stores):
    settle(stores, fifty_ask(stores), 6 * TENTH)
    spend = stores[0].spend("r")
    assert (spend.total.cost, spend.budget.overshoot) == (12 * TENTH, 2 * TENTH)
    assert stores[1].open_grant("r", "w", 1, "one more") is None
    assert world.balance(stores[0]) == (0, 2 * TENTH)


def test_c_what_is_left_is_free_again_to_the_last_of_it(world, stores):
    settle(stores, fifty_ask(stores), 3 * TENTH)
    assert world.balance(stores[0]) == (4 * TENTH, 0)
    assert stores[1].open_grant("r", "w", 41 * NANO // 100, "too much") is None
    assert stores[1].open_grant("r", "w", 4 * TENTH, "just right")
    assert world.balance(stores[0]) == (0, 0)


def test_d_a_dead_workers_reservation_is_free_when_it_expires_and_its_cost_is_booked_once(world, stores):
    stores[0].set_budget("r", NANO, expired_grants=ExpiredGrants.RETURNED)
    assert stores[0].open_grant("r", "dead", HALF, "dead")
    first = at_once(10, lambda n: stores[n % 5].open_grant("r", "w", HALF, f"before-{n}"))
    assert sum(grant is not None for grant in first) == 1
    stores[0].close_grant("r", next(grant.id for grant in first if grant))
    world.outlive_lease()
    assert sum(at_once(5, lambda n: stores[n].expire_grants("r"))) == 1
    cost = Settlement("dead", 1, {"m": ModelUsage(1, 1, 1, 2 * TENTH)})
    after = at_once(10, lambda n: stores[n % 5].open_grant("r", "w", HALF, f"after-{n}"))
    assert sum(grant is not None for grant in after) == 2
    at_once(5, lambda n: stores[n].settle_grant("r", cost))
    assert stores[0].spend("r").total.cost == 2 * TENTH
    assert world.balance(stores[0]) == (0, 2 * TENTH)


def test_workers_who_open_settle_and_close_leave_an_exact_account(world, stores):
    costs = {}

    def work(number):
        store, rng = stores[number % 5], random.Random(number)
        for turn in range(4):
            name = f"{number}-{turn}"
            if store.open_grant("r", f"worker-{number}", rng.randrange(1, TENTH), name) is None:
                continue
            costs[name] = rng.randrange(0, TENTH)
            store.settle_grant("r", Settlement(name, 1, {f"m{number % 3}": ModelUsage(1, 2, 3, costs[name])}))
            if rng.random() < 0.7:
                store.close_grant("r", name)

    at_once(12, work)
    spend = stores[0].spend("r")
    assert spend.total == ModelUsage(len(costs), 2 * len(costs), 3 * len(costs), sum(costs.values()))
    assert len(costs) > 12
    available, overshoot = world.balance(stores[0])
    assert (spend.budget.available, spend.budget.overshoot) == (available, overshoot)
    assert NANO + overshoot == available + spend.budget.reserved + spend.budget.committed
    assert {grant.state for grant in stores[0].grants("r")} == {GrantState.OPEN, GrantState.CLOSED}


def test_quarantine_from_everywhere_is_the_union(stores):
    at_once(20, lambda n: stores[n % 5].quarantine_providers("r", {f"provider-{n % 7}": f"seen by {n}"}))
    assert set(stores[0].quarantined_providers("r")) == {f"provider-{n}" for n in range(7)}
