"""A dead worker's unit is taken over within two leases, whatever the clocks say: who waits has watched it."""

from __future__ import annotations

import itertools

import pytest
from sim_schedule import LEASE_SECONDS, MAX_SKEW_SECONDS, Result, Schedule, Shape
from sim_stores import PROFILES
from sim_world import Process

OFF = (-MAX_SKEW_SECONDS, 0.0, MAX_SKEW_SECONDS)


class OneDies(Schedule):
    """One of two workers dies with a unit in hand."""

    def start_with_clocks(self, ahead: tuple[float, float]) -> Result:
        self.trouble[0] = "kills"
        clocks = iter(ahead)

        def set_right(process: Process) -> None:
            process.wall_ahead, process.slowness = next(clocks), 1.0

        def set_out() -> None:
            self.start("planner", self.plan, after=0.0)
            for after in (5.0, 5.2):
                set_right(self.start("worker", self.work, after=after))

        return self.run(set_out)

    def after(self, kind: str, end: str) -> None:
        if end == "died":
            self.died_at = self.world.now
            self.trouble.clear()


@pytest.mark.parametrize("skew_seconds", [0.0, 2 * MAX_SKEW_SECONDS])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_dead_workers_unit_is_taken_over_in_time(profile: str, skew_seconds: float) -> None:
    for ahead in itertools.product(OFF, OFF):
        shape = Shape(True, 1, 1, 1000, 1000, 2, 5, 4.0, 0.01, 0, 0.0, skew_seconds, 0.0)
        schedule = OneDies(PROFILES[profile], 0, shape)
        result = schedule.start_with_clocks(ahead)
        assert (result.end, result.problems) == ("COMPLETED", ())
        claims = [now for now, _, what, _ in schedule.trace if "→RUNNING" in what and what.endswith("h0")]
        took = claims[-1] - schedule.died_at
        # Below zero where the taker's clock runs ahead by more than is allowed: the owner was still alive.
        assert took <= 2 * LEASE_SECONDS, f"clocks ahead by {ahead}: {took:.1f} s"
