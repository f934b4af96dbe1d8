"""Units that cost nothing to make, published as real ones are: blob by blob, the part last.

Two kinds: documents, whose bytes follow from the plan; and catalogue texts as a language model
gives them, other words at each attempt, so that their keys carry the attempt's generation. What
does not belong here: who works on what, and faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from sim_pack import PACK

from docgen_core.blobs.contract import BlobStore
from docgen_core.golden import CORE_TABLES
from docgen_core.runs import shards, unit
from docgen_core.runs.keys import document_id, part_key, shard_key
from docgen_core.runs.manifest import Part, Plan, blob_entry
from docgen_core.state.contract import Part as PublishedPart

TABLES = {**CORE_TABLES, **PACK.tables}

Work = Callable[[int], None]
"""Takes the time that an item of this unit takes, or the process's life."""


class ReproducibleMaker:
    """Documents: the same bytes under the same keys, whoever makes them and however often."""

    def __init__(self, plan: Plan, blobs: BlobStore, work: Work) -> None:
        self._plan, self._blobs, self._work = plan, blobs, work
        self._stream = plan.documents_spec.stream

    def make(self, number: int, check: Callable[[], None]) -> PublishedPart:
        publisher = unit._UnitPublisher(self._plan, self._blobs, number, TABLES)
        for index in self._plan.unit_range(number):
            check()
            self._work(number)
            name = document_id(self._stream, index)
            entry = publisher.put_document(name, ".pdf", f"document {name}\n".encode())
            publisher.add("documents", [self._row(name, entry)])
        check()
        return publisher.publish()

    def _row(self, name: str, entry: Any) -> dict[str, Any]:
        said = {"layout": "plain", "locale": "de-DE", "condition": "clean", "pages": 1}
        keys = {"run_id": self._plan.run_id, "document_id": name, "catalogue_version": "v1", "row_key": "1"}
        return {**keys, **said, "key": entry.key, "bytes": entry.bytes, "sha256": entry.sha256}


def attempt_key(key: str, generation: int) -> str:
    """The key of an attempt's own blob: what it holds, no other attempt can overwrite."""
    stem, dot, suffix = key.rpartition(".")
    return f"{stem}.g{generation}{dot}{suffix}"


class UnreproducibleMaker:
    """Texts of a catalogue: other words at each attempt."""

    def __init__(
        self, plan: Plan, blobs: BlobStore, work: Work, *, author: str, generations: Mapping[int, int]
    ) -> None:
        self._plan, self._blobs, self._work = plan, blobs, work
        self._author, self._generations = author, generations

    def make(self, number: int, check: Callable[[], None]) -> PublishedPart:
        generation, prefix, rows = self._generations[number], self._plan.prefix, []
        for company in self._plan.unit_range(number):
            check()
            self._work(number)
            rows.append({"company_id": company, "depot": f"{self._author} g{generation}"})
        check()
        shard = encode_once("companies", PACK.catalogue_tables["companies"], rows)
        key = attempt_key(shard_key(prefix, "companies", number), generation)
        self._blobs.put(key, shard)
        items = self._plan.unit_range(number)
        part = Part(
            run_id=self._plan.run_id,
            unit=number,
            first=items.start,
            count=len(items),
            blobs=[blob_entry(key, shard)],
            rows={"companies": len(rows)},
        )
        key = attempt_key(part_key(prefix, number), generation)
        self._blobs.put(key, part.to_bytes())
        return PublishedPart(key, part.digest, len(rows))


_encoded: dict[str, bytes] = {}


def encode_once(table: str, schema: Any, rows: Any) -> bytes:
    """`encode_shard`, remembered: a pure function, and the most costly one of a schedule."""
    what = f"{table}{rows!r}"
    if what not in _encoded:
        _encoded[what] = shards.encode_shard(table, schema, rows)
    return _encoded[what]


@cache
def decode_once(key: str, data: bytes, schema: Any = None) -> Any:
    """`decode_shard`, likewise."""
    return shards.decode_shard(key, data, schema)
