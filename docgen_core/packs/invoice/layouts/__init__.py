"""What invoices look like: templates, style sheets, and which golden value stands where.

A layout formats and places; it never computes an amount. Every golden value goes through the
print log, so that its box can be found on the page.
"""

from __future__ import annotations

from docgen_core.packs.invoice.layouts.page import render_page
from docgen_core.packs.invoice.layouts.registry import LAYOUTS, LayoutInfo

__all__ = ["LAYOUTS", "LayoutInfo", "render_page"]
