"""The check that every record passes before it exists: recompute all, by other means.

arithmetic.py builds an invoice with Decimals; this module takes the finished record apart again
with whole numbers and fractions (whole_units.py), so that no fault of one can hide in the other. A rule that does
not hold raises `RecordRefused` naming the rule, what stands there and what should.

What does not belong here: building or mending anything.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from docgen_core.money import RoundingPolicy, has_places, minor_units
from docgen_core.packs.invoice.model import Invoice, Line, LineKind
from docgen_core.packs.invoice.whole_units import GOLDEN_PLACES, MOST, Check, billionths, shares

_UNTAXED = frozenset("ZEGKO") | {"AE"}
_REASON_NEEDED = frozenset("EGKO") | {"AE"}
_CATEGORIES = frozenset("SZEGKO") | {"AA", "AE"}
_VAT_ID_NEEDED = {"AE": "reverse-charge-ids (BR-AE-02)", "K": "intra-community-ids (BR-IC-02)"}
_SIGNS = {"invoice": ("positive",), "receipt": ("positive",), "credit_note": ("positive", "negative")}
_CORRECTIVE = {"corrective_invoice": ("mixed",)}
_VAT_COLUMN = "tax_id"


def reconcile(invoice: Invoice) -> None:
    """Raise `RecordRefused` unless everything printed follows from the lines, rates and policy."""
    check = Check(invoice)
    for rule in _RULES:
        rule(check)


def _currency(check: Check) -> None:
    invoice = check.invoice
    check.same("minor-units", "minor_units", invoice.minor_units, minor_units(invoice.currency))
    if invoice.rounding_policy not in tuple(RoundingPolicy):
        check.refuse("rounding-policy", "rounding_policy", invoice.rounding_policy, "per_line or per_bucket")


def _signs(check: Check) -> None:
    """A credit note is about an invoice; only it and a corrective invoice have amounts below zero."""
    invoice = check.invoice
    allowed = {**_SIGNS, **_CORRECTIVE}.get(invoice.kind, ())
    if invoice.amount_sign not in allowed:
        check.refuse("sign", "amount_sign", invoice.amount_sign, f"{' or '.join(allowed)} on a {invoice.kind}")
    about = invoice.kind in ("credit_note", "corrective_invoice")
    if about != (invoice.original is not None):
        check.refuse("original", "the original", invoice.original, "given on a credit note, and there alone")
    if invoice.original is not None and invoice.original.issue_date > invoice.issue_date:
        check.refuse("original", "the original's date", invoice.original.issue_date, f"by {invoice.issue_date}")


_TOTALS_AMOUNTS = (
    "lines_total", "document_discount", "document_charge", "shipping", "net_total", "tax_total", "gross_total",
    "withholding", "tip", "rounding", "credit_used", "credit_before", "credit_left", "prepaid", "amount_due",
)  # fmt: skip
_LINE_AMOUNTS = (
    "line_total", "discount_amount", "net_amount", "tax_amount", "document_discount_share", "document_charge_share",
)  # fmt: skip


def _amounts_have_minor_units(check: Check) -> None:
    totals = check.invoice.totals
    amounts: list[tuple[str, Decimal | None]] = [(name, getattr(totals, name)) for name in _TOTALS_AMOUNTS]
    for line in check.invoice.lines:
        for name in _LINE_AMOUNTS:
            amounts.append((f"line {line.number}'s {name}", getattr(line, name)))
        for name in ("contract_total", "principal"):
            amounts.append((f"line {line.number}'s {name}", getattr(line.basis, name)))
    for tax in check.invoice.tax_lines:
        for name in ("line_total", "discount_share", "charge_share", "base", "tax"):
            amounts.append((f"tax line {tax.number}'s {name}", getattr(tax, name)))
    for part in check.invoice.instalments:
        amounts.append((f"instalment {part.number}'s amount", part.amount))
    for where, amount in amounts:
        if amount is not None and not (has_places(amount, check.places) and abs(amount) < MOST):
            check.refuse("minor-units", where, amount, f"an amount with {check.places} decimal places")


def _numbers_fit_the_golden_set(check: Check) -> None:
    for line in check.invoice.lines:
        numbers = {name: getattr(line, name) for name in ("quantity", "unit_price", "discount_percent", "tax_rate")}
        numbers |= {
            name: getattr(line.basis, name)
            for name in ("factor", "meter_from", "meter_to", "included", "progress_percent", "interest_rate")
        }
        for name, value in numbers.items():
            signed = name == "quantity" and (check.mixed or check.sign < 0)
            fits = value is None or (value.is_finite() and _fits(value) and (signed or not value.is_signed()))
            if not fits:
                check.refuse(
                    "number-fits", f"line {line.number}'s {name}", value, "a number of 29 + 9 digits from 0 on"
                )


def _fits(value: Decimal) -> bool:
    return int(value.as_tuple().exponent) >= -GOLDEN_PLACES and abs(value) < MOST


def _lines_are_numbered(check: Check) -> None:
    lines = check.invoice.lines
    check.same("line-numbers", "the lines' numbers", [line.number for line in lines], list(range(1, len(lines) + 1)))
    if not check.counted:
        check.refuse("some-line", "the number of counted lines", 0, "at least 1")


def _line_amounts(check: Check) -> None:
    for line in check.invoice.lines:
        where = f"line {line.number}'s"
        if line.kind is not LineKind.TIER_PARENT:
            check.same_units("line-total", f"{where} line_total", line.line_total, _worth(check, line))
        line_total = check.units(line.line_total)
        percent = line.discount_percent if line.discount_percent is not None else Decimal(0)
        if percent > 100:
            check.refuse("line-discount", f"{where} discount_percent", percent, "at most 100")
        discount = check.percent(line_total, percent)
        check.same_units("line-discount", f"{where} discount_amount", line.discount_amount, discount)
        check.same_units("line-net", f"{where} net_amount", line.net_amount, line_total - discount)


def _worth(check: Check, line: Line) -> int:
    """What a line comes to, in minor units, by what its basis says."""
    basis, where = line.basis, f"line {line.number}'s"
    if basis.contract_total is not None:
        contract = check.units(basis.contract_total)
        percents = (basis.progress_percent or Decimal(0), basis.previous_percent or Decimal(0))
        if not 0 <= percents[1] <= percents[0] <= 100:
            check.refuse("progress", f"{where} progress_percent", percents[0], "between what was billed before and 100")
        return check.percent(contract, percents[0]) - check.percent(contract, percents[1])
    share = Fraction(basis.days or 0, basis.days_of or 1) if basis.days is not None else Fraction(1)
    if basis.principal is not None:
        return check.fraction(Fraction(basis.principal) * Fraction(basis.interest_rate or 0) / 100 * share)
    if basis.days is not None and not 0 < share <= 1:
        check.refuse("days", f"{where} days", basis.days, f"from 1 to {basis.days_of}")
    if line.quantity is None or line.unit_price is None:
        check.refuse("line-total", f"{where} quantity or price", None, "given")
        return 0
    if basis.included is not None:
        above = [other for other in check.invoice.lines if other.number == line.parent]
        check.same("included", f"{where} included", basis.included, above[0].quantity if above else None)
    if basis.meter_to is not None and Fraction(basis.meter_to) - Fraction(basis.meter_from or 0) != line.quantity:
        check.refuse("meter", f"{where} quantity", line.quantity, "the difference of the readings")
    factor = Fraction(1) if basis.factor is None else Fraction(basis.factor)
    return check.fraction(Fraction(line.quantity) * Fraction(line.unit_price) * factor * share)


def _tiers(check: Check) -> None:
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
        elif line.kind in (LineKind.DEPOSIT, LineKind.OVERAGE):
            _belongs_above(check, line)
        elif line.parent is not None:
            check.refuse("tier-parent", f"line {line.number}'s parent", line.parent, None)


def _belongs_above(check: Check, line: Line) -> None:
    above = [other.number for other in check.invoice.lines[: line.number - 1] if other.kind is LineKind.ITEM]
    check.same("parent", f"line {line.number}'s parent", line.parent, above[-1] if above else "the item above it")


def _parent(check: Check, parent: Line) -> None:
    bands = [line for line in check.invoice.lines if line.parent == parent.number]
    where = f"line {parent.number}'s"
    if not bands:
        check.refuse("tier-sum", f"{where} number of bands", 0, "at least 1")
    check.same_units(
        "tier-sum", f"{where} line_total", parent.line_total, sum(check.units(band.line_total) for band in bands)
    )
    quantities = sum(billionths(band.quantity) for band in bands if band.quantity is not None)
    check.same("tier-sum", f"{where} quantity", billionths(parent.quantity or Decimal(0)), quantities)
    check.same("tier-sum", f"{where} unit_price", parent.unit_price, None)
    for band in bands:
        tax = (band.tax_category, band.tax_rate)
        check.same("tier-tax", f"line {band.number}'s tax", tax, (parent.tax_category, parent.tax_rate))
        check.same("tier-tax", f"line {band.number}'s tax_amount", band.tax_amount, None)


def _buckets(check: Check) -> None:
    """A bucket for each category and rate of the counted lines, in order of first appearance; its taxes together."""
    expected = list(dict.fromkeys((line.tax_category, line.tax_rate) for line in check.counted))
    taxes, groups = check.invoice.tax_lines, check.buckets()
    check.same("buckets", "the tax buckets", [group[0].bucket for group in groups], expected)
    check.same("buckets", "the tax lines' numbers", [tax.number for tax in taxes], list(range(1, len(taxes) + 1)))
    totals = [sum(check.units(line.net_amount) for line in check.bucket(group[0])) for group in groups]
    discounts = shares(check.units(check.invoice.totals.document_discount), totals)
    charges = shares(
        check.units(check.invoice.totals.document_charge) + check.units(check.invoice.totals.shipping), totals
    )
    for group, line_total, less, more in zip(groups, totals, discounts, charges, strict=True):
        rates = sum((Fraction(tax.rate) for tax in group), Fraction(0))
        check.same("bucket-rate", f"tax line {group[0].number}'s rates together", rates, Fraction(group[0].bucket[1]))
        for tax in group:
            where = f"tax line {tax.number}'s"
            check.same("buckets", f"{where} bucket", tax.bucket, group[0].bucket)
            check.same_units("bucket-total", f"{where} line_total", tax.line_total, line_total)
            check.same_units("discount-share", f"{where} discount_share", tax.discount_share, less)
            check.same_units("charge-share", f"{where} charge_share", tax.charge_share, more)
            check.same_units("bucket-base", f"{where} base", tax.base, line_total - less + more)


def _taxes(check: Check) -> None:
    per_line = check.invoice.rounding_policy == RoundingPolicy.PER_LINE
    rule = f"tax-{check.invoice.rounding_policy}"
    for group in check.buckets():
        lines, first = check.bucket(group[0]), group[0]
        if not per_line:
            for line in lines:
                check.same("per-bucket", f"line {line.number}'s tax_amount", line.tax_amount, None)
            for tax in group:
                expected = check.percent(check.units(tax.base), tax.rate)
                check.same_units(rule, f"tax line {tax.number}'s tax", tax.tax, expected)
            continue
        nets = [check.units(line.net_amount) for line in lines]
        less, more = shares(check.units(first.discount_share), nets), shares(check.units(first.charge_share), nets)
        bases = [net - taken + added for net, taken, added in zip(nets, less, more, strict=True)]
        taxes = [[check.percent(base, tax.rate) for base in bases] for tax in group]
        for position, line in enumerate(lines):
            _line_tax(check, line, less[position], more[position], sum(amounts[position] for amounts in taxes))
        for tax, amounts in zip(group, taxes, strict=True):
            check.same_units(rule, f"tax line {tax.number}'s tax", tax.tax, sum(amounts))


def _line_tax(check: Check, line: Line, less: int, more: int, amount: int) -> None:
    if line.tax_amount is None or line.document_discount_share is None or line.document_charge_share is None:
        check.refuse("tax-per_line", f"line {line.number}'s tax_amount", line.tax_amount, "given under per_line")
        return
    where = f"line {line.number}'s"
    check.same_units("discount-share", f"{where} document_discount_share", line.document_discount_share, less)
    check.same_units("charge-share", f"{where} document_charge_share", line.document_charge_share, more)
    check.same_units("tax-per_line", f"{where} tax_amount", line.tax_amount, amount)


def _totals(check: Check) -> None:
    totals, units, sign = check.invoice.totals, check.units, check.sign
    lines_total = sum(units(line.net_amount) for line in check.counted)
    discount, charge = units(totals.document_discount), units(totals.document_charge)
    check.same_units("lines-total", "lines_total", totals.lines_total, lines_total)
    if totals.document_discount_percent is not None:
        discount = check.percent(lines_total, totals.document_discount_percent)
    check.same_units("document-discount", "document_discount", totals.document_discount, discount)
    if not 0 <= sign * discount <= sign * lines_total and not (check.mixed and not discount):
        check.refuse("document-discount", "document_discount", totals.document_discount, "between 0 and lines_total")
    if totals.document_charge_percent is not None:
        charge = check.percent(lines_total, totals.document_charge_percent)
    check.same_units("document-charge", "document_charge", totals.document_charge, charge)
    shipping = units(totals.shipping)
    if sign * charge < 0 or sign * shipping < 0 or (bool(charge) and totals.document_charge_label is None):
        check.refuse("document-charge", "document_charge or shipping", totals.document_charge, "named, and not below 0")
    taxes = sum(units(tax.tax) for tax in check.invoice.tax_lines)
    net = lines_total - discount + charge + shipping
    check.same_units("net-total", "net_total", totals.net_total, net)
    check.same_units("tax-total", "tax_total", totals.tax_total, taxes)
    check.same_units("gross-total", "gross_total", totals.gross_total, net + taxes)


_COARSEST_COIN = Fraction(1)
"""No rounding to coins moves a sum by more than half of it, in the currency's units."""


