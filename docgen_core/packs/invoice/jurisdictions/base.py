"""What a jurisdiction must answer, and what all of them share.

A jurisdiction knows its law and its customs: who is registered how, what is taxed at what rate,
what must be printed, when bills are due, and how all this is worded. What does not belong here:
amounts (arithmetic), and which products a document lists (billing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Protocol

from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.calendar_days import MonthDay
from docgen_core.packs.invoice.model import Registration, TaxLine
from docgen_core.packs.invoice.places import Place

Account = tuple[tuple[str, str, str], ...]
"""A bank account: (column of `invoices`, label as printed, value), in printed order."""


@dataclass(frozen=True, slots=True)
class Terms:
    """When the amount due is to be paid."""

    text: str
    due: date


@dataclass(frozen=True, slots=True)
class Facts:
    """What mandatory mentions depend on."""

    kind: str
    """`invoice` or `receipt`."""
    issue_date: date
    service_from: date
    service_to: date
    tax_lines: Sequence[TaxLine]


class Jurisdiction(Protocol):
    """The law and customs of one country."""

    code: str
    """ISO 3166-1 alpha-2."""
    locale: str
    """The locale its companies write in."""
    paper: str
    """`A4` or `Letter`."""
    month_units: frozenset[str]
    """Units that are the month itself; a quantity in one says how many months a period has."""

    holidays: frozenset[MonthDay]
    """Public holidays of a fixed day; offices neither work nor write then."""
    closed: frozenset[MonthDay]
    """Days on which a shop is shut; its week has seven days."""

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """An invented address in the town, in the form of the country's post."""

    def phone(self, draws: Draws, place: Place) -> str:
        """A telephone number that nobody has."""

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """The numbers that a seller must print, or that a buyer is billed under."""

    def account(self, draws: Draws, holder: str) -> Account:
        """The account that a seller is paid on."""

    def tax(self, tax_class: str, place: Place) -> Tax:
        """What is charged on a product of the class (of those in the catalogue's `jurisdictions.toml`) in the place."""

    def rounding(self, draws: Draws) -> RoundingPolicy:
        """The policy a company keeps, among those the law allows."""

    def terms(self, draws: Draws, issued: date) -> Terms:
        """A company's terms (from its own draws), and what they mean for a document of this day."""

    def paid(self, draws: Draws) -> str:
        """What a receipt says instead of terms; from the document's draws."""

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """What the law wants printed, beyond numbers and dates."""

    def closing(self, draws: Draws) -> str:
        """Friendly words that a company ends its documents with, or nothing."""

    def period(self, first: date, last: date) -> str:
        """A service period, as the small print of a line."""

    def delivery(self, day: date) -> str:
        """A delivery's day, as the small print of a line."""

    def work(self, day: date) -> str:
        """A day of work, as the small print of a line."""

    def band(self, above: Decimal, up_to: Decimal | None, unit: str) -> str:
        """The limits of a graduated price's tier: more than `above`, up to `up_to` included, or without end."""
