"""From what was sold to lines, tax buckets and totals, under a named rounding policy.

Pure functions of exact decimals. The order is fixed, and it is the one the law and the worked
cases ask for: quantity × price is rounded to a line total; the line discount is taken from the
line total, never from the price; the document discount, and likewise shipping and charges, are
shared over the buckets by size; tax is rounded on the bucket's base (`per_bucket`) or on each
line (`per_line`), and where several taxes lie on a base, each for itself.

What does not belong here: the check of a finished invoice (reconcile.py recomputes it by other
means), what a jurisdiction charges (jurisdictions), and how the total is paid (settlement.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from docgen_core.errors import UsageError
from docgen_core.money import ZERO, RoundingPolicy, minus, percent_of, quotient, rounded, share, times, total
from docgen_core.packs.invoice.model import QUANTITY_AND_PRICE, Basis, Line, LineKind, TaxLine, Totals


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
    parts: tuple[tuple[str, Decimal], ...] = ()
    """(label, per cent) of each tax, where several are printed on the same base; they add up to `rate`."""

    @property
    def printed(self) -> tuple[tuple[str, Decimal], ...]:
        """(label, per cent) of each printed tax."""
        return self.parts or ((self.label, self.rate),)


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
    quantity: Decimal | None
    """None for a share of a contract and for interest."""
    unit: str | None
    unit_code: str | None
    unit_price: Decimal | None
    """None for a graduated price, whose bands have one each, and where there is no quantity."""
    tax: Tax
    discount_percent: Decimal | None = None
    bands: tuple[Band, ...] = ()
    pricing: str = "per_unit"
    """Billing model of the line."""
    basis: Basis = QUANTITY_AND_PRICE
    commodity_code: str | None = None
    """Harmonised System or services code, where it is printed."""
    with_above: LineKind | None = None
    """DEPOSIT or OVERAGE: the line belongs to the item above it."""


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
class Charge:
    """A charge on the whole document: a percentage of the lines, or a fixed amount."""

    label: str
    percent: Decimal | None = None
    amount: Decimal | None = None

    def of(self, lines_total: Decimal, places: int) -> Decimal:
        """The charge in money."""
        return rounded(
            percent_of(lines_total, self.percent) if self.percent is not None else self.amount or ZERO, places
        )


@dataclass(frozen=True, slots=True)
class Extras:
    """What is taken from and added to the lines' sum before tax."""

    discount: Discount = Discount()
    charge: Charge | None = None
    shipping: Decimal = ZERO


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
    extras: Extras | None = None,
    mixed: bool = False,
) -> Computation:
    """Lines, buckets in order of first appearance, and totals with nothing prepaid.

    Args:
        sales: What was sold, in printed order.
        places: Decimal places of the currency's amounts.
        policy: Where tax is rounded.
        discount: Short for `extras` with nothing but a discount.
        extras: What is taken from and added to the lines' sum.
        mixed: Allow quantities below zero, for a document that takes back and bills; it has no extras.

    Raises `UsageError` for a quantity or price below zero, a sale without price, and a document
    discount that is larger than the lines.
    """
    extras = extras or Extras(discount or Discount())
    lines = _lines(sales, places, mixed=mixed)
    lines_total = total([line.net_amount for line in lines if line.counted], places)
    taken = extras.discount.of(lines_total, places) if extras.discount != Discount() else rounded(ZERO, places)
    charged = extras.charge.of(lines_total, places) if extras.charge else rounded(ZERO, places)
    shipping = rounded(extras.shipping, places)
    buckets = _buckets(lines, taken, total([charged, shipping], places), places)
    if policy is RoundingPolicy.PER_LINE:
        lines = _tax_lines_one_by_one(sales, lines, buckets, places)
    tax_lines = _tax_lines(sales, lines, buckets, policy, places)
    net_total = total([lines_total, taken.copy_negate(), charged, shipping], places)
    tax_total = total([line.tax for line in tax_lines], places)
    gross = total([net_total, tax_total], places)
    nothing = rounded(ZERO, places)
    totals = Totals(
        lines_total=lines_total,
        document_discount_percent=extras.discount.percent,
        document_discount=taken,
        document_charge_label=extras.charge.label if extras.charge else None,
        document_charge_percent=extras.charge.percent if extras.charge else None,
        document_charge=charged,
        shipping=shipping,
        net_total=net_total,
        tax_total=tax_total,
        gross_total=gross,
        withholding=nothing,
        tip=nothing,
        rounding=nothing,
        credit_used=nothing,
        prepaid=nothing,
        amount_due=gross,
    )
    return Computation(lines, tax_lines, totals)


def _lines(sales: Sequence[Sale], places: int, *, mixed: bool) -> tuple[Line, ...]:
    lines: list[Line] = []
    item = 0
    for sale in sales:
        if not mixed:
            _refuse_below_zero(sale)
        if sale.with_above is None:
            item = len(lines) + 1
        lines.extend(_lines_of(sale, len(lines) + 1, item, places))
    return tuple(lines)


def _refuse_below_zero(sale: Sale) -> None:
    numbers = (sale.quantity or ZERO, sale.unit_price or ZERO, *(band.quantity for band in sale.bands))
    if any(number < 0 for number in (*numbers, *(band.unit_price for band in sale.bands))):
        raise UsageError(
            f"{sale.description!r} has a quantity or price below zero; what is given back is a document of its own"
        )


