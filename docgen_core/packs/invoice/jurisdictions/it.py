"""Italy: IVA at 22, 10 and 4 per cent, and what article 21 of D.P.R. 633/1972 wants on an invoice.

Since 2019 the invoice itself is an electronic one, sent through the Sistema di Interscambio; what
is printed is a courtesy copy of it.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from stdnum import luhn
from stdnum.it import codicefiscale

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.calendar_days import month_end
from docgen_core.packs.invoice.jurisdictions.base import Facts, Terms
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_MONTH_END_PER_MILLE = 380
_MONTH_END_DAYS = {30: 60, 60: 40}

_COURTESY_COPY = (
    "Copia di cortesia: la fattura elettronica è trasmessa tramite il Sistema di Interscambio (art. 1 D.Lgs. 127/2015)."
)

_STAMPED_ABOVE = Decimal("77.47")
"""Exempt sums above it bear a stamp duty of two euros, which the seller pays."""
_STAMP = "Imposta di bollo assolta in modo virtuale (D.M. 17 giugno 2014)."


class Italy(ValueAddedTax):
    """Italian law and customs."""

    code = "IT"
    locales = ("it-IT",)
    european = True
    rates = {
        "standard": ("S", Decimal(22)),
        "reduced": ("AA", Decimal(10)),
        "press": ("AA", Decimal(4)),
    }
    bank_label = "Banca"
    tax_names = {"it": "IVA"}
    withholdings = dict.fromkeys(("architecture_office", "translation_bureau"), ("Ritenuta d'acconto", Decimal(20)))
    withheld_forms = frozenset(("Studio Associato",))
    """Partners are taxed for what it earns; companies pay their own tax."""
    holidays = frozenset(
        ((1, 1), (1, 6), (4, 25), (5, 1), (6, 2), (8, 15), (11, 1), (12, 8), (12, 25), (12, 26)),
    )
    closed = frozenset(((1, 1), (12, 25)))
    net_days = {30: 48, 60: 24, 15: 8, 45: 6, 0: 14}
    street = "{kind} {head} {tail}"
    address_form = ("{street}, {number}", "{postcode} {city} ({region})")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its partita IVA and, if registered, REA number; a buyer partita IVA and recipient code."""
        vat = Registration("IT:VAT", "P. IVA", f"IT{_vat_number(draws, place.facts['office'])}")
        if not seller:
            return (vat, Registration("IT:TAX", "Codice destinatario", _recipient_code(draws)))
        if form in self.withheld_forms:
            return (vat,)
        return (vat, Registration("IT:REG", "REA", f"{place.region}-{draws.integer('rea', 9_000_000, 9_899_999)}"))

    def iban(self, draws: Draws, bank: str) -> str:
        """A bank's ABI from 95…, which is no bank's, its CAB and an account, under the control letter CIN."""
        codes = registrations.of_bank(bank)
        office = f"95{registrations.drawn_digits(codes, 'bank code', 3)}{registrations.drawn_digits(codes, 'cab', 5)}"
        body = f"{office}{registrations.drawn_digits(draws, 'account', 12)}"
        return registrations.with_check_digits(self.code, f"{codicefiscale.calc_check_digit(body)}{body}")

    def terms(self, draws: Draws, issued: date) -> Terms:
        """So many days from the invoice, or from it to the end of a month."""
        if not draws.chance("month end", _MONTH_END_PER_MILLE):
            return super().terms(draws, issued)
        days = draws.weighted("month end days", _MONTH_END_DAYS)
        wordings = (f"Bonifico {days} gg data fattura fine mese", f"Bonifico bancario {days} gg D.F.F.M.")
        return Terms(draws.choice("terms", wordings), month_end(issued + timedelta(days=days)))

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """Why something is not taxed, the stamp duty on what is exempt, and what this paper is."""
        reasons = super().mentions(facts)
        if facts.kind == "receipt":
            return reasons
        exempt = sum(line.base for line in facts.tax_lines if line.category == "E")
        return (*reasons, *((_STAMP,) if exempt > _STAMPED_ABOVE else ()), _COURTESY_COPY)


def _vat_number(draws: Draws, office: str) -> str:
    """From seven millions on in the province's count: none has come near, and 8 and 9 begin other codes."""
    body = f"7{registrations.drawn_digits(draws, 'partita iva', 6)}{office}"
    return f"{body}{luhn.calc_check_digit(body)}"


_RECIPIENT_LETTERS = "BCDFGHKLMNPQRTVWXZ"


def _recipient_code(draws: Draws) -> str:
    """Letters and digits in the shape of the Sistema di Interscambio's codes, which have no check digit."""
    letters = [draws.choice(f"recipient {place}", _RECIPIENT_LETTERS) for place in range(4)]
    return f"{letters[0]}00{''.join(letters[1:])}{draws.integer('recipient digit', 0, 9)}"
