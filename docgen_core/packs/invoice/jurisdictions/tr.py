"""Türkiye: KDV at 20, 10 and 1 per cent, and what article 230 of the Vergi Usul Kanunu wants on a fatura."""

from __future__ import annotations

from decimal import Decimal

from stdnum.tr import vkn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account
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
    holidays = frozenset(((1, 1), (4, 23), (5, 1), (5, 19), (7, 15), (8, 30), (10, 29)))
    closed = frozenset(((1, 1),))
    net_days = {30: 40, 60: 18, 15: 12, 45: 12, 90: 8, 7: 4, 0: 6}
    bban = "9bbbb0aaaaaaaaaaaaaaaa"
    """Banks' codes begin with 00; the sixth digit is always 0."""
    street = "{quarter} Mah. {head} {end}"
    house_numbers = (1, 140)
    address_form = ("{street} No: {number}", "{postcode} {city} / {region}")

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
        name = ("bank_name", "Banka", bank[2])
        if draws.chance("no branch", 400):
            return (name, iban)
        return (
            name,
            ("bank_branch", "Şube", draws.choice("branch", places.name_parts(self.locale)["bank"]["branches"])),
            iban,
        )


def _tax_number(draws: Draws) -> str:
    """Ten digits with the check digit. No range is kept free; those in use do not begin with 000."""
    body = f"000{registrations.drawn_digits(draws, 'tax number', 6)}"
    return f"{body}{vkn.calc_check_digit(body)}"
