"""Kuwait: no value-added tax; three decimal places."""

from __future__ import annotations

from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.calendar_days import FRIDAY_SATURDAY
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_UNTAXED = Tax("O", NOTHING, "Tax 0%", "No value-added tax is levied in the State of Kuwait.")


class Kuwait(ValueAddedTax):
    """Kuwaiti law and customs, as English documents follow them."""

    code = "KW"
    locales = ("en-001",)
    levies = False
    rates = {"none": ("O", NOTHING)}
    tax_names = {"en": "Tax"}
    roundings = {RoundingPolicy.PER_BUCKET: 1}
    winters = False
    holidays = frozenset(((1, 1), (2, 25), (2, 26)))
    weekend = FRIDAY_SATURDAY
    closed = frozenset(((2, 25),))
    net_days = {30: 54, 60: 20, 15: 8, 0: 18}
    bban = "BBBB99aaaaaaaaaaaaaaaaaaaa"
    phone_pattern = "+965 0### ####"
    """No number begins with 0."""
    house_numbers = (1, 88)
    street = "{head}"
    address_form = ("{street} {number}", "{city} {postcode}", "{region}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its commercial registration; there is no tax to be registered for."""
        if not seller:
            return ()
        return (Registration("KW:REG", "C.R. No.", f"99{registrations.drawn_digits(draws, 'register', 5)}"),)

    def tax(self, tax_class: str, place: Place) -> Tax:
        """None."""
        return _UNTAXED

    def untaxed(self, category: str) -> Tax:
        """Abroad as at home."""
        return _UNTAXED

    def interest_tax(self) -> Tax:
        """As everything."""
        return _UNTAXED
