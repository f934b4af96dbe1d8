"""Units that cost nothing to make, published as real ones are: blob by blob, the part last.

Two kinds: documents, whose bytes follow from the plan; and catalogue texts as a language model
gives them, other words at each attempt, so that their keys carry the attempt's generation. What
does not belong here: who works on what, and faults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from sim_pack import PACK

from docgen_core.blobs.contract import BlobStore
from docgen_core.golden import CORE_TABLES
from docgen_core.runs import shards, unit
from docgen_core.runs.keys import document_id
from docgen_core.runs.manifest import Plan
from docgen_core.state.contract import Lease
from docgen_core.state.contract import Part as PublishedPart

TABLES = {**CORE_TABLES, **PACK.tables}
CATALOGUE_TABLES = shards.catalogue_schemas(PACK)

Work = Callable[[int], None]
"""Takes the time that an item of this unit takes, or the process's life."""


class _Maker:
    """What a maker is besides: without a budget, and without anything to give back."""

    def settlement(self) -> None:
        return None

    def close(self) -> None:
        pass


class ReproducibleMaker(_Maker):
    """Documents: the same bytes under the same keys, whoever makes them and however often."""

    def __init__(self, plan: Plan, blobs: BlobStore, work: Work) -> None:
        self._plan, self._blobs, self._work = plan, blobs, work
        self._stream = plan.documents_spec.stream

    def make(self, lease: Lease, check: Callable[[], None]) -> PublishedPart:
        publisher = unit._UnitPublisher(self._plan, self._blobs, lease.index, TABLES)
        for index in self._plan.unit_range(lease.index):
            check()
            self._work(lease.index)
            name = document_id(self._stream, index)
            entry = publisher.put_document(name, ".pdf", f"document {name}\n".encode())
            publisher.add("documents", [self._row(name, entry)])
            publisher.add("pages", [self._page(name, entry)])
        check()
        return publisher.publish()

    def _row(self, name: str, entry: Any) -> dict[str, Any]:
        said = {"layout": "plain", "locale": "de-DE", "condition": "clean", "pages": 1}
        return {**self._keys(name), **said, "key": entry.key, "bytes": entry.bytes, "sha256": entry.sha256}

    def _page(self, name: str, entry: Any) -> dict[str, Any]:
        size = {"width": 595.0, "height": 842.0}
        picture = dict.fromkeys(("pixels_wide", "pixels_high", "dpi_across", "dpi_down"))
        return {**self._keys(name), "page": 1, "key": entry.key, **size, **picture, "sha256": entry.sha256}

    def _keys(self, name: str) -> dict[str, Any]:
        return {"run_id": self._plan.run_id, "document_id": name, "catalogue_version": "v1", "row_key": "1"}


class UnreproducibleMaker(_Maker):
    """Texts of a catalogue: other words at each attempt."""

    def __init__(self, plan: Plan, blobs: BlobStore, work: Work, *, author: str) -> None:
        self._plan, self._blobs, self._work, self._author = plan, blobs, work, author

    def make(self, lease: Lease, check: Callable[[], None]) -> PublishedPart:
        publisher = unit._UnitPublisher(self._plan, self._blobs, lease.index, CATALOGUE_TABLES, lease.generation)
        keys = {"run_id": self._plan.run_id, "catalogue_version": "v1"}
        for company in self._plan.unit_range(lease.index):
            check()
            self._work(lease.index)
            row = {**keys, "company_id": company, "depot": f"{self._author} g{lease.generation}"}
            publisher.add("companies", [row])
        check()
        return publisher.publish()


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
