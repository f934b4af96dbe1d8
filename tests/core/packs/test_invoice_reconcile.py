"""A record that does not reconcile refuses to exist, and says which rule it breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from docgen_core.errors import RecordRefused
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice.arithmetic import Band, Discount, Sale, Tax
from docgen_core.packs.invoice.model import Invoice
from docgen_core.packs.invoice.reconcile import reconcile

CENT = Decimal("0.01")
STANDARD, REDUCED = Tax("S", Decimal(19), "19"), Tax("AA", Decimal(7), "7")
REASON = "Steuerschuldnerschaft des Leistungsempfängers."
REVERSE = Tax("AE", Decimal(0), "Reverse charge", REASON)

MakeInvoice = Callable[..., Invoice]


def plain_sale(quantity: str, price: str, tax: Tax, discount: str | None = None) -> Sale:
    percent = None if discount is None else Decimal(discount)
    return Sale("A1", "Thing", None, Decimal(quantity), "pc", "C62", Decimal(price), tax, percent)


SALES = [
    plain_sale("16", "348.35", STANDARD, "4"),
    plain_sale("3", "10.10", REDUCED),
    Sale(
        "A2",
        "Power",
        None,
        Decimal(150),
        "kWh",
        "KWH",
        None,
        STANDARD,
        bands=(Band(Decimal(100), Decimal("0.31"), "to 100"), Band(Decimal(50), Decimal("0.2875"), "above")),
    ),
]


@pytest.fixture(params=list(RoundingPolicy))
def whole(request: pytest.FixtureRequest, make_invoice: MakeInvoice) -> Invoice:
    """An invoice with everything: discounts, two rates, a graduated price."""
    return make_invoice(SALES, policy=request.param, discount=Discount(percent=Decimal("2.5")))


def test_what_arithmetic_builds_reconciles(whole: Invoice) -> None:
    reconcile(whole)


@pytest.mark.parametrize(
    "field",
    ["lines_total", "document_discount", "net_total", "tax_total", "gross_total", "prepaid", "amount_due"],
)
@pytest.mark.parametrize("error", [CENT, -CENT])
def test_a_total_off_by_a_cent_is_refused(whole: Invoice, field: str, error: Decimal) -> None:
    totals = replace(whole.totals, **{field: getattr(whole.totals, field) + error})
    with pytest.raises(RecordRefused, match="breaks the rule"):
        reconcile(replace(whole, totals=totals))


@pytest.mark.parametrize("field", ["line_total", "discount_amount", "net_amount"])
@pytest.mark.parametrize("position", [0, 1, 2, 3, 4])
def test_a_line_off_by_a_cent_is_refused(whole: Invoice, field: str, position: int) -> None:
    line = whole.lines[position]
    wrong = replace(line, **{field: getattr(line, field) + CENT})
    lines = (*whole.lines[:position], wrong, *whole.lines[position + 1 :])
    with pytest.raises(RecordRefused, match=r"breaks the rule (line|tier)-.* line [1-5]'s"):
        reconcile(replace(whole, lines=lines))


@pytest.mark.parametrize("field", ["line_total", "discount_share", "base", "tax"])
@pytest.mark.parametrize("position", [0, 1])
def test_a_bucket_off_by_a_cent_is_refused(whole: Invoice, field: str, position: int) -> None:
    bucket = whole.tax_lines[position]
    wrong = replace(bucket, **{field: getattr(bucket, field) + CENT})
    tax_lines = (*whole.tax_lines[:position], wrong, *whole.tax_lines[position + 1 :])
    with pytest.raises(RecordRefused, match=f"tax line {position + 1}"):
        reconcile(replace(whole, tax_lines=tax_lines))


def test_a_cent_moved_between_two_shares_is_refused(whole: Invoice) -> None:
    first, second = whole.tax_lines
    moved = (
        replace(first, discount_share=first.discount_share + CENT, base=first.base - CENT),
        replace(second, discount_share=second.discount_share - CENT, base=second.base + CENT),
    )
    with pytest.raises(RecordRefused, match="discount-share"):
        reconcile(replace(whole, tax_lines=moved))


def test_the_other_policys_totals_are_refused(make_invoice: MakeInvoice) -> None:
    sales = [plain_sale("1", "10.10", Tax("S", Decimal(15), "15"))] * 3
    per_line = make_invoice(sales, policy=RoundingPolicy.PER_LINE)
    with pytest.raises(RecordRefused, match="per-bucket"):
        reconcile(replace(per_line, rounding_policy="per_bucket"))
    with pytest.raises(RecordRefused, match="rounding-policy"):
        reconcile(replace(per_line, rounding_policy="per_mood"))


def test_line_tax_off_by_a_cent_is_refused(make_invoice: MakeInvoice) -> None:
    invoice = make_invoice(SALES, policy=RoundingPolicy.PER_LINE)
    line = invoice.lines[0]
    assert line.tax_amount is not None
    for wrong in (replace(line, tax_amount=line.tax_amount + CENT), replace(line, tax_amount=None)):
        with pytest.raises(RecordRefused, match="tax-per_line"):
            reconcile(replace(invoice, lines=(wrong, *invoice.lines[1:])))


def test_counting_a_band_twice_is_refused(whole: Invoice) -> None:
    counted = replace(whole.lines[3], counted=True)
    with pytest.raises(RecordRefused, match="counted"):
        reconcile(replace(whole, lines=(*whole.lines[:3], counted, whole.lines[4])))


def test_a_band_without_its_parent_is_refused(whole: Invoice) -> None:
    stray = replace(whole.lines[3], parent=1)
    with pytest.raises(RecordRefused, match="tier"):
        reconcile(replace(whole, lines=(*whole.lines[:3], stray, whole.lines[4])))


def test_a_parent_that_is_not_its_bands_is_refused(whole: Invoice) -> None:
    parent = replace(whole.lines[2], quantity=Decimal(151))
    with pytest.raises(RecordRefused, match="tier-sum"):
        reconcile(replace(whole, lines=(*whole.lines[:2], parent, *whole.lines[3:])))


def test_buckets_out_of_order_missing_or_doubled_are_refused(whole: Invoice) -> None:
    first, second = whole.tax_lines
    for wrong in ((second, first), (first,), (first, second, second)):
        with pytest.raises(RecordRefused, match="buckets"):
            reconcile(replace(whole, tax_lines=wrong))


def test_an_amount_with_invented_or_missing_places_is_refused(make_invoice: MakeInvoice) -> None:
    yen = make_invoice([plain_sale("1235", "4.5", Tax("S", Decimal(10), "10"))], currency="JPY")
    with pytest.raises(RecordRefused, match="minor-units"):
        reconcile(replace(yen, totals=replace(yen.totals, net_total=Decimal("5558.00"))))
    with pytest.raises(RecordRefused, match="minor-units"):
        reconcile(replace(yen, minor_units=2))
    with pytest.raises(RecordRefused, match="minor-units"):
        reconcile(replace(yen, totals=replace(yen.totals, prepaid=Decimal("-0"))))


def test_a_number_that_the_golden_set_cannot_hold_is_refused(make_invoice: MakeInvoice) -> None:
    invoice = make_invoice([plain_sale("1", "1", STANDARD)])
    for field, value in (("quantity", "1.0000000001"), ("quantity", "-1"), ("unit_price", "-1"), ("tax_rate", "NaN")):
        line = replace(invoice.lines[0], **{field: Decimal(value)})
        with pytest.raises(RecordRefused, match="number-fits"):
            reconcile(replace(invoice, lines=(line,)))


def test_dates_out_of_order_are_refused(whole: Invoice) -> None:
    with pytest.raises(RecordRefused, match="due_date"):
        reconcile(replace(whole, due_date=date(2024, 3, 4)))
    with pytest.raises(RecordRefused, match="service_to"):
        reconcile(replace(whole, service_to=date(2024, 2, 1)))
    with pytest.raises(RecordRefused, match="both"):
        reconcile(replace(whole, service_to=None))


def test_lines_out_of_number_are_refused(whole: Invoice) -> None:
    with pytest.raises(RecordRefused, match="line-numbers"):
        reconcile(replace(whole, lines=whole.lines[1:]))


def test_case_9_reverse_charge_reconciles(make_invoice: MakeInvoice) -> None:
    invoice = make_invoice([plain_sale("10", "120.00", REVERSE)], buyer_vat_id="FR40303265045", notes=(REASON,))
    reconcile(invoice)
    totals = invoice.totals
    assert (str(totals.net_total), str(totals.tax_total), str(totals.gross_total)) == ("1200.00", "0.00", "1200.00")
    assert [tax.category for tax in invoice.tax_lines] == ["AE"]


def test_case_9_twin_without_the_buyers_vat_id_is_refused(make_invoice: MakeInvoice) -> None:
    with pytest.raises(RecordRefused, match="BR-AE-02"):
        reconcile(make_invoice([plain_sale("10", "120.00", REVERSE)], notes=(REASON,)))


def test_case_9_twin_that_charges_tax_is_refused(make_invoice: MakeInvoice) -> None:
    charged = replace(REVERSE, rate=Decimal(20))
    with pytest.raises(RecordRefused, match="BR-AE-09"):
        reconcile(make_invoice([plain_sale("10", "120.00", charged)], buyer_vat_id="FR40303265045", notes=(REASON,)))


@pytest.mark.parametrize("category", ["AE", "E", "O"])
def test_case_9_twin_without_a_reason_is_refused(make_invoice: MakeInvoice, category: str) -> None:
    silent = replace(REVERSE, category=category, reason=None)
    with pytest.raises(RecordRefused, match="reason"):
        reconcile(make_invoice([plain_sale("10", "120.00", silent)], buyer_vat_id="FR40303265045"))


def test_a_reason_that_is_not_printed_is_refused(make_invoice: MakeInvoice) -> None:
    with pytest.raises(RecordRefused, match="BR-AE-10"):
        reconcile(make_invoice([plain_sale("10", "120.00", REVERSE)], buyer_vat_id="FR40303265045"))


def test_a_refusal_is_one_line_that_names_document_rule_and_figures(whole: Invoice) -> None:
    wrong = replace(whole, totals=replace(whole.totals, gross_total=whole.totals.gross_total + CENT))
    with pytest.raises(RecordRefused) as refusal:
        reconcile(wrong)
    message = str(refusal.value)
    assert "\n" not in message
    for part in ("0badcafe-0000001", "gross-total", str(wrong.totals.gross_total), str(whole.totals.gross_total)):
        assert part in message
