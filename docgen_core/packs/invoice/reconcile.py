"""The check that every record passes before it exists: recompute all, by other means.

arithmetic.py builds an invoice with Decimals; this module takes the finished record apart again
with whole numbers of billionths, so that no fault of one can hide in the other. A rule that does
not hold raises `RecordRefused` naming the rule, what stands there and what should.

What does not belong here: building or mending anything.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from docgen_core.errors import RecordRefused
from docgen_core.money import RoundingPolicy, has_places, minor_units
from docgen_core.packs.invoice.model import Invoice, Line, LineKind, TaxLine

_GOLDEN_PLACES = 9
"""The golden set's scale; every price, rate and quantity must fit it."""
_SCALE = 10**_GOLDEN_PLACES
_MOST = 10 ** (38 - _GOLDEN_PLACES)
"""The golden set's decimals have 29 digits before the point."""

_UNTAXED = frozenset("ZEO") | {"AE"}
_REASON_NEEDED = frozenset("EO") | {"AE"}
_CATEGORIES = frozenset("SZEO") | {"AA", "AE"}
_VAT_SUFFIX = ":VAT"


def reconcile(invoice: Invoice) -> None:
    """Raise `RecordRefused` unless everything printed follows from the lines, rates and policy."""
    check = _Check(invoice)
    for rule in _RULES:
        rule(check)


class _Check:
    """An invoice in whole minor units, and how to refuse it."""

    def __init__(self, invoice: Invoice) -> None:
        self.invoice = invoice
        self.places = invoice.minor_units
        self.counted = [line for line in invoice.lines if line.counted]

    def refuse(self, rule: str, where: str, found: object, expected: object) -> None:
        raise RecordRefused(
            f"document {self.invoice.document_id} breaks the rule {rule}: {where} is {found}, not {expected}"
        )

    def same(self, rule: str, where: str, found: object, expected: object) -> None:
        if found != expected:
            self.refuse(rule, where, found, expected)

    def units(self, amount: Decimal) -> int:
        """An amount in minor units; its places were checked before."""
        return _billionths(amount) // _power(_GOLDEN_PLACES - self.places)

    def same_units(self, rule: str, where: str, found: Decimal, expected: int) -> None:
        if self.units(found) != expected:
            self.refuse(rule, where, found, Decimal((expected < 0, _digits(expected), -self.places)))

    def product(self, left: Decimal, right: Decimal) -> int:
        """The product in minor units, half away from zero."""
        return _half_up(_billionths(left) * _billionths(right), _power(2 * _GOLDEN_PLACES - self.places))

    def percent(self, units: int, rate: Decimal) -> int:
        """`rate` per cent of an amount in minor units, half away from zero."""
        return _half_up(units * _billionths(rate), 100 * _SCALE)

    def bucket(self, tax: TaxLine) -> list[Line]:
        """The counted lines of a bucket."""
        return [line for line in self.counted if (line.tax_category, line.tax_rate) == (tax.category, tax.rate)]


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


