"""Runs and units in one DynamoDB table, any number of runs to a table, without secondary indexes.

Maps the primitives to requests; see docs/decisions/0009-state-in-the-clouds.md. The keys:

| row | pk | sk |
| --- | --- | --- |
| run | `#runs#` and one of 16 shards, by the run's id | the run's id |
| unit | run, `#`, segment | `unit#` and the index |
| seal | run, `#seals` | the segment |
| ledger | run, `#` and the kind | the id |

What does not belong here: rules of the contract, retries and errors of the service (dynamodb_calls.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, NamedTuple

from docgen_core.state.cloud import FORMAT_VERSION, RUN_AGE_SECONDS, CloudPrimitives, calls, check_format, new_token
from docgen_core.state.contract import SEGMENT_UNITS, Run, RunKind, RunMarker, RunState, Unit, UnitState
from docgen_core.state.dynamodb_calls import ConditionFailed, Table
from docgen_core.state.primitives import Change, Entry, Posting, Segment

Item = dict[str, dict[str, Any]]
"""A row as the service has it: attribute to `{type: value}`."""

LISTING_SHARDS = 16
"""Partitions over which the rows of runs are spread; a listing asks each of them."""


class _Kind(NamedTuple):
    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]


class _Attribute(NamedTuple):
    name: str
    kind: _Kind
    missing: Any = None
    """The value that is not stored."""


_HEX_DIGEST = re.compile(r"[0-9a-f]{64}")


def _text(read: Callable[[str], Any] = str) -> _Kind:
    return _Kind(lambda value: {"S": str(value)}, lambda stored: read(stored["S"]))


_WHOLE = _Kind(lambda value: {"N": str(value)}, lambda stored: int(stored["N"]))
# As its shortest text: it is read back to the bit.
_REAL = _Kind(lambda value: {"N": repr(value)}, lambda stored: float(stored["N"]))
_TRUTH = _Kind(lambda value: {"BOOL": value}, lambda stored: stored["BOOL"])
_DIGEST = _Kind(
    lambda value: {"B": bytes.fromhex(value)} if _HEX_DIGEST.fullmatch(value) else {"S": value},
    lambda stored: bytes(stored["B"]).hex() if "B" in stored else stored["S"],
)
_JSON = _Kind(
    lambda value: {"S": json.dumps(value, sort_keys=True, separators=(",", ":"))},
    lambda stored: json.loads(stored["S"]),
)

# Rows are billed by the byte, names included, and a segment is a thousand of them: hence one letter
# each, digests as bytes, and nothing for what most rows have alike.
_UNIT = {
    "state": _Attribute("s", _text(UnitState)),
    "generation": _Attribute("g", _WHOLE),
    "attempts": _Attribute("a", _WHOLE),
    "owner": _Attribute("o", _text()),
    "lease_expires_at": _Attribute("l", _REAL),
    "heartbeat": _Attribute("h", _WHOLE),
    "working": _Attribute("w", _TRUTH, missing=False),
    "not_before": _Attribute("n", _REAL, missing=0.0),
    "error": _Attribute("e", _text()),
    "part_key": _Attribute("k", _text()),
    "part_sha256": _Attribute("d", _DIGEST),
    "rows": _Attribute("r", _WHOLE, missing=0),
    "epoch": _Attribute("p", _WHOLE, missing=0),
}
_MARKER = {
    "kind": _Attribute("kind", _text(RunKind)),
    "prefix": _Attribute("prefix", _text()),
    "spec": _Attribute("spec", _JSON),
    "spec_digest": _Attribute("spec_digest", _text()),
    "total_units": _Attribute("total_units", _WHOLE),
    "unit_size": _Attribute("unit_size", _WHOLE),
    "total_items": _Attribute("total_items", _WHOLE),
}
_RUN = {
    "state": _Attribute("s", _text(RunState)),
    "planned": _Attribute("planned", _TRUTH),
    "epoch": _Attribute("p", _WHOLE),
    "root_digest": _Attribute("root_digest", _text()),
    "created_at": _Attribute("created_at", _REAL),
    "max_attempts": _Attribute("max_attempts", _WHOLE),
    "lease_seconds": _Attribute("lease_seconds", _REAL),
}
_FORMAT, _TOKEN, _SEAL_ROWS, _VERSION, _BODY = "f", "t", "r", "v", "b"

_ABSENT = "attribute_not_exists(pk)"


class _Put(NamedTuple):
    """A row to store on a condition, and the condition's values."""

    item: Item
    condition: str
    values: Item

    def request(self, token: bytes) -> dict[str, Any]:
        request: dict[str, Any] = {"Item": {**self.item, _TOKEN: {"B": token}}, "ConditionExpression": self.condition}
        return request | {"ExpressionAttributeValues": self.values} if self.values else request


