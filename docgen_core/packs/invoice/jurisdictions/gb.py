"""United Kingdom: VAT at 20 and 5 per cent and at zero, and what VAT Notice 700 wants on an invoice."""

from __future__ import annotations

from decimal import Decimal

from stdnum.gb import vat as vat_numbers

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class UnitedKingdom(ValueAddedTax):
    """British law and customs."""

    code = "GB"
    locales = ("en-GB",)
    rates = {
        "standard": ("S", Decimal(20)),
        "reduced": ("AA", Decimal(5)),
        "zero": ("Z", NOTHING),
    }
    tax_names = {"en": "VAT"}
    holidays = frozenset(((1, 1), (12, 25), (12, 26)))
    closed = frozenset(((12, 25),))
    net_days = {30: 55, 14: 20, 7: 10, 28: 8, 60: 4, 0: 3}
    bban = "BBBB00bbbbaaaaaaaa"
    """Sort codes that begin with 00 belong to no bank."""
    street = "{head} {end}"
    address_form = ("{number} {street}", "{city}", "{postcode}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its VAT and its company number; most buyers their VAT number."""
        vat = Registration("GB:VAT", "VAT No.", _vat_number(draws))
        if not seller:
            return (vat,) if draws.chance("vat printed", 500) else ()
        return (vat, Registration("GB:REG", "Company No.", _company_number(draws, place.region)))

    def account(self, draws: Draws, holder: str) -> Account:
        """Sort code and account number, or IBAN and BIC."""
        if draws.chance("iban", 350):
            return super().account(draws, holder)
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        return (
            ("bank_name", "Bank", bank),
            ("routing_number", "Sort code", _sort_code(bank)),
            ("account_number", "Account No.", f"{draws.integer('account', 0, 99_999_999):08d}"),
            ("account_holder", "Account name", holder),
        )


def _vat_number(draws: Draws) -> str:
    """From the range 999 0001 to 999 9999, which the Revenue leaves out of the numbers it gives out."""
    body = f"{draws.integer('vat', 9_990_001, 9_999_999)}"
    check = next(check for check in range(97) if not vat_numbers.checksum(f"{body}{check:02d}"))
    return f"GB {vat_numbers.format(f'{body}{check:02d}')}"


_REGISTERS = {"SCT": "SC", "NIR": "NI"}
"""Scotland and Northern Ireland count companies apart."""


def _company_number(draws: Draws, region: str) -> str:
    """Beyond what Companies House has counted to: 99 and six digits, or 99 and four in the smaller registers."""
    prefix = _REGISTERS.get(region, "")
    return f"{prefix}99{registrations.drawn_digits(draws, 'company', 6 - len(prefix))}"


def _sort_code(bank: str) -> str:
    """Of the codes beginning with 00, which no bank has; the same in its IBANs."""
    digits = registrations.drawn_digits(registrations.of_bank(bank), "bank code", 4)
    return f"00-{digits[:2]}-{digits[2:]}"
