"""The invoice pack as the core sees it: which selections it honours, and its records, rows and pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from docgen_core.llm.items import TextItem, Written
from docgen_core.packs.contract import Pack, Row, Rows, RunView
from docgen_core.packs.invoice import record, tables
from docgen_core.packs.invoice.catalogue import CATALOGUE_TABLES, catalogue_rows, text_items, with_texts
from docgen_core.packs.invoice.eligibility import eligible, refuse_impossible
from docgen_core.packs.invoice.layouts import render_page
from docgen_core.packs.invoice.model import Invoice
from docgen_core.render.html import Page
from docgen_core.runs.selection import CatalogueSpec, Selection


class InvoicePack:
    """Invoices, receipts and credit notes of many countries (`packs/contract.py` says what each method promises)."""

    name = "invoice"
    version = "6"
    tables: Mapping[str, pa.Schema] = tables.TABLES
    catalogue_tables: Mapping[str, pa.Schema] = CATALOGUE_TABLES

    def refuse_impossible(self, selection: Selection) -> None:
        """Raise `SelectionRefused` for a name that there is not, and for what no catalogue could serve."""
        refuse_impossible(selection)

    def eligible(self, selection: Selection, companies: Iterator[Row]) -> list[int]:
        """Company ids that can serve the selection, in id order.

        Raises `SelectionRefused` for a name that there is not, and for a combination that no
        company of the catalogue fits, naming what there is.
        """
        return eligible(selection, companies)

    def catalogue_rows(self, spec: CatalogueSpec, company_id: int) -> Rows:
        """A company and what it sells."""
        return catalogue_rows(spec, company_id)

    def text_items(self, rows: Rows) -> Sequence[TextItem]:
        """Descriptions of the company's products."""
        return text_items(rows)

    def with_texts(self, rows: Rows, texts: Mapping[str, Written]) -> Rows:
        """The rows with these descriptions."""
        return with_texts(rows, texts)

    def record(self, run: RunView, index: int) -> Invoice:
        """Document `index`, reconciled."""
        return record.build(run, index)

    def to_rows(self, record: Invoice) -> Rows:
        """Golden rows of the document, without `run_id`."""
        return tables.rows(record)

    def html(self, record: Invoice) -> Page:
        """The page in the layout of the seller's identity."""
        return render_page(record)


PACK: Pack = InvoicePack()
