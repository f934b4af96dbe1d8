"""What a document lists: which products, how much of each, for which days or periods.

A product stands on a document once, or once for each day or period that its lines name. What does
not belong here: how a product is priced (pricing), amounts (arithmetic) and wording (jurisdictions).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from docgen_core.draws import Draws
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice import moments
from docgen_core.packs.invoice.arithmetic import Sale
from docgen_core.packs.invoice.calendar_days import month_end, month_start, working_day, working_days
from docgen_core.packs.invoice.jurisdictions import Jurisdiction
from docgen_core.packs.invoice.pricing import (
    CREDIT,
    FEES,
    GRADUATED,
    HOURLY,
    METERED,
    MILESTONE,
    SEATS,
    SUBSCRIPTION,
    VOLUME,
    Item,
    Ways,
    sales_of,
    tidy,
)
from docgen_core.packs.invoice.taxation import Treatment

_BY_MONTH = frozenset((SUBSCRIPTION, GRADUATED, SEATS, METERED))
"""Billing models of companies that bill whole months; metered use is read once a month."""

_OVER_WEEKS = frozenset((HOURLY, MILESTONE, FEES))
"""Billing models of companies whose work takes some days or weeks."""

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

_MORE_OCCASIONS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
"""Days or months beyond the usual, until a document has the lines that are asked for."""

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

    @property
    def printed(self) -> int:
        """Its lines."""
        return _printed(self.sales)


@dataclass(frozen=True, slots=True)
class Setting:
    """The document that an order is for."""

    treatment: Treatment
    ways: Ways
    kind: str
    """`invoice` or `receipt`: a till's lines are all of one day."""
    issued: date
    most_lines: int
    """What the layout has room for."""
    lines: tuple[int, int] | None = None
    """Fewest and most printed lines that are asked for."""
    by_month: bool = False
    """Whether whole months are billed."""

    @property
    def jurisdiction(self) -> Jurisdiction:
        """The seller's."""
        return self.treatment.jurisdiction


@dataclass(frozen=True, slots=True)
class _Occasion:
    """A day or period that lines are for."""

    first: date
    last: date
    named: bool
    """Whether every line names it; else the document does, and only recurring products say their period."""
    later: int = 0
    """Occasions of the document that come after this one."""


def bills_by_month(model: str, products: Sequence[Row]) -> bool:
    """Whether a company of the billing model bills whole months."""
    if model in (VOLUME, CREDIT):
        return 2 * sum(product["billing_model"] in _BY_MONTH for product in products) >= len(products)
    return model in _BY_MONTH


def compose(offer: Offer, setting: Setting, draws: Draws) -> Order:
    """The lines of one document, within the layout's room and what is asked for, and the days they are for."""
    wanted = _wanted(setting, draws)
    order = _order(offer, setting, wanted, 0, draws)
    if setting.lines is not None and setting.kind != "receipt":
        fewest, more = min(setting.lines[0], setting.most_lines), iter(_MORE_OCCASIONS)
        while order.printed < fewest and (occasions := next(more, None)) is not None:
            order = _order(offer, setting, wanted, occasions, draws)
    return order


def _order(offer: Offer, setting: Setting, wanted: int, more: int, draws: Draws) -> Order:
    """As many of the lines that are wanted as the products on these occasions make."""
    room, asked = _room(setting, wanted), setting.lines is not None
    sales: list[Sale] = []
    used: list[_Occasion] = []
    too_many: tuple[tuple[Sale, ...], _Occasion] | None = None
    taken = 0
    for number, occasion, product in _listed(offer, setting, wanted, more, draws):
        if taken >= wanted and asked:
            break
        here = draws.under("occasion", number).under(product["product_id"])
        item, period = _item(product, offer, setting, occasion, here)
        made = sales_of(item, setting.ways, here)
        lines = _printed(made)
        if taken + lines > room and (sales or asked):
            too_many = too_many or (tuple(made), period)
            continue
        taken += lines
        sales += made
        used.append(period)
    if not sales and too_many is not None:
        sales, used = list(too_many[0]), [too_many[1]]
    return Order(tuple(sales), min(each.first for each in used), max(each.last for each in used))


def _printed(sales: Sequence[Sale]) -> int:
    """Lines that the sales take."""
    return sum(1 + len(sale.bands) for sale in sales)


def _wanted(setting: Setting, draws: Draws) -> int:
    """How many products a document lists, or lines, where their number is asked for."""
    if setting.lines is not None:
        fewest, most = setting.lines
        return draws.integer("lines", min(fewest, setting.most_lines), min(most, setting.most_lines))
    return min(_line_count(setting.most_lines, draws), setting.most_lines)


def _room(setting: Setting, wanted: int) -> int:
    """The most lines, so that usual documents have as many products as any: bands take room too."""
    if setting.lines is not None:
        return min(setting.lines[1], setting.most_lines)
    return min(wanted if wanted > _LINES_USUAL else wanted * _LINES_A_GRADUATED_PRICE, setting.most_lines)


