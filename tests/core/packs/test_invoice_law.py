"""The worked cases over every rate, discount and currency, against fractions; and each thing that a law adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.errors import RecordRefused, UsageError
from docgen_core.money import RoundingPolicy, minor_units, plain, quotient, to_step
from docgen_core.packs.invoice.arithmetic import Charge, Discount, Extras, Sale, Tax, compute
from docgen_core.packs.invoice.corrections import taken_back
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.model import Basis, Invoice, LineKind, Original, Party, Registration
from docgen_core.packs.invoice.places import Place, places
from docgen_core.packs.invoice.reconcile import reconcile
from docgen_core.packs.invoice.settlement import Settlement, Withholding, instalments, settle

MakeInvoice = Callable[..., Invoice]
PER_LINE, PER_BUCKET = RoundingPolicy.PER_LINE, RoundingPolicy.PER_BUCKET

CURRENCIES = st.sampled_from(("JPY", "KRW", "EUR", "USD", "INR", "KWD"))
POLICIES = st.sampled_from(list(RoundingPolicy))
PRICES = st.decimals(Decimal("0.0001"), Decimal(99_999), places=4)
QUANTITIES = st.decimals(Decimal("0.01"), Decimal(9_999), places=2)
RATES = st.decimals(Decimal(0), Decimal(40), places=3)
PERCENTS = st.decimals(Decimal(0), Decimal(100), places=2)


def sale(
    quantity: Decimal | str, price: Decimal | str, tax: Tax, discount: Decimal | None = None, **more: object
) -> Sale:
    return Sale(None, "Thing", None, Decimal(quantity), "pc", "C62", Decimal(price), tax, discount, **more)  # type: ignore[arg-type]


def tax(rate: Decimal | str, category: str = "S") -> Tax:
    return Tax(category, Decimal(plain(Decimal(rate))), f"{category} {rate}")


def units(value: Fraction | Decimal, places: int) -> int:
    """Minor units, half away from zero."""
    scaled = Fraction(value) * 10**places
    size = floor(abs(scaled) + Fraction(1, 2))
    return size if scaled >= 0 else -size


def in_units(amount: Decimal, places: int) -> int:
    exact = Fraction(amount) * 10**places
    assert exact.denominator == 1
    return int(exact)


@settings(max_examples=120, deadline=None)
@given(prices=st.lists(PRICES, min_size=1, max_size=5), rate=RATES, currency=CURRENCIES)
def test_case_1_holds_for_every_rate_and_currency(prices: list[Decimal], rate: Decimal, currency: str) -> None:
    places = minor_units(currency)
    lines = [units(price, places) for price in prices]
    once = compute([sale("1", price, tax(rate)) for price in prices], places=places, policy=PER_BUCKET)
    each = compute([sale("1", price, tax(rate)) for price in prices], places=places, policy=PER_LINE)
    assert in_units(once.totals.tax_total, places) == units(
        Fraction(sum(lines), 10**places) * Fraction(rate) / 100, places
    )
    assert in_units(each.totals.tax_total, places) == sum(
        units(Fraction(line, 10**places) * Fraction(rate) / 100, places) for line in lines
    )


@settings(max_examples=120, deadline=None)
@given(quantity=QUANTITIES, price=PRICES, percent=PERCENTS, rate=RATES, currency=CURRENCIES, policy=POLICIES)
def test_cases_3_and_4_hold_for_every_discount_rate_and_currency(
    quantity: Decimal, price: Decimal, percent: Decimal, rate: Decimal, currency: str, policy: RoundingPolicy
) -> None:
    places = minor_units(currency)
    result = compute([sale(quantity, price, tax(rate), percent)], places=places, policy=policy)
    (line,) = result.lines
    before = units(Fraction(quantity) * Fraction(price), places)
    discount = units(Fraction(before, 10**places) * Fraction(percent) / 100, places)
    taxed = units(Fraction(before - discount, 10**places) * Fraction(rate) / 100, places)
    found = (line.line_total, line.discount_amount, line.net_amount, result.totals.tax_total, result.totals.gross_total)
    assert [in_units(amount, places) for amount in found] == [
        before, discount, before - discount, taxed, before - discount + taxed,
    ]  # fmt: skip
    if percent == 100:
        assert not line.net_amount.is_signed()


BUCKETS = st.lists(
    st.tuples(st.decimals(Decimal("0.01"), Decimal(5_000), places=2), st.sampled_from(("20", "5", "0", "9.975"))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=120, deadline=None)
@given(lines=BUCKETS, discount=PERCENTS, charge=PERCENTS, currency=CURRENCIES, policy=POLICIES)
def test_case_7_holds_for_discounts_charges_and_shipping_over_any_rates(
    make_invoice: MakeInvoice,
    lines: list[tuple[Decimal, str]],
    discount: Decimal,
    charge: Decimal,
    currency: str,
    policy: RoundingPolicy,
) -> None:
    places = minor_units(currency)
    sales = [sale("1", price, tax(rate, "S" if rate != "0" else "Z")) for price, rate in lines]
    whole = compute(sales, places=places, policy=policy).totals.lines_total
    if not whole:
        return
    extras = Extras(Discount(percent=discount), Charge("Fuel", percent=charge), shipping=Decimal(7))
    result = compute(sales, places=places, policy=policy, extras=extras)
    totals = result.totals
    assert sum(line.discount_share for line in result.tax_lines) == totals.document_discount
    assert sum(line.charge_share for line in result.tax_lines) == totals.document_charge + totals.shipping
    weights = [in_units(line.line_total, places) for line in result.tax_lines]
    for line, weight in zip(result.tax_lines, weights, strict=True):
        fair = Fraction(in_units(totals.document_discount, places) * weight, sum(weights))
        assert abs(in_units(line.discount_share, places) - fair) < 1
    reconcile(made(make_invoice, sales, currency, policy, extras))


def made(
    make_invoice: MakeInvoice, sales: list[Sale], currency: str, policy: RoundingPolicy, extras: Extras | None = None
) -> Invoice:
    invoice = make_invoice(sales, currency=currency, policy=policy)
    result = compute(sales, places=invoice.minor_units, policy=policy, extras=extras)
    return replace(invoice, lines=result.lines, tax_lines=result.tax_lines, totals=result.totals)


def test_case_7_to_the_penny() -> None:
    sales = [sale("1", "10.01", tax(rate, category)) for rate, category in (("20", "S"), ("5", "AA"), ("0", "Z"))]
    result = compute(sales, places=2, policy=PER_BUCKET, extras=Extras(Discount(amount=Decimal(1))))
    assert [str(line.discount_share) for line in result.tax_lines] == ["0.34", "0.33", "0.33"]
    assert [str(line.tax) for line in result.tax_lines] == ["1.93", "0.48", "0.00"]
    assert (str(result.totals.net_total), str(result.totals.gross_total)) == ("29.03", "31.44")


SENTENCES = {country: JURISDICTIONS[country].untaxed("AE").reason for country in JURISDICTIONS}


@settings(max_examples=60, deadline=None)
@given(quantity=QUANTITIES, price=PRICES, country=st.sampled_from(sorted(JURISDICTIONS)))
def test_case_9_holds_and_each_twin_is_refused_in_every_country(
    make_invoice: MakeInvoice, quantity: Decimal, price: Decimal, country: str
) -> None:
    reverse = JURISDICTIONS[country].untaxed("AE")
    if reverse.category != "AE":
        return
    assert reverse.reason
    right = make_invoice([sale(quantity, price, reverse)], buyer_vat_id="FR40303265045", notes=(reverse.reason,))
    reconcile(right)
    assert right.totals.tax_total == 0
    twins = {
        "BR-AE-02": make_invoice([sale(quantity, price, reverse)], notes=(reverse.reason,)),
        "BR-AE-09": make_invoice(
            [sale(quantity, price, replace(reverse, rate=Decimal(20)))],
            buyer_vat_id="FR40303265045",
            notes=(reverse.reason,),
        ),
        "BR-AE-10": make_invoice([sale(quantity, price, replace(reverse, reason=None))], buyer_vat_id="FR40303265045"),
    }
    for rule, twin in twins.items():
        with pytest.raises(RecordRefused, match=rule):
            reconcile(twin)


def test_a_sale_within_the_union_and_an_export_need_a_buyer_abroad(make_invoice: MakeInvoice) -> None:
    for category, rule in (("K", "BR-IC-02"), ("G", "abroad")):
        charged = JURISDICTIONS["DE"].untaxed(category)
        right = make_invoice([sale("2", "50", charged)], buyer_vat_id="FR40303265045", notes=(charged.reason,))
        reconcile(right)
        at_home = replace(right, buyer=Party("X", ("Y",), "DE", (), "", "", ""))
        with pytest.raises(RecordRefused, match=rule):
            reconcile(at_home)
    within = JURISDICTIONS["DE"].untaxed("K")
    german = (Registration("DE:VAT", "USt-IdNr.", "DE990000018"),)
    right = make_invoice([sale("2", "50", within)], buyer_vat_id="FR40303265045", notes=(within.reason,))
    with pytest.raises(RecordRefused, match="abroad"):
        reconcile(replace(right, buyer=Party("X", ("Y",), "DE", german, "", "", "")))


def town(country: str, region: str) -> Place:
    return next(place for place in places(country) if place.region == region)


def test_india_taxes_twice_within_a_state_and_once_between_states() -> None:
    india = JURISDICTIONS["IN"]
    pune, chennai = town("IN", "Maharashtra"), town("IN", "Tamil Nadu")
    within, between = india.taxed("standard", pune, pune), india.taxed("standard", chennai, pune)
    assert within.printed == (("CGST 9%", Decimal(9)), ("SGST 9%", Decimal(9)))
    assert between.printed == (("IGST 18%", Decimal(18)),)
    result = compute([sale("3", "33.35", within)], places=2, policy=PER_BUCKET)
    assert [(str(line.base), str(line.tax), line.counted) for line in result.tax_lines] == [
        ("100.05", "9.00", True),
        ("100.05", "9.00", False),
    ]
    assert str(result.totals.tax_total) == "18.00"


@pytest.mark.parametrize(
    ("region", "tax_class", "locale", "printed"),
    [
        ("ON", "standard", "en-CA", ("HST 13%",)),
        ("QC", "standard", "en-CA", ("GST 5%", "QST 9.975%")),
        ("QC", "standard", "fr-CA", ("TPS 5\u00a0%", "TVQ 9,975\u00a0%")),
        ("BC", "standard", "en-CA", ("GST 5%", "PST 7%")),
        ("BC", "service", "en-CA", ("GST 5%",)),
        ("AB", "standard", "en-CA", ("GST 5%",)),
        ("SK", "zero", "en-CA", ("GST/HST 0%",)),
    ],
)
def test_a_province_charges_its_own(region: str, tax_class: str, locale: str, printed: tuple[str, ...]) -> None:
    charged = JURISDICTIONS["CA"].speaking(locale).tax(tax_class, town("CA", region))
    assert tuple(label for label, _ in charged.printed) == printed
    assert sum(rate for _, rate in charged.printed) == charged.rate


@pytest.mark.parametrize(
    ("country", "tax_class", "day", "rate"),
    [
        ("CH", "standard", date(2023, 12, 31), "7.7"),
        ("CH", "reduced", date(2024, 1, 1), "2.6"),
        ("IN", "middle", date(2025, 9, 21), "12"),
        ("IN", "middle", date(2025, 9, 22), "5"),
    ],
)
def test_rates_are_those_of_the_day(country: str, tax_class: str, day: date, rate: str) -> None:
    law = JURISDICTIONS[country].on(day)
    assert law.tax(tax_class, places(country)[0]).rate == Decimal(rate)
    assert law.locale == JURISDICTIONS[country].locale


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(PRICES, min_size=1, max_size=5), policy=POLICIES)
def test_taxes_on_one_base_are_rounded_each_for_itself(
    make_invoice: MakeInvoice, lines: list[Decimal], policy: RoundingPolicy
) -> None:
    quebec = JURISDICTIONS["CA"].tax("standard", town("CA", "QC"))
    sales = [sale("1", price, quebec) for price in lines]
    invoice = made(make_invoice, sales, "CAD", policy, Extras(shipping=Decimal("4.90")) if sum(lines) > 1 else None)
    reconcile(invoice)
    federal, own = invoice.tax_lines
    if policy is PER_BUCKET:
        assert in_units(own.tax, 2) == units(Fraction(own.base) * Fraction(9975, 100_000), 2)
        assert in_units(federal.tax, 2) == units(Fraction(federal.base) / 20, 2)
    wrong = replace(invoice, tax_lines=(federal, replace(own, rate=Decimal(9))))
    with pytest.raises(RecordRefused, match="bucket-rate"):
        reconcile(wrong)


BASES = {
    "factor": (Basis(factor=Decimal("2.3")), Basis(factor=Decimal("2.4")), "115.00"),
    "part of a period": (Basis(days=17, days_of=30), Basis(days=18, days_of=30), "28.33"),
    "meter": (
        Basis(meter_from=Decimal(100), meter_to=Decimal(101)),
        Basis(meter_from=Decimal(100), meter_to=Decimal(102)),
        "50.00",
    ),
}


@pytest.mark.parametrize("basis", BASES)
def test_a_line_follows_from_its_basis_and_no_other(make_invoice: MakeInvoice, basis: str) -> None:
    right, wrong, worth = BASES[basis]
    invoice = make_invoice([sale("1", "50", tax("19"), basis=right)])
    reconcile(invoice)
    assert str(invoice.lines[0].line_total) == worth
    with pytest.raises(RecordRefused):
        reconcile(replace(invoice, lines=(replace(invoice.lines[0], basis=wrong),)))


def test_a_milestone_is_what_is_done_less_what_was_billed_before(make_invoice: MakeInvoice) -> None:
    basis = Basis(
        contract_total=Decimal("99999.99"), progress_percent=Decimal("66.6"), previous_percent=Decimal("33.3")
    )
    claim = replace(sale("1", "1", tax("19")), quantity=None, unit=None, unit_price=None, basis=basis)
    invoice = make_invoice([claim])
    reconcile(invoice)
    assert str(invoice.lines[0].line_total) == "33299.99"
    backwards = replace(basis, previous_percent=Decimal(70))
    with pytest.raises(RecordRefused, match="progress"):
        reconcile(replace(invoice, lines=(replace(invoice.lines[0], basis=backwards),)))


def test_interest_is_for_days_of_a_year(make_invoice: MakeInvoice) -> None:
    basis = Basis(principal=Decimal("1000.00"), interest_rate=Decimal("9.12"), days=41, days_of=365)
    outside = JURISDICTIONS["DE"].untaxed("O")
    late = replace(sale("1", "1", outside), quantity=None, unit=None, unit_price=None, basis=basis)
    invoice = make_invoice([late], notes=(outside.reason,))
    reconcile(invoice)
    assert str(invoice.lines[0].line_total) == "10.24"


def test_a_deposit_or_overage_belongs_to_the_item_above_it(make_invoice: MakeInvoice) -> None:
    plan = sale("25", "12", tax("19"))
    beyond = sale("3", "14.40", tax("19"), basis=Basis(included=Decimal(25)), with_above=LineKind.OVERAGE)
    crate = sale("3", "3.30", tax("19"), with_above=LineKind.DEPOSIT)
    invoice = make_invoice([plan, beyond, crate])
    reconcile(invoice)
    assert [line.parent for line in invoice.lines] == [None, 1, 1]
    assert all(line.counted for line in invoice.lines)
    for wrong in (replace(invoice.lines[1], parent=None), replace(invoice.lines[1], basis=Basis(included=Decimal(24)))):
        with pytest.raises(RecordRefused, match=r"parent|included"):
            reconcile(replace(invoice, lines=(invoice.lines[0], wrong, invoice.lines[2])))


def credit(invoice: Invoice, sign: str, kind: str = "credit_note") -> Invoice:
    return replace(invoice, kind=kind, amount_sign=sign, original=Original("R-1", date(2024, 2, 1)), due_date=None)


@settings(max_examples=60, deadline=None)
@given(lines=BUCKETS, percent=PERCENTS, policy=POLICIES, currency=CURRENCIES)
def test_a_credit_note_is_its_invoice_above_zero_or_below(
    make_invoice: MakeInvoice, lines: list[tuple[Decimal, str]], percent: Decimal, policy: RoundingPolicy, currency: str
) -> None:
    sales = [sale("3", price, tax(rate, "S" if rate != "0" else "Z"), percent) for price, rate in lines]
    invoice = make_invoice(sales, currency=currency, policy=policy)
    reconcile(credit(invoice, "positive"))
    below = taken_back(compute(sales, places=invoice.minor_units, policy=policy))
    negative = replace(invoice, lines=below.lines, tax_lines=below.tax_lines, totals=below.totals)
    reconcile(credit(negative, "negative"))
    assert below.totals.gross_total == -invoice.totals.gross_total
    if invoice.totals.gross_total:
        for wrong in (credit(negative, "positive"), credit(negative, "mixed"), replace(negative, kind="invoice")):
            with pytest.raises(RecordRefused):
                reconcile(wrong)
    with pytest.raises(RecordRefused, match="original"):
        reconcile(replace(credit(invoice, "positive"), original=None))


def test_a_corrective_invoice_takes_back_and_bills(make_invoice: MakeInvoice) -> None:
    billed, right = sale("-5", "12.35", tax("19")), sale("3", "12.35", tax("19"))
    result = compute([billed, right], places=2, policy=PER_BUCKET, mixed=True)
    assert [str(line.net_amount) for line in result.lines] == ["-61.75", "37.05"]
    assert str(result.totals.gross_total) == "-29.39"
    invoice = make_invoice([right])
    invoice = replace(invoice, lines=result.lines, tax_lines=result.tax_lines, totals=result.totals)
    reconcile(credit(invoice, "mixed", "corrective_invoice"))
    with pytest.raises(UsageError, match="below zero"):
        compute([billed], places=2, policy=PER_BUCKET)


def test_what_is_due_after_withholding_tip_coins_credit_and_payments(make_invoice: MakeInvoice) -> None:
    invoice = make_invoice([sale("1", "1000.02", tax("21"))])
    settlement = Settlement(
        withholding=Withholding("IRPF", Decimal(15)), tip=Decimal(10), cash_step=Decimal("0.05"), credit=Decimal(100)
    )
    totals = settle(invoice.totals, settlement, 2)
    figures = (
        totals.gross_total,
        totals.withholding,
        totals.rounding,
        totals.credit_used,
        totals.credit_left,
        totals.amount_due,
    )
    assert [str(amount) for amount in figures] == ["1210.02", "150.00", "-0.02", "100.00", "0.00", "970.00"]
    whole = replace(invoice, totals=totals)
    reconcile(whole)
    for field in ("withholding", "tip", "rounding", "credit_used", "credit_left", "credit_before"):
        wrong = replace(totals, **{field: getattr(totals, field) + Decimal("0.01")})
        with pytest.raises(RecordRefused):
            reconcile(replace(whole, totals=wrong))
    with pytest.raises(UsageError, match="prepaid"):
        settle(invoice.totals, Settlement(prepaid=Decimal(2000)), 2)


@given(due=st.decimals(Decimal("0.00"), Decimal(99_999), places=2), count=st.integers(2, 12))
def test_instalments_add_up_to_what_is_due(due: Decimal, count: int) -> None:
    days = [date(2024, 1 + number, 15) for number in range(count)]
    parts = instalments(due, days, 2)
    assert sum(part.amount for part in parts) == due
    assert max(part.amount for part in parts) - min(part.amount for part in parts) <= Decimal("0.01")


@given(
    amount=st.decimals(Decimal(-9_999), Decimal(9_999), places=2),
    step=st.sampled_from(("0.05", "0.10", "0.25", "1")),
    divisor=st.integers(1, 366),
)
def test_coins_and_quotients_are_nearest_with_ties_away_from_zero(amount: Decimal, step: str, divisor: int) -> None:
    coin = to_step(amount, Decimal(step))
    assert Fraction(coin) == units(Fraction(amount) / Fraction(step), 0) * Fraction(step)
    assert in_units(quotient(amount, divisor, 2), 2) == units(Fraction(amount) / divisor, 2)


def test_yen_prices_may_be_finer_than_yen_and_amounts_never_are(make_invoice: MakeInvoice) -> None:
    invoice = make_invoice([sale("1235", "4.5", tax("10"))], currency="JPY")
    assert (str(invoice.lines[0].line_total), str(invoice.totals.gross_total)) == ("5558", "6114")
    dinars = make_invoice([sale("3", "0.3335", tax("0", "Z"))], currency="KWD")
    assert str(dinars.totals.gross_total) == "1.001"
