"""South Africa: VAT at 15 per cent and at zero, and what section 20 of the VAT Act wants on a tax invoice."""

from __future__ import annotations

from decimal import Decimal

from stdnum import luhn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class SouthAfrica(ValueAddedTax):
    """South African law and customs."""

    code = "ZA"
    locales = ("en-ZA",)
    rates = {"standard": ("S", Decimal(15)), "zero": ("Z", NOTHING)}
    tax_names = {"en": "VAT"}
    service_abroad = "G"
    winters = False
    southern = True
    holidays = frozenset(((1, 1), (3, 21), (4, 27), (5, 1), (6, 16), (8, 9), (9, 24), (12, 16), (12, 25), (12, 26)))
    closed = frozenset(((12, 25),))
    net_days = {30: 60, 14: 10, 7: 12, 60: 6, 0: 12}
    cash_step = Decimal("0.10")
    address_form = ("{number} {street}", "{city}", "{postcode}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both print their VAT number, a seller its company's as well."""
        number = Registration("ZA:VAT", "VAT No.", _vat_number(draws))
        if not seller:
            return (number,)
        year, count = draws.integer("year", 1996, 2022), draws.integer("company", 990_000, 999_999)
        return (number, Registration("ZA:REG", "Reg. No.", f"{year}/{count}/{'23' if form == 'CC' else '07'}"))

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, branch code, account number and who holds it."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        branch = registrations.drawn_digits(registrations.of_bank(bank), "bank code", 4)
        return (
            ("bank_name", "Bank", bank),
            ("routing_number", "Branch code", f"99{branch}"),
            ("account_number", "Account No.", f"{draws.integer('account', 10**9, 10**10 - 1)}"),
            ("account_holder", "Account holder", holder),
        )


def _vat_number(draws: Draws) -> str:
    """From 499… on: numbers begin with 4, and the Revenue Service has not counted so far."""
    body = f"499{registrations.drawn_digits(draws, 'vat', 6)}"
    return f"{body}{luhn.calc_check_digit(body)}"
