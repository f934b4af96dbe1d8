"""The invoice pack as the core sees it: which selections it honours, and its records, rows and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from docgen_core.errors import SelectionRefused
from docgen_core.llm.items import TextItem, Written
from docgen_core.packs.contract import Pack, Row, Rows, RunView
from docgen_core.packs.invoice import record, tables
from docgen_core.packs.invoice.catalogue import CATALOGUE_TABLES, catalogue_rows, text_items, with_texts
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, LOCALES
from docgen_core.packs.invoice.layouts import LAYOUTS, render_page
from docgen_core.packs.invoice.model import Invoice
from docgen_core.render.html import Page
from docgen_core.runs.selection import CatalogueSpec, Selection

_MOST_WEIGHT = 1_000_000
"""Of a capture condition; weights only matter against each other."""


class InvoicePack:
    """Invoices and receipts of three countries (`packs/contract.py` says what each method promises)."""

    name = "invoice"
    version = "3"
    tables: Mapping[str, pa.Schema] = tables.TABLES
    catalogue_tables: Mapping[str, pa.Schema] = CATALOGUE_TABLES

    def eligible(self, selection: Selection, companies: Iterator[Row]) -> list[int]:
        """Company ids that can serve the selection, in id order.

        Raises `SelectionRefused` for a name that there is not, and for a combination that no
        company of the catalogue fits, naming what there is.
        """
        _refuse_unknown_names(selection)
        seen = _Seen()
        fitting = [row["company_id"] for row in companies if seen.note(row) and _fits(selection, row)]
        seen.refuse_unknown_types(selection)
        if not fitting:
            raise SelectionRefused(f"no company fits {_wish(selection)}; {seen.summary()}")
        return sorted(fitting)

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


def _refuse_unknown_names(selection: Selection) -> None:
    from docgen_core.render.capture import CONDITIONS

    locales = {locale for spoken in LOCALES.values() for locale in spoken}
    _refuse_unknown("locale", selection.locales, locales)
    _refuse_unknown("jurisdiction", selection.jurisdictions, JURISDICTIONS)
    _refuse_unknown("layout", selection.layouts, LAYOUTS)
    _refuse_foreign_layouts(selection)
    _refuse_unknown("condition", selection.conditions, CONDITIONS)
    weights = selection.conditions.values()
    if not all(0 <= weight <= _MOST_WEIGHT for weight in weights) or not any(weights):
        given = ", ".join(f"{name}={weight}" for name, weight in sorted(selection.conditions.items())) or "none"
        raise SelectionRefused(f"weights of conditions are whole numbers from 0, one of them above 0; given: {given}")


def _refuse_foreign_layouts(selection: Selection) -> None:
    """Refuse layouts that none of the countries asked for uses: no catalogue could serve them."""
    asked = {
        locale
        for code, spoken in LOCALES.items()
        for locale in spoken
        if locale in (selection.locales or (locale,)) and code in (selection.jurisdictions or (code,))
    }
    every = [locale for spoken in LOCALES.values() for locale in spoken]
    used = {
        name: {locale for locale in every if LAYOUTS[name].written_in(locale.split("-")[0])}
        for name in selection.layouts
    }
    if asked and used and not asked & set().union(*used.values()):
        name, locales = min(used.items())
        raise SelectionRefused(
            f"layout {name} is not made in {', '.join(sorted(asked))}, only in {', '.join(sorted(locales))}: "
            "choose one of these locales or another layout"
        )


def _refuse_unknown(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise SelectionRefused(f"no {what} {unknown[0]!r}; the invoice pack has {', '.join(sorted(known))}")


def _fits(selection: Selection, row: Row) -> bool:
    within = selection.companies
    return (
        (not selection.locales or row["locale"] in selection.locales)
        and (not selection.jurisdictions or row["jurisdiction"] in selection.jurisdictions)
        and (not selection.business_types or row["business_type"] in selection.business_types)
        and (within is None or within[0] <= row["company_id"] <= within[1])
        and bool(record.Company.of(row).looks(selection.layouts))
    )


@dataclass(slots=True)
class _Seen:
    """What the catalogue holds, to name it when nothing fits."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None

    def note(self, row: Row) -> bool:
        """Count a company. Always true, so that it can stand in a filter."""
        company_id = row["company_id"]
        self.kinds[row["locale"], row["document_kind"]] += 1
        self.types.add(row["business_type"])
        self.first = company_id if self.first is None else min(self.first, company_id)
        self.last = company_id if self.last is None else max(self.last, company_id)
        return True

    def refuse_unknown_types(self, selection: Selection) -> None:
        if self.types:
            _refuse_unknown("business type", selection.business_types, self.types)

    def summary(self) -> str:
        if self.first is None:
            return "the catalogue has no company: build one first"
        kinds = ", ".join(
            f"{count} in {locale} sending {kind}s" for (locale, kind), count in sorted(self.kinds.items())
        )
        return (
            f"the catalogue has companies {self.first} to {self.last}: {kinds}; types {', '.join(sorted(self.types))}"
        )


def _wish(selection: Selection) -> str:
    """The selection as a user wrote it."""
    wishes = [
        f"{name} {', '.join(values)}"
        for name, values in (
            ("locale", selection.locales),
            ("jurisdiction", selection.jurisdictions),
            ("business type", selection.business_types),
            ("layout", selection.layouts),
        )
        if values
    ]
    if selection.companies is not None:
        wishes.append(f"company {selection.companies[0]} to {selection.companies[1]}")
    return " with ".join(wishes) or "the selection"
