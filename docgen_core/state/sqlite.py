"""Runs and units in one SQLite file that any number of processes of one machine share.

Maps the primitives to statements; see docs/decisions/0002-sqlite-durability.md for how durable a
commit is. What does not belong here: rules of the contract, connections and their errors.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from docgen_core.errors import StorageFailed
from docgen_core.state.contract import SEGMENT_UNITS, Run, RunKind, RunMarker, RunState, Unit, UnitState
from docgen_core.state.primitives import Change, Entry, Posting, Primitives, Segment
from docgen_core.state.sqlite_connections import Connections

FORMAT_VERSION = 2
"""Of the tables below. A file of an earlier one is brought up to it; any other is refused, never misread."""

_LEDGER = (
    """
    CREATE TABLE entries (
        run_id TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (run_id, kind, id)
    ) STRICT, WITHOUT ROWID
    """,
)

_MIGRATIONS = {1: _LEDGER}
"""What makes a file of this version one of the next."""

_SCHEMA = (
    """
    CREATE TABLE runs (
        run_id TEXT PRIMARY KEY, kind TEXT NOT NULL, prefix TEXT NOT NULL, spec TEXT NOT NULL,
        spec_digest TEXT NOT NULL, total_units INTEGER NOT NULL, unit_size INTEGER NOT NULL,
        total_items INTEGER NOT NULL, state TEXT NOT NULL, planned INTEGER NOT NULL,
        epoch INTEGER NOT NULL, root_digest TEXT, created_at REAL NOT NULL,
        max_attempts INTEGER NOT NULL, lease_seconds REAL NOT NULL
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX runs_by_state ON runs (state, run_id)",
    """
    CREATE TABLE units (
        run_id TEXT NOT NULL, idx INTEGER NOT NULL, state TEXT NOT NULL, generation INTEGER NOT NULL,
        attempts INTEGER NOT NULL, owner TEXT NOT NULL, lease_expires_at REAL NOT NULL,
        heartbeat INTEGER NOT NULL, working INTEGER NOT NULL, not_before REAL NOT NULL, error TEXT,
        part_key TEXT, part_sha256 TEXT, rows INTEGER NOT NULL, epoch INTEGER NOT NULL,
        PRIMARY KEY (run_id, idx)
    ) STRICT, WITHOUT ROWID
    """,
    # Running leases and failures are found without walking what is done.
    "CREATE INDEX units_not_done ON units (run_id, idx) WHERE state <> 'DONE'",
    """
    CREATE TABLE seals (
        run_id TEXT NOT NULL, segment INTEGER NOT NULL, rows INTEGER NOT NULL, PRIMARY KEY (run_id, segment)
    ) STRICT, WITHOUT ROWID
    """,
    *_LEDGER,
)

_RUN_COLUMNS = (
    "run_id, kind, prefix, spec, spec_digest, total_units, unit_size, total_items, "
    "state, planned, epoch, root_digest, created_at, max_attempts, lease_seconds"
)
_UNIT_COLUMNS = (
    "run_id, idx, state, generation, attempts, owner, lease_expires_at, heartbeat, working, "
    "not_before, error, part_key, part_sha256, rows, epoch"
)
_INSERT_RUN = f"INSERT INTO runs ({_RUN_COLUMNS}) VALUES ({', '.join('?' * 15)}) ON CONFLICT DO NOTHING"
_INSERT_UNIT = f"INSERT INTO units ({_UNIT_COLUMNS}) VALUES ({', '.join('?' * 15)}) ON CONFLICT DO NOTHING"
_UPDATE_UNIT = (
    f"UPDATE units SET ({_UNIT_COLUMNS}) = ({', '.join('?' * 15)}) "
    "WHERE run_id = ? AND idx = ? AND generation = ? AND state = ? AND heartbeat = ?"
)
_unit_values: Callable[[Unit], tuple[Any, ...]] = attrgetter(
    "run_id", "index", "state", "generation", "attempts", "owner", "lease_expires_at", "heartbeat", "working",
    "not_before", "error", "part_key", "part_sha256", "rows", "epoch",
)  # fmt: skip