def worth(sale: Sale, places: int) -> Decimal:
    """What a sale without bands comes to before its discount, by its basis, else by quantity and price.

    Raises `UsageError` for a sale without a price.
    """
    basis = sale.basis
    if basis.contract_total is not None:
        done, before = (
            rounded(percent_of(basis.contract_total, percent or ZERO), places)
            for percent in (basis.progress_percent, basis.previous_percent)
        )
        return minus(done, before)
    if basis.principal is not None:
        yearly = percent_of(basis.principal, basis.interest_rate or ZERO)
        return quotient(times(yearly, Decimal(basis.days or 0)), basis.days_of or 1, places)
    if sale.quantity is None or sale.unit_price is None:
        raise UsageError(f"{sale.description!r} has neither a price nor bands of a graduated one")
    amount = times(times(sale.quantity, sale.unit_price), Decimal(1) if basis.factor is None else basis.factor)
    if basis.days is not None:
        return quotient(times(amount, Decimal(basis.days)), basis.days_of or 1, places)
    return rounded(amount, places)


def _lines_of(sale: Sale, number: int, item: int, places: int) -> list[Line]:
    """A plain line, or a parent and its bands: the parent is counted, the bands explain it."""
    bands = [_band_line(sale, band, number, i, places) for i, band in enumerate(sale.bands)]
    line_total = total([band.line_total for band in bands], places) if bands else worth(sale, places)
    percent = sale.discount_percent
    discount = rounded(ZERO if percent is None else percent_of(line_total, percent), places)
    line = Line(
        number=number,
        kind=LineKind.TIER_PARENT if bands else sale.with_above or LineKind.ITEM,
        parent=item if sale.with_above else None,
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
        pricing=sale.pricing,
        basis=sale.basis,
        commodity_code=sale.commodity_code,
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
        pricing=sale.pricing,
    )


@dataclass(frozen=True, slots=True)
class _Bucket:
    """The lines of one category and rate, and their part of what the document takes and adds."""

    category: str
    rate: Decimal
    line_total: Decimal
    discount_share: Decimal
    charge_share: Decimal

    @property
    def base(self) -> Decimal:
        return minus(self.line_total, minus(self.discount_share, self.charge_share))

    def members(self, lines: Sequence[Line]) -> list[Line]:
        """Its counted lines."""
        return [
            line for line in lines if line.counted and (line.tax_category, line.tax_rate) == (self.category, self.rate)
        ]


def _buckets(lines: Sequence[Line], discount: Decimal, charges: Decimal, places: int) -> list[_Bucket]:
    amounts: dict[tuple[str, Decimal], list[Decimal]] = {}
    for line in lines:
        if line.counted:
            amounts.setdefault((line.tax_category, line.tax_rate), []).append(line.net_amount)
    line_totals = [total(nets, places) for nets in amounts.values()]
    taken, added = _shared(discount, line_totals, places), _shared(charges, line_totals, places)
    return [_Bucket(*key, *parts) for key, *parts in zip(amounts, line_totals, taken, added, strict=True)]


def _shared(amount: Decimal, weights: Sequence[Decimal], places: int) -> tuple[Decimal, ...]:
    """Parts by size; nothing is shared over parts of any sign, as a corrective invoice has them."""
    return share(amount, weights, places) if amount else tuple(rounded(ZERO, places) for _ in weights)


def _tax_lines(
    sales: Sequence[Sale], lines: Sequence[Line], buckets: Sequence[_Bucket], policy: RoundingPolicy, places: int
) -> tuple[TaxLine, ...]:
    """One for each tax of each bucket."""
    taxes = {(sale.tax.category, sale.tax.rate): sale.tax for sale in reversed(sales)}
    tax_lines: list[TaxLine] = []
    for bucket in buckets:
        tax = taxes[bucket.category, bucket.rate]
        for position, (label, rate) in enumerate(tax.printed):
            if policy is RoundingPolicy.PER_LINE:
                amount = total([_tax_of(line, rate, places) for line in bucket.members(lines)], places)
            else:
                amount = rounded(percent_of(bucket.base, rate), places)
            tax_lines.append(
                TaxLine(
                    number=len(tax_lines) + 1,
                    category=bucket.category,
                    rate=rate,
                    label=label,
                    line_total=bucket.line_total,
                    discount_share=bucket.discount_share,
                    charge_share=bucket.charge_share,
                    base=bucket.base,
                    tax=amount,
                    reason=tax.reason,
                    line_rate=bucket.rate if tax.parts else None,
                    counted=position == 0,
                )
            )
    return tuple(tax_lines)


def _tax_of(line: Line, rate: Decimal, places: int) -> Decimal:
    """One tax of a line that has its shares."""
    taken = minus(line.document_discount_share or ZERO, line.document_charge_share or ZERO)
    return rounded(percent_of(minus(line.net_amount, taken), rate), places)


def _tax_lines_one_by_one(
    sales: Sequence[Sale], lines: Sequence[Line], buckets: Sequence[_Bucket], places: int
) -> tuple[Line, ...]:
    """Each counted line with its own rounded taxes, on its net amount and its part of the document's."""
    taxes = {(sale.tax.category, sale.tax.rate): sale.tax for sale in reversed(sales)}
    taxed: dict[int, Line] = {}
    for bucket in buckets:
        members = bucket.members(lines)
        nets = [line.net_amount for line in members]
        taken, added = _shared(bucket.discount_share, nets, places), _shared(bucket.charge_share, nets, places)
        for line, less, more in zip(members, taken, added, strict=True):
            shared = replace(line, document_discount_share=less, document_charge_share=more)
            rates = [rate for _, rate in taxes[bucket.category, bucket.rate].printed]
            amount = total([_tax_of(shared, rate, places) for rate in rates], places)
            taxed[line.number] = replace(shared, tax_amount=amount)
    return tuple(taxed.get(line.number, line) for line in lines)