def _listed(
    offer: Offer, setting: Setting, wanted: int, more: int, draws: Draws
) -> Iterator[tuple[int, _Occasion, Row]]:
    """(number of the occasion, occasion, product), each due product once an occasion, in printed order."""
    products = [product for product in offer.products if setting.treatment.lists(product)] or offer.products
    occasions = _occasions(setting, wanted, len(products), more, draws)
    a_time = max(1, -(-wanted // len(occasions))) if setting.lines is None else len(products)
    for number, occasion in enumerate(occasions):
        here = [each for each in products if _in_season(each, setting, occasion)] or products
        for product in _pick(here, a_time, draws.under("occasion", number)):
            if _due(product, setting, occasion):
                yield number, occasion, product


_LINES_USUAL = max(_LINES)
_LINES_A_GRADUATED_PRICE = 4
"""A parent and its bands, so that usual documents have as many products as any."""


def _line_count(most: int, draws: Draws) -> int:
    if most > _VERY_MANY_FROM and draws.chance("very many lines", _VERY_MANY_PER_MILLE):
        return draws.integer("lines", *_VERY_MANY_LINES)
    if draws.chance("many lines", _MANY_PER_MILLE):
        return draws.integer("lines", *_MANY_LINES)
    return draws.weighted("lines", _LINES)


def _occasions(setting: Setting, wanted: int, products: int, more: int, draws: Draws) -> list[_Occasion]:
    """The days or periods that the lines are for, in order: so many `more` than are usual."""
    issued = setting.issued
    if setting.kind == "receipt":
        return [_Occasion(issued, issued, named=False)]
    enough = products if setting.lines is not None else max(_LINES_USUAL, products)
    several = more or wanted > enough or draws.chance("collective", _COLLECTIVE_PER_MILLE)
    if not several:
        return [_single(setting, draws)]
    if setting.by_month:
        months = more + min(_MANY_MONTHS, max(-(-wanted // products), draws.integer("months", *_FEW_MONTHS)))
        return [_month(setting, back, named=True) for back in range(months, 0, -1)]
    count = more + max(-(-wanted // products), draws.integer("days", *_FEW_DAYS))
    first = month_start(issued, 1)
    days = working_days(first, month_end(first), setting.jurisdiction.rest)
    while more and len(days) < count:
        first, last = month_start(first, 1), first - timedelta(days=1)
        days = working_days(first, last, setting.jurisdiction.rest) + days
    chosen = sorted(draws.sample("which days", days, min(len(days), count)))
    count = len(chosen)
    return [_Occasion(day, day, named=True, later=count - 1 - number) for number, day in enumerate(chosen)]


def _month(setting: Setting, back: int, *, named: bool) -> _Occasion:
    first = month_start(setting.issued, back)
    return _Occasion(first, month_end(first), named, later=back - 1)


def _single(setting: Setting, draws: Draws) -> _Occasion:
    """One delivery shortly before the invoice; work over the weeks before it; the last month's use."""
    if setting.by_month:
        return _month(setting, 1, named=False)
    rest = setting.jurisdiction.rest
    if setting.ways.model in _OVER_WEEKS:
        last = working_day(setting.issued - timedelta(days=draws.integer("work ended", 1, 9)), rest)
        first = working_day(last - timedelta(days=draws.integer("work lasted", 0, 27)), rest)
        return _Occasion(first, last, named=False)
    delivered = setting.issued - timedelta(days=draws.integer("delivered", 0, _DELIVERED_BEFORE_DAYS))
    day = working_day(delivered, rest)
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


def _item(product: Row, offer: Offer, setting: Setting, occasion: _Occasion, draws: Draws) -> tuple[Item, _Occasion]:
    """One product on one occasion, and the time it is for."""
    quantity = _quantity(product, draws)
    period = occasion
    if product["recurring_period"]:
        if product["unit"] in setting.jurisdiction.month_units and occasion.named:
            quantity = Decimal(1)
        period = _period(product, quantity, setting, occasion)
    discounted = offer.gives_line_discounts and draws.chance("discounted", _LINE_DISCOUNT_PER_MILLE)
    item = Item(
        product=product,
        tiers=offer.tiers.get(product["product_id"], ()),
        quantity=quantity,
        tax=setting.treatment.tax(product),
        place=setting.treatment.place,
        details=tuple(text for text in (product["detail"], _time(product, setting, period)) if text),
        discount_percent=draws.choice("discount", _LINE_DISCOUNTS) if discounted else None,
        first=period.first,
        last=period.last,
    )
    return item, period


def _in_season(product: Row, setting: Setting, occasion: _Occasion) -> bool:
    return moments.fits(product, setting.ways.business_type, setting.jurisdiction, occasion.first, occasion.last)


def _due(product: Row, setting: Setting, occasion: _Occasion) -> bool:
    """Whether a recurring product's period ends with the occasion, so that no period is billed twice."""
    if not product["recurring_period"]:
        return True
    if setting.by_month:
        return occasion.later % _MONTHS[product["recurring_period"]] == 0
    return occasion.later == 0


def _period(product: Row, quantity: Decimal, setting: Setting, occasion: _Occasion) -> _Occasion:
    """Whole months up to the occasion's, or up to the month before the document.

    Where the unit is the month itself, the quantity says how many months they are.
    """
    by_month = product["unit"] in setting.jurisdiction.month_units
    months = int(quantity) if by_month else _MONTHS[product["recurring_period"]]
    end = occasion.last if setting.by_month else month_start(setting.issued, 1)
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
    return tidy(least + drawn * step)
