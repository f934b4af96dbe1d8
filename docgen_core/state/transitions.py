"""What each operation makes of a unit's row and of a run's row: the rules of the contract, once.

Pure functions: rows and times in, the new row out, or the refusal raised. A backend stores what
these return and decides nothing. What does not belong here: reading, writing, clocks, claim order.
"""

from __future__ import annotations

from dataclasses import replace

from docgen_core.errors import (
    LeaseLost,
    PlanConflict,
    RootConflict,
    RunCancelled,
    UsageError,
    WrongRunState,
)
from docgen_core.state.contract import (
    MAX_ERROR_BYTES,
    Lease,
    Outlook,
    Part,
    Run,
    RunState,
    Unit,
    UnitState,
)

_CLOSED = {
    RunState.PAUSED: Outlook.PAUSED,
    RunState.CANCELLED: Outlook.CANCELLED,
    RunState.FINALIZING: Outlook.CLOSED,
    RunState.COMPLETED: Outlook.CLOSED,
}


# Units ------------------------------------------------------------------------------------


def claimed(run: Run, index: int, before: Unit | None, *, worker: str, now: float, working: bool) -> Unit:
    """The row of a unit that was pending (`None`: it has no row), now leased to `worker`.

    Spelt out rather than `replace`d: this is the hot path of a batched claim.
    """
    return Unit(
        run_id=run.run_id,
        index=index,
        state=UnitState.RUNNING,
        generation=1 if before is None else before.generation + 1,
        attempts=1 if before is None else before.attempts + 1,
        owner=worker,
        lease_expires_at=now + run.lease_seconds,
        heartbeat=0,
        working=working,
        not_before=0.0,
        error=None if before is None else before.error,
        part_key=None,
        part_sha256=None,
        rows=0,
        epoch=run.epoch,
    )


def lease_of(unit: Unit, *, asked_at: float, lease_seconds: float) -> Lease:
    """The holder's side of a RUNNING row; `asked_at` is its monotonic clock before it asked."""
    return Lease(
        unit.run_id,
        unit.index,
        unit.generation,
        unit.attempts,
        unit.owner,
        unit.epoch,
        asked_at + lease_seconds,
    )


def expired(run: Run, unit: Unit) -> Unit:
    """The row of a RUNNING unit whose lease ran out: pending again, or FAILED at the cap.

    Only the unit in hand pays with an attempt; the others of a claimed batch were never begun.
    """
    if not unit.working:
        return replace(unit, state=UnitState.PENDING, attempts=unit.attempts - 1)
    if unit.attempts >= run.max_attempts:
        error = f"attempts used up ({unit.attempts}): {unit.owner} gave no sign of life within its lease"
        return replace(unit, state=UnitState.FAILED, working=False, error=cut_error(error))
    error = f"attempt {unit.attempts}: {unit.owner} gave no sign of life within its lease"
    return replace(unit, state=UnitState.PENDING, working=False, error=cut_error(error))


def renewed(run: Run, unit: Unit | None, lease: Lease, *, now: float, working: bool) -> Unit:
    """The same lease, a whole length longer. Raises `LeaseLost`."""
    held = _held(unit, lease)
    return replace(held, lease_expires_at=now + run.lease_seconds, heartbeat=held.heartbeat + 1, working=working)


def completed(unit: Unit | None, lease: Lease, part: Part) -> Unit:
    """DONE with the part's digest; a DONE row unchanged when this call's answer was lost. Raises `LeaseLost`."""
    if (
        unit is not None
        and unit.state is UnitState.DONE
        and unit.generation == lease.generation
        and (unit.part_key, unit.part_sha256) == (part.key, part.sha256)
    ):
        return unit
    return replace(
        _held(unit, lease),
        state=UnitState.DONE,
        working=False,
        error=None,
        part_key=part.key,
        part_sha256=part.sha256,
        rows=part.rows,
    )


def failed(run: Run, unit: Unit | None, lease: Lease, error: str, *, retry_seconds: float | None, now: float) -> Unit:
    """Pending again after `retry_seconds`, or FAILED for want of attempts or of a retry. Raises `LeaseLost`.

    The row is unchanged when this very failure is recorded already (its answer was lost).
    """
    recorded = cut_error(error)
    if (
        unit is not None
        and unit.state in (UnitState.PENDING, UnitState.FAILED)
        and unit.generation == lease.generation
        and unit.error == recorded
    ):
        return unit
    held = _held(unit, lease)
    if retry_seconds is None or held.attempts >= run.max_attempts:
        return replace(held, state=UnitState.FAILED, working=False, error=recorded)
    return replace(held, state=UnitState.PENDING, working=False, error=recorded, not_before=now + retry_seconds)


