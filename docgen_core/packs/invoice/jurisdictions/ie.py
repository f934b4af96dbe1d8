"""Ireland: VAT at 23, 13.5 and 9 per cent and at zero, and what the Revenue wants on an invoice."""

from __future__ import annotations

from decimal import Decimal

from stdnum.ie import vat

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Ireland(ValueAddedTax):
    """Irish law and customs."""

    code = "IE"
    locales = ("en-IE",)
    european = True
    rates = {
        "standard": ("S", Decimal(23)),
        "reduced": ("AA", Decimal("13.5")),
        "second_reduced": ("AA", Decimal(9)),
        "zero": ("Z", NOTHING),
    }
    tax_names = {"en": "VAT"}
    holidays = frozenset(((1, 1), (3, 17), (12, 25), (12, 26)))
    closed = frozenset(((12, 25),))
    net_days = {30: 60, 14: 18, 60: 6, 7: 8, 0: 8}
    cash_step = Decimal("0.05")
    bban = "BBBB00bbbbaaaaaaaa"
    """Irish sort codes begin with 9."""
    phone_pattern = "020 91# ####"
    """Kept free by the regulator for use in drama."""
    address_form = ("{number} {street}", "{city}", "Co. {region}", "{postcode}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its VAT and its company number; a buyer its VAT number."""
        number = Registration("IE:VAT", "VAT No.", _vat_number(draws))
        if not seller:
            return (number,)
        company = registrations.drawn_digits(draws, "company", 5)
        return (number, Registration("IE:REG", "Company Reg. No.", f"9{company}"))


def _vat_number(draws: Draws) -> str:
    """A company's, beyond 9 990 000, to where the Revenue has not counted."""
    body = f"999{registrations.drawn_digits(draws, 'vat', 4)}"
    return f"IE{body}{vat.calc_check_digit(f'{body}H')}H"
