"""Three hundred records over all countries: each reconciles, and together they are varied and plausible."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date

import pytest

from docgen_core.draws import Draws
from docgen_core.errors import RecordRefused
from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice import record
from docgen_core.packs.invoice.calendar_days import till_issue_date, working_issue_date
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.model import Invoice, LineKind
from docgen_core.packs.invoice.numbering import document_number, till_time
from docgen_core.packs.invoice.reconcile import reconcile
from docgen_core.runs.selection import Selection

DOCUMENTS = 300
MORE_DOCUMENTS = 1_500


@pytest.fixture(scope="module")
def invoices(run: RunView) -> list[Invoice]:
    return [record.build(run, index) for index in range(MORE_DOCUMENTS)]


def test_every_record_reconciles_and_everything_occurs(invoices: list[Invoice]) -> None:
    first = invoices[:DOCUMENTS]
    for invoice in first:
        reconcile(invoice)
    assert {invoice.jurisdiction for invoice in first} == {"DE", "US", "JP"}
    assert {invoice.billing_model for invoice in first} == {
        "flat", "per_unit", "hourly", "subscription", "graduated",
    }  # fmt: skip
    assert {invoice.kind for invoice in first} == {"invoice", "receipt"}
    anyones = {
        name for name, info in LAYOUTS.items() if not info.business_types and "milestone" not in info.billing_models
    }
    assert {invoice.layout for invoice in first} == anyones
    assert {invoice.rounding_policy for invoice in first} == {"per_line", "per_bucket"}
    assert sum(len(invoice.tax_lines) > 1 for invoice in first) > 50
    assert sum(invoice.totals.document_discount > 0 for invoice in first) > 5
    assert sum(0 < invoice.totals.prepaid < invoice.totals.gross_total for invoice in first) > 5
    assert sum(any(line.discount_percent for line in invoice.lines) for invoice in first) > 20
    assert len({invoice.seller.name for invoice in first}) > 40
    assert len({invoice.identity.accent for invoice in first}) > 8


def test_documents_are_mostly_short_and_now_and_then_very_long(invoices: list[Invoice]) -> None:
    lengths = sorted(sum(line.kind is not LineKind.TIER_BAND for line in invoice.lines) for invoice in invoices)
    assert lengths[len(lengths) // 2] in range(3, 8)
    assert 0.002 * len(lengths) < sum(length > 120 for length in lengths) < 0.05 * len(lengths)
    assert max(len(invoice.lines) for invoice in invoices) >= 200
    assert all(len(invoice.lines) <= LAYOUTS[invoice.layout].most_lines for invoice in invoices)


def test_numbers_are_unique_within_a_company_and_grow_with_the_date(invoices: list[Invoice]) -> None:
    by_company: dict[tuple[int, str], list[Invoice]] = defaultdict(list)
    for invoice in invoices:
        by_company[invoice.company_id, invoice.kind].append(invoice)
    for documents in by_company.values():
        assert len({document.number for document in documents}) == len(documents)
        dated = sorted(documents, key=lambda document: document.number)
        assert [document.issue_date for document in dated] == sorted(document.issue_date for document in documents)


def test_numbers_stay_unique_however_long_the_run(run: RunView) -> None:
    habits = record.Company.of(run.catalogue.company(1)).draws
    day = date(2024, 5, 6)
    numbers = {document_number(habits, ("RE-", ""), "invoice", day, index) for index in range(45_000)}
    assert len(numbers) == 45_000


def test_days_lie_within_the_window_and_in_order(invoices: list[Invoice]) -> None:
    for invoice in invoices:
        assert date(2023, 1, 2) <= invoice.issue_date <= date(2025, 12, 31)
        assert invoice.service_from is not None
        assert invoice.service_to is not None
        assert invoice.service_from <= invoice.service_to <= invoice.issue_date
        if invoice.kind == "invoice" and invoice.payment.method != "cash":
            assert invoice.due_date is not None
            assert 0 <= (invoice.due_date - invoice.issue_date).days <= 62


def test_invoices_are_written_and_delivered_on_working_days(invoices: list[Invoice]) -> None:
    holidays = {"DE": {"01-01", "10-03", "12-25"}, "US": {"01-01", "07-04", "12-25"}, "JP": {"01-01", "01-02", "01-03"}}
    billed = [invoice for invoice in invoices if invoice.kind == "invoice"]
    for invoice in billed:
        days = {invoice.issue_date}
        if invoice.billing_model in ("per_unit", "hourly", "flat") and invoice.service_from == invoice.service_to:
            days |= {invoice.service_from}  # type: ignore[arg-type]
        for day in days:
            assert day.weekday() < 5
            assert f"{day:%m-%d}" not in holidays[invoice.jurisdiction]
    weekdays = Counter(invoice.issue_date.weekday() for invoice in billed)
    assert max(weekdays.values()) < 1.4 * min(weekdays.values())


@pytest.mark.parametrize(
    ("country", "month", "done"),
    [("CA", 1, {"winter"}), ("CA", 9, {"lawn", "hedge"}), ("AE", 1, {"lawn", "hedge"}), ("AU", 7, {"lawn", "hedge"})],
)
def test_snow_is_cleared_in_winter_and_lawns_are_mown_when_they_grow(country: str, month: int, done: set[str]) -> None:
    months = content.months("facility_services")
    assert {family for (_, family), own in months.items() if JURISDICTIONS[country].in_season(own, month)} == done


@pytest.mark.parametrize(("country", "weekend"), [("KW", {4, 5}), ("AE", {5, 6}), ("DE", {5, 6})])
def test_each_country_has_its_own_weekend(country: str, weekend: set[int]) -> None:
    rest = JURISDICTIONS[country].rest
    written = {working_issue_date(Draws("issue", number), 2000, rest).weekday() for number in range(80)}
    assert written == set(range(7)) - weekend


def test_receipts_are_given_on_every_day_of_the_week_and_on_saturdays_most(invoices: list[Invoice]) -> None:
    receipts = [invoice for invoice in invoices if invoice.kind == "receipt"]
    weekdays = Counter(receipt.issue_date.weekday() for receipt in receipts)
    assert set(weekdays) == set(range(7))
    assert weekdays.most_common(1)[0][0] == 5
    shut = {"US": "12-25", "JP": "01-01"}
    assert all(f"{receipt.issue_date:%m-%d}" != shut[receipt.jurisdiction] for receipt in receipts)


@pytest.mark.parametrize("country", ["US", "JP"])
def test_a_shop_is_never_open_on_the_days_it_is_shut(country: str) -> None:
    closed = JURISDICTIONS[country].closed
    for number in range(3_000):
        day = till_issue_date(Draws("till", number), 1990, closed)
        assert (day.month, day.day) not in closed


def test_receipts_tell_the_time_and_numbers_of_a_day_grow_with_it(run: RunView, invoices: list[Invoice]) -> None:
    for invoice in invoices:
        assert (invoice.issue_time is None) == (invoice.kind == "invoice")
        assert invoice.issue_time is None or re.fullmatch(r"(0[7-9]|1\d|2[01]):[0-5]\d", invoice.issue_time)
    habits, day = record.Company.of(run.catalogue.company(5)).draws, date(2024, 5, 4)
    sold = [
        (document_number(habits, ("R-", "No.", ""), "receipt", day, i), till_time(habits, i)) for i in range(10_000)
    ]
    assert [time for _, time in sorted(sold)] == sorted(time for _, time in sold)
    assert len({time for _, time in sold}) > 300


def test_a_product_stands_once_on_a_document_or_once_for_each_day_or_period(invoices: list[Invoice]) -> None:
    for invoice in invoices:
        items = [(line.sku, line.detail) for line in invoice.lines if line.counted]
        assert len(set(items)) == len(items)
        twice = {sku for sku, count in Counter(sku for sku, _ in items).items() if count > 1}
        assert all(re.search(r"\d{2,4}[./年]", line.detail or "") for line in invoice.lines if line.sku in twice)


def test_a_receipt_is_paid_and_names_no_buyer(invoices: list[Invoice]) -> None:
    receipts = [invoice for invoice in invoices if invoice.kind == "receipt"]
    assert len(receipts) > 100
    for receipt in receipts:
        assert (receipt.buyer, receipt.due_date, receipt.order_number, receipt.customer_number) == (None,) * 4
        assert receipt.payment.method == "paid"
        assert receipt.totals.amount_due == 0
        assert receipt.totals.prepaid == receipt.totals.gross_total
        assert receipt.identity.paper == "receipt"


def test_german_shops_write_invoices(invoices: list[Invoice]) -> None:
    """Their receipts would have to name gross prices (§ 3 PAngV)."""
    german = [each for each in invoices if each.jurisdiction == "DE" and each.business_type == "grocery_retail"]
    assert len(german) > 20
    assert all(each.kind == "invoice" and each.buyer and each.layout != "receipt" for each in german)


def test_each_document_keeps_to_its_countrys_language_paper_and_law(invoices: list[Invoice]) -> None:
    japanese = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    for invoice in invoices:
        texts = [invoice.payment.terms, *invoice.notes, *(tax.label for tax in invoice.tax_lines)]
        texts += [text for line in invoice.lines for text in (line.description, line.unit) if text and text != "kWh"]
        texts += [line.detail for line in invoice.lines if line.kind is LineKind.ITEM and " · " in (line.detail or "")]
        if invoice.jurisdiction == "JP":
            plain = [text for text in texts if not japanese.search(text) and text != ""]
            assert not plain, plain
            assert invoice.rounding_policy == "per_bucket"
            assert invoice.minor_units == 0
            assert any(entry.scheme == "JP:T" for entry in invoice.seller.registrations)
        else:
            assert not any(japanese.search(text) for text in texts)
        if invoice.jurisdiction == "DE":
            assert any(entry.scheme == "DE:VAT" for entry in invoice.seller.registrations)
        if invoice.kind == "invoice":
            assert invoice.identity.paper == ("Letter" if invoice.jurisdiction == "US" else "A4")


def test_reduced_rates_are_explained_in_japan(invoices: list[Invoice]) -> None:
    for invoice in invoices:
        if invoice.jurisdiction == "JP":
            reduced = any(tax.category == "AA" for tax in invoice.tax_lines)
            assert any("軽減税率" in note for note in invoice.notes) == reduced


def test_german_invoices_name_the_day_of_delivery_even_when_it_is_their_own(invoices: list[Invoice]) -> None:
    german = [invoice for invoice in invoices if invoice.jurisdiction == "DE" and invoice.kind == "invoice"]
    same = [each for each in german if each.service_from == each.service_to == each.issue_date]
    assert same
    assert all("Leistungsdatum entspricht dem Rechnungsdatum." in invoice.notes for invoice in same)


def test_american_tax_is_what_the_buyers_town_charges(invoices: list[Invoice]) -> None:
    american = [
        invoice
        for invoice in invoices
        if invoice.jurisdiction == "US" and (invoice.buyer is None or invoice.buyer.country == "US")
    ]
    rates = {tax.rate for invoice in american for tax in invoice.tax_lines if tax.category == "S"}
    assert len(rates) > 15
    assert max(rates) < 11
    free = [invoice for invoice in american if invoice.tax_lines[0].category == "O"]
    assert free
    for invoice in free:
        home = (invoice.buyer or invoice.seller).address_lines[-1]
        assert re.search(r", (OR|NH|DE|MT) \d{5}$", home)
        assert {tax.category for tax in invoice.tax_lines} == {"O"}


def test_a_company_keeps_its_look_numbers_account_and_terms(invoices: list[Invoice]) -> None:
    seen: dict[tuple[int, str], Invoice] = {}
    for invoice in invoices:
        first = seen.setdefault((invoice.company_id, invoice.kind), invoice)
        assert invoice.identity == first.identity
        assert invoice.seller == first.seller
        assert invoice.rounding_policy == first.rounding_policy
        assert invoice.payment.account == first.payment.account


def test_customer_numbers_belong_to_the_pair(invoices: list[Invoice]) -> None:
    seen: dict[tuple[int, str], str | None] = {}
    for invoice in invoices:
        if invoice.buyer:
            pair = invoice.company_id, invoice.buyer.name + invoice.buyer.address_lines[0]
            assert seen.setdefault(pair, invoice.customer_number) == invoice.customer_number
    assert len(set(seen.values())) > 0.95 * len(seen)


def test_a_record_depends_on_its_index_alone(run: RunView, invoices: list[Invoice]) -> None:
    backwards = [record.build(run, index) for index in (900, 17, 3)]
    assert backwards == [invoices[900], invoices[17], invoices[3]]
    assert invoices[17].document_id == "0badcafe-0000017"
    other_seed = replace(run, seed=8)
    assert record.build(other_seed, 17) != invoices[17]


def test_the_order_in_which_conditions_are_given_decides_nothing(run: RunView) -> None:
    given = {"light_scan": 2, "clean": 3}
    runs = [
        replace(run, selection=Selection(conditions=dict(order))) for order in (given.items(), reversed(given.items()))
    ]
    conditions = [[record.build(each, index).condition for index in range(60)] for each in runs]
    assert conditions[0] == conditions[1]
    assert set(conditions[0]) == {"clean", "light_scan"}


def test_layouts_that_are_asked_for_are_kept_to(run: RunView) -> None:
    asked = replace(run, selection=Selection(layouts=("sidebar", "ledger")))
    asked = replace(asked, companies=[each for each in run.companies if each % 5])
    assert {record.build(asked, index).layout for index in range(80)} == {"sidebar", "ledger"}


def test_a_record_that_does_not_reconcile_is_never_handed_out(run: RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "minor_units", lambda currency: 3)
    with pytest.raises(RecordRefused, match="minor-units"):
        record.build(run, 0)
