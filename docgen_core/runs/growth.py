"""Growing a corpus: a longer run takes over the documents that a sealed shorter one has already.

Document *i* of a stream is the same in every run, so where a sealed run differs from this one in its
length alone, and was made by the same software, its files and rows are read instead of drawn again.
What comes out is byte for byte what drawing gives: an unreadable earlier run is no error, and none is
ever recorded. What does not belong here: a run's plan, and what a document is.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import canonical_json
from docgen_core.errors import DocgenError
from docgen_core.packs.contract import Row
from docgen_core.runs.keys import default_prefix, document_id, labels_key, shard_table
from docgen_core.runs.manifest import BlobEntry, Part, Plan, Root, read_blob, read_part, read_plan, read_root
from docgen_core.runs.shards import decode_shard
from docgen_core.state.contract import Run, RunKind, RunState, StateStore

MOST_RUNS = 1_000
"""Sealed runs that are looked at for an earlier one."""
PAGE_RUNS = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """A document of an earlier run, all of it read and checked."""

    document_id: str
    files: tuple[tuple[str, str, bytes], ...]
    """Key there, ending of the name, and content of each file, in page order."""
    labels: bytes | None
    tables: Mapping[str, list[Row]]
    """Rows as they are there."""

    def rows(self, run_id: str, keys: Mapping[str, str]) -> Iterator[tuple[str, list[Row]]]:
        """The rows by table as `run_id`'s, whose files stand under other `keys`."""
        for table, rows in self.tables.items():
            yield table, [_moved(row, run_id, keys if table in ("documents", "pages") else {}) for row in rows]

    def labels_of(self, run_id: str, keys: Mapping[str, str]) -> bytes | None:
        """The labels as `run_id`'s."""
        if self.labels is None:
            return None
        told = json.loads(self.labels)
        pages = [{**page, "key": keys[page["key"]]} for page in told["pages"]]
        return canonical_json({**told, "run_id": run_id, "pages": pages})


def _moved(row: Row, run_id: str, keys: Mapping[str, str]) -> Row:
    moved = {**row, "run_id": run_id}
    return {**moved, "key": keys[row["key"]]} if keys else moved


@dataclass(slots=True)
class _Unit:
    """A unit of the earlier run that was read: its rows by table and document."""

    number: int
    part: Part
    tables: dict[str, dict[str, list[Row]]] = field(default_factory=dict)


class EarlierRun:
    """A sealed run whose documents are the first ones of a longer run."""

    def __init__(self, plan: Plan, root: Root, blobs: BlobStore) -> None:
        self.run_id, self.documents = plan.run_id, plan.total_items
        self._plan, self._blobs = plan, blobs
        self._parts = {entry.unit: entry for entry in root.parts}
        self._stream = plan.documents_spec.stream
        self._unit: _Unit | None = None

    def take(self, index: int) -> Taken | None:
        """Document `index`; None where the run is too short, or what it has of it cannot be read as it was sealed."""
        if index >= self.documents:
            return None
        try:
            return self._taken(index)
        except DocgenError as unreadable:
            _log.info("document %d of run %r is drawn anew: %s", index, self.run_id, unreadable)
            return None

    def _taken(self, index: int) -> Taken:
        unit = self._opened(index // self._plan.unit_size)
        name, prefix = document_id(self._stream, index), self._plan.prefix
        entries = {entry.key: entry for entry in unit.part.blobs}
        tables = {table: rows.get(name, []) for table, rows in unit.tables.items()}
        keys = dict.fromkeys(str(page["key"]) for page in tables["pages"])
        files = [(key, key.rpartition("/")[2].removeprefix(name), read_blob(self._blobs, entries[key])) for key in keys]
        labels = entries.get(labels_key(prefix, unit.number, name))
        return Taken(name, tuple(files), read_blob(self._blobs, labels) if labels else None, tables)

    def _opened(self, number: int) -> _Unit:
        """The unit, which the next document is mostly of too."""
        if self._unit is None or self._unit.number != number:
            unit = _Unit(number, read_part(self._blobs, self._parts[number]))
            for entry in unit.part.blobs:
                if (table := shard_table(self._plan.prefix, entry.key)) is not None:
                    unit.tables[table] = self._rows(entry)
            self._unit = unit
        return self._unit

    def _rows(self, entry: BlobEntry) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = defaultdict(list)
        for row in decode_shard(entry.key, read_blob(self._blobs, entry)).to_pylist():
            found[row["document_id"]].append(row)
        return found


def earlier_run(plan: Plan, state: StateStore, blobs: BlobStore) -> EarlierRun | None:
    """The longest sealed run that differs from the plan in its length alone, and is readable; None without one."""
    try:
        found = sorted(_alike(plan, state), key=lambda run: -run.marker.total_items)
    except DocgenError as unreadable:
        _log.info("no earlier run is looked for: %s", unreadable)
        return None
    readable = (_readable(run, plan, blobs) for run in found)
    return next((earlier for earlier in readable if earlier is not None), None)


def _readable(run: Run, plan: Plan, blobs: BlobStore) -> EarlierRun | None:
    """The run, where the plan's software has made it and nobody has withdrawn or spoilt it."""
    try:
        there = read_plan(blobs, default_prefix(run.run_id))
        if there.fingerprint != plan.fingerprint or there.spec != dict(run.marker.spec):
            return None
        return EarlierRun(there, read_root(blobs, there.prefix), blobs)
    except DocgenError as unreadable:
        _log.info("run %r is not taken over: %s", run.run_id, unreadable)
        return None


def _alike(plan: Plan, state: StateStore) -> Iterator[Run]:
    """Sealed runs of the same specification, but for the number of documents."""
    after = ""
    for _ in range(MOST_RUNS // PAGE_RUNS):
        page = state.list_runs({RunState.COMPLETED}, after=after, limit=PAGE_RUNS)
        for run in page:
            marker = run.marker
            if marker.kind is RunKind.DOCUMENTS and run.run_id != plan.run_id and _same(marker.spec, plan.spec):
                yield run
        if len(page) < PAGE_RUNS:
            return
        after = page[-1].run_id


def _same(there: Mapping[str, Any], here: Mapping[str, Any]) -> bool:
    return {**there, "documents": None} == {**here, "documents": None}
