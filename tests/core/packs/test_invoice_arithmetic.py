"""The worked cases of invoice arithmetic with their exact figures, and what holds for all invoices."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.errors import UsageError
from docgen_core.money import RoundingPolicy, has_places, minor_units
from docgen_core.packs.invoice.arithmetic import Band, Computation, Discount, Sale, Tax, compute
from docgen_core.packs.invoice.model import Invoice, LineKind
from docgen_core.packs.invoice.reconcile import reconcile
from docgen_core.packs.invoice.settlement import Settlement, settle

PER_LINE, PER_BUCKET = RoundingPolicy.PER_LINE, RoundingPolicy.PER_BUCKET


def sale(
    quantity: str,
    price: str,
    rate: str,
    *,
    category: str = "S",
    discount: str | None = None,
    bands: tuple[Band, ...] = (),
) -> Sale:
    tax = Tax(category, Decimal(rate), f"{category} {rate}")
    percent = None if discount is None else Decimal(discount)
    unit_price = None if bands else Decimal(price)
    return Sale(None, "Thing", None, Decimal(quantity), "pc", "C62", unit_price, tax, percent, bands)


def figures(result: Computation) -> tuple[str, str, str]:
    totals = result.totals
    return str(totals.net_total), str(totals.tax_total), str(totals.gross_total)


def test_case_1_tax_is_rounded_once_for_a_bucket() -> None:
    result = compute([sale("1", "10.10", "15")] * 3, places=2, policy=PER_BUCKET)
    assert [str(line.net_amount) for line in result.lines] == ["10.10", "10.10", "10.10"]
    assert str(result.tax_lines[0].base) == "30.30"
    assert figures(result) == ("30.30", "4.55", "34.85")
    assert [line.tax_amount for line in result.lines] == [None, None, None]


def test_case_1_under_the_other_policy_each_line_is_rounded() -> None:
    result = compute([sale("1", "10.10", "15")] * 3, places=2, policy=PER_LINE)
    assert [str(line.tax_amount) for line in result.lines] == ["1.52", "1.52", "1.52"]
    assert figures(result) == ("30.30", "4.56", "34.86")


def test_case_3_the_discount_belongs_to_the_line_amount() -> None:
    result = compute([sale("16", "348.35", "22", discount="4")], places=2, policy=PER_BUCKET)
    (line,) = result.lines
    assert (str(line.line_total), str(line.discount_amount), str(line.net_amount)) == ("5573.60", "222.94", "5350.66")
    assert figures(result) == ("5350.66", "1177.15", "6527.81")


@pytest.mark.parametrize("policy", [PER_LINE, PER_BUCKET])
def test_case_3_a_whole_discount_leaves_exactly_nothing(policy: RoundingPolicy) -> None:
    result = compute([sale("2.25", "64.22", "22", discount="100")], places=2, policy=policy)
    (line,) = result.lines
    assert (str(line.line_total), str(line.discount_amount), str(line.net_amount)) == ("144.50", "144.50", "0.00")
    assert figures(result) == ("0.00", "0.00", "0.00")


def test_case_4_a_price_finer_than_the_yen() -> None:
    result = compute([sale("1235", "4.5", "10")], places=0, policy=PER_BUCKET)
    assert str(result.lines[0].line_total) == "5558"
    assert str(result.lines[0].unit_price) == "4.5"
    assert figures(result) == ("5558", "556", "6114")


@pytest.mark.parametrize("policy", [PER_LINE, PER_BUCKET])
def test_case_7_a_document_discount_is_shared_over_the_rates(policy: RoundingPolicy) -> None:
    sales = [
        sale("1", "10.01", "20"),
        sale("1", "10.01", "5", category="AA"),
        sale("1", "10.01", "0", category="Z"),
    ]
    result = compute(sales, places=2, policy=policy, discount=Discount(amount=Decimal("1.00")))
    assert [str(tax.discount_share) for tax in result.tax_lines] == ["0.34", "0.33", "0.33"]
    assert [str(tax.base) for tax in result.tax_lines] == ["9.67", "9.68", "9.68"]
    assert [str(tax.tax) for tax in result.tax_lines] == ["1.93", "0.48", "0.00"]
    assert figures(result) == ("29.03", "2.41", "31.44")


def test_a_discount_that_takes_everything_leaves_no_tax_under_either_policy() -> None:
    sales = [sale("3", "0.03", "15"), sale("1", "10.10", "15"), sale("1", "10.10", "15")]
    for policy in RoundingPolicy:
        assert figures(compute(sales, places=2, policy=policy, discount=Discount(percent=Decimal(100)))) == (
            "0.00",
            "0.00",
            "0.00",
        )


def test_a_graduated_price_counts_its_parent_and_explains_it_by_bands() -> None:
    bands = (Band(Decimal(100), Decimal("0.31"), "to 100"), Band(Decimal("50.5"), Decimal("0.2875"), "above"))
    result = compute([sale("150.5", "", "19", bands=bands)], places=2, policy=PER_BUCKET)
    parent, first, second = result.lines
    assert parent.kind is LineKind.TIER_PARENT
    assert parent.counted
    assert (first.parent, second.parent) == (1, 1)
    assert not first.counted
    assert not second.counted
    assert (str(first.line_total), str(second.line_total), str(parent.line_total)) == ("31.00", "14.52", "45.52")
    assert str(result.totals.lines_total) == "45.52"


def test_buckets_stand_in_order_of_first_appearance() -> None:
    sales = [sale("1", "1", "7", category="AA"), sale("1", "1", "19"), sale("1", "1", "7", category="AA")]
    result = compute(sales, places=2, policy=PER_BUCKET)
    assert [(tax.category, str(tax.line_total)) for tax in result.tax_lines] == [("AA", "2.00"), ("S", "1.00")]


def test_discounts_and_prepayments_beyond_the_amount_are_refused() -> None:
    with pytest.raises(UsageError, match="does not fit"):
        compute([sale("1", "1", "7")], places=2, policy=PER_BUCKET, discount=Discount(amount=Decimal("1.01")))
    totals = compute([sale("1", "1", "7")], places=2, policy=PER_BUCKET).totals
    with pytest.raises(UsageError, match="cannot be prepaid"):
        settle(totals, Settlement(prepaid=Decimal("1.08")), 2)
    assert str(settle(totals, Settlement(prepaid=Decimal("1.00")), 2).amount_due) == "0.07"


@pytest.mark.parametrize(("quantity", "price"), [("-1", "1"), ("1", "-1")])
def test_what_is_below_zero_is_refused(quantity: str, price: str) -> None:
    with pytest.raises(UsageError, match="below zero"):
        compute([sale(quantity, price, "7")], places=2, policy=PER_BUCKET)


RATES = st.sampled_from([("S", "19"), ("S", "22"), ("AA", "7"), ("AA", "5.5"), ("S", "8.875"), ("Z", "0")])


@st.composite
def sales_of_any_kind(draw: st.DrawFn) -> Sale:
    category, rate = draw(RATES)
    quantity = draw(st.decimals("0.001", "5000", places=3))
    discount = draw(st.none() | st.decimals(0, 100, places=2))
    prices = st.decimals(0, 3000, places=draw(st.integers(0, 5)))
    if draw(st.booleans()):
        return sale(str(quantity), str(draw(prices)), rate, category=category, discount=discount and str(discount))
    parts = draw(st.lists(st.decimals("0.001", "900", places=3), min_size=1, max_size=4))
    bands = tuple(Band(part, draw(prices), "band") for part in parts)
    return sale(str(sum(parts)), "", rate, category=category, bands=bands)


@settings(deadline=None)
@given(
    sales=st.lists(sales_of_any_kind(), min_size=1, max_size=10),
    currency=st.sampled_from(["EUR", "JPY", "KWD"]),
    policy=st.sampled_from(RoundingPolicy),
    percent=st.none() | st.decimals(0, 100, places=2),
)
def test_every_invoice_adds_up_and_reconciles(
    make_invoice: Callable[..., Invoice],
    sales: list[Sale],
    currency: str,
    policy: RoundingPolicy,
    percent: Decimal | None,
) -> None:
    invoice = make_invoice(sales, currency=currency, policy=policy, discount=Discount(percent=percent))
    reconcile(invoice)
    totals, taxes, places = invoice.totals, invoice.tax_lines, minor_units(currency)
    assert sum(line.net_amount for line in invoice.lines if line.counted) == totals.lines_total
    assert sum(tax.discount_share for tax in taxes) == totals.document_discount
    assert sum(tax.base for tax in taxes) == totals.net_total
    assert sum(tax.tax for tax in taxes) == totals.tax_total
    assert totals.gross_total == totals.net_total + totals.tax_total
    amounts = [totals.net_total, totals.tax_total, totals.gross_total, totals.amount_due]
    amounts += [line.net_amount for line in invoice.lines] + [tax.tax for tax in taxes] + [tax.base for tax in taxes]
    assert all(has_places(amount, places) and amount >= 0 for amount in amounts)
    if policy is PER_LINE:
        assert sum(line.tax_amount for line in invoice.lines if line.tax_amount is not None) == totals.tax_total
        shares = [line.document_discount_share for line in invoice.lines if line.document_discount_share is not None]
        assert sum(shares) == totals.document_discount
