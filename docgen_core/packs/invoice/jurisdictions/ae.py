"""United Arab Emirates: VAT at 5 per cent, exports at zero, and what the Tax Authority wants on a tax invoice."""

from __future__ import annotations

from decimal import Decimal

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Emirates(ValueAddedTax):
    """Emirati law and customs, as English documents follow them."""

    code = "AE"
    locales = ("en-AE",)
    rates = {"standard": ("S", Decimal(5)), "zero": ("Z", NOTHING)}
    tax_names = {"en": "VAT"}
    service_abroad = "G"
    winters = False
    holidays = frozenset(((1, 1), (12, 2), (12, 3)))
    closed = frozenset(((12, 2),))
    net_days = {30: 50, 60: 18, 15: 10, 90: 4, 0: 12}
    bban = "9bbaaaaaaaaaaaaaaaa"
    """Bank codes begin with 0."""
    house_numbers = (2, 940)
    street = "{head}"
    address_form = ("{street} {number}, {area}", "P.O. Box {postcode}", "{city}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both print their tax registration number, a seller its trade licence as well."""
        number = Registration("AE:VAT", "TRN", f"999{registrations.drawn_digits(draws, 'trn', 12)}")
        if not seller:
            return (number,)
        return (
            number,
            Registration("AE:REG", "Trade Licence No.", f"99{registrations.drawn_digits(draws, 'licence', 5)}"),
        )
