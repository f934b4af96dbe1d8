"""What a document lists: which products, how much of each, for which days or periods.

The billing model of each product decides its line: a quantity at a price (`flat`, `per_unit`),
hours, a period of a subscription, or a graduated price with its bands. A product stands on a
document once, or once for each day or period that its lines name.

What does not belong here: amounts (arithmetic) and wording (jurisdictions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from docgen_core.draws import Draws
from docgen_core.money import ZERO, plain
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice.arithmetic import Band, Sale, Tax
from docgen_core.packs.invoice.calendar_days import month_end, month_start, working_day, working_days
from docgen_core.packs.invoice.jurisdictions import Jurisdiction
from docgen_core.packs.invoice.places import Place

SUBSCRIPTION, HOURLY, GRADUATED = "subscription", "hourly", "graduated"

_BY_MONTH = (SUBSCRIPTION, GRADUATED)
"""Billing models of companies that bill whole months; metered use is read once a month."""

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
"""Length of a recurring period."""

_LINES = {1: 7, 2: 11, 3: 14, 4: 13, 5: 11, 6: 10, 7: 8, 8: 7, 9: 5, 10: 4, 11: 3, 12: 3, 13: 2, 14: 1, 15: 1}
"""Lines of a usual document, with how usual they are."""
_MANY_PER_MILLE, _MANY_LINES = 60, (16, 45)
_VERY_MANY_PER_MILLE, _VERY_MANY_LINES = 45, (200, 260)
"""Documents with so many lines come from companies whose layout is made for many pages."""
_VERY_MANY_FROM = 200

_COLLECTIVE_PER_MILLE = 110
"""Documents that bill a month's deliveries or days of work one by one."""
_FEW_DAYS, _FEW_MONTHS, _MANY_MONTHS = (2, 5), (2, 3), 12

_DELIVERED_BEFORE_DAYS = 7
"""A single delivery lies at most so long before its invoice."""

_LINE_DISCOUNTS = tuple(Decimal(text) for text in ("2", "3", "5", "5", "7.5", "10", "10", "12.5", "15", "20"))
_LINE_DISCOUNT_PER_MILLE = 180


@dataclass(frozen=True, slots=True)
class Offer:
    """What a company has to sell."""

    products: Sequence[Row]
    tiers: Mapping[int, Sequence[Row]]
    """Bands by product id, in order of quantity."""
    gives_line_discounts: bool


@dataclass(frozen=True, slots=True)
class Order:
    """What a document lists."""

    sales: tuple[Sale, ...]
    service_from: date
    service_to: date


@dataclass(frozen=True, slots=True)
class Setting:
    """The document that an order is for."""

    jurisdiction: Jurisdiction
    place: Place
    """Where the tax is due."""
    kind: str
    billing_model: str
    issued: date
    most_lines: int
    """What the layout has room for."""


@dataclass(frozen=True, slots=True)
class _Occasion:
    """A day or period that lines are for."""

    first: date
    last: date
    named: bool
    """Whether every line names it; else the document does, and only recurring products say their period."""
    later: int = 0
    """Occasions of the document that come after this one."""


