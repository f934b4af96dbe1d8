"""Runs and units in Firestore: documents written under preconditions, never in a transaction.

Maps the primitives to requests; see docs/decisions/0009-state-in-the-clouds.md. The documents:

| document | at |
| --- | --- |
| run | `runs/{run}` |
| unit | `runs/{run}/units/{scattered hex}-{index}` |
| seal | `runs/{run}/seals/{segment}` |
| ledger | `runs/{run}/ledger/{kind}-{scattered hex}` |

Each holds what is queried (`segment`, `state`) beside a map `row` with the rest, so that one
exemption keeps the rest out of every index. What does not belong here: rules of the contract,
retries and errors of the service (firestore_calls.py).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from hashlib import sha256
from typing import Any

from google.cloud.firestore import DocumentReference, FieldFilter

from docgen_core.state.cloud import FORMAT_VERSION, RUN_AGE_SECONDS, CloudPrimitives, check_format, new_token
from docgen_core.state.contract import SEGMENT_UNITS, Run, RunKind, RunMarker, RunState, Unit, UnitState
from docgen_core.state.firestore_calls import Database, Snapshot, Write
from docgen_core.state.primitives import Change, Entry, Posting, Segment

_APART = {"run_id", "index", "state", "stamp", "marker"}
"""Fields that a document keeps in its name or beside `row`, or that are no part of it."""

_UNIT_FIELDS = [field.name for field in fields(Unit) if field.name not in _APART]
_MARKER_FIELDS = [field.name for field in fields(RunMarker) if field.name not in _APART]
_RUN_FIELDS = [field.name for field in fields(Run) if field.name not in _APART]


class FirestorePrimitives(CloudPrimitives):
    """The primitives over one database."""

    def __init__(self, project: str, database: str, *, run_age_seconds: float = RUN_AGE_SECONDS) -> None:
        """Name the database; nothing is asked of the service yet. Raises `StateUnusable`."""
        super().__init__(run_age_seconds)
        self._database = Database(project, database)

    def insert_run(self, run: Run) -> bool:
        """See `Primitives.insert_run`."""
        return self._write([Write(self._run(run.run_id), _run_data(run), None)])[0]

    def read_run(self, run_id: str) -> Run | None:
        """See `Primitives.read_run`."""
        snapshot = self._read(self._run(run_id))
        return _run_of(snapshot) if snapshot.exists else None

    def replace_run(self, before: Run, after: Run) -> bool:
        """See `Primitives.replace_run`."""
        return self._write([Write(self._run(after.run_id), _run_data(after), before.stamp)])[0]

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        """See `Primitives.list_runs`. In the order of the documents' names, which every index keeps."""
        if states is not None and not states:
            return []
        runs = self._database.client.collection("runs")
        query = runs.order_by("__name__").limit(limit)
        if after:
            query = query.where(filter=FieldFilter("__name__", ">", runs.document(after)))
        if states is not None:
            query = query.where(filter=FieldFilter("state", "in", sorted(states)))
        return [_run_of(snapshot) for snapshot in self._query(query)]

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        """See `Primitives.read_unit`."""
        snapshot = self._read(self._unit(run_id, index))
        return _unit_of(snapshot) if snapshot.exists else None

    def read_segment(self, run_id: str, segment: int) -> Segment:
        """See `Primitives.read_segment`."""
        return Segment.of(self._units(run_id, segment, None))

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        """See `Primitives.write_units`. One request; each write in it stands for itself."""
        return self._write(
            [
                Write(self._unit(after.run_id, after.index), _unit_data(after), before and before.stamp)
                for before, after in changes
            ]
        )

    def read_rows(
        self, run_id: str, segment: int, states: Collection[UnitState] | None, after: int, limit: int
    ) -> list[Unit]:
        """See `CloudPrimitives.read_rows`."""
        rows = [unit for unit in self._units(run_id, segment, states) if unit.index > after]
        return sorted(rows, key=lambda unit: unit.index)[:limit]

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """See `Primitives.seal`."""
        self._write([Write(self._seals(run_id).document(f"{segment:06d}"), {"row": {"rows": rows}}, None)])

    def seals(self, run_id: str) -> dict[int, int]:
        """See `Primitives.seals`."""
        return {int(seal.id): seal.get("row.rows") for seal in self._query(self._seals(run_id))}

    def read_time(self) -> float:
        """See `Primitives.read_time`. When the service read a document, whether it is there or not."""
        seen: datetime = self._read(self._database.client.collection("runs").document("#clock")).read_time
        return seen.timestamp()

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        """See `Primitives.read_entries`. One request, in which what was read first holds when the last is read."""
        self.check_open()
        snapshots = self._database.get([self._entry(run_id, kind, id_) for kind, id_ in keys])
        return [_entry_of(snapshot) if snapshot.exists else None for snapshot in snapshots]

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """See `Primitives.list_entries`. By a range of the documents' names."""
        ledger = self._run(run_id).collection("ledger")
        first = self._entry(run_id, kind, after) if after else ledger.document(f"{kind}-")
        query = ledger.order_by("__name__").limit(limit)
        query = query.where(filter=FieldFilter("__name__", ">", first))
        query = query.where(filter=FieldFilter("__name__", "<", ledger.document(f"{kind}.")))
        return [_entry_of(snapshot) for snapshot in self._query(query)]

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        """See `Primitives.commit`. One batch, each document under its precondition; no transaction."""
        self.check_open()
        writes = [
            Write(self._entry(after.run_id, after.kind, after.id), _entry_data(after), before and before.stamp)
            for before, after in postings
        ]
        if unit is not None:
            before, after = unit
            writes.append(Write(self._unit(after.run_id, after.index), _unit_data(after), before and before.stamp))
        token = new_token()
        for write in writes:
            write.data["row"]["token"] = token
        applied, doubtful = self._database.commit(writes)
        if doubtful:
            # One document of ours is enough: others may have changed the rest since.
            stored = self._database.get([write.reference for write in writes])
            return any(snapshot.exists and snapshot.get("row.token") == token for snapshot in stored)
        return applied

    # Where documents are --------------------------------------------------------------------

    def _run(self, run_id: str) -> DocumentReference:
        reference: DocumentReference = self._database.client.collection("runs").document(run_id)
        return reference

    def _unit(self, run_id: str, index: int) -> DocumentReference:
        # Names that follow one another would all go to the same server.
        scattered = sha256(str(index).encode()).hexdigest()[:8]
        reference: DocumentReference = self._run(run_id).collection("units").document(f"{scattered}-{index}")
        return reference

    def _entry(self, run_id: str, kind: str, id_: str) -> DocumentReference:
        # An id may hold what no name of a document can.
        name = f"{kind}-{sha256(id_.encode()).hexdigest()[:32]}"
        reference: DocumentReference = self._run(run_id).collection("ledger").document(name)
        return reference

    def _seals(self, run_id: str) -> Any:
        return self._run(run_id).collection("seals")

    # Requests -------------------------------------------------------------------------------

    def _units(self, run_id: str, segment: int, states: Collection[UnitState] | None) -> Iterable[Unit]:
        query = self._run(run_id).collection("units").where(filter=FieldFilter("segment", "==", segment))
        if states is not None:
            query = query.where(filter=FieldFilter("state", "in", sorted(states)))
        return map(_unit_of, self._query(query))

    def _read(self, reference: DocumentReference) -> Snapshot:
        self.check_open()
        return self._database.get([reference])[0]

    def _query(self, query: Any) -> list[Snapshot]:
        self.check_open()
        return self._database.query(query)

    def _write(self, writes: list[Write]) -> list[bool]:
        """Which of the writes are stored, be it by a request whose answer was lost."""
        self.check_open()
        for write in writes:
            write.data["row"]["token"] = new_token()
        applied, doubtful = self._database.write(writes)
        if doubtful:
            stored = self._database.get([writes[position].reference for position in doubtful])
            for position, snapshot in zip(doubtful, stored, strict=True):
                mine = writes[position].data["row"]["token"]
                applied[position] = snapshot.exists and snapshot.get("row.token") == mine
        return applied


