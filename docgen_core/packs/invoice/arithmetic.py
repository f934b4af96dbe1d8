"""From what was sold to lines, tax buckets and totals, under a named rounding policy.

Pure functions of exact decimals. The order is fixed, and it is the one the law and the worked
cases ask for: quantity × price is rounded to a line total; the line discount is taken from the
line total, never from the price; the document discount is shared over the buckets by size;
tax is rounded on the bucket's base (`per_bucket`) or on each line (`per_line`).

What does not belong here: the check of a finished invoice (reconcile.py recomputes it by other
means), and what a jurisdiction charges (jurisdictions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from docgen_core.errors import UsageError
from docgen_core.money import ZERO, RoundingPolicy, minus, percent_of, rounded, share, times, total
from docgen_core.packs.invoice.model import Line, LineKind, TaxLine, Totals


@dataclass(frozen=True, slots=True)
class Tax:
    """What is charged on a line."""

    category: str
    """UNCL 5305, as in `Line.tax_category`."""
    rate: Decimal
    """Percent."""
    label: str
    """As the bucket prints it."""
    reason: str | None = None
    """Why nothing is charged, for the categories that must say so."""


@dataclass(frozen=True, slots=True)
class Band:
    """The part of a quantity that one tier of a graduated price holds for."""

    quantity: Decimal
    unit_price: Decimal
    detail: str
    """The tier's limits, as printed."""


@dataclass(frozen=True, slots=True)
class Sale:
    """One thing sold: a line, or with `bands` a graduated line and the bands under it."""

    sku: str | None
    description: str
    detail: str | None
    quantity: Decimal
    unit: str
    unit_code: str
    unit_price: Decimal | None
    """None for a graduated price, whose bands have one each."""
    tax: Tax
    discount_percent: Decimal | None = None
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Discount:
    """A document discount: a percentage of the lines, or a fixed amount. None of either: no discount."""

    percent: Decimal | None = None
    amount: Decimal | None = None

    def of(self, lines_total: Decimal, places: int) -> Decimal:
        """The discount in money. Raises `UsageError` when it is larger than what it is taken from."""
        if self.percent is not None:
            discount = rounded(percent_of(lines_total, self.percent), places)
        else:
            discount = rounded(self.amount or ZERO, places)
        if not 0 <= discount <= lines_total:
            raise UsageError(f"a document discount of {discount} does not fit lines that come to {lines_total}")
        return discount


@dataclass(frozen=True, slots=True)
class Computation:
    """Everything that is printed as an amount."""

    lines: tuple[Line, ...]
    tax_lines: tuple[TaxLine, ...]
    totals: Totals


def compute(
    sales: Sequence[Sale],
    *,
    places: int,
    policy: RoundingPolicy,
    discount: Discount | None = None,
) -> Computation:
    """Lines, buckets in order of first appearance, and totals with nothing prepaid.

    Raises `UsageError` for a quantity or price below zero, a sale without price, and a document
    discount that is larger than the lines.
    """
    discount = discount or Discount()
    lines = _lines(sales, places)
    lines_total = total([line.net_amount for line in lines if line.counted], places)
    taken = discount.of(lines_total, places)
    buckets = _buckets(sales, lines, taken, places)
    if policy is RoundingPolicy.PER_LINE:
        lines = _tax_lines_one_by_one(lines, buckets, places)
        taxes = [
            total([line.tax_amount for line in _counted(lines, bucket) if line.tax_amount is not None], places)
            for bucket in buckets
        ]
    else:
        taxes = [rounded(percent_of(bucket.base, bucket.rate), places) for bucket in buckets]
    tax_lines = tuple(replace(bucket, tax=tax) for bucket, tax in zip(buckets, taxes, strict=True))
    net_total, tax_total = minus(lines_total, taken), total(taxes, places)
    gross = total([net_total, tax_total], places)
    totals = Totals(lines_total, discount.percent, taken, net_total, tax_total, gross, rounded(ZERO, places), gross)
    return Computation(lines, tax_lines, totals)


def prepay(totals: Totals, prepaid: Decimal) -> Totals:
    """The totals after a payment in advance. Raises `UsageError` when it is more than is due."""
    if not 0 <= prepaid <= totals.gross_total:
        raise UsageError(f"{prepaid} cannot be prepaid on {totals.gross_total}")
    return replace(totals, prepaid=prepaid, amount_due=minus(totals.gross_total, prepaid))


