"""Deliberate breakages of the budget's production code, each of which a simulated fleet must turn red.

What does not belong here: a breakage that only the tests could have.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

from sim_breakages import BREAKAGES
from sim_schedule import Breakage

from docgen_core.llm import guard
from docgen_core.llm.guard import DistributedBudgetGuard
from docgen_core.state import budget
from docgen_core.state.budget import Grant, GrantState


def _room_by_what_is_settled(part: guard._Slice) -> int:
    """`_Slice.room` of a guard to which calls under way are invisible."""
    return part.grant.amount - part.spent


def _given_back_at_each_close(grant: Grant) -> Grant:
    """`budget.closed` of who subtracts, and forgets that a message may be delivered again."""
    return replace(grant, state=GrantState.CLOSED, held=grant.held - grant.left)


FLEET_BREAKAGES: dict[str, Breakage] = {
    "nothing": nullcontext,
    "the guard looks at settled money alone": lambda: patch.object(
        guard._Slice, "room", property(_room_by_what_is_settled)
    ),
    "a call that timed out costs nothing": lambda: patch.object(
        DistributedBudgetGuard, "charge", DistributedBudgetGuard.cancel
    ),
    "a grant closed twice is given back twice": lambda: patch.object(budget, "closed", _given_back_at_each_close),
    **{
        name: BREAKAGES[name]
        for name in (
            "a settlement is booked at each delivery",
            "an expired grant is given back, whatever it was billed",
            "grants beyond what is available",
        )
    },
}
