"""How a claim is won: look through segments, try for what is pending, until something is ours.

What does not belong here: order (cursor.py), expiry (watch.py), the rules (transitions.py), a database.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from docgen_core.errors import LeaseLost
from docgen_core.state import transitions
from docgen_core.state.contract import Claim, Lease, Outlook, Run, UnitState
from docgen_core.state.cursor import Candidate, Cursor
from docgen_core.state.primitives import Change, Primitives, segment_range
from docgen_core.state.watch import Watch

_MAX_CURSORS = 4096
"""Cursors kept at most; the oldest goes first, at the price of one more read by its worker."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What a strong read of a segment offers a worker."""

    candidates: list[Candidate]
    earliest: float
    """Seconds until the next unit in scope may become claimable; infinite when all have ended."""
    peers: int


class Claimer:
    """Claims for any worker of this process. Safe to share among threads."""

    def __init__(
        self, primitives: Primitives, watch: Watch, *, clock: Callable[[], float], monotonic: Callable[[], float]
    ) -> None:
        self._primitives, self._watch = primitives, watch
        self._clock, self._monotonic = clock, monotonic
        self._cursors: dict[tuple[str, str], Cursor] = {}
        self._lock = threading.Lock()

    def claim(self, run: Run, worker: str, limit: int, within: Collection[int] | None) -> Claim:
        """Claim up to `limit` units of an open run; `within` holds indices of the run."""
        cursor = self._cursor(run, worker, within)
        leases, earliest = self._try(run, worker, cursor, limit), math.inf
        if not leases:
            leases, earliest = self._search(run, worker, cursor, limit)
        if leases:
            cursor.found()
            return Claim(Outlook.CLAIMED, tuple(leases))
        if earliest < math.inf:
            return Claim(Outlook.BUSY, retry_seconds=cursor.poll_seconds(earliest))
        return Claim(Outlook.DRAINED)

    def _search(self, run: Run, worker: str, cursor: Cursor, limit: int) -> tuple[list[Lease], float]:
        """Look through the segments until a claim succeeds; else say when to try again.

        Segments known to have ended with failures are read only before calling the run drained:
        only a strong read of everything, in this very call, may say so.
        """
        cursor.pass_over(self._primitives.seals(run.run_id))
        earliest = math.inf
        for segments in cursor.segments(run.epoch):
            for segment in segments:
                while True:
                    look = self._look(run, worker, segment, cursor)
                    cursor.fill(segment, look.candidates, look.peers)
                    leases = self._try(run, worker, cursor, limit)
                    if leases:
                        return leases, earliest
                    if not look.candidates:
                        break
                earliest = min(earliest, look.earliest)
            if earliest < math.inf:
                break
        return [], earliest

    def _look(self, run: Run, worker: str, segment: int, cursor: Cursor) -> _Look:
        """Read a segment strongly and sort it for a claim: fails units at the cap, seals, notes its end."""
        total = run.marker.total_units
        while True:
            read = self._primitives.read_segment(run.run_id, segment)
            left = self._watch.seconds_left(run, segment, read.unended.values())
            expired = {i: transitions.expired(run, read.unended[i]) for i, seconds in left.items() if seconds < 0}
            dead = [Change(read.unended[i], unit) for i, unit in expired.items() if unit.state is UnitState.FAILED]
            if not dead:
                break
            self._primitives.write_units(dead)
        self._primitives.seal_if_done(run, segment, read)
        if len(read.done) + len(read.failed) == len(segment_range(segment, total)):
            cursor.note_ended(segment, run.epoch)
            return _Look([], math.inf, 0)

        now, candidates, earliest, owners = self._clock(), [], math.inf, set[str]()
        ended = read.done | read.failed
        for index in cursor.wanted(segment, segment_range(segment, total)):
            unit = read.unended.get(index)
            if unit is None:
                if index not in ended:
                    candidates.append(Candidate(index, None, None))
            elif unit.state is UnitState.PENDING:
                if unit.not_before <= now:
                    candidates.append(Candidate(index, unit, unit))
                else:
                    earliest = min(earliest, unit.not_before - now)
            elif index in expired:
                candidates.append(Candidate(index, unit, expired[index]))
            else:
                earliest = min(earliest, left[index])
                owners.add(unit.owner)
        return _Look(candidates, earliest, len(owners - {worker}))

    def _try(self, run: Run, worker: str, cursor: Cursor, limit: int) -> list[Lease]:
        """Claim from the cursor's list until something is won, or the list is used up.

        The first lease is the one in hand.
        """
        while candidates := cursor.take(limit):
            asked, now = self._monotonic(), self._clock()
            changes = [
                Change(
                    unit.stored,
                    transitions.claimed(run, unit.index, unit.pending, worker=worker, now=now, working=position == 0),
                )
                for position, unit in enumerate(candidates)
            ]
            applied = self._primitives.write_units(changes)
            won = [change.after for change, done in zip(changes, applied, strict=True) if done]
            cursor.tried(len(won), len(changes) - len(won))
            leases = [transitions.lease_of(unit, asked_at=asked, lease_seconds=run.lease_seconds) for unit in won]
            if won and not won[0].working:
                leases = self._take_in_hand(run, leases)
            if leases:
                return leases
        return []

    def _take_in_hand(self, run: Run, leases: list[Lease]) -> list[Lease]:
        """Mark the first lease that is still ours, when the unit meant to be in hand went to a peer."""
        while leases:
            first, asked, now = leases[0], self._monotonic(), self._clock()
            try:
                unit = self._primitives.change_unit(
                    run.run_id,
                    first.index,
                    partial(transitions.renewed, run, lease=first, now=now, working=True),
                )
            except LeaseLost:
                leases = leases[1:]
            else:
                return [transitions.lease_of(unit, asked_at=asked, lease_seconds=run.lease_seconds), *leases[1:]]
        return leases

    def _cursor(self, run: Run, worker: str, within: Collection[int] | None) -> Cursor:
        """This worker's cursor, a new one when its scope has changed."""
        scope = None if within is None else frozenset(within)
        with self._lock:
            cursor = self._cursors.get((run.run_id, worker))
            if cursor is None or cursor.within != scope:
                while len(self._cursors) >= _MAX_CURSORS:
                    del self._cursors[next(iter(self._cursors))]
                cursor = self._cursors[run.run_id, worker] = Cursor(run, worker, scope)
            return cursor