def _lines(sales: Sequence[Sale], places: int) -> tuple[Line, ...]:
    lines: list[Line] = []
    for sale in sales:
        lines.extend(_lines_of(sale, len(lines) + 1, places))
    return tuple(lines)


def _lines_of(sale: Sale, number: int, places: int) -> list[Line]:
    """A plain line, or a parent and its bands: the parent is counted, the bands explain it."""
    numbers = (sale.quantity, sale.unit_price or ZERO, *(band.quantity for band in sale.bands))
    if any(number < 0 for number in (*numbers, *(band.unit_price for band in sale.bands))):
        raise UsageError(
            f"{sale.description!r} has a quantity or price below zero; what is given back is a document of its own"
        )
    bands = [_band_line(sale, band, number, i, places) for i, band in enumerate(sale.bands)]
    if bands:
        line_total = total([band.line_total for band in bands], places)
    elif sale.unit_price is not None:
        line_total = rounded(times(sale.quantity, sale.unit_price), places)
    else:
        raise UsageError(f"{sale.description!r} has neither a price nor bands of a graduated one")
    percent = sale.discount_percent
    discount = rounded(ZERO if percent is None else percent_of(line_total, percent), places)
    line = Line(
        number=number,
        kind=LineKind.TIER_PARENT if bands else LineKind.ITEM,
        parent=None,
        counted=True,
        sku=sale.sku,
        description=sale.description,
        detail=sale.detail,
        quantity=sale.quantity,
        unit=sale.unit,
        unit_code=sale.unit_code,
        unit_price=None if bands else sale.unit_price,
        line_total=line_total,
        discount_percent=percent,
        discount_amount=discount,
        net_amount=minus(line_total, discount),
        tax_category=sale.tax.category,
        tax_rate=sale.tax.rate,
        tax_amount=None,
    )
    return [line, *bands]


def _band_line(sale: Sale, band: Band, parent: int, position: int, places: int) -> Line:
    amount = rounded(times(band.quantity, band.unit_price), places)
    return Line(
        number=parent + 1 + position,
        kind=LineKind.TIER_BAND,
        parent=parent,
        counted=False,
        sku=None,
        description=band.detail,
        detail=None,
        quantity=band.quantity,
        unit=sale.unit,
        unit_code=sale.unit_code,
        unit_price=band.unit_price,
        line_total=amount,
        discount_percent=None,
        discount_amount=rounded(ZERO, places),
        net_amount=amount,
        tax_category=sale.tax.category,
        tax_rate=sale.tax.rate,
        tax_amount=None,
    )


def _buckets(sales: Sequence[Sale], lines: Sequence[Line], discount: Decimal, places: int) -> list[TaxLine]:
    """Buckets with the document discount shared by size; their tax is still to come."""
    taxes = {(sale.tax.category, sale.tax.rate): sale.tax for sale in reversed(sales)}
    amounts: dict[tuple[str, Decimal], list[Decimal]] = {}
    for line in lines:
        if line.counted:
            amounts.setdefault((line.tax_category, line.tax_rate), []).append(line.net_amount)
    line_totals = [total(nets, places) for nets in amounts.values()]
    shares = share(discount, line_totals, places)
    return [
        TaxLine(
            number=number,
            category=key[0],
            rate=key[1],
            label=taxes[key].label,
            line_total=line_total,
            discount_share=part,
            base=minus(line_total, part),
            tax=ZERO,
            reason=taxes[key].reason,
        )
        for number, (key, line_total, part) in enumerate(zip(amounts, line_totals, shares, strict=True), start=1)
    ]


def _counted(lines: Sequence[Line], bucket: TaxLine) -> list[Line]:
    return [
        line for line in lines if line.counted and (line.tax_category, line.tax_rate) == (bucket.category, bucket.rate)
    ]


def _tax_lines_one_by_one(lines: Sequence[Line], buckets: Sequence[TaxLine], places: int) -> tuple[Line, ...]:
    """Each counted line with its own rounded tax, on its net amount less its part of the discount."""
    parts: dict[int, Decimal] = {}
    for bucket in buckets:
        members = _counted(lines, bucket)
        shares = share(bucket.discount_share, [line.net_amount for line in members], places)
        parts.update((line.number, part) for line, part in zip(members, shares, strict=True))
    return tuple(
        replace(
            line,
            document_discount_share=parts[line.number],
            tax_amount=rounded(percent_of(minus(line.net_amount, parts[line.number]), line.tax_rate), places),
        )
        if line.counted
        else line
        for line in lines
    )
