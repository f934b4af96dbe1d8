"""Türkiye: KDV at 20, 10 and 1 per cent, and what article 230 of the Vergi Usul Kanunu wants on a fatura."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache

from stdnum.tr import vkn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account, Jurisdiction
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Turkiye(ValueAddedTax):
    """Turkish law and customs."""

    code = "TR"
    locales = ("tr-TR",)
    rates = {
        "standard": ("S", Decimal(20)),
        "reduced": ("AA", Decimal(10)),
        "food": ("AA", Decimal(1)),
        "exempt": ("E", Decimal(0)),
    }
    tax_names = {"tr": "KDV"}
    service_abroad = "G"
    bank_label = "Banka"
    holidays = frozenset(((1, 1), (4, 23), (5, 1), (5, 19), (7, 15), (8, 30), (10, 29)))
    closed = frozenset(((1, 1),))
    net_days = {30: 40, 60: 18, 15: 12, 45: 12, 90: 8, 7: 4, 0: 6}
    bban = "9bbbb0aaaaaaaaaaaaaaaa"
    """Banks' codes begin with 00; the sixth digit is always 0."""
    street = "{quarter} Mah. {head} {end}"
    house_numbers = (1, 140)
    address_form = ("{street} No: {number}", "{postcode} {city} / {region}")

    def on(self, day: date) -> Jurisdiction:
        """Before 10 July 2023 the rates were 18, 8 and 1 per cent (decision 7346)."""
        return self if day >= _RAISED else _before()

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Quarter, street and number, often floor and door; postcode, district and province."""
        street, town = super().address(draws, place)
        if draws.chance("has floor", 350):
            street = f"{street} Kat: {draws.integer('floor', 1, 9)} D: {draws.integer('door', 1, 36)}"
        return (street, town)

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both sides print tax office and number; the seller often its number in the trade register."""
        taxed = (
            Registration("TR:TAX", "Vergi Dairesi", place.facts["tax_office"]),
            Registration("TR:VAT", "VKN", _tax_number(draws)),
        )
        if not seller or draws.chance("no register", 450):
            return taxed
        return (
            *taxed,
            Registration("TR:REG", "Ticaret Sicil No", f"9{registrations.drawn_digits(draws, 'register', 6)}"),
        )

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, mostly its branch, and IBAN."""
        bank, iban, _ = super().account(draws, holder)
        if draws.chance("no branch", 400):
            return (bank, iban)
        return (
            bank,
            ("bank_branch", "Şube", draws.choice("branch", places.name_parts(self.locale)["bank"]["branches"])),
            iban,
        )


def _tax_number(draws: Draws) -> str:
    """Ten digits with the check digit. No range is kept free; those in use do not begin with 000."""
    body = f"000{registrations.drawn_digits(draws, 'tax number', 6)}"
    return f"{body}{vkn.calc_check_digit(body)}"


_RAISED = date(2023, 7, 10)


class _Before(Turkiye):
    """Turkish law until the rates were raised."""

    rates = {**Turkiye.rates, "standard": ("S", Decimal(18)), "reduced": ("AA", Decimal(8))}


@cache
def _before() -> Turkiye:
    return _Before()