class DynamoPrimitives(CloudPrimitives):
    """The primitives over one table."""

    def __init__(self, table: str, region: str | None, *, run_age_seconds: float = RUN_AGE_SECONDS) -> None:
        """Name the table; nothing is asked of the service yet. Raises `UsageError`."""
        super().__init__(run_age_seconds)
        self._table = Table(table, region)

    def insert_run(self, run: Run) -> bool:
        """See `Primitives.insert_run`."""
        return self._put(_run_item(run), _ABSENT, {})

    def read_run(self, run_id: str) -> Run | None:
        """See `Primitives.read_run`."""
        item = self._get(_run_key(run_id))
        return None if item is None else _run_of(item)

    def replace_run(self, before: Run, after: Run) -> bool:
        """See `Primitives.replace_run`."""
        held: Item = {
            ":s": {"S": str(before.state)},
            ":planned": {"BOOL": before.planned},
            ":p": {"N": str(before.epoch)},
        }
        return self._put(_run_item(after), "s = :s AND planned = :planned AND p = :p", held)

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        """See `Primitives.list_runs`. One query of each shard."""
        if states is not None and not states:
            return []

        def listed(shard: int) -> list[Run]:
            items = self._query(f"#runs#{shard:02d}", states, limit=limit, after=after)
            return [_run_of(item) for item in items]

        runs = [run for shard in calls().map(listed, range(LISTING_SHARDS)) for run in shard]
        return sorted(runs, key=lambda run: run.run_id)[:limit]

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        """See `Primitives.read_unit`."""
        item = self._get(_unit_key(run_id, index))
        return None if item is None else _unit_of(item)

    def read_segment(self, run_id: str, segment: int) -> Segment:
        """See `Primitives.read_segment`."""
        return Segment.of(map(_unit_of, self._query(f"{run_id}#{segment}")))

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        """See `Primitives.write_units`. One conditional write each, several under way at once."""
        if len(changes) == 1:
            return [self._write(changes[0])]
        return list(calls().map(self._write, changes))

    def read_rows(
        self, run_id: str, segment: int, states: Collection[UnitState] | None, after: int, limit: int
    ) -> list[Unit]:
        """See `CloudPrimitives.read_rows`."""
        behind = _unit_sort_key(after) if after >= 0 else ""
        return [_unit_of(item) for item in self._query(f"{run_id}#{segment}", states, limit=limit, after=behind)]

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """See `Primitives.seal`."""
        key = {"pk": {"S": f"{run_id}#seals"}, "sk": {"S": f"{segment:06d}"}}
        self._put({**key, _SEAL_ROWS: {"N": str(rows)}}, _ABSENT, {})

    def seals(self, run_id: str) -> dict[int, int]:
        """See `Primitives.seals`."""
        return {int(item["sk"]["S"]): int(item[_SEAL_ROWS]["N"]) for item in self._query(f"{run_id}#seals")}

    def read_time(self) -> float | None:
        """See `Primitives.read_time`. Whole seconds, by the date of an answer."""
        self.check_open()
        answer = self._table.call("get_item", Key=_run_key("#clock"))
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        return parsedate_to_datetime(date).timestamp() if date else None

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        """See `Primitives.read_entries`. One by one: a batch is read in no order."""
        items = [self._get(_entry_key(run_id, kind, id_)) for kind, id_ in keys]
        return [None if item is None else _entry_of(item) for item in items]

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """See `Primitives.list_entries`."""
        return [_entry_of(item) for item in self._query(f"{run_id}#{kind}", limit=limit, after=after)]

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        """See `Primitives.commit`. A transaction, which costs twice the writes, where there is more than one row."""
        puts = [_posting_put(posting) for posting in postings]
        if unit is not None:
            puts.append(_unit_put(unit))
        return self._put(*puts[0]) if len(puts) == 1 else self._put_together(puts)

    def _write(self, change: Change) -> bool:
        return self._put(*_unit_put(change))

    def _put(self, item: Item, condition: str, values: Item) -> bool:
        """Store the row on a condition; True when it was stored, be it by a request whose answer was lost."""
        return self._stored([_Put(item, condition, values)], lambda puts: self._table.call("put_item", **puts[0]))

    def _put_together(self, puts: Sequence[_Put]) -> bool:
        """Store all of the rows, each on its condition, or none; True likewise."""
        return self._stored(puts, self._table.put_together)

    def _stored(self, puts: Sequence[_Put], send: Callable[[list[dict[str, Any]]], object]) -> bool:
        self.check_open()
        token = new_token()
        try:
            send([put.request(token) for put in puts])
        except ConditionFailed as refused:
            if not refused.retried:
                return False
            # One row of ours is enough: others may have changed the rest since.
            stored = (self._get({"pk": put.item["pk"], "sk": put.item["sk"]}) for put in puts)
            return any(item is not None and bytes(item[_TOKEN]["B"]) == token for item in stored)
        return True

    def _get(self, key: Item) -> Item | None:
        self.check_open()
        found: Item | None = self._table.call("get_item", Key=key, ConsistentRead=True).get("Item")
        return found

    def _query(
        self, pk: str, states: Collection[str] | None = None, *, limit: int | None = None, after: str = ""
    ) -> Iterator[Item]:
        """Rows of a partition in key order, by strong reads."""
        self.check_open()
        condition, values = "pk = :pk", {":pk": {"S": pk}}
        request: dict[str, Any] = {"ConsistentRead": True}
        if after:
            condition, values[":after"] = "pk = :pk AND sk > :after", {"S": after}
        if states is not None:
            names = {f":s{number}": {"S": str(state)} for number, state in enumerate(sorted(states))}
            values |= names
            request["FilterExpression"] = f"s IN ({', '.join(names)})"
        elif limit is not None:
            request["Limit"] = limit
        request |= {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}
        return _first(limit, self._pages(request))

    def _pages(self, request: dict[str, Any]) -> Iterator[Item]:
        while True:
            answer = self._table.call("query", **request)
            yield from answer["Items"]
            if "LastEvaluatedKey" not in answer:
                return
            request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _first(limit: int | None, items: Iterable[Item]) -> Iterator[Item]:
    for count, item in enumerate(items, start=1):
        yield item
        if count == limit:
            return