def released(unit: Unit | None, lease: Lease, *, now: float, not_before_seconds: float) -> Unit:
    """Pending again, the attempt given back. Raises `LeaseLost`."""
    held = _held(unit, lease)
    not_before = now + not_before_seconds if not_before_seconds > 0 else 0.0
    return replace(held, state=UnitState.PENDING, working=False, attempts=held.attempts - 1, not_before=not_before)


def reset(unit: Unit) -> Unit:
    """A FAILED unit pending again with all its attempts; its generation stays."""
    return replace(unit, state=UnitState.PENDING, attempts=0, not_before=0.0)


def cut_error(error: str) -> str:
    """The error as it is kept: at most `MAX_ERROR_BYTES` of UTF-8, no half character at its end."""
    return error.encode("utf-8", "replace")[:MAX_ERROR_BYTES].decode("utf-8", "ignore")


def _held(unit: Unit | None, lease: Lease) -> Unit:
    """The row, when `lease` still owns it. The expiry does not matter: the generation decides."""
    if unit is None:
        reason = "it was never claimed"
    elif unit.generation != lease.generation:
        reason = f"{unit.owner} holds or held generation {unit.generation}"
    elif unit.state is not UnitState.RUNNING:
        reason = f"the unit is {unit.state}"
    else:
        return unit
    raise LeaseLost(lease.run_id, lease.index, lease.generation, reason)


# Runs -------------------------------------------------------------------------------------


def outlook_of(run: Run) -> Outlook | None:
    """Why nothing of this run may be claimed; None when it is open."""
    closed = _CLOSED.get(run.state)
    if closed is None and not run.planned:
        return Outlook.UNPLANNED
    return closed


def planned(run: Run, spec_digest: str) -> Run:
    """Open for claims. Raises `PlanConflict` for another digest."""
    if run.marker.spec_digest != spec_digest:
        raise PlanConflict(run.run_id, [f"spec digest {run.marker.spec_digest} there, {spec_digest} given"])
    return replace(run, planned=True)


def paused(run: Run) -> Run:
    """No more claims. Raises `WrongRunState` once cancelled or finalizing."""
    if run.state not in (RunState.RUNNING, RunState.PAUSED):
        raise WrongRunState(f"run {run.run_id!r} is {run.state}: only a running one can be paused")
    return replace(run, state=RunState.PAUSED)


def resumed(run: Run) -> Run:
    """Claims again. A run that is running, finalizing or completed is unchanged. Raises `RunCancelled`."""
    if run.state is RunState.CANCELLED:
        raise RunCancelled(run.run_id)
    return replace(run, state=RunState.RUNNING) if run.state is RunState.PAUSED else run


def cancelled(run: Run) -> Run:
    """CANCELLED for good. Raises `WrongRunState` from FINALIZING on."""
    if run.state in (RunState.FINALIZING, RunState.COMPLETED):
        raise WrongRunState(f"run {run.run_id!r} is {run.state}: it is too late to cancel it")
    return replace(run, state=RunState.CANCELLED)


def open_to_reset(run: Run) -> None:
    """Refuse a reset of failed units in a run that no longer claims. Raises `RunCancelled` or `WrongRunState`."""
    if run.state is RunState.CANCELLED:
        raise RunCancelled(run.run_id)
    if run.state not in (RunState.RUNNING, RunState.PAUSED):
        raise WrongRunState(f"run {run.run_id!r} is {run.state}: none of its units has failed")


def next_epoch(run: Run) -> Run:
    """The run after a reset: what was learnt of ended segments before it holds no longer."""
    open_to_reset(run)
    return replace(run, epoch=run.epoch + 1)


def finalizing(run: Run) -> Run:
    """FINALIZING, from RUNNING; from there on unchanged. Raises `RunCancelled` or `WrongRunState`."""
    if run.state is RunState.CANCELLED:
        raise RunCancelled(run.run_id)
    if run.state is RunState.PAUSED:
        raise WrongRunState(f"run {run.run_id!r} is paused: `docgen resume {run.run_id}` goes on with it")
    return replace(run, state=RunState.FINALIZING) if run.state is RunState.RUNNING else run


def run_completed(run: Run, root_digest: str) -> Run:
    """COMPLETED with the root's digest. Raises `RootConflict`, `RunCancelled` or `WrongRunState`."""
    if run.state is RunState.COMPLETED:
        if run.root_digest == root_digest:
            return run
        raise RootConflict(run.run_id, root_digest, run.root_digest or "none")
    if run.state is RunState.CANCELLED:
        raise RunCancelled(run.run_id)
    if run.state is not RunState.FINALIZING:
        raise WrongRunState(f"run {run.run_id!r} is {run.state}: it completes from FINALIZING only")
    return replace(run, state=RunState.COMPLETED, root_digest=root_digest)


def check_index(run: Run, index: int) -> None:
    """Raise `UsageError` for a unit that the run does not have."""
    if not 0 <= index < run.marker.total_units:
        raise UsageError(f"run {run.run_id!r} has units 0 to {run.marker.total_units - 1}, there is no unit {index}")
