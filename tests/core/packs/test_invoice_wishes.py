"""Records over the real catalogue: every country and way of billing occurs, and a selection is honoured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from docgen_core.errors import SelectionRefused
from docgen_core.packs.contract import Row, RunView
from docgen_core.packs.invoice import PACK, record
from docgen_core.packs.invoice.catalogue import catalogue_rows
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, LOCALES
from docgen_core.packs.invoice.model import Invoice
from docgen_core.runs.plan import serving
from docgen_core.runs.selection import CatalogueSpec, Selection

COMPANIES, PRODUCTS = 320, 20
DOCUMENTS, FEWER = 400, 150


class RealCatalogue:
    """`CatalogueView` over the catalogue's own rows, made when they are asked for."""

    version = "test-1"

    def __init__(self) -> None:
        self._made: dict[int, dict[str, list[Row]]] = {}

    def company_ids(self) -> Sequence[int]:
        return range(COMPANIES)

    def company(self, company_id: int) -> Row:
        return self._rows(company_id)["companies"][0]

    def rows(self, table: str, company_id: int) -> Sequence[Row]:
        return self._rows(company_id)[table]

    def _rows(self, company_id: int) -> dict[str, list[Row]]:
        if company_id not in self._made:
            self._made[company_id] = catalogue_rows(CatalogueSpec(products=PRODUCTS), company_id)
        return self._made[company_id]


Documents = Callable[..., list[Invoice]]


@pytest.fixture(scope="module")
def documents() -> Documents:
    catalogue = RealCatalogue()

    def build(count: int, **wishes: Any) -> list[Invoice]:
        selection = Selection(**wishes)
        ids = serving(PACK, selection, (catalogue.company(company) for company in catalogue.company_ids()))
        run = RunView("0badcafe", 11, selection, ids, catalogue)
        return [record.build(run, index) for index in range(count)]

    return build


@pytest.fixture(scope="module")
def usual(documents: Documents) -> list[Invoice]:
    return documents(DOCUMENTS)


def test_every_country_and_locale_sells(documents: Documents, usual: list[Invoice]) -> None:
    assert len(JURISDICTIONS) >= 22
    assert {invoice.jurisdiction for invoice in usual} == set(JURISDICTIONS)
    assert len({invoice.locale for invoice in usual}) > len(JURISDICTIONS)
    assert {invoice.locale for invoice in usual} <= {locale for spoken in LOCALES.values() for locale in spoken}
    assert {invoice.minor_units for invoice in usual} == {0, 2, 3}


def test_every_way_of_billing_and_paying_occurs(usual: list[Invoice]) -> None:
    lines = [line for invoice in usual for line in invoice.lines]
    assert {line.pricing for line in lines} == {
        "flat", "per_unit", "hourly", "subscription", "seats", "metered", "graduated", "volume", "milestone",
        "fee_schedule", "interest",
    }  # fmt: skip
    assert {line.kind.value for line in lines} == {"item", "tier_parent", "tier_band", "deposit", "overage"}
    assert any(line.basis.days and line.pricing == "subscription" for line in lines)
    occurs = ("document_discount", "document_charge", "shipping", "withholding", "rounding", "credit_used", "prepaid")
    for name in occurs:
        assert any(getattr(invoice.totals, name) for invoice in usual), name
    assert any(invoice.instalments for invoice in usual)
    assert any(not tax.counted for invoice in usual for tax in invoice.tax_lines)
    categories = Counter(tax.category for invoice in usual for tax in invoice.tax_lines)
    assert set(categories) >= {"S", "AA", "Z", "E", "AE", "O"}
    assert categories["S"] > DOCUMENTS / 2


def test_a_buyer_abroad_is_named_with_its_country_and_numbers(documents: Documents) -> None:
    abroad = [
        invoice
        for invoice in documents(FEWER, tax_mix={"K": 1, "AE": 1, "G": 1})
        if invoice.buyer is not None and invoice.buyer.country != invoice.jurisdiction
    ]
    assert len(abroad) > 20
    for invoice in abroad:
        assert invoice.buyer is not None
        categories = {tax.category for tax in invoice.tax_lines}
        if categories & {"K", "AE"}:
            assert JURISDICTIONS[invoice.buyer.country].european
            assert any(entry.column == "tax_id" for entry in invoice.buyer.registrations)
        assert all(tax.reason in invoice.notes for tax in invoice.tax_lines if tax.reason)


