"""Fleets by seed: none spends more than its budget, and little of it is left.

`make test` runs 6 fleets of 200 workers, `make prove` 10,000.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from sim_fleet import UNSPENT_GOAL, Account, simulate_fleet, simulate_fleets
from sim_fleet_breakages import FLEET_BREAKAGES

FLEETS, ALL_FLEETS, WORKERS = 6, 10_000, 200
FEW_WORKERS, CAUGHT_WITHIN = 60, 30
"""Fleets so small, and so many of them, show each deliberate breakage."""


@pytest.mark.timeout(4 * 3600)
def test_no_fleet_overspends_and_little_is_left(full_figures: bool, say: Callable[[str], None]) -> None:
    account = Account()
    processes = min(2, os.cpu_count() or 1) if full_figures else 1
    for outcome in simulate_fleets(range(ALL_FLEETS if full_figures else FLEETS), WORKERS, processes=processes):
        assert not outcome.problems, f"seed {outcome.seed} (tests/simulator/fleets.py shows it): {outcome.problems}"
        assert outcome.counts["deaths"] and outcome.counts["calls"] >= WORKERS / 2, "it was a fleet, and at work"
        account.add(outcome)
    say(str(account))
    assert account.mean < UNSPENT_GOAL
    assert {"unsent", "unanswered", "late", "repeated", "freezes", "missed beats"} <= set(account.counts)


@pytest.mark.parametrize("breakage", [name for name in FLEET_BREAKAGES if name != "nothing"])
def test_a_deliberate_breakage_of_the_budget_is_caught(breakage: str, say: Callable[[str], None]) -> None:
    broken = FLEET_BREAKAGES[breakage]
    fleets = simulate_fleets(range(CAUGHT_WITHIN), FEW_WORKERS, broken=broken)
    red = next((outcome for outcome in fleets if outcome.problems), None)
    assert red is not None, f"{CAUGHT_WITHIN} fleets did not notice: {breakage}"
    say(f"{breakage}: caught by fleet {red.seed + 1}: {red.problems[0]}")
    assert not simulate_fleet(red.seed, FEW_WORKERS).problems, "it is the breakage that makes it red"


def test_a_seed_shows_the_same_fleet_again() -> None:
    first, again = (simulate_fleet(3, FEW_WORKERS) for _ in range(2))
    assert (first.billed, first.counts, first.shape) == (again.billed, again.counts, again.shape)
