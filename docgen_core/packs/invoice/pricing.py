"""How a product is billed: the line or lines that its billing model, and its company's, make of it.

A quantity at a price; a price by the size of the whole quantity (`volume`) or by its bands
(`graduated`); readings of a meter; a seat plan and what goes beyond; a part of a period; a share
of a contract; a fee schedule's number and multiplier; a deposit on bottles; interest on arrears.
What does not belong here: which products a document lists and for when (billing), amounts (arithmetic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import ZERO, minor_units, percent_of, plain, rounded, times
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice import unit_words
from docgen_core.packs.invoice.arithmetic import Band, Sale, Tax
from docgen_core.packs.invoice.jurisdictions import Jurisdiction
from docgen_core.packs.invoice.model import Basis, LineKind
from docgen_core.packs.invoice.places import Place

SUBSCRIPTION, HOURLY, GRADUATED = "subscription", "hourly", "graduated"
VOLUME, METERED, SEATS, MILESTONE, FEES, CREDIT = (
    "volume", "metered", "seats", "milestone", "fee_schedule", "prepaid_credit",
)  # fmt: skip
INTEREST = "interest"
"""Of a line alone; no company lives on it."""

_EXPORT = "G"
"""Tax category under which customs want to know what kind of goods it is."""
_LUMP_SUM, _USER_MONTH = "LS", "MON"
_READ_OFF = frozenset(("KWH", "MTQ", "N72", "GLL"))
"""Units of energy and volume that a meter in the building shows; calls and bytes are counted elsewhere."""
_DRINKS = ("2201", "220210", "2203")
"""Headings of the Harmonised System whose bottles and cans come back."""
_CASE = "XCS"

_VOLUME_STEPS = (
    (Decimal(100), Decimal(85)),
    (Decimal(50), Decimal(90)),
    (Decimal(20), Decimal(94)),
    (Decimal(10), Decimal(97)),
)
"""From so many on, the whole quantity costs so many per cent of the price."""

_PRORATED_PER_MILLE = 130
_OVERAGE_PER_MILLE = 700
_OVERAGE_PERCENTS = (110, 120, 125, 130)
"""Price of a seat beyond the plan, in per cent of one within."""

_CONTRACTS = (8, 12, 15, 20, 24, 30, 40, 60)
"""Contract sums, in multiples of the price of the work's unit."""
_PREVIOUS_PERCENTS = (0, 0, 20, 25, 30, 40, 50, 60, 70)
_STEP_PERCENTS = (10, 15, 20, 25, 30)

_FACTORS = tuple(Decimal(text) for text in ("1", "1", "1.15", "1.25", "1.5", "1.8", "2.3"))
_FEE_CODES = (100, 899)

_READING_DIGITS = 5
_INTEREST_RATES = tuple(Decimal(text) for text in ("8", "9", "9.12", "10", "11.37", "12"))
_DAYS_OVERDUE = (9, 75)
_INTEREST_YEAR = 365


@dataclass(frozen=True, slots=True)
class Item:
    """A product on a document: how much of it, when, and what its line says besides."""

    product: Row
    tiers: Sequence[Row]
    quantity: Decimal
    tax: Tax
    details: tuple[str, ...]
    """Small print, in order."""
    discount_percent: Decimal | None
    place: Place
    """Where it is delivered."""
    first: date
    last: date
    """Days that a recurring product is for."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How a company bills, and in what words."""

    jurisdiction: Jurisdiction
    currency: str
    business_type: str
    model: str
    """The company's billing model."""
    habits: Draws
    """The company's own draws."""

    def money(self, amount: Decimal) -> str:
        """An amount as small print writes it."""
        return locales.money(amount, self.currency, self.jurisdiction.locale)

    def number(self, value: Decimal) -> str:
        """A quantity as small print writes it."""
        return locales.number(value, self.jurisdiction.locale)

    def unit(self, product: Row, quantity: Decimal) -> str:
        """The unit of a product as it is written after so many."""
        return unit_words.form(product["unit"], quantity, self.jurisdiction.locale)

    def percent(self, value: Decimal) -> str:
        """A percentage as small print writes it."""
        return locales.percent(value, self.jurisdiction.locale)

    @property
    def places(self) -> int:
        """Decimal places of the currency's amounts."""
        return minor_units(self.currency)


def sales_of(item: Item, ways: Ways, draws: Draws) -> list[Sale]:
    """The lines that an item makes, the first of them the item itself."""
    code = ways.jurisdiction.commodity_code(item.product, ways.business_type)
    if code is None and item.tax.category == _EXPORT:
        code = item.product["hs_code"]
    return [replace(sale, commodity_code=code) for sale in _priced(item, ways, draws)]


