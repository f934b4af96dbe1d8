"""Where a worker looks for its next unit: the order of segments and of the units in each.

One worker's own knowledge, which may be stale or lost at any time: each claim is decided by a
conditional write on the row, and a cursor only makes that write likely to succeed. What does not
belong here: the store, and what a claim writes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from docgen_core.state.contract import SEGMENT_UNITS, Run, Unit
from docgen_core.state.primitives import segment_count

MIN_POLL_SECONDS = 0.02
"""Never ask again sooner than about this, however soon a unit falls due."""

FIRST_POLL_SECONDS = 0.1
"""A worker that found nothing to claim asks again after about this long, then twice that, …"""

MAX_POLL_SECONDS = 5.0
"""… up to this: a peer may finish, fail or hand back long before its lease would end."""

MAX_STEPS = 4
"""Races lost one after the other before a list is given up: a read of a segment costs about as much as ten writes."""


@dataclass(slots=True)
class Candidate:
    """A unit to try for: the row its claim starts from, and the row the store should still hold."""

    index: int
    stored: Unit | None
    pending: Unit | None
    """`stored`, or what is left of it after its lease ran out."""


class Cursor:
    """One worker's way through the segments of a run. Safe to share among threads.

    Segments come in an order of the worker's own and each list starts at a random offset, so that
    workers seldom meet; a list is used up before its segment is read again.
    """

    def __init__(self, run: Run, worker: str, within: frozenset[int] | None) -> None:
        self.within = within
        self._random = Random(f"{run.run_id}\x1f{worker}")
        self._scope: dict[int, list[int]] = {}
        for index in sorted(within or ()):
            self._scope.setdefault(index // SEGMENT_UNITS, []).append(index)
        segments = list(range(segment_count(run.marker.total_units)) if within is None else self._scope)
        self._random.shuffle(segments)
        self._order = deque(segments)
        self._list: list[Candidate] = []
        self._peers = 0
        self._won = 0
        self._lost_in_a_row = 0
        self._ended: dict[int, int] = {}
        self._polls = 0
        self._lock = threading.RLock()

    def wanted(self, segment: int, indices: range) -> Sequence[int]:
        """Of a segment's indices those in scope, ascending."""
        return indices if self.within is None else self._scope[segment]

    def pass_over(self, sealed: Iterable[int]) -> None:
        """Never look at these segments again: all their units are DONE."""
        done = set(sealed)
        with self._lock:
            self._order = deque(segment for segment in self._order if segment not in done)

    def segments(self, epoch: int) -> tuple[list[int], list[int]]:
        """Segments to look at, the current one first; and those seen ended, with failures, in this epoch."""
        with self._lock:
            ended = {segment for segment, seen in self._ended.items() if seen == epoch}
            return [s for s in self._order if s not in ended], [s for s in self._order if s in ended]

    def note_ended(self, segment: int, epoch: int) -> None:
        """Look at this segment last, until failed units are reset."""
        with self._lock:
            self._ended[segment] = epoch

    def fill(self, segment: int, candidates: list[Candidate], peers: int) -> None:
        """Take a fresh list. `peers`: how many other workers were seen at work in the segment.

        A segment that offers nothing is looked at again when all others have been.
        """
        with self._lock:
            if segment in self._order:
                self._order.rotate(-self._order.index(segment) - (not candidates))
            start = self._random.randrange(len(candidates)) if candidates else 0
            # Reversed, so that taking from the front is popping from the end.
            self._list = (candidates[start:] + candidates[:start])[::-1]
            self._peers, self._won, self._lost_in_a_row = peers, 0, 0

    def take(self, limit: int) -> list[Candidate]:
        """Up to `limit` candidates, and no more than a fair share when peers share the list's tail."""
        with self._lock:
            share = -(-len(self._list) // (self._peers + 1))
            return [self._list.pop() for _ in range(min(limit, share))]

    def tried(self, won: int, lost: int) -> None:
        """Learn from a try. Where a race is lost, a peer began after this list was read, and goes the same way.

        At about our own pace, it has taken as many from there as we have since the read: step over
        those, and over twice as many where that loses too, which costs less than reading again.
        After `MAX_STEPS` the list is worth nothing.
        """
        with self._lock:
            self._won += won
            self._lost_in_a_row = self._lost_in_a_row + 1 if lost else 0
            if self._lost_in_a_row > MAX_STEPS:
                self._list.clear()
            elif lost:
                del self._list[-(max(self._won, 1) << (self._lost_in_a_row - 1)) :]

    def found(self) -> None:
        """A claim succeeded: poll eagerly again."""
        self._polls = 0

    def poll_seconds(self, earliest: float) -> float:
        """How long to wait when nothing is claimable before `earliest` seconds from now, jittered."""
        with self._lock:
            patience = min(MAX_POLL_SECONDS, FIRST_POLL_SECONDS * float(1 << min(self._polls, 16)))
            self._polls += 1
            return max(MIN_POLL_SECONDS, min(patience, earliest)) * self._random.uniform(0.75, 1.25)
