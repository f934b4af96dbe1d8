"""The Netherlands: btw at 21 and 9 per cent, and what article 35a of the Wet op de omzetbelasting wants."""

from __future__ import annotations

from decimal import Decimal

from stdnum.nl import bsn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_CODE_LETTERS = "ABCDEGHJKLMNPRTVWXZ"
"""Letters of Dutch postcodes; the pairs SA, SD and SS are never used, so no S is drawn."""


class Netherlands(ValueAddedTax):
    """Dutch law and customs."""

    code = "NL"
    locales = ("nl-NL",)
    european = True
    rates = {"standard": ("S", Decimal(21)), "reduced": ("AA", Decimal(9))}
    tax_names = {"nl": "Btw"}
    deposits = (Decimal("3.90"), Decimal("0.15"))
    holidays = frozenset(((1, 1), (4, 27), (12, 25), (12, 26)))
    closed = frozenset(((1, 1), (12, 25)))
    net_days = {30: 46, 14: 32, 8: 8, 21: 7, 60: 5, 0: 2}
    bban = "BBBB0aaaaaaaaa"
    """Banks whose letters no bank in service has."""
    street = "{head}{end}"
    house_numbers = (1, 240)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Street and number; postcode with its letters, and town."""
        street, _ = super().address(draws, place)
        letters = "".join(draws.choice(f"postcode letter {n}", _CODE_LETTERS) for n in (1, 2))
        return (street, f"{place.postcode} {letters} {place.city}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its btw-id and its number at the Kamer van Koophandel; most buyers the first."""
        vat_id = Registration("NL:VAT", "Btw-id", _vat_id(draws))
        if not seller:
            return (vat_id,) if draws.chance("vat printed", 600) else ()
        return (vat_id, Registration("NL:REG", "KvK", _chamber_number(draws)))


def _vat_id(draws: Draws) -> str:
    """Btw-id of a company, on a number beginning with 9999, where companies' own do not lie, as far as we know."""
    serial = draws.integer("vat", 0, 9_999)
    bodies = (f"9999{(serial + step) % 10_000:04d}" for step in range(10_000))
    number = next(f"{body}{check}" for body in bodies for check in range(10) if bsn.is_valid(f"{body}{check}"))
    return f"NL{number}B01"


def _chamber_number(draws: Draws) -> str:
    """Eight digits, beginning with 00: the chambers' counts begin with 01."""
    return f"00{registrations.drawn_digits(draws, 'chamber', 6)}"
