"""Schedules by seed, a profile each: 0 lost, 0 counted twice, 0 stuck, 0 root mismatches.

`make test` runs 300 a profile, `make prove` 10,000. A red one prints the command that replays it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sim_breakages import BREAKAGES
from sim_faults import Fault
from sim_schedule import Tally, simulate, simulate_many
from sim_stores import PROFILES

SCHEDULES, ALL_SCHEDULES = 200, 10_000
CAUGHT_WITHIN = 400
"""Schedules within which each deliberate breakage shows."""
SHOWN_LINES = 40


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_schedule_ends_as_it_must(profile: str, full_figures: bool, say: Callable[[str], None]) -> None:
    tally = Tally()
    for result in simulate_many(profile, range(ALL_SCHEDULES if full_figures else SCHEDULES), tally=tally):
        assert not result.problems, "\n".join(
            [f"replay with: {result.replay}", *result.trace[-SHOWN_LINES:], result.end, *result.problems]
        )
    say(f"{profile}: 0 lost, 0 counted twice, 0 stuck, 0 root mismatches in {tally}; deaths: {dict(tally.deaths)}")
    assert tally.ends["COMPLETED"] > tally.ends.total() / 2 and tally.ends["CANCELLED"] and tally.ends["FAILED"]
    possible = set(Fault) if PROFILES[profile].seals_may_lag else set(Fault) - {Fault.STALE_READ}
    assert set(tally.faults) == possible, "each kind of fault has happened"
    assert set(tally.deaths) == {"planning", "working", "sealing"}


@pytest.mark.parametrize("breakage", [name for name in BREAKAGES if name != "nothing"])
def test_a_deliberate_breakage_is_caught_and_its_seed_shows_it_again(breakage: str, say: Callable[[str], None]) -> None:
    broken = BREAKAGES[breakage]
    schedules = simulate_many("dynamodb", range(CAUGHT_WITHIN), broken=broken)
    red = next((result for result in schedules if result.problems), None)
    assert red is not None, f"{CAUGHT_WITHIN} schedules did not notice: {breakage}"
    say(f"{breakage}: caught by schedule {red.seed + 1}: {red.problems[0]}")
    again = simulate("dynamodb", red.seed, broken)
    assert (again.trace, again.problems) == (red.trace, red.problems)
    assert not simulate("dynamodb", red.seed).problems, "it is the breakage that makes it red"


def test_a_seed_replays_its_schedule_in_any_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name("simulate.py")), "firestore", "--seed", "12"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    (output,) = printed
    assert "\n".join(simulate("firestore", 12).trace) in output.decode()
