"""What a document type must offer. The core never says "invoice".

A pack is deterministic: everything about document *i* follows from the run's seed, *i* and the
catalogue version. It never names a store, a bucket or a model, and it refuses a selection that
it cannot honour when the run is planned, not when a document is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from docgen_core.draws import Draws
from docgen_core.llm.items import TextItem, Written
from docgen_core.render.html import Page
from docgen_core.runs.selection import CatalogueSpec, Selection

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
"""Rows by table name. Values are exact: Decimal, date, int, str, bool, None; never a float for money."""


class CatalogueView(Protocol):
    """What a pack may read of the catalogue, and not change: its own rows, by company."""

    version: str

    def company_ids(self) -> Sequence[int]:
        """Ids of every company there is to draw from, in order."""

    def company(self, company_id: int) -> Row:
        """The company's row of the pack's `companies` table."""

    def rows(self, table: str, company_id: int) -> Sequence[Row]:
        """The company's rows of another catalogue table, in row order."""


@dataclass(frozen=True, slots=True)
class RunView:
    """What a pack may know of the run: no worker, no store, no clock, and not its length."""

    stream: str
    """Eight hex digits naming everything that decides a document's content except the number of
    documents; a longer run of the same stream begins with the shorter one's documents."""
    seed: int
    selection: Selection
    companies: Sequence[int]
    """Eligible company ids in id order, from `Pack.eligible`."""
    catalogue: CatalogueView

    def draws(self, index: int) -> Draws:
        """The named draws of document `index`."""
        return Draws(self.stream, self.seed, index)


class Record(Protocol):
    """What the core reads of a pack's record; the rest is the pack's own, and never changed."""

    @property
    def document_id(self) -> str:
        """The run's stream and the document's index."""

    @property
    def layout(self) -> str:
        """Layout the page is set in."""

    @property
    def locale(self) -> str:
        """A CLDR locale such as `de-DE`."""

    @property
    def condition(self) -> str:
        """Capture condition."""


class Pack(Protocol):
    """One document type."""

    name: str
    version: str
    """Changes whenever the same seed would give other bytes."""
    tables: Mapping[str, pa.Schema]
    """The golden tables of a document, without the core's (`documents`, `pages`, `field_boxes`, `words`).
    Each has the core's `KEY_FIELDS` first. The first of them has one row a document."""
    catalogue_tables: Mapping[str, pa.Schema]
    """The catalogue's tables; `companies` is one of them, each has `company_id`."""

    def refuse_impossible(self, selection: Selection) -> None:
        """Raise `SelectionRefused` for what no catalogue could serve, before there is one."""

    def eligible(self, selection: Selection, companies: Iterator[Row]) -> list[int]:
        """Company ids that can serve the selection, in id order. Raises `SelectionRefused`."""

    def catalogue_rows(self, spec: CatalogueSpec, company_id: int) -> Rows:
        """A company and what it sells, from the spec's seed and the id alone."""

    def text_items(self, rows: Rows) -> Sequence[TextItem]:
        """What of a company's rows language models may write; nothing, where a pack has no such texts."""

    def with_texts(self, rows: Rows, texts: Mapping[str, Written]) -> Rows:
        """The company's rows with these texts, by item id, in place of their own."""

    def record(self, run: RunView, index: int) -> Record:
        """Document `index`. Raises `RecordRefused` when it does not reconcile."""

    def to_rows(self, record: Any) -> Rows:
        """Golden rows, one per printed row, without `run_id`, which the core sets."""

    def html(self, record: Any) -> Page:
        """The page that prints the record, with its print log."""