def _unit_data(unit: Unit) -> dict[str, Any]:
    row = {name: getattr(unit, name) for name in _UNIT_FIELDS}
    return {"segment": unit.index // SEGMENT_UNITS, "state": str(unit.state), "row": row}


def _unit_of(snapshot: Snapshot) -> Unit:
    data = snapshot.to_dict() or {}
    row = data["row"]
    return Unit(
        run_id=snapshot.reference.parent.parent.id,
        index=int(snapshot.id.rpartition("-")[2]),
        state=UnitState(data["state"]),
        stamp=snapshot.update_time,
        **{name: row[name] for name in _UNIT_FIELDS},
    )


def _entry_data(entry: Entry) -> dict[str, Any]:
    body = json.dumps(entry.body, sort_keys=True, separators=(",", ":"))
    return {"row": {"kind": entry.kind, "id": entry.id, "version": entry.version, "body": body}}


def _entry_of(snapshot: Snapshot) -> Entry:
    row = (snapshot.to_dict() or {})["row"]
    run_id = snapshot.reference.parent.parent.id
    stamp = snapshot.update_time
    return Entry(run_id, row["kind"], row["id"], row["version"], json.loads(row["body"]), stamp)


def _run_data(run: Run) -> dict[str, Any]:
    row = {name: getattr(run.marker, name) for name in _MARKER_FIELDS}
    row |= {name: getattr(run, name) for name in _RUN_FIELDS}
    # As text: a document's maps would lose the order of nothing here, but refuse lists within lists.
    row |= {"kind": str(run.marker.kind), "spec": json.dumps(run.marker.spec), "format": FORMAT_VERSION}
    return {"state": str(run.state), "row": row}


def _run_of(snapshot: Snapshot) -> Run:
    data = snapshot.to_dict() or {}
    row = data.get("row", {})
    check_format(snapshot.id, row.get("format") if isinstance(row, dict) else None)
    marker = {name: row[name] for name in _MARKER_FIELDS}
    marker |= {"run_id": snapshot.id, "kind": RunKind(row["kind"]), "spec": json.loads(row["spec"])}
    return Run(
        marker=RunMarker(**marker),
        state=RunState(data["state"]),
        stamp=snapshot.update_time,
        **{name: row[name] for name in _RUN_FIELDS},
    )
