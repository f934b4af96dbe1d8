"""Runs and units in this process's memory: for tests, and the ground a simulator stands on.

Keeps the same promises as the databases do, among threads. What does not belong here: anything
that another process should see.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Sequence
from dataclasses import replace

from docgen_core.state.contract import SEGMENT_UNITS, Run, RunState, Unit, UnitState
from docgen_core.state.primitives import Change, Entry, Posting, Primitives, Segment


class MemoryPrimitives(Primitives):
    """Tables under one lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[str, Run] = {}
        self._units: dict[str, dict[int, dict[int, Unit]]] = {}
        """By run, segment and index."""
        self._seals: dict[str, dict[int, int]] = {}
        self._entries: dict[str, dict[str, dict[str, Entry]]] = {}
        """By run, kind and id."""

    def insert_run(self, run: Run) -> bool:
        """See `Primitives.insert_run`. Keeps the spec as JSON would: a copy, tuples as lists."""
        spec = json.loads(json.dumps(run.marker.spec))
        with self._lock:
            if run.run_id in self._runs:
                return False
            self._runs[run.run_id] = replace(run, marker=replace(run.marker, spec=spec))
            self._units[run.run_id] = {}
            self._seals[run.run_id] = {}
            self._entries[run.run_id] = {}
            return True

    def read_run(self, run_id: str) -> Run | None:
        """See `Primitives.read_run`."""
        with self._lock:
            return self._runs.get(run_id)

    def replace_run(self, before: Run, after: Run) -> bool:
        """See `Primitives.replace_run`."""
        with self._lock:
            stored = self._runs[before.run_id]
            if (stored.state, stored.planned, stored.epoch) != (before.state, before.planned, before.epoch):
                return False
            self._runs[before.run_id] = after
            return True

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        """See `Primitives.list_runs`."""
        with self._lock:
            runs = [self._runs[run_id] for run_id in sorted(self._runs) if run_id > after]
        return [run for run in runs if states is None or run.state in states][:limit]

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        """See `Primitives.read_unit`."""
        with self._lock:
            return self._segment(run_id, index).get(index)

    def read_segment(self, run_id: str, segment: int) -> Segment:
        """See `Primitives.read_segment`."""
        with self._lock:
            return Segment.of(self._units[run_id].get(segment, {}).values())

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        """See `Primitives.write_units`."""
        with self._lock:
            return [self._write(change) for change in changes]

    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        """See `Primitives.list_units`."""
        with self._lock:
            rows = [unit for segment in self._units[run_id].values() for unit in segment.values()]
        wanted = [unit for unit in rows if unit.index > after and (states is None or unit.state in states)]
        return sorted(wanted, key=lambda unit: unit.index)[:limit]

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """See `Primitives.seal`."""
        with self._lock:
            self._seals[run_id].setdefault(segment, rows)

    def seals(self, run_id: str) -> dict[int, int]:
        """See `Primitives.seals`."""
        with self._lock:
            return dict(self._seals[run_id])

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        """See `Primitives.read_entries`."""
        with self._lock:
            kinds = self._entries[run_id]
            return [kinds.get(kind, {}).get(id_) for kind, id_ in keys]

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """See `Primitives.list_entries`."""
        with self._lock:
            there = self._entries[run_id].get(kind, {})
            return [there[id_] for id_ in sorted(there) if id_ > after][:limit]

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        """See `Primitives.commit`."""
        with self._lock:
            if not all(self._stands(posting) for posting in postings):
                return False
            if unit is not None and not self._write(unit):
                return False
            for _, after in postings:
                self._entries[after.run_id].setdefault(after.kind, {})[after.id] = after
            return True

    def close(self) -> None:
        """Nothing to give back: the tables live as long as their name, or their last user."""

    def _segment(self, run_id: str, index: int) -> dict[int, Unit]:
        return self._units[run_id].setdefault(index // SEGMENT_UNITS, {})

    def _stands(self, posting: Posting) -> bool:
        before, after = posting
        stored = self._entries[after.run_id].get(after.kind, {}).get(after.id)
        return (stored and stored.version) == (before and before.version)

    def _write(self, change: Change) -> bool:
        before, after = change
        rows = self._segment(after.run_id, after.index)
        stored = rows.get(after.index)
        if before is None or stored is None:
            applies = before is stored
        else:
            applies = (stored.generation, stored.state, stored.heartbeat) == (
                before.generation,
                before.state,
                before.heartbeat,
            )
        if applies:
            rows[after.index] = after
        return applies


_named: dict[str, MemoryPrimitives] = {}
_named_lock = threading.Lock()


def named(name: str) -> MemoryPrimitives:
    """The tables of this name, shared by everything in this process that opens them."""
    with _named_lock:
        return _named.setdefault(name, MemoryPrimitives())
