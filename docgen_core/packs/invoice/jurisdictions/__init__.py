"""The law and customs of each country: one module each, behind one contract (base.py)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from docgen_core.packs.invoice.jurisdictions.base import Facts, Jurisdiction, Terms
from docgen_core.packs.invoice.jurisdictions.de import Germany
from docgen_core.packs.invoice.jurisdictions.jp import Japan
from docgen_core.packs.invoice.jurisdictions.us import UnitedStates

JURISDICTIONS: Mapping[str, Jurisdiction] = MappingProxyType(
    {jurisdiction.code: jurisdiction for jurisdiction in (Germany(), Japan(), UnitedStates())}
)
"""By ISO 3166-1 alpha-2 code."""

__all__ = ["JURISDICTIONS", "Facts", "Jurisdiction", "Terms"]