def _run_key(run_id: str) -> Item:
    shard = sha256(run_id.encode()).digest()[0] % LISTING_SHARDS
    return {"pk": {"S": f"#runs#{shard:02d}"}, "sk": {"S": run_id}}


def _unit_key(run_id: str, index: int) -> Item:
    return {"pk": {"S": f"{run_id}#{index // SEGMENT_UNITS}"}, "sk": {"S": _unit_sort_key(index)}}


def _unit_sort_key(index: int) -> str:
    return f"unit#{index:09d}"


def _fields_out(record: object, table: dict[str, _Attribute]) -> Item:
    values = ((attribute, getattr(record, field)) for field, attribute in table.items())
    return {attribute.name: attribute.kind.write(value) for attribute, value in values if value != attribute.missing}


def _fields_in(item: Item, table: dict[str, _Attribute]) -> dict[str, Any]:
    return {
        field: attribute.kind.read(item[attribute.name]) if attribute.name in item else attribute.missing
        for field, attribute in table.items()
    }


def _unit_item(unit: Unit) -> Item:
    return _unit_key(unit.run_id, unit.index) | _fields_out(unit, _UNIT)


def _unit_of(item: Item) -> Unit:
    run_id, index = item["pk"]["S"].partition("#")[0], int(item["sk"]["S"].removeprefix("unit#"))
    return Unit(run_id=run_id, index=index, **_fields_in(item, _UNIT))


def _unit_put(change: Change) -> _Put:
    before, after = change
    if before is None:
        return _Put(_unit_item(after), _ABSENT, {})
    held: Item = {
        ":g": {"N": str(before.generation)},
        ":s": {"S": str(before.state)},
        ":h": {"N": str(before.heartbeat)},
    }
    return _Put(_unit_item(after), "g = :g AND s = :s AND h = :h", held)


def _entry_key(run_id: str, kind: str, id_: str) -> Item:
    return {"pk": {"S": f"{run_id}#{kind}"}, "sk": {"S": id_}}


def _posting_put(posting: Posting) -> _Put:
    before, after = posting
    written: Item = {_VERSION: _WHOLE.write(after.version), _BODY: _JSON.write(after.body)}
    item = _entry_key(after.run_id, after.kind, after.id) | written
    if before is None:
        return _Put(item, _ABSENT, {})
    return _Put(item, f"{_VERSION} = :v", {":v": _WHOLE.write(before.version)})


def _entry_of(item: Item) -> Entry:
    run_id, _, kind = item["pk"]["S"].partition("#")
    return Entry(run_id, kind, item["sk"]["S"], _WHOLE.read(item[_VERSION]), _JSON.read(item[_BODY]))


def _run_item(run: Run) -> Item:
    written = {_FORMAT: {"N": str(FORMAT_VERSION)}}
    return _run_key(run.run_id) | written | _fields_out(run.marker, _MARKER) | _fields_out(run, _RUN)


def _run_of(item: Item) -> Run:
    run_id = item["sk"]["S"]
    check_format(run_id, _WHOLE.read(item[_FORMAT]) if _FORMAT in item else None)
    return Run(RunMarker(run_id=run_id, **_fields_in(item, _MARKER)), **_fields_in(item, _RUN))
