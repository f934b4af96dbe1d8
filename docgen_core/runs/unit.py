"""One unit: generate, render, capture, publish. The same unit gives the same blobs, whoever makes it.

A maker publishes under keys that follow from the plan, so that a second attempt, or an owner who
woke up late, overwrites with the same bytes. What does not belong here: leases, attempts, states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RecordRefused
from docgen_core.golden import CORE_TABLES
from docgen_core.llm.batches import BatchPending
from docgen_core.llm.items import CallRecord
from docgen_core.packs.contract import Row, Rows
from docgen_core.runs.growth import EarlierRun, Taken, earlier_run
from docgen_core.runs.keys import document_key, labels_key, part_key, shard_key, usage_key
from docgen_core.runs.labels import labels_json
from docgen_core.runs.manifest import BlobEntry, Part, Plan, Texts, blob_entry
from docgen_core.runs.shards import box_rows, catalogue_schemas, documents_row, encode_shard, page_rows, word_rows
from docgen_core.runs.source import CatalogueSource, DocumentSource, GeneratedDocument
from docgen_core.runs.texts import Writers, WriterSettings
from docgen_core.runs.usage import LLM_USAGE, usage_rows
from docgen_core.runs.usage import SCHEMA as USAGE_SCHEMA
from docgen_core.state.budget import Settlement
from docgen_core.state.contract import Lease, RunKind, StateStore
from docgen_core.state.contract import Part as PublishedPart

if TYPE_CHECKING:
    from docgen_core.render.boxes import Rendered
    from docgen_core.render.capture import Captured
    from docgen_core.render.chromium import Renderer

Check = Callable[[], None]
"""Called between items; raises when the work on the unit has to stop."""


class UnitMaker(Protocol):
    """Makes the units of one run."""

    def make(self, lease: Lease, check: Check) -> PublishedPart:
        """Publish everything the unit has, its part last. Raises what ends the attempt."""

    def settlement(self) -> Settlement | None:
        """What the run's budget is to book together with the unit just made."""

    def close(self) -> None:
        """Give back what the maker holds."""


class UnitWaits(Exception):
    """The unit waits for somebody else, such as a vendor's batch: it goes back until then, without an attempt."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"waits for {seconds:.0f} s")
        self.seconds = seconds


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


def open_maker(
    plan: Plan,
    blobs: BlobStore,
    renderer: RendererOnDemand,
    *,
    state: StateStore,
    worker: str,
    writing: WriterSettings,
) -> UnitMaker:
    """The maker for the run's kind. `writing` says how language models are asked, where the run has any."""
    if RunKind(plan.kind) is RunKind.CATALOGUE:
        return CatalogueMaker(plan, blobs, Writers.open(plan, state, blobs, worker, writing))
    return DocumentsMaker(plan, blobs, renderer, earlier_run(plan, state, blobs))


class DocumentsMaker:
    """Units of documents: files, golden rows, boxes."""

    def __init__(
        self, plan: Plan, blobs: BlobStore, renderer: RendererOnDemand, earlier: EarlierRun | None = None
    ) -> None:
        self._plan, self._blobs, self._renderer, self._earlier = plan, blobs, renderer, earlier
        self._source = DocumentSource.open(plan, blobs)
        self._schemas = {**CORE_TABLES, **self._source.pack.tables}

    def make(self, lease: Lease, check: Check) -> PublishedPart:
        """Publish the unit's documents one by one, then its shards, then its part."""
        publisher = _UnitPublisher(self._plan, self._blobs, lease.index, self._schemas)
        for index in self._plan.unit_range(lease.index):
            check()
            taken = self._earlier.take(index) if self._earlier else None
            if taken is not None:
                self._take_over(publisher, taken)
            else:
                self._draw(publisher, self._source.generate(index))
        check()
        return publisher.publish()

    def settlement(self) -> Settlement | None:
        """None: documents cost nothing."""
        return None

    def close(self) -> None:
        """Nothing: the browser is lent."""

    def _take_over(self, publisher: _UnitPublisher, taken: Taken) -> None:
        """Publish a document that an earlier run has drawn."""
        keys = {
            there: publisher.put_document(taken.document_id, ending, data).key for there, ending, data in taken.files
        }
        for table, rows in taken.rows(self._plan.run_id, keys):
            publisher.add(table, rows)
        labels = taken.labels_of(self._plan.run_id, keys)
        if labels is not None:
            publisher.put_labels(taken.document_id, labels)

    def _draw(self, publisher: _UnitPublisher, document: GeneratedDocument) -> None:
        record, view = document.record, self._source.view
        rendered = self._renderer.get().render(
            document.page, document_id=document.document_id, subject=f"Specimen {self._source.pack.name}, not genuine"
        )
        selection = view.selection
        if selection.words or selection.labels:
            rendered = self._with_words(rendered)
        captured = self._captured(document, rendered)
        files = [publisher.put_document(document.document_id, file.ending, file.data) for file in captured.files]
        run_id, version = self._plan.run_id, view.catalogue.version
        publisher.add("documents", [documents_row(run_id, version, record, captured, files)])
        publisher.add("pages", page_rows(run_id, version, record, captured, files))
        publisher.add("field_boxes", box_rows(run_id, version, record, captured))
        if selection.words:
            publisher.add("words", word_rows(run_id, version, record, captured))
        if selection.labels:
            labels = labels_json(run_id, record, document.rows, captured, files)
            publisher.put_labels(document.document_id, labels)
        for table, rows in document.rows.items():
            publisher.add(table, rows)

    @staticmethod
    def _with_words(rendered: Rendered) -> Rendered:
        from docgen_core.render.words import words_of

        return replace(rendered, words=words_of(rendered))

    def _captured(self, document: GeneratedDocument, rendered: Rendered) -> Captured:
        """The document's files, as the run's selection has them."""
        selection = self._source.view.selection
        if selection.output == "html":
            from docgen_core.render.webpage import web_page

            return web_page(document.page, rendered, document_id=document.document_id)
        from docgen_core.render.capture import capture

        return capture(
            rendered,
            document.record.condition,
            self._source.view.draws(document.index).under("capture"),
            document_id=document.document_id,
            wear=selection.wear,
            output=selection.output,
        )


