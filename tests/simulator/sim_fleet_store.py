"""The store that simulated fleets share: tables in memory, and the bad network between them and a worker.

What does not belong here: what a worker does (sim_fleet.py), and what the store makes of a request, which is
production code.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Protocol

from docgen_core.errors import DocgenError, StorageFailed
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.primitives import Entry
from docgen_core.state.store import SegmentStore

UNSENT, UNANSWERED, LATE, REPEATED = 0.005, 0.005, 0.005, 0.01
"""Shares of the operations of the store that fail before, fail after, fail and happen later, and happen twice."""
LATE_SECONDS = (1.0, 90.0)


class Surroundings(Protocol):
    """What a line needs of its fleet."""

    chance: Random
    counts: Counter[str]

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Let it happen then."""


class Rows(MemoryPrimitives):
    """The tables in memory, ledger rows listed as they came: sorting them again for each look is half of the time."""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.available_shards = shards

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """See `Primitives.list_entries`."""
        there = self._entries[run_id].get(kind, {})
        rows = iter(there.values())
        if after:
            if next(reversed(there)) == after:
                return []
            rows = itertools.dropwhile(lambda entry: entry.id != after, rows)
            next(rows)
        return list(itertools.islice(rows, limit))


class Line:
    """The state store as one worker meets it over a bad network."""

    def __init__(self, fleet: Surroundings, state: SegmentStore) -> None:
        self._fleet, self._state = fleet, state

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, getattr(self._state, name))

    def _call(self, operation: Callable[..., Any], *args: Any, **named: Any) -> Any:
        counts, chance = self._fleet.counts, self._fleet.chance
        counts["operations"] += 1
        drawn = chance.random()
        if drawn < UNSENT:
            counts["unsent"] += 1
            raise StorageFailed("out of reach")
        if (drawn := drawn - UNSENT) < LATE:
            counts["late"] += 1
            self._fleet.later(chance.uniform(*LATE_SECONDS), partial(_unheard, operation, args, named))
            raise StorageFailed("no answer, and it happens later")
        answer = operation(*args, **named)
        if (drawn := drawn - LATE) < UNANSWERED:
            counts["unanswered"] += 1
            raise StorageFailed("the answer was lost")
        if drawn - UNANSWERED < REPEATED:
            counts["repeated"] += 1
            answer = operation(*args, **named)
        return answer


def _unheard(operation: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Nobody waits for the answer, be it an error."""
    with suppress(DocgenError):
        operation(*args, **named)
