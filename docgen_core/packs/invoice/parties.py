"""Who sells and who buys: companies derived from an id, stored nowhere.

A seller is a pure function of its company id, a buyer of its own number within a region, so the
same buyer comes back at several sellers with the same name and numbers. Nobody is a person.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from docgen_core.draws import Draws
from docgen_core.locales import locale_of
from docgen_core.packs.invoice.customs import customs
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, Jurisdiction
from docgen_core.packs.invoice.model import Party, Registration
from docgen_core.packs.invoice.names import GENERAL_TRADE, CompanyName, company_name
from docgen_core.packs.invoice.places import Place, places, regions

_BUYERS_A_REGION = 400
"""Companies in a region that documents may be billed to."""

_CUSTOMERS = {"micro": 8, "small": 20, "medium": 60, "large": 150}
"""Customers of a seller, by its size class."""
_USUAL_CUSTOMERS = 20

_BUYER_TYPES = (
    GENERAL_TRADE,
    GENERAL_TRADE,
    "industrial_supplies",
    "food_wholesale",
    "it_services",
    "facility_services",
)
"""Business types whose words buyers' names are made with."""

_SAME_REGION_PER_MILLE = 700

_CUSTOMERS_ABROAD = 4
"""Customers of a seller in any one other country."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A company and the place it is at home in."""

    party: Party
    place: Place
    name: CompanyName


@lru_cache(maxsize=4096)
def seller(country: str, company_id: int, business_type: str, locale: str = "", niche: str = "") -> Resident:
    """The company of the catalogue with this id, named in the country's usual locale or another of its own."""
    draws = Draws("company", country, company_id)
    jurisdiction = JURISDICTIONS[country].speaking(locale or JURISDICTIONS[country].locale)
    towns = [place for place in places(country) if jurisdiction.locale_in(place.region) == jurisdiction.locale]
    return _resident(jurisdiction, draws, draws.choice("place", towns), business_type, niche, seller=True)


@lru_cache(maxsize=8192)
def buyer(country: str, region: str, number: int) -> Resident:
    """Buyer `number` of a region."""
    draws = Draws("buyer", country, region, number)
    place = draws.choice("place", regions(country)[region])
    business_type = draws.choice("business type", _BUYER_TYPES)
    jurisdiction = JURISDICTIONS[country].speaking(JURISDICTIONS[country].locale_in(region))
    return _resident(jurisdiction, draws, place, business_type, "", seller=False)


def customer_of(home: Resident, company_id: int, size_class: str, draws: Draws) -> tuple[Resident, Draws]:
    """A customer of the seller, drawn for one document; few of them buy most.

    Returns the buyer, and the draws of the relation between the two, which stay the same
    whenever they meet.
    """
    most = _CUSTOMERS.get(size_class, _USUAL_CUSTOMERS) - 1
    slot = min(draws.integer("customer", 0, most), draws.integer("customer again", 0, most))
    country = home.party.country
    chosen = Draws("customers", country, company_id).under(slot)
    region = home.place.region
    if not chosen.chance("same region", _SAME_REGION_PER_MILLE):
        region = chosen.choice("region", tuple(regions(country)))
    number = chosen.integer("buyer", 1, _BUYERS_A_REGION)
    resident = buyer(country, region, number)
    if resident.name.full == home.name.full:
        number = number % _BUYERS_A_REGION + 1
        resident = buyer(country, region, number)
    return resident, Draws("relation", country, company_id, region, number)


def customer_abroad(home: Resident, company_id: int, country: str, draws: Draws, locale: str) -> tuple[Resident, Draws]:
    """A customer of the seller in another country, with the number that taxes between the two are settled by.

    Its address ends with the country, and its number is labelled, in the seller's `locale`.
    """
    slot = draws.integer("customer abroad", 1, _CUSTOMERS_ABROAD)
    seat = Draws("customers", home.party.country, company_id).under(country, slot)
    region = seat.choice("region", tuple(regions(country)))
    number = seat.integer("buyer", 1, _BUYERS_A_REGION)
    resident = buyer(country, region, number)
    party = replace(
        resident.party,
        address_lines=(*resident.party.address_lines, _country_name(country, locale)),
        registrations=_number_abroad(country, region, number, resident, locale),
    )
    return replace(resident, party=party), Draws("relation", home.party.country, company_id, country, region, number)


def _number_abroad(country: str, region: str, number: int, resident: Resident, locale: str) -> tuple[Registration, ...]:
    """The number that the buyer is taxed under at home, which all companies have and print where it matters."""
    draws = Draws("buyer", country, region, number)
    numbers = JURISDICTIONS[country].registrations(draws, resident.place, resident.name.form, seller=True)
    kept = [entry for entry in numbers if entry.column == "tax_id"][:1]
    label = customs(locale).vat_id
    return tuple(replace(entry, label=label, value=_abroad_form(country, entry.value)) for entry in kept)


def _abroad_form(country: str, number: str) -> str:
    """A number as other countries of the Union know it: after its country's letters."""
    if not JURISDICTIONS[country].european or number.startswith(country):
        return number
    return country + re.sub(r"\W", "", number)


def numbered(resident: Resident) -> Resident:
    """The resident with the number that it is taxed under, where its country's buyers mostly do not print it."""
    party = resident.party
    if any(entry.column == "tax_id" for entry in party.registrations):
        return resident
    draws = Draws("buyer number", party.country, party.name)
    numbers = JURISDICTIONS[party.country].registrations(draws, resident.place, resident.name.form, seller=True)
    added = [entry for entry in numbers if entry.column == "tax_id"][:1]
    return replace(resident, party=replace(party, registrations=(*added, *party.registrations)))


def _country_name(country: str, locale: str) -> str:
    return str(locale_of(locale).territories[country])


def _resident(
    jurisdiction: Jurisdiction, draws: Draws, place: Place, business_type: str, niche: str, *, seller: bool
) -> Resident:
    name = company_name(jurisdiction.locale, business_type, draws, niche)
    party = Party(
        name=name.full,
        address_lines=jurisdiction.address(draws, place),
        country=jurisdiction.code,
        registrations=jurisdiction.registrations(draws, place, name.form, seller=seller),
        phone=jurisdiction.phone(draws, place),
        email=f"{draws.choice('mailbox', jurisdiction.customs.mailboxes)}@{name.domain}",
        website=f"www.{name.domain}",
    )
    return Resident(party, place, name)
