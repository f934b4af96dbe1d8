"""Which leases and grants have run out, as far as this process can tell.

It may be wrong, as any clock may: that costs work, never correctness, since the generation decides
who owns a unit. What does not belong here: what becomes of an expired unit, the store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from docgen_core.state.budget import SignOfLife
from docgen_core.state.contract import SEGMENT_UNITS, Run, Unit, UnitState

K = TypeVar("K", bound=Hashable)

_GRANTS = -1
"""Where a run's grants are watched: no segment has this number."""


_Sighting = tuple[Hashable, float]
"""A row's mark, and since when it has been seen with it."""


class Watch:
    """Which leases have run out, by two rules, whichever fires first.

    By the wall clock, when past by more than the allowed skew; or when this process has itself
    seen the same generation and heartbeat (of a grant: the same settlement) for longer than a whole
    lease by its monotonic clock, which finds dead owners whose wall clock ran ahead. Safe to share among threads.
    """

    def __init__(self, *, skew_seconds: float, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._skew, self._clock, self._monotonic = skew_seconds, clock, monotonic
        self._seen: dict[tuple[str, int], dict[Hashable, _Sighting]] = {}
        self._lock = threading.Lock()

    def seconds_left(self, run: Run, segment: int, units: Iterable[Unit]) -> dict[int, float]:
        """Seconds until each RUNNING unit of a segment may be taken over; below 0: it may now.

        `units` holds all that are running there; what was seen of any other is forgotten.
        """
        running = [unit for unit in units if unit.state is UnitState.RUNNING]
        marks = {unit.index: (unit.generation, unit.heartbeat) for unit in running}
        watched = self._look((run.run_id, segment), marks, self._monotonic())
        now = self._clock()
        return {
            unit.index: min(unit.lease_expires_at + self._skew - now, run.lease_seconds - watched[unit.index])
            for unit in running
        }

    def grants_left(self, run_id: str, signs: Mapping[str, SignOfLife]) -> dict[str, float]:
        """Seconds until each of a run's open grants may be expired, likewise; `signs` has them all, by id."""
        watched = self._look((run_id, _GRANTS), signs, self._monotonic())
        past = self._clock() - self._skew
        return {
            grant_id: min(expires_at - past, seconds - watched[grant_id])
            for grant_id, (_, expires_at, seconds) in signs.items()
        }

    def is_past(self, unit: Unit) -> bool:
        """Whether a RUNNING unit's lease is past by the wall clock."""
        return self._clock() > unit.lease_expires_at + self._skew

    def _look(self, where: tuple[str, int], marks: Mapping[K, Hashable], now: float) -> dict[K, float]:
        """Seconds each row has gone unchanged, as far as its mark tells."""
        with self._lock:
            before = self._seen.pop(where, {})
            after: dict[Hashable, _Sighting] = {}
            for key, mark in marks.items():
                seen = before.get(key)
                after[key] = seen if seen and seen[0] == mark else (mark, now)
            if after:
                self._seen[where] = after
            return {key: now - after[key][1] for key in marks}


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
