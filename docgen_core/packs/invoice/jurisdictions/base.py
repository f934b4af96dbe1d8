"""What a jurisdiction must answer, and what all of them share.

A jurisdiction knows its law and its customs: who is registered how, what is taxed at what rate,
what must be printed, when bills are due. How it words all this is data (customs.py). What does
not belong here: amounts (arithmetic), which products a document lists (billing), and value-added
taxes (vat.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import ClassVar

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.calendar_days import SATURDAY_SUNDAY, MonthDay, Rest
from docgen_core.packs.invoice.customs import customs
from docgen_core.packs.invoice.model import Registration, TaxLine
from docgen_core.packs.invoice.places import Place

NOTHING = Decimal(0)

Account = tuple[tuple[str, str, str], ...]
"""A bank account: (column of `invoices`, label as printed, value), in printed order."""

_CASH_PER_MILLE = 300
"""Receipts that are paid in cash."""
_MIDSUMMER = 7


@dataclass(frozen=True, slots=True)
class Terms:
    """When the amount due is to be paid."""

    text: str
    due: date


@dataclass(frozen=True, slots=True)
class Facts:
    """What mandatory mentions depend on."""

    kind: str
    """`invoice`, `receipt` or `credit_note`."""
    issue_date: date
    service_from: date
    service_to: date
    tax_lines: Sequence[TaxLine]


class Jurisdiction(ABC):
    """The law and customs of one country, speaking one of its locales."""

    code: ClassVar[str]
    """ISO 3166-1 alpha-2."""
    locales: ClassVar[tuple[str, ...]]
    """CLDR locales its companies write in, the usual one first."""
    paper: ClassVar[str] = "A4"
    """`A4` or `Letter`."""
    holidays: ClassVar[frozenset[MonthDay]]
    """Public holidays of a fixed day; offices neither work nor write then."""
    weekend: ClassVar[frozenset[int]] = SATURDAY_SUNDAY
    closed: ClassVar[frozenset[MonthDay]]
    """Days on which a shop is shut; its week has seven days."""
    net_days: ClassVar[Mapping[int, int]]
    """Days to pay, with how usual they are; 0 is at once."""
    roundings: ClassVar[Mapping[RoundingPolicy, int]]
    """Policies that the law allows, with how usual they are."""
    phone_pattern: ClassVar[str] = ""
    """A number nobody has: `#` is any digit. A place's own `phone` column goes before it."""
    street: ClassVar[str] = "{head} {end}"
    """A street's name of pieces in the locale's names: `{head}` is one of `street_heads`."""
    house_numbers: ClassVar[tuple[int, int]] = (1, 180)
    address_form: ClassVar[tuple[str, ...]] = ("{street} {number}", "{postcode} {city}")
    """Lines of an address in the form of the country's post: `street`, `number`, and a place's columns."""
    script: ClassVar[str] = "Latn"
    """ISO 15924 code of what its companies' names and addresses are written in."""
    cash_step: ClassVar[Decimal | None] = None
    """What a sum paid in cash is rounded to a multiple of, where the smallest coins are gone."""
    total_step: ClassVar[Decimal | None] = None
    """What the amount due of an invoice is rounded to a multiple of, where that is customary."""
    speakers: ClassVar[Mapping[str, frozenset[str]]] = {}
    """By locale, the regions whose companies write in it; the usual locale is that of all others."""
    tax_names: ClassVar[Mapping[str, str]]
    """By language, how the tax is called beside its rate: `VAT`, `USt.`, `Sales tax`."""
    european: ClassVar[bool] = False
    """Whether the country belongs to the European Union, whose members sell to one another untaxed."""
    levies: ClassVar[bool] = True
    """Whether sales are taxed at all."""
    service_abroad: ClassVar[str] = "O"
    """UNCL 5305 category of a service to a company outside the country (and outside the Union): out of
    scope where it counts as rendered there, G where it is an untaxed export."""
    withholdings: ClassVar[Mapping[str, tuple[str, Decimal]]] = {}
    """By business type, the tax that buyers in the country keep back: as printed, and per cent of the net total."""
    withheld_forms: ClassVar[frozenset[str]] = frozenset()
    """Legal forms of those it is kept back from; where none is named, of all."""
    winters: ClassVar[bool] = True
    """Whether snow falls, and nothing grows then."""
    southern: ClassVar[bool] = False
    """Whether its winter is in July."""
    deposits: ClassVar[tuple[Decimal, Decimal] | None] = None
    """Usual deposits on a case of bottles or cans and on one of them, where there are any."""
    tip_percents: ClassVar[tuple[int, ...]] = ()
    """Gratuities that caterers add, per cent of the net total, where that is customary."""

    def __init__(self, locale: str = "") -> None:
        """Speak `locale`, or the usual one."""
        self.locale = locale or self.locales[0]
        self.language = self.locale.split("-")[0]
        self.customs = customs(self.locale)
        self.rest = Rest(self.holidays, self.weekend)
        self.month_units = frozenset(self.customs.month_units)
        """Units that are the month itself; a quantity in one says how many months a period has."""

    def speaking(self, locale: str) -> Jurisdiction:
        """The same country in another of its locales. Raises KeyError for one that it has not."""
        return self if locale == self.locale else _speaking(type(self), locale)

    def on(self, day: date) -> Jurisdiction:
        """The country as its law was on the day, where rates have changed since the first that documents have."""
        return self

    @abstractmethod
    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """The numbers that a seller must print, or that a buyer is billed under.

        Schemes are `CC:` and what it is, of those in `model.REGISTRATION_COLUMNS`.
        """

    @abstractmethod
    def account(self, draws: Draws, holder: str) -> Account:
        """The account that a seller is paid on."""

    @abstractmethod
    def tax(self, tax_class: str, place: Place) -> Tax:
        """What is charged on a product of the class (of those in the catalogue's `jurisdictions.toml`) in the place."""

    def taxed(self, tax_class: str, place: Place, home: Place) -> Tax:
        """What is charged between a seller at `home` and a buyer in the place; mostly the seller's does not matter."""
        return self.tax(tax_class, place)

    def commodity_code(self, product: Row, business_type: str) -> str | None:
        """The code of goods or services that the law wants beside each line, if it does."""
        return None

    def locale_in(self, region: str) -> str:
        """What companies of the region write in."""
        return next((locale for locale, regions in self.speakers.items() if region in regions), self.locales[0])

    def untaxed(self, category: str) -> Tax:
        """What is printed of a category that charges nothing, with its reason."""
        words = self.customs
        label = f"{self.tax_names[self.language]} {locales.percent(NOTHING, self.locale)}"
        word = words.categories.get(category)
        return Tax(category, NOTHING, f"{label} ({word})" if word else label, words.reasons[category])

    def abroad(self, buyer: Jurisdiction, *, goods: bool) -> Tax:
        """What is charged to a company in another country."""
        if self.european and buyer.european:
            return self.untaxed("K" if goods else "AE")
        return self.untaxed("G" if goods else self.service_abroad)

    def in_season(self, months: Collection[int], month: int) -> bool:
        """Whether what is done in some months only, where there are winters, is done here in this one."""
        if not months:
            return True
        return month in months if self.winters else _MIDSUMMER in months

    def deposit(self, place: Place, *, case: bool) -> Decimal | None:
        """What buyers at the place pay for a case of drinks, or for one bottle or can, until they bring it back."""
        return None if self.deposits is None else self.deposits[0 if case else 1]

    def interest_tax(self) -> Tax:
        """What is printed of interest on arrears, which is no price of anything."""
        return replace(self.untaxed("O"), reason=self.customs.billing.interest_untaxed)

    def withholding(self, business_type: str, form: str) -> tuple[str, Decimal] | None:
        """What buyers in the country keep back from a company of the type and legal form, if anything."""
        if self.withheld_forms and form not in self.withheld_forms:
            return None
        return self.withholdings.get(business_type)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """An invented address in the town."""
        parts = {
            **place.facts,
            "postcode": place.postcode,
            "city": place.city,
            "region": place.region,
            "street": places.street(draws, self.locale, self.street),
            "number": draws.integer("number", *self.house_numbers),
        }
        return tuple(line.format_map(parts) for line in self.address_form)

    def phone(self, draws: Draws, place: Place) -> str:
        """A telephone number that nobody has."""
        pattern = place.facts.get("phone") or self.phone_pattern
        free = pattern.count("#")
        return registrations.filled(pattern, f"{draws.integer('phone', 0, 10**free - 1):0{free}d}")

    def rounding(self, draws: Draws) -> RoundingPolicy:
        """The policy a company keeps, among those the law allows."""
        return draws.weighted("rounding", self.roundings)

    def terms(self, draws: Draws, issued: date) -> Terms:
        """A company's terms (from its own draws), and what they mean for a document of this day."""
        days = draws.weighted("net days", self.net_days)
        due = issued + timedelta(days=days)
        wordings = self.customs.terms if days else self.customs.terms_now
        return Terms(draws.choice("terms", wordings).format(days=days, due=self.day(due)), due)

    def paid(self, draws: Draws) -> str:
        """What a receipt says instead of terms; from the document's draws."""
        return draws.choice("paid", self.customs.paid_cash if self.in_cash(draws) else self.customs.paid_card)

    def in_cash(self, draws: Draws) -> bool:
        """Whether a receipt's customer pays in cash; from the document's draws."""
        return draws.chance("in cash", _CASH_PER_MILLE)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """What the law wants printed, beyond numbers and dates: why something is not taxed."""
        return tuple(dict.fromkeys(tax.reason for tax in facts.tax_lines if tax.reason))

    def closing(self, draws: Draws, *, goods: bool) -> str:
        """Friendly words or a condition that a company ends its documents with, or nothing."""
        words = self.customs
        return draws.choice("closing", (*words.closings, *words.closings_of_goods) if goods else words.closings)

    def period(self, first: date, last: date) -> str:
        """A service period, as the small print of a line."""
        return self.customs.period.format(first=self.day(first), last=self.day(last))

    def delivery(self, day: date) -> str:
        """A delivery's day, as the small print of a line."""
        return self.customs.delivery.format(day=self.day(day))

    def work(self, day: date) -> str:
        """A day of work, as the small print of a line."""
        return self.customs.work.format(day=self.day(day))

    def band(self, above: Decimal, up_to: Decimal | None, unit: str) -> str:
        """The limits of a graduated price's tier: more than `above`, up to `up_to` included, or without end."""
        low = locales.number(above, self.locale)
        if up_to is None:
            return self.customs.band_over.format(low=low, unit=unit)
        high = locales.number(up_to, self.locale)
        pattern = self.customs.band_between if above else self.customs.band_first
        return pattern.format(low=low, high=high, unit=unit)

    def day(self, day: date) -> str:
        """A day, as small print writes it."""
        return locales.date_text(day, self.locale, self.customs.day)


@cache
def _speaking(country: type[Jurisdiction], locale: str) -> Jurisdiction:
    if locale not in country.locales:
        raise KeyError(locale)
    return country(locale)
