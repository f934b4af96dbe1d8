"""Documents that take back what another one billed: credit notes by their signs, corrective invoices.

A credit note is a document of amounts above zero that the seller owes, or one of amounts below
zero, as its company keeps it; a corrective invoice takes back lines as they were billed and bills
them as they are right. What does not belong here: the arithmetic itself (arithmetic.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from docgen_core.packs.invoice.arithmetic import Computation
from docgen_core.packs.invoice.model import Line, TaxLine, Totals

Part = TypeVar("Part", Line, TaxLine, Totals)


def taken_back(result: Computation) -> Computation:
    """The same with every quantity and amount below zero: a credit note that says so by its signs."""
    return Computation(
        tuple(_negated(line, _LINE_AMOUNTS) for line in result.lines),
        tuple(_negated(tax, _TAX_AMOUNTS) for tax in result.tax_lines),
        _negated(result.totals, _TOTALS_AMOUNTS),
    )


_LINE_AMOUNTS = (
    "quantity", "line_total", "discount_amount", "net_amount", "tax_amount",
    "document_discount_share", "document_charge_share",
)  # fmt: skip
_TAX_AMOUNTS = ("line_total", "discount_share", "charge_share", "base", "tax")
_TOTALS_AMOUNTS = (
    "lines_total", "document_discount", "document_charge", "shipping", "net_total", "tax_total", "gross_total",
    "amount_due",
)  # fmt: skip


def _negated(part: Part, fields: Sequence[str]) -> Part:
    """A copy with these amounts below zero; zero has no sign."""
    amounts = {name: getattr(part, name) for name in fields}
    return replace(part, **{name: value and value.copy_negate() for name, value in amounts.items()})
