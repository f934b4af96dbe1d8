"""From an item's index to its content: what a unit is made of, before anything is drawn.

What does not belong here: the browser, the blobs that are written, the store.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RecordRefused
from docgen_core.packs import load_pack
from docgen_core.packs.contract import Pack, Record, Row, Rows, RunView
from docgen_core.render.html import Page, Print
from docgen_core.runs.catalogue_view import open_catalogue
from docgen_core.runs.keys import document_id
from docgen_core.runs.manifest import Plan
from docgen_core.runs.plan import eligible_companies
from docgen_core.runs.selection import CatalogueSpec


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """A document before it is drawn: its record, its golden rows, its page."""

    index: int
    record: Record
    rows: Rows
    """Complete rows of the pack's tables, `run_id` included."""
    page: Page

    @property
    def document_id(self) -> str:
        """The document's id: the same in every run of its stream."""
        return self.record.document_id


class DocumentSource:
    """Documents of one run, each from its index alone."""

    def __init__(self, run_id: str, pack: Pack, view: RunView) -> None:
        self.run_id, self.pack, self.view = run_id, pack, view
        # A schema makes its list of names anew each time it is asked.
        self._columns = {table: frozenset(schema.names) for table, schema in pack.tables.items()}

    @classmethod
    def open(cls, plan: Plan, blobs: BlobStore) -> DocumentSource:
        """The source of a planned run, reading the catalogue it pins."""
        spec = plan.documents_spec
        pack = load_pack(spec.pack)
        view = RunView(
            stream=spec.stream,
            seed=spec.seed,
            selection=spec.selection,
            companies=eligible_companies(pack, blobs, spec),
            catalogue=open_catalogue(blobs, spec.catalogue.version, spec.catalogue.pin),
        )
        return cls(plan.run_id, pack, view)

    def generate(self, index: int) -> GeneratedDocument:
        """Document `index`. Raises `RecordRefused` when it does not reconcile with itself."""
        record = self.pack.record(self.view, index)
        expected = document_id(self.view.stream, index)
        if record.document_id != expected:
            raise RecordRefused(f"document {index} calls itself {record.document_id!r}, its id is {expected!r}")
        rows = {
            table: [{**row, "run_id": self.run_id} for row in found]
            for table, found in self.pack.to_rows(record).items()
        }
        page = self.pack.html(record)
        _refuse_loose_keys(expected, rows)
        _refuse_loose_prints(expected, self._columns, rows, page.prints)
        return GeneratedDocument(index, record, rows, page)


class CatalogueSource:
    """Companies of one catalogue version, each from its id alone."""

    def __init__(self, pack: Pack, spec: CatalogueSpec) -> None:
        self.pack, self.spec = pack, spec

    @classmethod
    def open(cls, plan: Plan) -> CatalogueSource:
        """The source of a planned build."""
        spec = plan.catalogue_spec
        fields = {name: getattr(spec, name) for name in CatalogueSpec.model_fields}
        return cls(load_pack(spec.pack), CatalogueSpec(**fields))

    def generate(self, company_id: int) -> Rows:
        """The company's rows in every table of the catalogue."""
        return self.pack.catalogue_rows(self.spec, company_id)


def _refuse_loose_keys(document: str, rows: Mapping[str, Sequence[Row]]) -> None:
    """Every row belongs to its document, and no two rows of a table share a key."""
    for table, found in rows.items():
        keys = [row.get("row_key") for row in found]
        if len(set(keys)) != len(keys):
            raise RecordRefused(f"document {document}: rows of {table!r} share a row key")
        if any(row.get("document_id") != document for row in found):
            raise RecordRefused(f"document {document}: a row of {table!r} names another document")


def _refuse_loose_prints(
    document: str, columns: Mapping[str, Container[str]], rows: Mapping[str, Sequence[Row]], prints: Sequence[Print]
) -> None:
    """Every printed value is a value of a golden row, so that each box joins to its row."""
    keys = {(table, row["row_key"]) for table, found in rows.items() for row in found}
    for entry in prints:
        if (entry.table, entry.row_key) not in keys or entry.column not in columns[entry.table]:
            raise RecordRefused(
                f"document {document}: {entry.text!r} is printed as {entry.table}/{entry.row_key}/{entry.column}, "
                "and no golden row has that"
            )
