"""What companies there are and what they sell, drawn from data files by seed and company id.

Companies here have no names, addresses or numbers: those are derived when a document is made.
"""

from __future__ import annotations

from docgen_core.packs.invoice.catalogue.assortment import catalogue_rows
from docgen_core.packs.invoice.catalogue.descriptions import text_items, with_texts
from docgen_core.packs.invoice.catalogue.tables import CATALOGUE_TABLES

__all__ = ["CATALOGUE_TABLES", "catalogue_rows", "text_items", "with_texts"]