def _settlement(check: Check) -> None:
    """What is due follows from the gross total; it is not paid twice, and instalments add up to it."""
    totals, units = check.invoice.totals, check.units
    withheld = check.percent(units(totals.net_total), totals.withholding_percent or Decimal(0))
    check.same_units("withholding", "withholding", totals.withholding, withheld)
    check.same("withholding", "withholding_label", totals.withholding_label is None, totals.withholding_percent is None)
    if units(totals.tip) < 0:
        check.refuse("tip", "tip", totals.tip, "not below 0")
    if 2 * abs(Fraction(totals.rounding)) > _COARSEST_COIN:
        check.refuse("cash-rounding", "rounding", totals.rounding, "less than half a coin")
    payable = units(totals.gross_total) - withheld + units(totals.tip) + units(totals.rounding)
    paid, used = units(totals.prepaid), units(totals.credit_used)
    if (paid or used) and not (paid >= 0 and used >= 0 and paid + used <= payable):
        check.refuse("prepaid", "prepaid", totals.prepaid, "between 0 and what is due")
    if totals.credit_before is not None and totals.credit_left is not None:
        left = units(totals.credit_before) - used
        check.same_units("credit", "credit_left", totals.credit_left, left)
        if left < 0:
            check.refuse("credit", "credit_used", totals.credit_used, "at most the balance")
    elif used or totals.credit_before != totals.credit_left:
        check.refuse("credit", "credit_left", totals.credit_left, "given together with the balance before")
    check.same_units("amount-due", "amount_due", totals.amount_due, payable - paid - used)
    parts = check.invoice.instalments
    if parts:
        check.same(
            "instalments", "the instalments' sum", sum(units(part.amount) for part in parts), payable - paid - used
        )
        days = [part.due_date for part in parts]
        check.same("instalments", "the instalments' days", days, sorted(days))
        check.same(
            "instalments", "the instalments' numbers", [part.number for part in parts], list(range(1, len(parts) + 1))
        )


