"""Invoices and receipts, with their golden set.

`PACK` is loaded when it is first asked for: who reads a table's schema does not pay for layouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docgen_core.packs.invoice.pack import PACK

__all__ = ["PACK"]


def __getattr__(name: str) -> Any:
    if name != "PACK":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from docgen_core.packs.invoice.pack import PACK

    return PACK
