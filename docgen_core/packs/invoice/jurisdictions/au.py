"""Australia: GST at 10 per cent, nothing on basic food, and what the Tax Office wants on a tax invoice."""

from __future__ import annotations

from decimal import Decimal

from stdnum.au import abn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Australia(ValueAddedTax):
    """Australian law and customs."""

    code = "AU"
    locales = ("en-AU",)
    rates = {"standard": ("S", Decimal(10)), "zero": ("Z", NOTHING)}
    tax_names = {"en": "GST"}
    service_abroad = "G"
    winters = False
    southern = True
    holidays = frozenset(((1, 1), (1, 26), (4, 25), (12, 25), (12, 26)))
    closed = frozenset(((4, 25), (12, 25)))
    net_days = {30: 40, 14: 30, 7: 18, 21: 6, 0: 6}
    cash_step = Decimal("0.05")
    deposits = (Decimal("2.40"), Decimal("0.10"))
    address_form = ("{number} {street}", "{city} {region} {postcode}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Sellers print their ABN, and so do most buyers."""
        number = Registration("AU:VAT", "ABN", _abn(draws))
        return (number,) if seller or draws.chance("abn printed", 600) else ()

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, BSB, account number and who holds it."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        digits = registrations.drawn_digits(registrations.of_bank(bank), "bank code", 4)
        return (
            ("bank_name", "Bank", bank),
            ("routing_number", "BSB", f"99{digits[0]}-{digits[1:]}"),
            ("account_number", "Account No.", f"{draws.integer('account', 10_000_000, 99_999_999)}"),
            ("account_holder", "Account name", holder),
        )


def _abn(draws: Draws) -> str:
    """On a company number beyond 999 000 000: the register has not counted to 700 million."""
    body = f"999{registrations.drawn_digits(draws, 'abn', 6)}"
    return str(abn.format(f"{abn.calc_check_digits(body)}{body}"))
