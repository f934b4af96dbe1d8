"""One unit: generate, render, capture, publish. The same unit gives the same blobs, whoever makes it.

A maker publishes under keys that follow from the plan, so that a second attempt, or an owner who
woke up late, overwrites with the same bytes. What does not belong here: leases, attempts, states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RecordRefused
from docgen_core.golden import CORE_TABLES
from docgen_core.packs.contract import Row
from docgen_core.runs.keys import document_key, part_key, shard_key
from docgen_core.runs.manifest import BlobEntry, Part, Plan, blob_entry
from docgen_core.runs.shards import box_rows, documents_row, encode_shard
from docgen_core.runs.source import CatalogueSource, DocumentSource, GeneratedDocument
from docgen_core.state.contract import Part as PublishedPart
from docgen_core.state.contract import RunKind

if TYPE_CHECKING:
    from docgen_core.render.chromium import Renderer

Check = Callable[[], None]
"""Called between items; raises when the work on the unit has to stop."""


class UnitMaker(Protocol):
    """Makes the units of one run."""

    def make(self, unit: int, check: Check) -> PublishedPart:
        """Publish everything the unit has, its part last. Raises what ends the attempt."""


class RendererOnDemand:
    """One renderer for a worker's whole life, started when the first page needs it."""

    def __init__(self) -> None:
        self._renderer: Renderer | None = None

    def get(self) -> Renderer:
        """The renderer. Raises `BrowserMissing`."""
        if self._renderer is None:
            from docgen_core.render.chromium import Renderer

            self._renderer = Renderer().__enter__()
        return self._renderer

    def __enter__(self) -> RendererOnDemand:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renderer is not None:
            self._renderer.__exit__(kind, error, trace)
            self._renderer = None


def open_maker(plan: Plan, blobs: BlobStore, renderer: RendererOnDemand) -> UnitMaker:
    """The maker for the run's kind."""
    if RunKind(plan.kind) is RunKind.CATALOGUE:
        return CatalogueMaker(plan, blobs)
    return DocumentsMaker(plan, blobs, renderer)


class DocumentsMaker:
    """Units of documents: files, golden rows, boxes."""

    def __init__(self, plan: Plan, blobs: BlobStore, renderer: RendererOnDemand) -> None:
        self._plan, self._blobs, self._renderer = plan, blobs, renderer
        self._source = DocumentSource.open(plan, blobs)
        self._schemas = {**CORE_TABLES, **self._source.pack.tables}

    def make(self, unit: int, check: Check) -> PublishedPart:
        """Publish the unit's documents one by one, then its shards, then its part."""
        publisher = _UnitPublisher(self._plan, self._blobs, unit, self._schemas)
        for index in self._plan.unit_range(unit):
            check()
            self._draw(publisher, self._source.generate(index))
        check()
        return publisher.publish()

    def _draw(self, publisher: _UnitPublisher, document: GeneratedDocument) -> None:
        from docgen_core.render.capture import capture

        record, view = document.record, self._source.view
        rendered = self._renderer.get().render(
            document.page, document_id=document.document_id, subject=f"Specimen {self._source.pack.name}, not genuine"
        )
        draws = view.draws(document.index).under("capture")
        captured = capture(rendered, record.condition, draws, document_id=document.document_id)
        entry = publisher.put_document(document.document_id, captured.suffix, captured.data)
        run_id, version = self._plan.run_id, view.catalogue.version
        publisher.add("documents", [documents_row(run_id, version, record, captured, entry)])
        publisher.add("field_boxes", box_rows(run_id, version, record, captured))
        for table, rows in document.rows.items():
            publisher.add(table, rows)


class CatalogueMaker:
    """Units of a catalogue: the rows of a company range. No browser is started for them."""

    def __init__(self, plan: Plan, blobs: BlobStore) -> None:
        self._plan, self._blobs = plan, blobs
        self._source = CatalogueSource.open(plan)

    def make(self, unit: int, check: Check) -> PublishedPart:
        """Publish the range's shards, then its part."""
        publisher = _UnitPublisher(self._plan, self._blobs, unit, self._source.pack.catalogue_tables)
        for company_id in self._plan.unit_range(unit):
            check()
            for table, rows in self._source.generate(company_id).items():
                publisher.add(table, rows)
        check()
        return publisher.publish()


class _UnitPublisher:
    """Collects a unit's rows, and publishes its blobs in an order that leaves no half unit readable."""

    def __init__(self, plan: Plan, blobs: BlobStore, unit: int, schemas: Mapping[str, pa.Schema]) -> None:
        self._plan, self._blobs, self._unit, self._schemas = plan, blobs, unit, schemas
        self._rows: dict[str, list[Row]] = {table: [] for table in schemas}
        self._entries: list[BlobEntry] = []

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Rows of the next item."""
        if table not in self._rows:
            raise RecordRefused(f"table {table!r} is not declared; there are {', '.join(self._rows)}")
        self._rows[table].extend(rows)

    def put_document(self, document_id: str, suffix: str, data: bytes) -> BlobEntry:
        """Publish a document's file."""
        return self._put(document_key(self._plan.prefix, self._unit, document_id, suffix), data)

    def publish(self) -> PublishedPart:
        """Publish the shards, empty ones too, and then the part that names everything."""
        for table, schema in self._schemas.items():
            shard = encode_shard(table, schema, self._rows[table])
            self._put(shard_key(self._plan.prefix, table, self._unit), shard)
        items = self._plan.unit_range(self._unit)
        part = Part(
            run_id=self._plan.run_id,
            unit=self._unit,
            first=items.start,
            count=len(items),
            blobs=sorted(self._entries, key=lambda entry: entry.key),
            rows={table: len(rows) for table, rows in self._rows.items()},
        )
        key = part_key(self._plan.prefix, self._unit)
        self._blobs.put(key, part.to_bytes())
        return PublishedPart(key, part.digest, sum(part.rows.values()))

    def _put(self, key: str, data: bytes) -> BlobEntry:
        self._blobs.put(key, data)
        entry = blob_entry(key, data)
        self._entries.append(entry)
        return entry
