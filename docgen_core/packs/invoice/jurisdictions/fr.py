"""France: TVA at 20, 10, 5.5 and 2.1 per cent, and what articles L441-9 and L441-10 of the Code de commerce want."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from stdnum import luhn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.calendar_days import month_end
from docgen_core.packs.invoice.jurisdictions.base import Facts, Terms
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_MONTH_END_PER_MILLE = 260
_MONTH_END_DAYS = 45
"""The most that article L441-10 allows from the invoice to the end of a month."""

_LATE = (
    "En cas de retard de paiement : pénalités au taux de trois fois le taux d'intérêt légal et indemnité "
    "forfaitaire pour frais de recouvrement de 40 € (art. L441-10 du Code de commerce). Pas d'escompte "
    "pour paiement anticipé."
)


class France(ValueAddedTax):
    """French law and customs."""

    code = "FR"
    locales = ("fr-FR",)
    european = True
    rates = {
        "standard": ("S", Decimal(20)),
        "intermediate": ("AA", Decimal(10)),
        "reduced": ("AA", Decimal("5.5")),
        "press": ("AA", Decimal("2.1")),
    }
    bank_label = "Banque"
    tax_names = {"fr": "TVA"}
    holidays = frozenset(((1, 1), (5, 1), (5, 8), (7, 14), (8, 15), (11, 1), (11, 11), (12, 25)))
    closed = frozenset(((1, 1), (5, 1), (12, 25)))
    net_days = {30: 55, 45: 14, 60: 12, 15: 9, 0: 10}
    street = "{kind} {head} {tail}"
    address_form = ("{number} {street}", "{postcode} {city}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its TVA number, SIRET and place in the register; a buyer its TVA number."""
        siren = _siren(draws)
        vat = Registration("FR:VAT", "N° TVA intracommunautaire", _vat_number(siren))
        if not seller:
            return (vat,)
        return (
            vat,
            Registration("FR:TAX", "SIRET", _siret(draws, siren)),
            Registration("FR:REG", "RCS", f"{place.facts['court']} {_grouped(siren)}"),
        )

    def iban(self, draws: Draws, bank: str) -> str:
        """A bank code that begins with 9, which is no bank's; the two digits of the RIB key end it."""
        codes = registrations.of_bank(bank)
        bank_code = f"9{registrations.drawn_digits(codes, 'bank code', 4)}"
        body = f"{bank_code}{registrations.drawn_digits(codes, 'branch', 5)}{_account(draws)}"
        return registrations.with_check_digits(self.code, f"{body}{_RIB_MODULUS - int(body) * 100 % _RIB_MODULUS:02d}")

    def terms(self, draws: Draws, issued: date) -> Terms:
        """So many days from the invoice, or from it to the end of a month."""
        if not draws.chance("month end", _MONTH_END_PER_MILLE):
            return super().terms(draws, issued)
        due = month_end(issued + timedelta(days=_MONTH_END_DAYS))
        wordings = (f"Virement à {_MONTH_END_DAYS} jours fin de mois", f"Paiement {_MONTH_END_DAYS} jours fin de mois")
        return Terms(draws.choice("terms", wordings), due)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """Why something is not taxed, and what a late payer owes."""
        reasons = super().mentions(facts)
        return (*reasons, _LATE) if facts.kind == "invoice" else reasons


_RIB_MODULUS = 97


def _account(draws: Draws) -> str:
    return registrations.drawn_digits(draws, "account", 11)


def _siren(draws: Draws) -> str:
    """From 29…: numbers that begin with 2 are those of local authorities, so no company has one."""
    body = f"29{registrations.drawn_digits(draws, 'siren', 6)}"
    return f"{body}{luhn.calc_check_digit(body)}"


def _siret(draws: Draws, siren: str) -> str:
    """The company's number, and that of one of its first establishments."""
    body = f"{siren}{draws.integer('establishment', 1, 6):04d}"
    digits = f"{body}{luhn.calc_check_digit(body)}"
    return f"{_grouped(siren)} {digits[9:]}"


def _vat_number(siren: str) -> str:
    return f"FR {int(f'{siren}12') % 97:02d} {_grouped(siren)}"


def _grouped(siren: str) -> str:
    return f"{siren[:3]} {siren[3:6]} {siren[6:]}"
