"""Which leases have run out, as far as this process can tell.

It may be wrong, as any clock may: that costs work, never correctness, since the generation decides
who owns a unit. What does not belong here: what becomes of an expired unit, the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from docgen_core.state.contract import SEGMENT_UNITS, Run, Unit, UnitState


@dataclass(slots=True)
class _Sighting:
    generation: int
    heartbeat: int
    since: float


class Watch:
    """Which leases have run out, by two rules, whichever fires first.

    By the wall clock, when past by more than the allowed skew; or when this process has itself
    seen the same generation and heartbeat for longer than a whole lease by its monotonic clock,
    which finds dead owners whose wall clock ran ahead. Safe to share among threads.
    """

    def __init__(self, *, skew_seconds: float, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._skew, self._clock, self._monotonic = skew_seconds, clock, monotonic
        self._seen: dict[tuple[str, int], dict[int, _Sighting]] = {}
        self._lock = threading.Lock()

    def seconds_left(self, run: Run, segment: int, units: Iterable[Unit]) -> dict[int, float]:
        """Seconds until each RUNNING unit of a segment may be taken over; below 0: it may now.

        `units` holds all that are running there; what was seen of any other is forgotten.
        """
        running = [unit for unit in units if unit.state is UnitState.RUNNING]
        watched = self._look((run.run_id, segment), running, self._monotonic())
        now = self._clock()
        return {
            unit.index: min(unit.lease_expires_at + self._skew - now, run.lease_seconds - watched[unit.index])
            for unit in running
        }

    def is_past(self, unit: Unit) -> bool:
        """Whether a RUNNING unit's lease is past by the wall clock."""
        return self._clock() > unit.lease_expires_at + self._skew

    def _look(self, where: tuple[str, int], running: list[Unit], now: float) -> dict[int, float]:
        """Seconds each unit has gone unchanged."""
        with self._lock:
            before = self._seen.pop(where, {})
            after: dict[int, _Sighting] = {}
            for unit in running:
                seen = before.get(unit.index)
                if seen is None or (seen.generation, seen.heartbeat) != (unit.generation, unit.heartbeat):
                    seen = _Sighting(unit.generation, unit.heartbeat, now)
                after[unit.index] = seen
            if after:
                self._seen[where] = after
            return {index: now - seen.since for index, seen in after.items()}


def by_segment(units: Iterable[Unit]) -> Iterator[tuple[int, list[Unit]]]:
    """Units in index order, grouped by segment."""
    group: list[Unit] = []
    for unit in units:
        if group and unit.index // SEGMENT_UNITS != group[0].index // SEGMENT_UNITS:
            yield group[0].index // SEGMENT_UNITS, group
            group = []
        group.append(unit)
    if group:
        yield group[0].index // SEGMENT_UNITS, group