def _priced(item: Item, ways: Ways, draws: Draws) -> list[Sale]:
    product, model = item.product, item.product["billing_model"]
    tiered = bool(item.tiers) and model == GRADUATED
    if ways.model == MILESTONE and product["unit_code"] == _LUMP_SUM:
        return [_milestone(item, ways, draws)]
    if ways.model == FEES:
        return [_by_schedule(item, ways, draws)]
    if ways.model == METERED and tiered:
        return [_metered(item, ways, draws)]
    per_user = product["unit_code"] == _USER_MONTH and product["unit"] not in ways.jurisdiction.month_units
    if ways.model == SEATS and per_user and item.quantity > 1:
        return _seats(item, ways, draws)
    if ways.model == VOLUME and (tiered or model == "per_unit"):
        return [_by_volume(item, ways), *_deposits(item, ways)]
    if tiered:
        return [_graduated(item, ways)]
    if model == SUBSCRIPTION and item.quantity == 1 and draws.chance("prorated", _PRORATED_PER_MILLE):
        return [_prorated(item, ways, draws)]
    return [_plain(item), *_deposits(item, ways)]


def _plain(item: Item, *details: str, pricing: str = "") -> Sale:
    product = item.product
    return Sale(
        sku=product["sku"],
        description=product["name"],
        detail=" · ".join((*item.details, *details)) or None,
        quantity=item.quantity,
        unit=product["unit"],
        unit_code=product["unit_code"],
        unit_price=tidy(product["unit_price"]),
        tax=item.tax,
        discount_percent=item.discount_percent,
        pricing=pricing or product["billing_model"],
    )


def _graduated(item: Item, ways: Ways) -> Sale:
    bands = _bands(item, ways)
    return replace(_plain(item), unit_price=None, discount_percent=None, bands=bands)


def _bands(item: Item, ways: Ways) -> tuple[Band, ...]:
    """The quantity spread over the tiers: each price holds for the part that falls in its tier."""
    bands = []
    above = ZERO
    for tier in item.tiers:
        up_to = None if tier["up_to"] is None else tidy(tier["up_to"])
        part = (item.quantity if up_to is None else min(item.quantity, up_to)) - above
        if part <= 0:
            break
        limits = ways.jurisdiction.band(above, up_to, ways.unit(item.product, above if up_to is None else up_to))
        bands.append(Band(tidy(part), tidy(tier["unit_price"]), limits))
        if up_to is None:
            break
        above = up_to
    return tuple(bands)


def _by_volume(item: Item, ways: Ways) -> Sale:
    """The whole quantity at the price of the tier, or of the step, that it reaches."""
    if item.tiers and item.product["billing_model"] == GRADUATED:
        lows = [ZERO, *(tier["up_to"] for tier in item.tiers if tier["up_to"] is not None)]
        reached = max(place for place, low in enumerate(lows) if low == 0 or low < item.quantity)
        price, low = tidy(item.tiers[reached]["unit_price"]), tidy(lows[reached])
    else:
        step = next(((low, percent) for low, percent in _VOLUME_STEPS if item.quantity >= low), None)
        full = tidy(item.product["unit_price"])
        low = step[0] if step else ZERO
        price = tidy(rounded(percent_of(full, step[1]), item.product["price_places"])) if step else full
    detail = ways.jurisdiction.customs.billing.volume.format(low=ways.number(low), unit=ways.unit(item.product, low))
    return replace(_plain(item, *((detail,) if low else ()), pricing=VOLUME), unit_price=price)


def _metered(item: Item, ways: Ways, draws: Draws) -> Sale:
    """What was used, at the first tier's price; a meter's readings go on where the last document's ended."""
    price = tidy(item.tiers[0]["unit_price"])
    if item.product["unit_code"] not in _READ_OFF:
        return replace(_plain(item, pricing=METERED), unit_price=price, discount_percent=None)
    before = Decimal(draws.integer("reading", 10 ** (_READING_DIGITS - 1), 10**_READING_DIGITS - 1))
    after = before + item.quantity
    detail = ways.jurisdiction.customs.billing.meter.format(first=ways.number(before), last=ways.number(after))
    sale = _plain(item, detail, pricing=METERED)
    basis = Basis(meter_from=before, meter_to=after)
    return replace(sale, unit_price=price, discount_percent=None, basis=basis)


