"""Switzerland: MWST at 8.1 and 2.6 per cent, in three languages, by the canton a company sits in."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache

from stdnum.ch import uid

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Account, Jurisdiction
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_ROMAND = frozenset(("GE", "VD", "NE", "FR", "JU", "VS"))
_TICINO = frozenset(("TI",))

_STREETS = {"de": "{head}{tail}{end}", "fr": "{kind} {head} {tail}", "it": "{kind} {head} {tail}"}
_BANKS = {"de": "Bank", "fr": "Banque", "it": "Banca"}
_NUMBERS = {"de": ("UID", "MWST"), "fr": ("IDE", "TVA"), "it": ("IDI", "IVA")}


class Switzerland(ValueAddedTax):
    """Swiss law and customs."""

    code = "CH"
    locales = ("de-CH", "fr-CH", "it-CH")
    speakers = {"fr-CH": _ROMAND, "it-CH": _TICINO}
    rates = {"standard": ("S", Decimal("8.1")), "reduced": ("AA", Decimal("2.6"))}
    tax_names = {"de": "MWST", "fr": "TVA", "it": "IVA"}
    holidays = frozenset(((1, 1), (1, 2), (8, 1), (12, 25), (12, 26)))
    closed = frozenset(((1, 1), (8, 1), (12, 25)))
    net_days = {30: 72, 10: 10, 14: 6, 20: 6, 60: 6}
    cash_step = Decimal("0.05")
    total_step = Decimal("0.05")
    bban = "98bbbaaaaaaaaaaaa"
    """Clearing numbers from 90000 on are no bank's."""

    def on(self, day: date) -> Jurisdiction:
        """Until the end of 2023 the rates were 7.7 and 2.5 per cent."""
        return self if day >= _RAISED else _before(self.locale)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Street and number, postcode and town, in the language of the place."""
        name = places.street(draws, self.locale, _STREETS[self.language])
        return (f"{name[0].upper()}{name[1:]} {draws.integer('number', 1, 160)}", f"{place.postcode} {place.city}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its UID with the mark of those who charge the tax; few buyers print theirs."""
        label, mark = _NUMBERS[self.language]
        number = Registration("CH:VAT", label, f"{_uid(draws)} {mark}")
        return (number,) if seller or draws.chance("uid printed", 250) else ()

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, IBAN and BIC."""
        (_, _, bank), iban, bic = super().account(draws, holder)
        return (("bank_name", _BANKS[self.language], bank), iban, bic)


def _uid(draws: Draws) -> str:
    """From 999 on: the register has counted to the four hundreds. Some bodies have no check digit, and no number."""
    for turn in range(100):
        body = f"999{registrations.drawn_digits(draws, f'uid {turn}', 5)}"
        check = uid.calc_check_digit(body)
        if check != "10":
            return str(uid.format(f"CHE{body}{check}"))
    raise AssertionError("one body in eleven has no check digit, never a hundred in a row")


_RAISED = date(2024, 1, 1)


class _Before(Switzerland):
    """Swiss law until the rates were raised."""

    rates = {"standard": ("S", Decimal("7.7")), "reduced": ("AA", Decimal("2.5"))}


@cache
def _before(locale: str) -> Switzerland:
    return _Before(locale)