def _billionths(value: Decimal) -> int:
    numerator, denominator = value.as_integer_ratio()
    return int(numerator * _SCALE // denominator)


def _power(exponent: int) -> int:
    return int(10**exponent)


def _half_up(numerator: int, denominator: int) -> int:
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -magnitude if numerator < 0 else magnitude


def _shares(units: int, weights: list[int]) -> list[int]:
    """Largest remainder, ties to the first, from the exact fractions of a minor unit."""
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    shares = [units * weight // whole for weight in weights]
    remainders = [units * weight - part * whole for weight, part in zip(weights, shares, strict=True)]
    for _ in range(units - sum(shares)):
        largest = remainders.index(max(remainders))
        shares[largest] += 1
        remainders[largest] = -1
    return shares


def _currency(check: _Check) -> None:
    invoice = check.invoice
    check.same("minor-units", "minor_units", invoice.minor_units, minor_units(invoice.currency))
    if invoice.rounding_policy not in tuple(RoundingPolicy):
        check.refuse("rounding-policy", "rounding_policy", invoice.rounding_policy, "per_line or per_bucket")


def _amounts_have_minor_units(check: _Check) -> None:
    totals = check.invoice.totals
    amounts: list[tuple[str, Decimal | None]] = [
        (name, getattr(totals, name))
        for name in ("lines_total", "document_discount", "net_total", "tax_total", "gross_total", "prepaid")
    ]
    amounts.append(("amount_due", totals.amount_due))
    for line in check.invoice.lines:
        for name in ("line_total", "discount_amount", "net_amount", "tax_amount", "document_discount_share"):
            amounts.append((f"line {line.number}'s {name}", getattr(line, name)))
    for tax in check.invoice.tax_lines:
        for name in ("line_total", "discount_share", "base", "tax"):
            amounts.append((f"tax line {tax.number}'s {name}", getattr(tax, name)))
    for where, amount in amounts:
        if amount is not None and not (has_places(amount, check.places) and abs(amount) < _MOST):
            check.refuse("minor-units", where, amount, f"an amount with {check.places} decimal places")


def _numbers_fit_the_golden_set(check: _Check) -> None:
    for line in check.invoice.lines:
        for name in ("quantity", "unit_price", "discount_percent", "tax_rate"):
            value = getattr(line, name)
            fits = value is None or (value.is_finite() and _fits(value) and not value.is_signed())
            if not fits:
                check.refuse(
                    "number-fits", f"line {line.number}'s {name}", value, "a number of 29 + 9 digits from 0 on"
                )


def _fits(value: Decimal) -> bool:
    return int(value.as_tuple().exponent) >= -_GOLDEN_PLACES and value < _MOST


def _lines_are_numbered(check: _Check) -> None:
    lines = check.invoice.lines
    check.same("line-numbers", "the lines' numbers", [line.number for line in lines], list(range(1, len(lines) + 1)))
    if not check.counted:
        check.refuse("some-line", "the number of counted lines", 0, "at least 1")


def _line_amounts(check: _Check) -> None:
    for line in check.invoice.lines:
        where = f"line {line.number}'s"
        if line.kind is not LineKind.TIER_PARENT:
            if line.quantity is None or line.unit_price is None:
                check.refuse("line-total", f"{where} quantity or price", None, "given")
                continue
            check.same_units(
                "line-total", f"{where} line_total", line.line_total, check.product(line.quantity, line.unit_price)
            )
        line_total = check.units(line.line_total)
        percent = line.discount_percent if line.discount_percent is not None else Decimal(0)
        if percent > 100:
            check.refuse("line-discount", f"{where} discount_percent", percent, "at most 100")
        discount = check.percent(line_total, percent)
        check.same_units("line-discount", f"{where} discount_amount", line.discount_amount, discount)
        check.same_units("line-net", f"{where} net_amount", line.net_amount, line_total - discount)


def _tiers(check: _Check) -> None:
    """A parent is counted, stands right above its bands, and is their sum; bands are not counted."""
    lines = check.invoice.lines
    for line in lines:
        check.same("counted", f"line {line.number}'s counted", line.counted, line.kind is not LineKind.TIER_BAND)
        if line.kind is LineKind.TIER_PARENT:
            _parent(check, line)
        elif line.kind is LineKind.TIER_BAND:
            above = lines[line.number - 2] if line.number > 1 else line
            expected = above.number if above.kind is LineKind.TIER_PARENT else above.parent
            if line.parent is None or line.parent != expected:
                check.refuse("tier-parent", f"line {line.number}'s parent", line.parent, "the tier_parent above it")
        elif line.parent is not None:
            check.refuse("tier-parent", f"line {line.number}'s parent", line.parent, None)


def _parent(check: _Check, parent: Line) -> None:
    bands = [line for line in check.invoice.lines if line.parent == parent.number]
    where = f"line {parent.number}'s"
    if not bands:
        check.refuse("tier-sum", f"{where} number of bands", 0, "at least 1")
    check.same_units(
        "tier-sum", f"{where} line_total", parent.line_total, sum(check.units(band.line_total) for band in bands)
    )
    quantities = sum(_billionths(band.quantity) for band in bands if band.quantity is not None)
    check.same("tier-sum", f"{where} quantity", _billionths(parent.quantity or Decimal(0)), quantities)
    check.same("tier-sum", f"{where} unit_price", parent.unit_price, None)
    for band in bands:
        tax = (band.tax_category, band.tax_rate)
        check.same("tier-tax", f"line {band.number}'s tax", tax, (parent.tax_category, parent.tax_rate))
        check.same("tier-tax", f"line {band.number}'s tax_amount", band.tax_amount, None)


def _buckets(check: _Check) -> None:
    """One bucket for each category and rate of the counted lines, in order of first appearance."""
    expected = list(dict.fromkeys((line.tax_category, line.tax_rate) for line in check.counted))
    taxes = check.invoice.tax_lines
    check.same("buckets", "the tax buckets", [(tax.category, tax.rate) for tax in taxes], expected)
    check.same("buckets", "the tax lines' numbers", [tax.number for tax in taxes], list(range(1, len(taxes) + 1)))
    discount = check.units(check.invoice.totals.document_discount)
    totals = [sum(check.units(line.net_amount) for line in check.bucket(tax)) for tax in taxes]
    for tax, line_total, part in zip(taxes, totals, _shares(discount, totals), strict=True):
        where = f"tax line {tax.number}'s"
        check.same_units("bucket-total", f"{where} line_total", tax.line_total, line_total)
        check.same_units("discount-share", f"{where} discount_share", tax.discount_share, part)
        check.same_units("bucket-base", f"{where} base", tax.base, line_total - part)


def _taxes(check: _Check) -> None:
    per_line = check.invoice.rounding_policy == RoundingPolicy.PER_LINE
    for tax in check.invoice.tax_lines:
        lines = check.bucket(tax)
        if per_line:
            nets = [check.units(line.net_amount) for line in lines]
            parts = _shares(check.units(tax.discount_share), nets)
            taxes = [check.percent(net - part, tax.rate) for net, part in zip(nets, parts, strict=True)]
            for line, part, amount in zip(lines, parts, taxes, strict=True):
                _line_tax(check, line, part, amount)
            expected = sum(taxes)
        else:
            for line in lines:
                check.same("per-bucket", f"line {line.number}'s tax_amount", line.tax_amount, None)
            expected = check.percent(check.units(tax.base), tax.rate)
        check.same_units(f"tax-{check.invoice.rounding_policy}", f"tax line {tax.number}'s tax", tax.tax, expected)


def _line_tax(check: _Check, line: Line, part: int, amount: int) -> None:
    if line.tax_amount is None or line.document_discount_share is None:
        check.refuse("tax-per_line", f"line {line.number}'s tax_amount", line.tax_amount, "given under per_line")
        return
    where = f"line {line.number}'s"
    check.same_units("discount-share", f"{where} document_discount_share", line.document_discount_share, part)
    check.same_units("tax-per_line", f"{where} tax_amount", line.tax_amount, amount)


def _totals(check: _Check) -> None:
    totals, units = check.invoice.totals, check.units
    lines_total = sum(units(line.net_amount) for line in check.counted)
    discount = units(totals.document_discount)
    check.same_units("lines-total", "lines_total", totals.lines_total, lines_total)
    if totals.document_discount_percent is not None:
        discount = check.percent(lines_total, totals.document_discount_percent)
    check.same_units("document-discount", "document_discount", totals.document_discount, discount)
    if not 0 <= discount <= lines_total:
        check.refuse("document-discount", "document_discount", totals.document_discount, "between 0 and lines_total")
    taxes = sum(units(tax.tax) for tax in check.invoice.tax_lines)
    net = lines_total - discount
    check.same_units("net-total", "net_total", totals.net_total, net)
    check.same_units("tax-total", "tax_total", totals.tax_total, taxes)
    check.same_units("gross-total", "gross_total", totals.gross_total, net + taxes)
    if not 0 <= units(totals.prepaid) <= net + taxes:
        check.refuse("prepaid", "prepaid", totals.prepaid, "between 0 and gross_total")
    check.same_units("amount-due", "amount_due", totals.amount_due, net + taxes - units(totals.prepaid))


def _categories(check: _Check) -> None:
    """Untaxed categories charge nothing and, where the law asks, say why."""
    for tax in check.invoice.tax_lines:
        where = f"tax line {tax.number}'s"
        if tax.category not in _CATEGORIES:
            check.refuse("tax-category", f"{where} category", tax.category, f"one of {', '.join(sorted(_CATEGORIES))}")
        if tax.category in _UNTAXED and (tax.rate or tax.tax):
            check.refuse(_BR.get(tax.category, "untaxed"), f"{where} tax", tax.tax, f"0 in category {tax.category}")
        if tax.category in _REASON_NEEDED and not (tax.reason and tax.reason in check.invoice.notes):
            rule = "reason (BR-AE-10)" if tax.category == "AE" else "reason"
            check.refuse(rule, f"{where} reason", tax.reason, "a reason that is printed among the notes")


_BR = {"AE": "reverse-charge-tax (BR-AE-09)"}


def _reverse_charge(check: _Check) -> None:
    invoice = check.invoice
    if not any(tax.category == "AE" for tax in invoice.tax_lines):
        return
    for role, party in (("seller", invoice.seller), ("buyer", invoice.buyer)):
        if party is None or not any(entry.scheme.endswith(_VAT_SUFFIX) for entry in party.registrations):
            check.refuse("reverse-charge-ids (BR-AE-02)", f"the {role}'s VAT id", None, "given under reverse charge")


def _dates(check: _Check) -> None:
    invoice = check.invoice
    if invoice.due_date is not None and invoice.due_date < invoice.issue_date:
        check.refuse("dates", "due_date", invoice.due_date, f"on or after {invoice.issue_date}")
    if (invoice.service_from is None) != (invoice.service_to is None):
        check.refuse("dates", "service_from and service_to", invoice.service_from, "both given or both missing")
    if (
        invoice.service_from is not None
        and invoice.service_to is not None
        and invoice.service_to < invoice.service_from
    ):
        check.refuse("dates", "service_to", invoice.service_to, f"on or after {invoice.service_from}")


_RULES: tuple[Callable[[_Check], None], ...] = (
    _currency,
    _amounts_have_minor_units,
    _numbers_fit_the_golden_set,
    _lines_are_numbered,
    _tiers,
    _line_amounts,
    _buckets,
    _taxes,
    _totals,
    _categories,
    _reverse_charge,
    _dates,
)
"""In this order: each relies on what those before it have made sure."""
