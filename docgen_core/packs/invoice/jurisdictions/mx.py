"""Mexico: IVA at 16 per cent, 8 along the northern border, and at zero; data of a CFDI without its fiscal seal."""

from __future__ import annotations

from decimal import Decimal

from stdnum.mx import rfc

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_BORDER_RATE = Decimal(8)
_NO_INTERIOR_PER_MILLE = 620

_CFDI = (
    "Régimen fiscal: 601 General de Ley Personas Morales. Uso del CFDI: {use}. "
    "Forma de pago: 03 Transferencia electrónica de fondos."
)
_EXPENSES, _RETURNS = "G03 Gastos en general", "G02 Devoluciones, descuentos o bonificaciones"


class Mexico(ValueAddedTax):
    """Mexican law and customs."""

    code = "MX"
    locales = ("es-MX",)
    paper = "Letter"
    rates = {
        "standard": ("S", Decimal(16)),
        "zero": ("Z", NOTHING),
    }
    tax_names = {"es": "IVA"}
    withholdings = {
        "courier_logistics": ("Retención IVA", Decimal(4)),
    }
    tip_percents = (10, 15)
    winters = False
    holidays = frozenset(((1, 1), (5, 1), (9, 16), (12, 25)))
    closed = frozenset(((1, 1), (12, 25)))
    net_days = {30: 44, 15: 18, 8: 6, 60: 8, 0: 24}
    street = "{kind} {head} {tail}"
    house_numbers = (12, 2980)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Street and number, the quarter, then postcode, town and state."""
        parts = places.name_parts(self.locale)
        line = f"{places.street(draws, self.locale, self.street)} {draws.integer('number', *self.house_numbers)}"
        if not draws.chance("no interior", _NO_INTERIOR_PER_MILLE):
            line += f", {draws.choice('interior', parts['suites'])}"
        quarter = f"Col. {draws.choice('quarter', parts['quarters'])}"
        return (line, quarter, f"C.P. {place.postcode} {place.city}, {place.region}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Sellers and buyers alike print their RFC."""
        return (Registration("MX:VAT", "RFC", _rfc(draws)),)

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, CLABE and who holds the account."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        return (
            ("bank_name", "Banco", bank),
            ("account_number", "CLABE", _clabe(draws, bank)),
            ("account_holder", "Beneficiario", holder),
        )

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The same everywhere, but for the towns along the northern border (decree of 31 December 2018)."""
        category, rate = self.rates[tax_class]
        return self.charged(category, _BORDER_RATE if rate and place.facts["border"] == "yes" else rate)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """Why something is not taxed, and the keys that the tax authority's catalogues give the document."""
        reasons = super().mentions(facts)
        if facts.kind == "receipt":
            return reasons
        return (*reasons, _CFDI.format(use=_RETURNS if facts.kind == "credit_note" else _EXPENSES))


_RFC_CONSONANTS = "BCDFGHJKLMNPQRSTVXZ"
_HOMOCLAVE = "123456789ABCDEFGHIJKLMNPQRSTUVWXYZ"


def _rfc(draws: Draws) -> str:
    """Of a company founded on 1 January, a day on which no notary signs a deed."""
    letters = "".join(draws.choice(f"letter {place}", _RFC_CONSONANTS) for place in range(3))
    head = "".join(
        draws.choice(f"homoclave {place}", signs) for place, signs in enumerate((_HOMOCLAVE[:30], _HOMOCLAVE))
    )
    body = f"{letters}{draws.integer('year', 71, 99)}0101{head}"
    return f"{body}{rfc.calc_check_digit(body)}"


_CLABE_WEIGHTS = (3, 7, 1)


def _clabe(draws: Draws, bank: str) -> str:
    """A bank key from 99…, which no bank is known to have, then town, account and check digit."""
    codes = registrations.of_bank(bank)
    branch = f"99{registrations.drawn_digits(codes, 'bank code', 1)}{registrations.drawn_digits(codes, 'town', 3)}"
    body = f"{branch}{registrations.drawn_digits(draws, 'account', 11)}"
    total = sum(int(digit) * _CLABE_WEIGHTS[place % 3] % 10 for place, digit in enumerate(body))
    return f"{body}{-total % 10}"