def _categories(check: Check) -> None:
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


_BR = {"AE": "reverse-charge-tax (BR-AE-09)", "K": "intra-community-tax (BR-IC-09)", "G": "export-tax (BR-G-09)"}


def _vat_ids(check: Check) -> None:
    """Under reverse charge and in sales within the Union both parties' numbers are printed."""
    invoice = check.invoice
    for category in dict.fromkeys(tax.category for tax in invoice.tax_lines if tax.category in _VAT_ID_NEEDED):
        for role, party in (("seller", invoice.seller), ("buyer", invoice.buyer)):
            if party is None or not any(entry.column == _VAT_COLUMN for entry in party.registrations):
                check.refuse(_VAT_ID_NEEDED[category], f"the {role}'s VAT id", None, f"given in category {category}")


def _abroad(check: Check) -> None:
    """What is exported, or sold within the Union, goes to another country."""
    invoice = check.invoice
    for tax in invoice.tax_lines:
        if tax.category in ("K", "G") and (invoice.buyer is None or invoice.buyer.country == invoice.seller.country):
            check.refuse("abroad", "the buyer's country", invoice.seller.country, "another than the seller's")


def _dates(check: Check) -> None:
    invoice = check.invoice
    if any(part.due_date < invoice.issue_date for part in invoice.instalments):
        check.refuse(
            "dates", "an instalment's due_date", invoice.instalments[0].due_date, f"from {invoice.issue_date} on"
        )
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


_RULES: tuple[Callable[[Check], None], ...] = (
    _currency,
    _signs,
    _amounts_have_minor_units,
    _numbers_fit_the_golden_set,
    _lines_are_numbered,
    _tiers,
    _line_amounts,
    _buckets,
    _taxes,
    _totals,
    _settlement,
    _categories,
    _vat_ids,
    _abroad,
    _dates,
)
"""In this order: each relies on what those before it have made sure."""