class CatalogueMaker:
    """Units of a catalogue: the rows of a company range. No browser is started for them.

    Texts of language models may differ from attempt to attempt: then every key carries the
    generation, so that what an owner who woke up late publishes replaces nothing.
    """

    def __init__(self, plan: Plan, blobs: BlobStore, writers: Writers | None) -> None:
        self._plan, self._blobs, self._writers = plan, blobs, writers
        self._source = CatalogueSource.open(plan)
        self._schemas = catalogue_schemas(self._source.pack)
        self._keys = {"run_id": plan.run_id, "catalogue_version": plan.catalogue_spec.version}

    def make(self, lease: Lease, check: Check) -> PublishedPart:
        """Publish the range's shards, then its part."""
        companies = []
        for company_id in self._plan.unit_range(lease.index):
            check()
            companies.append(self._source.generate(company_id))
        generation, texts = None, None
        if self._writers is not None:
            generation = lease.generation
            companies, texts = self._written(self._writers, lease, companies, check)
        publisher = _UnitPublisher(self._plan, self._blobs, lease.index, self._schemas, generation)
        for rows in companies:
            for table, found in rows.items():
                publisher.add(table, [{**row, **self._keys} for row in found])
        check()
        return publisher.publish(texts)

    def settlement(self) -> Settlement | None:
        """What the models have cost so far."""
        return self._writers.settlement() if self._writers else None

    def close(self) -> None:
        """Settle, and give back what is left of the budget's slices."""
        if self._writers:
            self._writers.close()

    def _written(self, writers: Writers, lease: Lease, companies: list[Rows], check: Check) -> tuple[list[Rows], Texts]:
        """The companies with what models wrote, and the audit of it. What was asked is recorded in any case."""
        pack = self._source.pack
        wanted = [pack.text_items(rows) for rows in companies]
        items = [item for found in wanted for item in found]
        waits = False
        try:
            filled = writers.fill(lease.index, items, check)
        except BatchPending as pending:
            waits = True
            raise UnitWaits(pending.retry_seconds) from None
        finally:
            # Who waits looks a hundred times, and finds the same answers in the cache each time.
            called = [call for call in writers.calls if not (waits and call.cached)]
            if called or not waits:
                self._record(called, lease)
        texts = writers.audit(items, filled)
        return [pack.with_texts(rows, filled.texts) for rows in companies], texts

    def _record(self, called: Sequence[CallRecord], lease: Lease) -> None:
        rows = usage_rows(**self._keys, lease=lease, calls=called)
        shard = encode_shard(LLM_USAGE, USAGE_SCHEMA, rows)
        self._blobs.put(usage_key(self._plan.prefix, lease.index, lease.generation), shard)


class _UnitPublisher:
    """Collects a unit's rows, and publishes its blobs in an order that leaves no half unit readable."""

    def __init__(
        self,
        plan: Plan,
        blobs: BlobStore,
        unit: int,
        schemas: Mapping[str, pa.Schema],
        generation: int | None = None,
    ) -> None:
        """`generation` is the attempt's, where another attempt may give other bytes."""
        self._plan, self._blobs, self._unit, self._schemas = plan, blobs, unit, schemas
        self._generation = generation
        self._rows: dict[str, list[Row]] = {table: [] for table in schemas}
        self._entries: list[BlobEntry] = []

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Rows of the next item."""
        if table not in self._rows:
            raise RecordRefused(f"table {table!r} is not declared; there are {', '.join(self._rows)}")
        self._rows[table].extend(rows)

    def put_document(self, document_id: str, ending: str, data: bytes) -> BlobEntry:
        """Publish a document's file, or one of them."""
        return self._put(document_key(self._plan.prefix, self._unit, document_id, ending), data)

    def put_labels(self, document_id: str, data: bytes) -> None:
        """Publish the labels beside a document."""
        self._put(labels_key(self._plan.prefix, self._unit, document_id), data)

    def publish(self, texts: Texts | None = None) -> PublishedPart:
        """Publish the shards, empty ones too, and then the part that names everything."""
        for table, schema in self._schemas.items():
            shard = encode_shard(table, schema, self._rows[table])
            self._put(shard_key(self._plan.prefix, table, self._unit, self._generation), shard)
        items = self._plan.unit_range(self._unit)
        part = Part(
            run_id=self._plan.run_id,
            unit=self._unit,
            first=items.start,
            count=len(items),
            blobs=sorted(self._entries, key=lambda entry: entry.key),
            rows={table: len(rows) for table, rows in self._rows.items()},
            texts=texts,
        )
        key = part_key(self._plan.prefix, self._unit, self._generation)
        self._blobs.put(key, part.to_bytes())
        return PublishedPart(key, part.digest, sum(part.rows.values()))

    def _put(self, key: str, data: bytes) -> BlobEntry:
        self._blobs.put(key, data)
        entry = blob_entry(key, data)
        self._entries.append(entry)
        return entry
