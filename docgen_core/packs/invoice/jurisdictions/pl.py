"""Poland: VAT at 23, 8 and 5 per cent, and what article 106e of the VAT act wants on a faktura."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from stdnum.pl import nip, regon

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_SPLIT_PAYMENT_ABOVE = Decimal(15_000)
"""Gross złote above which goods of annex 15 are paid into two accounts; sellers print it on whatever is dearer."""
_SPLIT_PAYMENT = "Mechanizm podzielonej płatności."


class Poland(ValueAddedTax):
    """Polish law and customs."""

    code = "PL"
    locales = ("pl-PL",)
    european = True
    rates = {"standard": ("S", Decimal(23)), "reduced": ("AA", Decimal(8)), "food": ("AA", Decimal(5))}
    tax_names = {"pl": "VAT"}
    holidays = frozenset(((1, 1), (1, 6), (5, 1), (5, 3), (8, 15), (11, 1), (11, 11), (12, 25), (12, 26)))
    closed = holidays
    net_days = {14: 42, 30: 24, 7: 14, 21: 10, 45: 5, 60: 3, 0: 2}
    street = "ul. {name}"
    house_numbers = (1, 160)

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both sides print their NIP; the seller mostly its REGON and, what is a company, its number in the KRS."""
        number = _tax_number(draws)
        if not seller:
            return (Registration("PL:VAT", "NIP", number),)
        known_abroad = draws.chance("with letters", 350)
        tax_id = Registration("PL:VAT", "NIP", f"PL{nip.compact(number)}" if known_abroad else number)
        court = Registration("PL:REG", "KRS", f"0009{registrations.drawn_digits(draws, 'court', 6)}")
        if draws.chance("no statistical number", 250):
            return (tax_id, court)
        return (tax_id, Registration("PL:TAX", "REGON", _statistical_number(draws)), court)

    def untaxed(self, category: str) -> Tax:
        """What charges nothing: letters in the place of a rate, but for the rate of zero."""
        tax = super().untaxed(category)
        letters = self.customs.categories[category]
        return replace(tax, label=f"VAT {letters}") if category in ("E", "AE", "O") else tax

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank and account number, written as an IBAN; seldom a BIC."""
        bank, number, bic = super().account(draws, holder)
        number = ("iban", draws.choice("account label", ("Nr rachunku", "Nr konta", "Rachunek")), number[2])
        return (bank, number, ("bic", "SWIFT", bic[2])) if draws.chance("bic printed", 250) else (bank, number)

    def iban(self, draws: Draws, bank: str) -> str:
        """Eight digits of the bank, the last its check digit; the first is 0, which no bank's number is."""
        code = f"0{registrations.drawn_digits(registrations.of_bank(bank), 'bank code', 6)}"
        check = -sum(weight * int(digit) for weight, digit in zip((3, 9, 7, 1, 3, 9, 7), code, strict=True)) % 10
        return registrations.with_check_digits("PL", f"{code}{check}{registrations.drawn_digits(draws, 'account', 16)}")

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """Above 15,000 złote gross, that the buyer pays by split payment (art. 106e ust. 1 pkt 18a)."""
        gross = sum((tax.base + tax.tax for tax in facts.tax_lines), Decimal(0))
        return (*super().mentions(facts), *((_SPLIT_PAYMENT,) if gross > _SPLIT_PAYMENT_ABOVE else ()))


def _tax_number(draws: Draws) -> str:
    """NIP with its check digit and 00 in the second and third place, where no tax office has that."""
    body = f"{draws.integer('tax office', 1, 9)}00{registrations.drawn_digits(draws, 'nip', 6)}"
    while (check := (nip.checksum(f"{body}0"))) == 10:  # such a number is passed over
        body = f"{(int(body) + 1):09d}"
    return str(nip.format(f"{body}{check}"))


def _statistical_number(draws: Draws) -> str:
    """REGON with its check digit, beginning with 99, which the register has not come to."""
    body = f"99{registrations.drawn_digits(draws, 'regon', 6)}"
    return f"{body}{regon.calc_check_digit(body)}"
