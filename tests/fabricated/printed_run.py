"""A sealed run of a pack's real records and pages, without a browser: its boxes have texts, and stand nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fabricated_run import seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.golden import CORE_TABLES
from docgen_core.packs.contract import Pack, Row, RunView
from docgen_core.runs.keys import default_prefix, document_key, plan_key
from docgen_core.runs.manifest import Plan
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.shards import encode_shard
from docgen_core.runs.spec import DocumentsSpec, PinnedCatalogue, RootPin, spec_digest

VERSION = "made"
CORNERS = dict.fromkeys((f"{axis}{corner}" for corner in range(4) for axis in "xy"), 0.0)


class MadeCatalogue:
    """The pack's own catalogue rows, made when they are asked for."""

    version = VERSION

    def __init__(self, pack: Pack, companies: int) -> None:
        spec = CatalogueSpec(pack=pack.name, companies=companies, products=6, range_width=companies)
        self._made = [pack.catalogue_rows(spec, company) for company in range(companies)]

    def company_ids(self) -> Sequence[int]:
        return range(len(self._made))

    def company(self, company_id: int) -> Row:
        return dict(self._made[company_id]["companies"][0])

    def rows(self, table: str, company_id: int) -> Sequence[Row]:
        return self._made[company_id].get(table, [])


def printed_run(
    blobs: BlobStore,
    run_id: str,
    pack: Pack,
    *,
    documents: int,
    companies: int,
    seed: int = 0,
    selection: Selection | None = None,
    unit_size: int = 4,
) -> None:
    """Publish and seal the run."""
    catalogue, selection = MadeCatalogue(pack, companies), selection or Selection()
    spec = DocumentsSpec(
        pack=pack.name,
        pack_version=pack.version,
        documents=documents,
        seed=seed,
        selection=selection,
        catalogue=PinnedCatalogue(version=VERSION, pin=RootPin(root="r", content="c")),
    )
    eligible = pack.eligible(selection, (catalogue.company(company) for company in catalogue.company_ids()))
    view = RunView(spec.stream, seed, selection, eligible, catalogue)
    units = [range(first, min(first + unit_size, documents)) for first in range(0, documents, unit_size)]
    shards: dict[str, list[bytes]] = {}
    for number, unit in enumerate(units):
        tables: dict[str, list[Row]] = {name: [] for name in (*CORE_TABLES, *pack.tables)}
        for index in unit:
            for name, rows in _document(pack, view, run_id, index, number):
                tables[name] += rows
        for name, schema in {**CORE_TABLES, **pack.tables}.items():
            shards.setdefault(name, []).append(encode_shard(name, schema, tables[name]))
    plan = Plan(
        run_id=run_id,
        kind="documents",
        prefix=default_prefix(run_id),
        spec=spec.as_json(),
        spec_digest=spec_digest(spec.as_json()),
        total_items=documents,
        total_units=len(units),
        unit_size=unit_size,
        fingerprint={},
    )
    blobs.put(plan_key(plan.prefix), plan.to_bytes())
    seal(blobs, run_id, shards)


def _document(pack: Pack, view: RunView, run_id: str, index: int, unit: int) -> Iterator[tuple[str, list[Row]]]:
    record = pack.record(view, index)
    keys = {"run_id": run_id, "document_id": record.document_id, "catalogue_version": VERSION}
    for table, rows in pack.to_rows(record).items():
        yield table, [{**row, "run_id": run_id} for row in rows]
    file: dict[str, Any] = {
        "key": document_key(default_prefix(run_id), unit, record.document_id, ".pdf"),
        "layout": record.layout,
        "locale": record.locale,
        "condition": record.condition,
        "pages": 1,
        "bytes": 0,
        "sha256": sha256_hex(b""),
    }
    yield "documents", [{**keys, "row_key": "1", **file}]
    yield (
        "field_boxes",
        [
            {
                **keys,
                "row_key": entry.row_key,
                "table_name": entry.table,
                "column_name": entry.column,
                "occurrence": entry.occurrence,
                "part": 0,
                "page": 1,
                "text": entry.text,
                "value": entry.value,
                **CORNERS,
            }
            for entry in pack.html(record).prints
        ],
    )
