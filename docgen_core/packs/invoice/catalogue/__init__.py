"""What companies there are and what they sell, drawn from data files by seed and company id."""

from __future__ import annotations

from docgen_core.packs.invoice.catalogue.tables import CATALOGUE_TABLES

__all__ = ["CATALOGUE_TABLES"]