def compose(offer: Offer, setting: Setting, draws: Draws) -> Order:
    """The lines of one document, within the layout's room, and the days they are for."""
    wanted = min(_line_count(setting.most_lines, draws), setting.most_lines)
    occasions = _occasions(setting, wanted, len(offer.products), draws)
    a_time = max(1, -(-wanted // len(occasions)))
    taxes: dict[str, Tax] = {}
    sales: list[Sale] = []
    room = min(wanted if wanted > _LINES_USUAL else wanted * _LINES_A_GRADUATED_PRICE, setting.most_lines)
    used: list[_Occasion] = []
    for number, occasion in enumerate(occasions):
        here = draws.under("occasion", number)
        for product in _pick(offer.products, a_time, here):
            if not _due(product, setting, occasion):
                continue
            sale, period = _sale(product, offer, setting, occasion, taxes, here.under(product["product_id"]))
            if sales and 1 + len(sale.bands) > room:
                continue
            room -= 1 + len(sale.bands)
            sales.append(sale)
            used.append(period)
    return Order(tuple(sales), min(each.first for each in used), max(each.last for each in used))


_LINES_USUAL = max(_LINES)
_LINES_A_GRADUATED_PRICE = 4
"""A parent and its bands, so that usual documents have as many products as any."""


def _line_count(most: int, draws: Draws) -> int:
    if most > _VERY_MANY_FROM and draws.chance("very many lines", _VERY_MANY_PER_MILLE):
        return draws.integer("lines", *_VERY_MANY_LINES)
    if draws.chance("many lines", _MANY_PER_MILLE):
        return draws.integer("lines", *_MANY_LINES)
    return draws.weighted("lines", _LINES)


def _occasions(setting: Setting, wanted: int, products: int, draws: Draws) -> list[_Occasion]:
    """The days or periods that the lines are for, in order."""
    issued = setting.issued
    if setting.kind == "receipt":
        return [_Occasion(issued, issued, named=False)]
    several = wanted > max(_LINES_USUAL, products) or draws.chance("collective", _COLLECTIVE_PER_MILLE)
    if not several:
        return [_single(setting, draws)]
    if setting.billing_model in _BY_MONTH:
        months = min(_MANY_MONTHS, max(-(-wanted // products), draws.integer("months", *_FEW_MONTHS)))
        return [_month(setting, back, named=True) for back in range(months, 0, -1)]
    first = month_start(issued, 1)
    days = working_days(first, month_end(first), setting.jurisdiction.holidays)
    count = min(len(days), max(-(-wanted // products), draws.integer("days", *_FEW_DAYS)))
    chosen = sorted(draws.sample("which days", days, count))
    return [_Occasion(day, day, named=True, later=count - 1 - number) for number, day in enumerate(chosen)]


def _month(setting: Setting, back: int, *, named: bool) -> _Occasion:
    first = month_start(setting.issued, back)
    return _Occasion(first, month_end(first), named, later=back - 1)


def _single(setting: Setting, draws: Draws) -> _Occasion:
    """One delivery shortly before the invoice; work over the weeks before it; the last month's use."""
    if setting.billing_model in _BY_MONTH:
        return _month(setting, 1, named=False)
    holidays = setting.jurisdiction.holidays
    if setting.billing_model == HOURLY:
        last = working_day(setting.issued - timedelta(days=draws.integer("work ended", 1, 9)), holidays)
        first = working_day(last - timedelta(days=draws.integer("work lasted", 0, 27)), holidays)
        return _Occasion(first, last, named=False)
    delivered = setting.issued - timedelta(days=draws.integer("delivered", 0, _DELIVERED_BEFORE_DAYS))
    day = working_day(delivered, holidays)
    return _Occasion(day, day, named=False)


def _pick(products: Sequence[Row], count: int, draws: Draws) -> list[Row]:
    """`count` different products, or all of them: the start of a shuffle, at a cost of `count` draws."""
    moved: dict[int, int] = {}
    picked = []
    for place in range(min(count, len(products))):
        other = draws.integer(f"pick {place}", place, len(products) - 1)
        picked.append(products[moved.get(other, other)])
        moved[other] = moved.get(place, place)
    return picked


def _sale(
    product: Row, offer: Offer, setting: Setting, occasion: _Occasion, taxes: dict[str, Tax], draws: Draws
) -> tuple[Sale, _Occasion]:
    """The line of one product on one occasion, and the time it is for."""
    tax_class = product["tax_class"]
    if tax_class not in taxes:
        taxes[tax_class] = setting.jurisdiction.tax(tax_class, setting.place)
    quantity = _quantity(product, draws)
    period = occasion
    if product["recurring_period"]:
        if product["unit"] in setting.jurisdiction.month_units and occasion.named:
            quantity = Decimal(1)
        period = _period(product, quantity, setting, occasion)
    model = product["billing_model"]
    bands = _bands(offer.tiers.get(product["product_id"], ()), quantity, product, setting) if model == GRADUATED else ()
    discounted = offer.gives_line_discounts and not bands and draws.chance("discounted", _LINE_DISCOUNT_PER_MILLE)
    sale = Sale(
        sku=product["sku"],
        description=product["name"],
        detail=" · ".join(text for text in (product["detail"], _time(product, setting, period)) if text) or None,
        quantity=quantity,
        unit=product["unit"],
        unit_code=product["unit_code"],
        unit_price=None if bands else _tidy(product["unit_price"]),
        tax=taxes[tax_class],
        discount_percent=draws.choice("discount", _LINE_DISCOUNTS) if discounted else None,
        bands=bands,
    )
    return sale, period


def _due(product: Row, setting: Setting, occasion: _Occasion) -> bool:
    """Whether a recurring product's period ends with the occasion, so that no period is billed twice."""
    if not product["recurring_period"]:
        return True
    if setting.billing_model in _BY_MONTH:
        return occasion.later % _MONTHS[product["recurring_period"]] == 0
    return occasion.later == 0


def _period(product: Row, quantity: Decimal, setting: Setting, occasion: _Occasion) -> _Occasion:
    """Whole months up to the occasion's, or up to the month before the document.

    Where the unit is the month itself, the quantity says how many months they are.
    """
    by_month = product["unit"] in setting.jurisdiction.month_units
    months = int(quantity) if by_month else _MONTHS[product["recurring_period"]]
    end = occasion.last if setting.billing_model in _BY_MONTH else month_start(setting.issued, 1)
    return _Occasion(month_start(end, months - 1), month_end(month_start(end, 0)), named=True)


def _time(product: Row, setting: Setting, period: _Occasion) -> str | None:
    """How a line says what day or period it is for."""
    if not period.named:
        return None
    if period.first != period.last:
        return setting.jurisdiction.period(period.first, period.last)
    wording = setting.jurisdiction.delivery if product["hs_code"] else setting.jurisdiction.work
    return wording(period.first)


def _quantity(product: Row, draws: Draws) -> Decimal:
    """A usual quantity: the minimum plus some steps, small ones more often."""
    least, step = product["typical_quantity_min"], product["typical_quantity_step"]
    steps = int((product["typical_quantity_max"] - least) / step) if step else 0
    drawn = min(draws.integer("steps", 0, steps), draws.integer("steps again", 0, steps))
    return _tidy(least + drawn * step)


def _bands(tiers: Sequence[Row], quantity: Decimal, product: Row, setting: Setting) -> tuple[Band, ...]:
    """The quantity spread over the tiers: each price holds for the part that falls in its tier."""
    bands = []
    above = ZERO
    for tier in tiers:
        up_to = None if tier["up_to"] is None else _tidy(tier["up_to"])
        part = (quantity if up_to is None else min(quantity, up_to)) - above
        if part <= 0:
            break
        limits = setting.jurisdiction.band(above, up_to, product["unit"])
        bands.append(Band(_tidy(part), _tidy(tier["unit_price"]), limits))
        if up_to is None:
            break
        above = up_to
    return tuple(bands)


def _tidy(value: Decimal) -> Decimal:
    """The same number without the zeros that the catalogue's scale adds."""
    return Decimal(plain(value))
