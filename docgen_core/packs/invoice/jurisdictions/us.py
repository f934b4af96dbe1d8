"""United States: sales tax of state and town, where the buyer is; nothing in five states.

Several taxes on one sale (state, county, city) are charged as one combined rate, and the label
says what it is made of. Rates are those of `data/law/us_sales_tax.tsv` and the places' own; they
are plausible for the years that documents are dated in, not advice.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy, plain
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Jurisdiction
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_ZERO = Decimal(0)
_DEPOSIT_STATES = frozenset(("CA", "CT", "HI", "IA", "MA", "ME", "MI", "NY", "OR", "VT"))
"""States with a law on containers that come back."""


@dataclass(frozen=True, slots=True)
class StateTax:
    """What a state charges, in per cent."""

    name: str
    rate: Decimal
    groceries: Decimal
    groceries_local: bool
    """Whether towns charge their own rate on groceries."""


@cache
def state_taxes() -> dict[str, StateTax]:
    """Sales tax by state (`TX`)."""
    return {
        row["region"]: StateTax(
            row["name"], Decimal(row["state_rate"]), Decimal(row["groceries"]), row["groceries_local"] == "yes"
        )
        for row in places.table("law/us_sales_tax.tsv")
    }


class UnitedStates(Jurisdiction):
    """American law and customs."""

    code = "US"
    locales = ("en-US",)
    paper = "Letter"
    tax_names = {"en": "Sales tax"}
    deposits = (Decimal("1.20"), Decimal("0.05"))
    tip_percents = (15, 18, 20)
    net_days = {30: 50, 15: 18, 45: 8, 60: 6, 10: 6, 0: 12}
    roundings = {RoundingPolicy.PER_BUCKET: 75, RoundingPolicy.PER_LINE: 25}
    """States allow the tax of a document to be computed by item or by invoice."""
    holidays = frozenset(((1, 1), (6, 19), (7, 4), (12, 25)))
    closed = frozenset(((12, 25),))

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Number and street, suite, then city, state and ZIP code."""
        return places.american_address(draws, place)

    def phone(self, draws: Draws, place: Place) -> str:
        """A 555-01xx number of the area code."""
        return places.american_phone(draws, place)

    def deposit(self, place: Place, *, case: bool) -> Decimal | None:
        """As elsewhere, in the states that have one."""
        return super().deposit(place, case=case) if place.region in _DEPOSIT_STATES else None

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller may print its EIN and its sales-tax permit; a buyer prints neither."""
        if not seller:
            return ()
        printed = [Registration("US:EIN", "EIN", registrations.american_ein(draws))]
        if state_taxes()[place.region].rate and draws.chance("permit", 550):
            number = registrations.american_permit(draws, place.region)
            printed.append(Registration("US:PERMIT", "Sales tax permit", number))
        return tuple(printed)

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, routing and account number, holder."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        return (
            ("bank_name", "Bank", bank),
            ("routing_number", "Routing number", registrations.american_routing_number(bank)),
            ("account_number", "Account number", f"{draws.integer('account', 10**8, 10**10 - 1)}"),
            ("account_holder", "Account name", holder),
        )

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The combined rate where the buyer is. `reduced` is what state and town charge on groceries.

        That may be nothing, as on what is `exempt`, or as much as on anything else.
        """
        state = state_taxes()[place.region]
        if not state.rate:
            reason = f"No sales tax is levied in {state.name}."
            return Tax("O", _ZERO, f"No sales tax ({place.region})", reason)
        local = Decimal(place.facts["local_rate"])
        groceries = state.groceries, local if state.groceries_local else _ZERO
        if tax_class == "standard" or (tax_class == "reduced" and groceries == (state.rate, local)):
            return self._charged("S", "Sales tax", state.rate, local, place)
        if tax_class == "reduced" and any(groceries):
            return self._charged("AA", "Grocery sales tax", *groceries, place)
        return Tax("E", _ZERO, "Non-taxable", f"Non-taxable items are exempt from {state.name} sales tax.")

    def _charged(self, category: str, label: str, state: Decimal, local: Decimal, place: Place) -> Tax:
        combined = Decimal(plain(state + local))
        total, own, town = (locales.percent(rate, self.locale) for rate in (combined, state, local))
        if not local:
            return Tax(category, combined, f"{place.region} {label[0].lower()}{label[1:]} {total}")
        if not state:
            return Tax(category, combined, f"{place.city} {label[0].lower()}{label[1:]} {total}")
        return Tax(category, combined, f"{label} {total} ({place.region} {own} + local {town})")
