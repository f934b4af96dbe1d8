"""The law and customs of each country: one module each, behind one contract (base.py)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from docgen_core.packs.invoice.jurisdictions.ae import Emirates
from docgen_core.packs.invoice.jurisdictions.au import Australia
from docgen_core.packs.invoice.jurisdictions.base import Facts, Jurisdiction, Terms
from docgen_core.packs.invoice.jurisdictions.br import Brazil
from docgen_core.packs.invoice.jurisdictions.ca import Canada
from docgen_core.packs.invoice.jurisdictions.ch import Switzerland
from docgen_core.packs.invoice.jurisdictions.de import Germany
from docgen_core.packs.invoice.jurisdictions.es import Spain
from docgen_core.packs.invoice.jurisdictions.fr import France
from docgen_core.packs.invoice.jurisdictions.gb import UnitedKingdom
from docgen_core.packs.invoice.jurisdictions.ie import Ireland
from docgen_core.packs.invoice.jurisdictions.in_ import India
from docgen_core.packs.invoice.jurisdictions.it import Italy
from docgen_core.packs.invoice.jurisdictions.jp import Japan
from docgen_core.packs.invoice.jurisdictions.kr import Korea
from docgen_core.packs.invoice.jurisdictions.kw import Kuwait
from docgen_core.packs.invoice.jurisdictions.mx import Mexico
from docgen_core.packs.invoice.jurisdictions.nl import Netherlands
from docgen_core.packs.invoice.jurisdictions.pl import Poland
from docgen_core.packs.invoice.jurisdictions.se import Sweden
from docgen_core.packs.invoice.jurisdictions.tr import Turkiye
from docgen_core.packs.invoice.jurisdictions.us import UnitedStates
from docgen_core.packs.invoice.jurisdictions.za import SouthAfrica

COUNTRIES: tuple[type[Jurisdiction], ...] = (
    Germany,
    Japan,
    UnitedStates,
    UnitedKingdom,
    France,
    Spain,
    Italy,
    Mexico,
    Brazil,
    Netherlands,
    Poland,
    Sweden,
    Turkiye,
    Korea,
    Ireland,
    Canada,
    Australia,
    SouthAfrica,
    Emirates,
    Kuwait,
    India,
    Switzerland,
)

JURISDICTIONS: Mapping[str, Jurisdiction] = MappingProxyType({country.code: country() for country in COUNTRIES})
"""By ISO 3166-1 alpha-2 code, each speaking its usual locale."""

LOCALES: Mapping[str, tuple[str, ...]] = MappingProxyType({country.code: country.locales for country in COUNTRIES})
"""By country, the locales that its companies write in."""

__all__ = ["JURISDICTIONS", "LOCALES", "Facts", "Jurisdiction", "Terms"]
