"""Countries with a value-added tax: one rate for each class of product, everywhere in the country.

A new country is a small module with its facts (rates, registrations, holidays, account), a file
of towns, and the wording of its language. What does not belong here: countries whose tax depends
on the place within them (us.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import NOTHING as NOTHING
from docgen_core.packs.invoice.jurisdictions.base import Account, Jurisdiction
from docgen_core.packs.invoice.places import Place


class ValueAddedTax(Jurisdiction):
    """A country with a value-added tax."""

    rates: ClassVar[Mapping[str, tuple[str, Decimal]]]
    """By tax class of the catalogue: UNCL 5305 category and per cent. The same category and rate
    come from one class alone."""
    exemptions: ClassVar[Mapping[str, str]] = {}
    """By locale, why class `exempt` is not taxed, where the customs' general sentence is not enough."""
    roundings: ClassVar[Mapping[RoundingPolicy, int]] = {RoundingPolicy.PER_BUCKET: 70, RoundingPolicy.PER_LINE: 30}
    bank_label: ClassVar[str] = "Bank"
    """How the name of a bank is called."""
    bban: ClassVar[str] = ""
    """What follows an IBAN's check digits: `b` a digit and `B` a letter of the bank, `a` a digit of the
    account; anything else stands for itself. Countries with check digits inside override `iban`."""

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The same everywhere in the country."""
        category, rate = self.rates[tax_class]
        return self.charged(category, rate)

    def charged(self, category: str, rate: Decimal = NOTHING) -> Tax:
        """A tax of the category as this country prints it, with its reason where it needs one."""
        if category not in ("S", "AA", "Z"):
            return self.untaxed(category)
        return Tax(category, rate, f"{self.tax_names[self.language]} {locales.percent(rate, self.locale)}")

    def untaxed(self, category: str) -> Tax:
        """What charges nothing; class `exempt` with the country's own reason, where it has one."""
        tax = super().untaxed(category)
        reason = self.exemptions.get(self.locale) if category == "E" else None
        return replace(tax, reason=reason) if reason else tax

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, IBAN and BIC."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        return (
            ("bank_name", self.bank_label, bank),
            ("iban", "IBAN", self.iban(draws, bank)),
            ("bic", "BIC", registrations.bic(self.code, bank)),
        )

    def iban(self, draws: Draws, bank: str) -> str:
        """An IBAN that nobody has, in groups of four."""
        return registrations.iban(self.code, self.bban, draws, bank)