@pytest.mark.parametrize("category", ["S", "AA", "Z", "E", "AE", "K", "G", "O"])
def test_every_document_bears_a_tax_that_was_asked_for(documents: Documents, category: str) -> None:
    made = documents(FEWER // 3, tax_mix={category: 1})
    assert {tax.category for invoice in made for tax in invoice.tax_lines} == {category}


def test_a_till_bears_the_taxes_of_what_it_sells(documents: Documents) -> None:
    made = documents(12, tax_mix={"Z": 1}, layouts=("receipt",))
    assert {tax.category for invoice in made for tax in invoice.tax_lines} == {"Z"}
    many = documents(12, tax_mix={"AA": 1}, line_items=(15, 20))
    assert all(15 <= len(invoice.lines) <= 20 for invoice in many)
    with pytest.raises(SelectionRefused, match="fit layout receipt and not tax category G, since they can charge"):
        documents(1, tax_mix={"G": 1}, layouts=("receipt",))


def test_documents_are_dated_within_the_days_asked_for(documents: Documents) -> None:
    window = (date(2024, 3, 28), date(2024, 4, 9))
    for invoice in documents(FEWER, issued=window):
        assert window[0] <= invoice.issue_date <= window[1]
    for invoice in documents(20, issued=(date(2024, 12, 25), date(2024, 12, 25))):
        assert invoice.issue_date == date(2024, 12, 25)


@pytest.mark.parametrize("bounds", [(1, 1), (3, 3), (12, 18), (60, 60), (400, 100_000)])
@pytest.mark.parametrize("share", [0, 700])
def test_every_document_has_as_many_lines_as_asked_for(
    documents: Documents, bounds: tuple[int, int], share: int
) -> None:
    made = documents(FEWER // bounds[0] if bounds[0] > 3 else FEWER // 2, line_items=bounds, credit_notes=share)
    assert [len(invoice.lines) for invoice in made if not bounds[0] <= len(invoice.lines) <= bounds[1]] == []


@pytest.mark.parametrize("year", [1990, 2099])
def test_numbers_of_any_year_are_numbers(documents: Documents, year: int) -> None:
    made = documents(20, issued=(date(year, 1, 1), date(year, 12, 31)), anachronism=True)
    assert {invoice.issue_date.year for invoice in made} == {year}
    assert not any("--" in invoice.number for invoice in made)
    assert not any(invoice.number.startswith("-") for invoice in made)


def test_so_many_of_a_thousand_take_back_what_was_billed(documents: Documents) -> None:
    made = documents(DOCUMENTS, credit_notes=500)
    kinds = Counter(invoice.kind for invoice in made)
    assert 0.3 * DOCUMENTS < kinds["credit_note"] + kinds["corrective_invoice"] < 0.6 * DOCUMENTS
    assert kinds["corrective_invoice"] > 10
    signs = Counter(invoice.amount_sign for invoice in made)
    assert min(signs["positive"], signs["negative"], signs["mixed"]) > 10
    for invoice in made:
        if invoice.original is None:
            continue
        assert invoice.original.issue_date < invoice.issue_date
        assert invoice.original.number != invoice.number
        assert invoice.due_date is None
        assert invoice.payment.method == "credit"
        assert invoice.service_to is not None
        assert invoice.service_to <= invoice.original.issue_date
        if invoice.amount_sign != "positive":
            assert invoice.totals.amount_due <= 0
    assert not any(invoice.original for invoice in documents(30))


def test_a_wish_for_other_days_changes_no_company(documents: Documents, usual: list[Invoice]) -> None:
    later = documents(20, issued=(date(2025, 1, 1), date(2025, 12, 31)))
    assert [invoice.seller for invoice in later] == [invoice.seller for invoice in usual[:20]]
