"""What a deal adds to the lines and how it is paid: discounts, charges, shipping, tips, coins, instalments.

What does not belong here: the arithmetic of it (arithmetic, settlement).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from docgen_core.draws import Draws
from docgen_core.money import ZERO, minor_units, percent_of, rounded
from docgen_core.packs.invoice.arithmetic import Charge, Discount, Extras, Sale
from docgen_core.packs.invoice.calendar_days import month_end, month_start
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.catalogue.pricing import ask
from docgen_core.packs.invoice.model import Instalment, Totals
from docgen_core.packs.invoice.pricing import CREDIT, Ways, arrears
from docgen_core.packs.invoice.settlement import Settlement, Withholding, instalments, settle

_DOCUMENT_DISCOUNT_COMPANIES_PER_MILLE = 350
_DOCUMENT_DISCOUNT_PER_MILLE = 250
_DISCOUNT_PERCENTS = tuple(Decimal(text) for text in ("1.5", "2", "2", "3", "3", "5", "5", "10"))
_DISCOUNT_AMOUNT_PER_CENT = (1, 8)
"""A discount given as an amount comes to about so many per cent of the lines."""

_CHARGING_COMPANIES_PER_MILLE = 250
_CHARGE_PER_MILLE = 400
_CHARGE_PERCENTS = tuple(Decimal(text) for text in ("1.25", "1.5", "2", "2.5", "3.5"))
_CARRIERS = frozenset({"courier_logistics", "equipment_rental", "facility_services", "waste_disposal"})
"""Trades that sell no goods and have fuel and energy to pass on all the same."""
_CHARGE_SUMS = (Decimal("4.9"), Decimal(8), Decimal(15), Decimal(25))
"""In euros of the catalogue's data, as are the other sums here."""
_SHIPPING_COMPANIES_PER_MILLE = 550
_SHIPPING_PER_MILLE = 380
_SHIPPING_SUMS = (Decimal("4.9"), Decimal("6.9"), Decimal("9.9"), Decimal(14), Decimal(19), Decimal(39))

_PREPAID_PER_MILLE = 70
_PREPAID_PER_CENT = (20, 25, 30, 40, 50)
_CREDIT_SUMS = (Decimal(250), Decimal(500), Decimal(1000), Decimal(2500), Decimal(5000))
_TIP_PER_MILLE = 350
_CATERERS = frozenset(("event_catering",))
_WITHHELD_PER_MILLE = 600

_SHOPS = frozenset(("grocery_retail", "bicycle_shop", "pet_supplies", "auto_parts", "fitness_club"))
"""Business types some of whose invoices are paid in cash."""
_CASH_PER_MILLE = 300

_ARREARS_PER_MILLE = 18
_IN_PARTS_PER_MILLE = 45
_LEAST_IN_PARTS = Decimal(600)
"""Nobody pays less than so much in parts."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The document that conditions are for."""

    ways: Ways
    business_type: str
    form: str
    """The seller's legal form."""
    billed: bool
    """An invoice, and no receipt."""
    at_home: bool
    """Whether the buyer is in the seller's country."""
    goods: bool
    """Whether the company sells things that are shipped."""
    draws: Draws

    @property
    def habits(self) -> Draws:
        """The company's own draws."""
        return self.ways.habits


def extras(lines_total: Decimal, situation: Situation) -> Extras | None:
    """What is taken from and added to the lines' sum, if anything."""
    if not lines_total:
        return None
    found = Extras(
        discount=_discount(lines_total, situation) or Discount(),
        charge=_charge(lines_total, situation),
        shipping=_shipping(situation),
    )
    return found if found != Extras() else None


def _discount(lines_total: Decimal, situation: Situation) -> Discount | None:
    """A percentage, or a sum without small change."""
    habits, draws = situation.habits, situation.draws
    discounting = habits.chance("document discounts", _DOCUMENT_DISCOUNT_COMPANIES_PER_MILLE)
    if not (discounting and draws.chance("document discount", _DOCUMENT_DISCOUNT_PER_MILLE)):
        return None
    if draws.chance("as a percentage", 700):
        return Discount(percent=draws.choice("discount percent", _DISCOUNT_PERCENTS))
    percent = draws.integer("discount size", *_DISCOUNT_AMOUNT_PER_CENT)
    amount = rounded(percent_of(lines_total, Decimal(percent)), 0)
    return Discount(amount=rounded(amount, situation.ways.places)) if 0 < amount <= lines_total else None


