"""What the stores in the clouds have in common: clients shared within a process, listings segment by segment.

What does not belong here: a service's own calls and errors.
"""

from __future__ import annotations

import os
import secrets
import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

from docgen_core.errors import StateUnusable
from docgen_core.state.contract import SEGMENT_UNITS, Run, Unit, UnitState
from docgen_core.state.primitives import Primitives, segment_count

T = TypeVar("T")

FORMAT_VERSION = 1
"""Of the rows; stored with each run. Any other is refused, never misread."""

CALLS_AT_ONCE = 16
"""Requests that one process has under way for one operation of many rows."""

RUN_AGE_SECONDS = 2.0
"""A pause or cancellation keeps new claims away after this long at the latest. Reading the run for
each claim would cost more than all else a claim reads, and make its row the hottest of the store."""

AVAILABLE_SHARDS = 16
"""One row would be written for each grant that any worker of a fleet opens or closes, and they would wait for it."""

PATIENCE_SECONDS = 30.0
"""How long a call is tried again before it fails: half a lease of the default length."""

_shared: dict[tuple[str, ...], object] = {}
_inherited: list[object] = []
"""What a parent process had opened: kept, since closing it here could disturb the parent's connections."""
_lock = threading.Lock()


def shared(key: tuple[str, ...], make: Callable[[], T]) -> T:
    """What `make` gives, made once a process for each key; a forked process makes its own."""
    with _lock:
        if key not in _shared:
            _shared[key] = make()
        return cast(T, _shared[key])


def _forget() -> None:
    global _lock
    # Another thread of the parent may have held the lock, and is not here to release it.
    _lock = threading.Lock()
    _inherited.extend(_shared.values())
    _shared.clear()


os.register_at_fork(after_in_child=_forget)


def calls() -> ThreadPoolExecutor:
    """The threads that make this process's calls at once."""
    return shared(("calls",), lambda: ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="state"))


def new_token() -> bytes:
    """A name for one write, stored with the row: a call made again recognises what it has done itself."""
    return secrets.token_bytes(6)


def check_format(run_id: str, version: object) -> None:
    """Raise `StateUnusable` for a run that another docgen has written in another format, or another program."""
    if not isinstance(version, int):
        raise StateUnusable(f"what is stored as run {run_id!r} is another program's; name another place for the state")
    if version != FORMAT_VERSION:
        raise StateUnusable(
            f"run {run_id!r} is stored in format {version}, this docgen reads format {FORMAT_VERSION}; "
            "use the docgen that wrote it"
        )


class CloudPrimitives(Primitives):
    """Primitives over rows that are kept, and found, by their segment."""

    available_shards = AVAILABLE_SHARDS

    def __init__(self, run_age_seconds: float) -> None:
        self.run_age_seconds = run_age_seconds
        self._closed = False
        self._totals: dict[str, int] = {}

    @abstractmethod
    def read_rows(
        self, run_id: str, segment: int, states: Collection[UnitState] | None, after: int, limit: int
    ) -> list[Unit]:
        """Up to `limit` rows of a segment in these states, in index order behind `after`."""

    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        """See `Primitives.list_units`. Segments known to be DONE are passed over when DONE is not asked for."""
        if states is not None and not states:
            return []
        sealed = {} if states is None or UnitState.DONE in states else self.seals(run_id)
        first = (after + 1) // SEGMENT_UNITS
        segments = [s for s in range(first, segment_count(self._total_units(run_id))) if s not in sealed]
        found: list[Unit] = []
        for batch in _growing(segments):
            for rows in calls().map(lambda segment: self.read_rows(run_id, segment, states, after, limit), batch):
                found += rows
            if len(found) >= limit:
                break
        return found[:limit]

    def close(self) -> None:
        """See `Primitives.close`. The client stays for the process's other stores."""
        self._closed = True

    def check_open(self) -> None:
        """Raise `StateUnusable` when this store was closed."""
        if self._closed:
            raise StateUnusable("this state store is closed")

    def _total_units(self, run_id: str) -> int:
        if run_id not in self._totals:
            run: Run | None = self.read_run(run_id)
            if run is None:
                return 0
            self._totals[run_id] = run.marker.total_units
        return self._totals[run_id]


def _growing(segments: list[int]) -> Iterator[list[int]]:
    """One segment, which most often answers the question, and then as many as are read at once."""
    yield segments[:1]
    for start in range(1, len(segments), CALLS_AT_ONCE):
        yield segments[start : start + CALLS_AT_ONCE]
