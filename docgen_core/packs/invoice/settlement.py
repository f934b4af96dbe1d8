"""From the gross total to what is still to be paid: withheld, tipped, rounded, paid before, in parts.

What does not belong here: lines and taxes (arithmetic).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from docgen_core.errors import UsageError
from docgen_core.money import ZERO, minus, percent_of, rounded, share, to_step, total
from docgen_core.packs.invoice.model import Instalment, Totals


@dataclass(frozen=True, slots=True)
class Withholding:
    """Tax on the seller's income that the buyer keeps back."""

    label: str
    """As printed."""
    percent: Decimal
    """Of the net total."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How the gross total is paid. Nothing of it: whole, by the due date."""

    withholding: Withholding | None = None
    tip: Decimal = ZERO
    cash_step: Decimal | None = None
    """The smallest coin that what is due is rounded to."""
    paid_whole: bool = False
    """A receipt: nothing is left to be paid."""
    prepaid: Decimal = ZERO
    credit: Decimal | None = None
    """Balance bought before, from which as much as is due is taken."""


def settle(totals: Totals, settlement: Settlement, places: int) -> Totals:
    """The totals with how they are paid. Raises `UsageError` when more is paid before than is due."""
    nothing = rounded(ZERO, places)
    kept = settlement.withholding
    withheld = rounded(percent_of(totals.net_total, kept.percent), places) if kept else nothing
    tip = rounded(settlement.tip, places)
    payable = total([totals.gross_total, withheld.copy_negate(), tip], places)
    step = settlement.cash_step
    rounding = minus(to_step(payable, step), payable) if step is not None else nothing
    payable = total([payable, rounding], places)
    used = nothing if settlement.credit is None else min(rounded(settlement.credit, places), payable)
    prepaid = payable if settlement.paid_whole else rounded(settlement.prepaid, places)
    if not 0 <= total([prepaid, used], places) <= payable:
        raise UsageError(f"{prepaid} cannot be prepaid on {payable}")
    return replace(
        totals,
        withholding_label=kept.label if kept else None,
        withholding_percent=kept.percent if kept else None,
        withholding=withheld,
        tip=tip,
        rounding=rounded(rounding, places),
        credit_used=used,
        credit_before=None if settlement.credit is None else rounded(settlement.credit, places),
        credit_left=None if settlement.credit is None else minus(rounded(settlement.credit, places), used),
        prepaid=prepaid,
        amount_due=rounded(minus(minus(payable, used), prepaid), places),
    )


def instalments(due: Decimal, days: Sequence[date], places: int) -> tuple[Instalment, ...]:
    """What is due in equal parts, one for each day; what cannot be divided goes to the first."""
    parts = share(due, [Decimal(1)] * len(days), places)
    return tuple(Instalment(number, day, part) for number, (day, part) in enumerate(zip(days, parts, strict=True), 1))