class SqlitePrimitives(Primitives):
    """The primitives over one file."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises `StateUnusable` or `StorageFailed`."""
        self._folder = path.parent
        self._connections = Connections(path, version=FORMAT_VERSION, schema=_SCHEMA, migrations=_MIGRATIONS)

    def insert_run(self, run: Run) -> bool:
        """See `Primitives.insert_run`."""
        return self._connections.write(lambda db: db.execute(_INSERT_RUN, _run_values(run)).rowcount == 1)

    def read_run(self, run_id: str) -> Run | None:
        """See `Primitives.read_run`."""
        row = self._one(f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ?", (run_id,))
        return None if row is None else _run_of(row)

    def replace_run(self, before: Run, after: Run) -> bool:
        """See `Primitives.replace_run`."""
        values = (after.state, after.planned, after.epoch, after.root_digest)
        condition = (before.run_id, before.state, before.planned, before.epoch)
        statement = (
            "UPDATE runs SET state = ?, planned = ?, epoch = ?, root_digest = ? "
            "WHERE run_id = ? AND state = ? AND planned = ? AND epoch = ?"
        )
        return self._connections.write(lambda db: db.execute(statement, values + condition).rowcount == 1)

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        """See `Primitives.list_runs`. One walk of an index for each state."""
        select = f"SELECT {_RUN_COLUMNS} FROM runs WHERE"
        if states is None:
            return [_run_of(row) for row in self._all(f"{select} run_id > ? ORDER BY run_id LIMIT ?", (after, limit))]
        statement = f"{select} state = ? AND run_id > ? ORDER BY run_id LIMIT ?"
        runs = [_run_of(row) for state in set(states) for row in self._all(statement, (state, after, limit))]
        return sorted(runs, key=lambda run: run.run_id)[:limit]

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        """See `Primitives.read_unit`."""
        row = self._one(f"SELECT {_UNIT_COLUMNS} FROM units WHERE run_id = ? AND idx = ?", (run_id, index))
        return None if row is None else _unit_of(row)

    def read_segment(self, run_id: str, segment: int) -> Segment:
        """See `Primitives.read_segment`."""
        first = segment * SEGMENT_UNITS
        rows = self._all(
            f"SELECT {_UNIT_COLUMNS} FROM units WHERE run_id = ? AND idx >= ? AND idx < ?",
            (run_id, first, first + SEGMENT_UNITS),
        )
        return Segment.of(map(_unit_of, rows))

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        """See `Primitives.write_units`. One transaction."""
        return self._connections.write(lambda db: [_write_unit(db, change) for change in changes])

    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        """See `Primitives.list_units`. Walks the partial index when DONE is not asked for."""
        wanted = set(UnitState) if states is None else set(states)
        if not wanted:
            return []
        index = term = ""
        if UnitState.DONE not in wanted:
            # Said outright: the planner thinks the primary key as good, and would walk all that is done.
            index, term = "INDEXED BY units_not_done ", "AND state <> 'DONE' "
        rows = self._all(
            f"SELECT {_UNIT_COLUMNS} FROM units {index}WHERE run_id = ? AND idx > ? {term}"
            f"AND state IN ({', '.join('?' * len(wanted))}) ORDER BY idx LIMIT ?",
            (run_id, after, *sorted(wanted), limit),
        )
        return [_unit_of(row) for row in rows]

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """See `Primitives.seal`."""
        statement = "INSERT INTO seals (run_id, segment, rows) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._connections.write(lambda db: db.execute(statement, (run_id, segment, rows)))

    def seals(self, run_id: str) -> dict[int, int]:
        """See `Primitives.seals`."""
        return dict(self._all("SELECT segment, rows FROM seals WHERE run_id = ?", (run_id,)))

    def read_time(self) -> float:
        """See `Primitives.read_time`. The file system's: another machine's where that is shared."""
        try:
            with NamedTemporaryFile(dir=self._folder, prefix=".clock-") as probe:
                probe.write(b".")
                probe.flush()
                return Path(probe.name).stat().st_mtime
        except OSError as error:
            raise StorageFailed(f"cannot write the folder {self._folder} of the state: {error.strerror}") from None

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        """See `Primitives.read_entries`. One statement, and so of one moment."""
        # A search for each: the planner would look for alternatives in all of the run's rows.
        search = "SELECT kind, id, version, body FROM entries WHERE run_id = ? AND kind = ? AND id = ?"
        rows = self._all(" UNION ALL ".join([search] * len(keys)), tuple(x for key in keys for x in (run_id, *key)))
        found = {(kind, id_): Entry(run_id, kind, id_, version, json.loads(body)) for kind, id_, version, body in rows}
        return [found.get(key) for key in keys]

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """See `Primitives.list_entries`."""
        rows = self._all(
            "SELECT id, version, body FROM entries WHERE run_id = ? AND kind = ? AND id > ? ORDER BY id LIMIT ?",
            (run_id, kind, after, limit),
        )
        return [Entry(run_id, kind, id_, version, json.loads(body)) for id_, version, body in rows]

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        """See `Primitives.commit`. One transaction."""

        def write(db: sqlite3.Connection) -> bool:
            applied = all(_write_entry(db, posting) for posting in postings) and (unit is None or _write_unit(db, unit))
            if not applied:
                raise _Refused
            return True

        try:
            return self._connections.write(write)
        except _Refused:
            return False

    def close(self) -> None:
        """See `Primitives.close`."""
        self._connections.close()

    def _one(self, statement: str, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        rows = self._all(statement, values)
        return rows[0] if rows else None

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._connections.read(lambda db: db.execute(statement, values).fetchall())


class _Refused(Exception):
    """A condition does not hold: the transaction is rolled back."""


def _write_entry(db: sqlite3.Connection, posting: Posting) -> bool:
    before, after = posting
    body = json.dumps(after.body, sort_keys=True, separators=(",", ":"))
    if before is None:
        values = (after.run_id, after.kind, after.id, after.version, body)
        statement = (
            "INSERT INTO entries (run_id, kind, id, version, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        return db.execute(statement, values).rowcount == 1
    statement = "UPDATE entries SET version = ?, body = ? WHERE run_id = ? AND kind = ? AND id = ? AND version = ?"
    key = (before.run_id, before.kind, before.id, before.version)
    return db.execute(statement, (after.version, body, *key)).rowcount == 1


def _write_unit(db: sqlite3.Connection, change: Change) -> bool:
    before, after = change
    if before is None:
        return db.execute(_INSERT_UNIT, _unit_values(after)).rowcount == 1
    condition = (before.run_id, before.index, before.generation, before.state, before.heartbeat)
    return db.execute(_UPDATE_UNIT, _unit_values(after) + condition).rowcount == 1


def _unit_of(row: tuple[Any, ...]) -> Unit:
    run_id, index, state, generation, attempts, owner, expires, heartbeat, working, *rest = row
    return Unit(run_id, index, UnitState(state), generation, attempts, owner, expires, heartbeat, bool(working), *rest)


def _run_values(run: Run) -> tuple[Any, ...]:
    marker = run.marker
    spec = json.dumps(marker.spec, sort_keys=True, separators=(",", ":"))
    return (
        marker.run_id, marker.kind, marker.prefix, spec, marker.spec_digest,
        marker.total_units, marker.unit_size, marker.total_items,
        run.state, run.planned, run.epoch, run.root_digest, run.created_at, run.max_attempts, run.lease_seconds,
    )  # fmt: skip


def _run_of(row: tuple[Any, ...]) -> Run:
    run_id, kind, prefix, spec, spec_digest, total_units, unit_size, total_items, state, planned, *rest = row
    marker = RunMarker(
        run_id, RunKind(kind), prefix, json.loads(spec), spec_digest, total_units, unit_size, total_items
    )
    return Run(marker, RunState(state), bool(planned), *rest)