def _charge(lines_total: Decimal, situation: Situation) -> Charge | None:
    """A surcharge that the company has, as a percentage or a fixed sum."""
    habits, draws = situation.habits, situation.draws
    charging = situation.billed and habits.chance("charging", _CHARGING_COMPANIES_PER_MILLE)
    if not (charging and draws.chance("charge", _CHARGE_PER_MILLE)):
        return None
    labels = situation.ways.jurisdiction.customs.billing.charges
    carries = situation.goods or situation.business_type in _CARRIERS
    label = habits.choice("charge label", labels if carries else labels[-1:])
    if habits.chance("charge as a percentage", 500):
        return Charge(label, percent=habits.choice("charge percent", _CHARGE_PERCENTS))
    return Charge(label, amount=_sum(habits.choice("charge sum", _CHARGE_SUMS), situation.ways.currency))


def _shipping(situation: Situation) -> Decimal:
    shipping = situation.billed and situation.goods
    shipping = shipping and situation.habits.chance("shipping", _SHIPPING_COMPANIES_PER_MILLE)
    if not (shipping and situation.draws.chance("shipped", _SHIPPING_PER_MILLE)):
        return ZERO
    return _sum(situation.draws.choice("shipping sum", _SHIPPING_SUMS), situation.ways.currency)


def _sum(euros: Decimal, currency: str) -> Decimal:
    """A sum as people ask it in the currency, in whole minor units."""
    money = content.currencies()[currency]
    return rounded(ask(euros * money.scale, money.points["round"], money.minor_units).price, minor_units(currency))


def arrears_of(lines_total: Decimal, ways: Ways, draws: Draws) -> tuple[Sale, ...]:
    """Interest on what was not paid in time, on some invoices."""
    return (arrears(lines_total, ways, draws),) if lines_total and draws.chance("arrears", _ARREARS_PER_MILLE) else ()


def settled(totals: Totals, situation: Situation) -> Totals:
    """The totals with how they are paid."""
    ways = situation.ways
    return settle(totals, _settlement(totals, situation), ways.places)


def _settlement(totals: Totals, situation: Situation) -> Settlement:
    """A receipt is paid whole; some invoices follow a payment in advance, without small change."""
    ways, draws = situation.ways, situation.draws
    if not situation.billed:
        cash = ways.jurisdiction.cash_step if ways.jurisdiction.in_cash(draws) else None
        return Settlement(paid_whole=True, cash_step=cash)
    kept, tip = _withholding(situation), _tip(totals, situation)
    step = ways.jurisdiction.total_step
    if ways.model == CREDIT:
        return Settlement(withholding=kept, credit=_sum(draws.choice("credit", _CREDIT_SUMS), ways.currency))
    if _in_cash(situation):
        return Settlement(paid_whole=True, cash_step=ways.jurisdiction.cash_step)
    if not kept and draws.chance("prepaid", _PREPAID_PER_MILLE):
        share = Decimal(draws.choice("prepaid share", _PREPAID_PER_CENT))
        gross = totals.gross_total
        return Settlement(tip=tip, cash_step=step, prepaid=min(rounded(percent_of(gross, share), 0), gross))
    return Settlement(withholding=kept, tip=tip, cash_step=step)


def _withholding(situation: Situation) -> Withholding | None:
    """What buyers of the country keep back from such a company, where it is one that they do it to."""
    kept = situation.ways.jurisdiction.withholding(situation.business_type, situation.form)
    if kept is None or not situation.at_home or not situation.habits.chance("withheld", _WITHHELD_PER_MILLE):
        return None
    return Withholding(*kept)


def _tip(totals: Totals, situation: Situation) -> Decimal:
    percents = situation.ways.jurisdiction.tip_percents
    if situation.business_type not in _CATERERS or not percents or not situation.draws.chance("tip", _TIP_PER_MILLE):
        return ZERO
    percent = Decimal(situation.draws.choice("tip percent", percents))
    return rounded(percent_of(totals.net_total, percent), situation.ways.places)


def _in_cash(situation: Situation) -> bool:
    has_coins = situation.ways.jurisdiction.cash_step is not None and situation.business_type in _SHOPS
    return has_coins and situation.at_home and situation.draws.chance("in cash", _CASH_PER_MILLE)


def pays_in_cash(totals: Totals) -> bool:
    """Whether an invoice with these totals was paid at the counter."""
    return bool(totals.gross_total) and not totals.amount_due and not totals.credit_used


def in_parts(totals: Totals, due: date, currency: str, draws: Draws) -> tuple[Instalment, ...]:
    """Two to four monthly parts of the amount due, on some invoices that nothing was paid on before."""
    paid = totals.prepaid or totals.credit_used
    least = _LEAST_IN_PARTS * content.currencies()[currency].scale
    if paid or totals.amount_due < least or not draws.chance("in parts", _IN_PARTS_PER_MILLE):
        return ()
    count = draws.integer("parts", 2, 4)
    days = [due, *(_months_later(due, months) for months in range(1, count))]
    return instalments(totals.amount_due, days, minor_units(currency))


def _months_later(day: date, months: int) -> date:
    """The same day of a later month, or its last."""
    first = month_start(day, -months)
    return first.replace(day=min(day.day, month_end(first).day))
