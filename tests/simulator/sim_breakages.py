"""Deliberate breakages of production code, each of which the simulator must catch.

What does not belong here: a breakage that only the tests could have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

from sim_schedule import Breakage

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import LeaseLost
from docgen_core.runs import drain, finalise, keys
from docgen_core.runs.keys import root_key
from docgen_core.runs.manifest import refuse_withdrawn
from docgen_core.state import budget, transitions
from docgen_core.state.budget import ExpiredGrants, Grant, GrantState, ModelUsage, Settlement
from docgen_core.state.contract import Lease, Part, Run, StateStore, Unit, UnitState
from docgen_core.state.watch import Watch


def _completed(unit: Unit | None, lease: Lease, part: Part) -> Unit:
    """`transitions.completed` as who forgets the generation would write it: the unit runs, so it is ours."""
    if unit is None or unit.state is not UnitState.RUNNING:
        raise LeaseLost(lease.run_id, lease.index, lease.generation, "the unit is not running")
    return replace(
        unit,
        state=UnitState.DONE,
        working=False,
        error=None,
        part_key=part.key,
        part_sha256=part.sha256,
        rows=part.rows,
    )


def _finalize(run_id: str, state: StateStore, blobs: BlobStore) -> str:
    """`finalise.finalize` with the store told before the root is there."""
    refuse_withdrawn(blobs, run_id)
    run = state.begin_finalize(run_id)
    root = finalise.build_root(run, state, blobs)
    state.complete_run(run_id, root.digest)
    finalise._put_root(run_id, blobs, root_key(run.marker.prefix), root.to_bytes())
    finalise._seal(run_id, blobs, root.digest)
    return root.digest


def _never_past(self: Watch, run: Run, segment: int, units: Iterable[Unit]) -> dict[int, float]:
    """`Watch.seconds_left` of a design in which nobody takes over from the dead."""
    return {unit.index: run.lease_seconds for unit in units if unit.state is UnitState.RUNNING}


def _given_another_attempt(run: Run, unit: Unit) -> Unit:
    """`transitions.expired` without a poison unit in mind."""
    return replace(unit, state=UnitState.PENDING, working=False)


def _booked_at_each_delivery(grant: Grant, settlement: Settlement, *, now: float) -> Grant:
    """`budget.settled` of who adds to what is there, and forgets that a write may be delivered again."""
    usage = {model: grant.usage.get(model, ModelUsage()) + used for model, used in settlement.usage.items()}
    held = max(grant.held, sum(used.known_cost for used in usage.values()))
    return replace(grant, usage=usage, held=held, expires_at=now + grant.seconds)


def _given_back(grant: Grant, policy: ExpiredGrants) -> Grant:
    """`budget.expired` of who thinks that a silent worker has spent nothing."""
    return replace(grant, state=GrantState.EXPIRED, held=grant.settled)


def _granted_by_what_is_settled(available: Mapping[str, int], first: str, amount: int) -> dict[str, int]:
    """`budget.taken` of a guard that looks at nothing but what was spent: everybody is given what they ask for."""
    return {first: available[first] - amount}


BREAKAGES: dict[str, Breakage] = {
    "nothing": nullcontext,
    "no generation check in complete": lambda: patch.object(transitions, "completed", _completed),
    "shared keys for unreproducible blobs": lambda: patch.object(keys, "_attempt", lambda _: ""),
    "COMPLETED before the root": lambda: patch.object(drain, "finalize", _finalize),
    "expired leases are never taken over": lambda: patch.object(Watch, "seconds_left", _never_past),
    "a settlement is booked at each delivery": lambda: patch.object(budget, "settled", _booked_at_each_delivery),
    "an expired grant is given back, whatever it was billed": lambda: patch.object(budget, "expired", _given_back),
    "grants beyond what is available": lambda: patch.object(budget, "taken", _granted_by_what_is_settled),
    "no cap on attempts": lambda: patch.object(transitions, "expired", _given_another_attempt),
}
