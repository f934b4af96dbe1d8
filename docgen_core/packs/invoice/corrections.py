"""Documents that take back what another one billed: credit notes by their signs, corrective invoices.

A credit note is a document of amounts above zero that the seller owes, or one of amounts below
zero, as its company keeps it; a corrective invoice takes back lines as they were billed and bills
them as they are right. What does not belong here: the arithmetic itself (arithmetic.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from docgen_core.draws import Draws
from docgen_core.packs.invoice.arithmetic import Computation, Sale
from docgen_core.packs.invoice.customs import Billing
from docgen_core.packs.invoice.model import QUANTITY_AND_PRICE, Line, TaxLine, Totals

CREDIT_NOTE, CORRECTIVE = "credit_note", "corrective_invoice"
POSITIVE, NEGATIVE, MIXED = "positive", "negative", "mixed"

_MOST_LINES = 4
"""A document that takes back is about some of the lines of another."""
_WHOLE_PER_MILLE = 500
"""Lines that are taken back whole."""

Part = TypeVar("Part", Line, TaxLine, Totals)


def can_be_taken_back(sales: Sequence[Sale]) -> tuple[Sale, ...]:
    """The sales that a quantity can be taken from: not graduated, no part of a period, contract or plan."""
    return tuple(
        sale for sale in sales if not sale.bands and sale.basis == QUANTITY_AND_PRICE and sale.with_above is None
    )


def credited(sales: Sequence[Sale], lines: tuple[int, int] | None, draws: Draws) -> tuple[Sale, ...]:
    """What of the sales is given back, in their order: some of them, whole or in part.

    `lines` are the fewest and most lines that are asked for.
    """
    fewest, most = lines or (1, _MOST_LINES)
    count = draws.integer("credited", min(fewest, len(sales)), min(most, len(sales)))
    chosen = sorted(draws.sample("which", range(len(sales)), count))
    return tuple(_part(sales[place], draws.under(place)) for place in chosen)


def corrected(sales: Sequence[Sale], words: Billing, lines: tuple[int, int] | None, draws: Draws) -> tuple[Sale, ...]:
    """Pairs of lines: as billed, below zero, and as it is right, which is less. None where no pairs are as many."""
    asked = lines or (2, _MOST_LINES)
    fewest, most = -(-asked[0] // 2), asked[1] // 2
    larger = [sale for sale in sales if sale.quantity is not None and sale.quantity > 1] or list(sales)
    if not fewest <= min(most, len(larger)):
        return ()
    count = draws.integer("corrected", fewest, min(most, len(larger)))
    chosen = sorted(draws.sample("which", range(len(larger)), count))
    pairs = []
    for place in chosen:
        sale = larger[place]
        quantity = sale.quantity or Decimal(0)
        right = Decimal(draws.under(place).integer("right", 0, max(0, int(quantity) - 1)))
        pairs.append(_said(replace(sale, quantity=quantity.copy_negate()), words.billed))
        pairs.append(_said(replace(sale, quantity=right), words.corrected))
    return tuple(pairs)


def _part(sale: Sale, draws: Draws) -> Sale:
    quantity = int(sale.quantity or 0)
    if quantity < 2 or draws.chance("whole", _WHOLE_PER_MILLE):
        return sale
    return replace(sale, quantity=Decimal(draws.integer("part", 1, quantity - 1)))


def _said(sale: Sale, remark: str) -> Sale:
    return replace(sale, detail=f"{sale.detail} · {remark}" if sale.detail else remark)


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