def _seats(item: Item, ways: Ways, draws: Draws) -> list[Sale]:
    """A plan of so many seats, and mostly some beyond it, which cost more."""
    plan = _plain(item, pricing=SEATS)
    if plan.unit_price is None or not draws.chance("overage", _OVERAGE_PER_MILLE):
        return [plan]
    percent = Decimal(ways.habits.choice("overage price", _OVERAGE_PERCENTS))
    price = tidy(rounded(percent_of(plan.unit_price, percent), max(ways.places, item.product["price_places"])))
    beyond = Decimal(draws.integer("seats beyond", 1, max(1, int(item.quantity) // 3)))
    detail = ways.jurisdiction.customs.billing.overage.format(included=ways.number(item.quantity))
    overage = replace(
        plan,
        sku=None,
        detail=detail,
        quantity=beyond,
        unit_price=price,
        discount_percent=None,
        basis=Basis(included=item.quantity),
        with_above=LineKind.OVERAGE,
    )
    return [plan, overage]


def _prorated(item: Item, ways: Ways, draws: Draws) -> Sale:
    """A period that began, or ended, within itself: so many of its days are charged."""
    whole = (item.last - item.first).days + 1
    if whole < 2:
        return _plain(item)
    days = draws.integer("days", max(1, whole // 6), whole - 1)
    detail = ways.jurisdiction.customs.billing.prorated.format(days=days, days_of=whole)
    return replace(_plain(item, detail), basis=Basis(days=days, days_of=whole))


def _milestone(item: Item, ways: Ways, draws: Draws) -> Sale:
    """What has been done of a contract, less what was billed before."""
    contract = rounded(
        rounded(times(tidy(item.product["unit_price"]), Decimal(draws.choice("contract", _CONTRACTS))), 0), ways.places
    )
    previous = draws.choice("previous", _PREVIOUS_PERCENTS)
    progress = min(100, previous + draws.choice("progress", _STEP_PERCENTS))
    basis = Basis(contract_total=contract, progress_percent=Decimal(progress), previous_percent=Decimal(previous))
    detail = ways.jurisdiction.customs.billing.contract.format(
        total=ways.money(contract), progress=ways.percent(Decimal(progress)), previous=ways.percent(Decimal(previous))
    )
    sale = _plain(item, detail, pricing=MILESTONE)
    return replace(sale, quantity=None, unit=None, unit_code=None, unit_price=None, discount_percent=None, basis=basis)


def _by_schedule(item: Item, ways: Ways, draws: Draws) -> Sale:
    """A service by its number in a schedule of fees, which is the product's, times a multiplier."""
    code = f"{ways.habits.under('fee', item.product['product_id']).integer('code', *_FEE_CODES)}"
    factor = draws.choice("factor", _FACTORS)
    detail = ways.jurisdiction.customs.billing.fee.format(code=code, factor=ways.number(factor))
    return replace(_plain(item, detail, pricing=FEES), basis=Basis(factor=factor, fee_code=code))


def _deposits(item: Item, ways: Ways) -> list[Sale]:
    """The deposit on a case of drinks, or on each bottle, where the buyer's place has one."""
    if not (item.product["hs_code"] or "").startswith(_DRINKS):
        return []
    deposit = ways.jurisdiction.deposit(item.place, case=item.product["unit_code"] == _CASE)
    if deposit is None:
        return []
    sale = _plain(item, pricing="flat")
    words = ways.jurisdiction.customs.billing
    return [
        replace(
            sale,
            sku=None,
            description=words.deposit,
            detail=None,
            unit_price=deposit,
            discount_percent=None,
            with_above=LineKind.DEPOSIT,
        )
    ]


def arrears(lines_total: Decimal, ways: Ways, draws: Draws) -> Sale:
    """Interest on an invoice that was not paid in time, about as large as this one."""
    share = Decimal(draws.integer("arrears", 40, 180))
    principal = rounded(percent_of(lines_total, share), ways.places)
    rate, days = draws.choice("interest rate", _INTEREST_RATES), draws.integer("overdue", *_DAYS_OVERDUE)
    words = ways.jurisdiction.customs.billing
    return Sale(
        sku=None,
        description=words.interest,
        detail=words.interest_detail.format(principal=ways.money(principal), rate=ways.percent(rate), days=days),
        quantity=None,
        unit=None,
        unit_code=None,
        unit_price=None,
        tax=ways.jurisdiction.interest_tax(),
        pricing=INTEREST,
        basis=Basis(principal=principal, interest_rate=rate, days=days, days_of=_INTEREST_YEAR),
    )


def tidy(value: Decimal) -> Decimal:
    """The same number without the zeros that the catalogue's scale adds."""
    return Decimal(plain(value))
