"""Start drain workers, watch the store until they are through, and leave none behind.

Nothing here coordinates. Workers pull units from the state store; the watch only reads it, and
when the workers have ended the *store* says how the runs stand: exit codes decide nothing.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from docgen_core.state.contract import Progress, RunState, Unit, UnitState

if TYPE_CHECKING:
    from docgen_assets.fleet import Fleet
    from docgen_assets.resources import Places
    from docgen_core.state.contract import StateStore

POLL_SECONDS = 0.25
"""The main thread sleeps no longer than this: an interrupt is raised between two sleeps."""

REPORT_SECONDS = 5.0
"""Between two progress lines. One event costs some milliseconds, so never one a unit."""

_LISTED_FAILURES = 50
"""Failed units that a failure lists; `docgen failures` lists all."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Units to drain: a whole run, or some units of one."""

    run_id: str
    units: tuple[int, ...] | None = None

    def progress(self, state: StateStore) -> Progress:
        """Units of the pool by state."""
        if self.units is None:
            return state.progress(self.run_id)
        rows = list(self.rows(state))
        held = {each: sum(row.state is each for row in rows) for each in UnitState}
        touched = held[UnitState.RUNNING] + held[UnitState.DONE] + held[UnitState.FAILED]
        return Progress(
            total=len(self.units),
            pending=len(self.units) - touched,
            running=held[UnitState.RUNNING],
            done=held[UnitState.DONE],
            failed=held[UnitState.FAILED],
            rows=sum(row.rows for row in rows if row.state is UnitState.DONE),
            expired=0,
        )

    def rows(self, state: StateStore, states: Sequence[UnitState] | None = None) -> Iterator[Unit]:
        """The pool's unit rows in index order; one that was never claimed has none."""
        wanted = range(state.run(self.run_id).marker.total_units) if self.units is None else sorted(self.units)
        within = wanted if self.units is None else set(wanted)
        behind = 0
        while behind < len(wanted) and (page := state.units(self.run_id, states, after=wanted[behind] - 1)):
            yield from (row for row in page if row.index in within)
            behind = bisect_right(wanted, page[-1].index)

    def items_done(self, state: StateStore) -> int:
        """Documents (or companies) in the pool's finished units."""
        run = state.run(self.run_id)
        return sum(len(run.unit_range(row.index)) for row in self.rows(state, (UnitState.DONE,)))

    def is_finished(self, state: StateStore) -> bool:
        """Whether nothing is left to do: the run is sealed, or the units asked for are DONE."""
        run = state.run(self.run_id)
        if run.state is RunState.COMPLETED:
            return True
        return self.units is not None and self.progress(state).done == len(self.units)


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did itself, beside what was there before."""

    items: int
    """Documents or companies."""
    seconds: float
    units: int = 0
    """Units of the pools that were not finished before."""
    progress: tuple[tuple[float, int], ...] = ()
    """How many of them were done after so many seconds."""


def drain(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    pools: Sequence[Pool],
    fleet: Fleet,
    workers: int,
    here: Places,
) -> Drained:
    """Drain the pools with `workers` workers of the fleet.

    A unit that failed before is tried again: whoever asks for the documents once more means that.
    Raises `FingerprintMismatch` for a run that other software planned, and `dg.Failure` when the
    store does not say that all is done, with what to do about it.
    """
    state = here.state
    left = [pool for pool in pools if not pool.is_finished(state)]
    if not left:
        context.log.info("nothing is left to do: the store has every unit done")
        return Drained(0, 0.0)
    for pool in left:
        refuse_closed(state, pool.run_id)
        _refuse_other_software(here, pool.run_id)
        # A run left between its last unit and its root has none that failed, and takes no reset.
        if any(pool.rows(state, (UnitState.FAILED,))):
            state.reset_failed_units(pool.run_id)
    from docgen_core.runs.plan import fleet_warning

    if warning := fleet_warning(sum(pool.progress(state).total for pool in left), workers):
        context.log.warning(warning)
    before = sum(pool.items_done(state) for pool in left)
    began = time.monotonic()
    progress = watch(context, left, fleet, workers, state)
    for pool in left:
        insist(state, pool)
    seconds = time.monotonic() - began
    units = sum(pool.progress(state).total for pool in left)
    return Drained(sum(pool.items_done(state) for pool in left) - before, seconds, units, tuple(progress))


def watch(
    context: dg.OpExecutionContext | dg.AssetExecutionContext,
    pools: Sequence[Pool],
    fleet: Fleet,
    workers: int,
    state: StateStore,
) -> list[tuple[float, int]]:
    """Start the workers and wait in short sleeps until none is alive; whatever happens, stop them all.

    Returns how many units were done after so many seconds, each time that it said so.
    """
    began = time.monotonic()
    progress = [(0.0, _done(pools, state))]
    try:
        fleet.start(workers)
        context.log.info(f"workers on {', '.join(pool.run_id for pool in pools)}: {workers}")
        due = began + REPORT_SECONDS
        while fleet.poll():
            time.sleep(POLL_SECONDS)
            if killed := fleet.replace_killed():
                context.log.warning(f"workers that were killed: {killed}; started as many")
            alive = fleet.poll()
            if time.monotonic() >= due:
                context.log.info(f"{_line(pools, state)}; {alive} workers alive")
                progress.append((time.monotonic() - began, _done(pools, state)))
                due = time.monotonic() + REPORT_SECONDS
    finally:
        fleet.stop()
    return [*progress, (time.monotonic() - began, _done(pools, state))]


def _done(pools: Sequence[Pool], state: StateStore) -> int:
    return sum(pool.progress(state).done for pool in pools)


def refuse_closed(state: StateStore, run_id: str) -> None:
    """Raise `dg.Failure` for a run that takes no work now: paused or cancelled by someone."""
    found = state.run(run_id).state
    if found is RunState.PAUSED:
        raise dg.Failure(
            f"run {run_id!r} is paused: launch the job resume_run for it, or `docgen resume {run_id}`",
            allow_retries=False,
        )
    if found is RunState.CANCELLED:
        raise dg.Failure(
            f"run {run_id!r} was cancelled, for good: give the corpus another name to make its documents anew",
            allow_retries=False,
        )


def _refuse_other_software(here: Places, run_id: str) -> None:
    """Raise `FingerprintMismatch` where every worker of this installation would, each in its own log only."""
    from docgen_core.runs.fingerprint import check_fingerprint, current_fingerprint
    from docgen_core.runs.manifest import read_plan

    run = here.state.run(run_id)
    if run.planned:
        plan = read_plan(here.blobs, run.marker.prefix)
        check_fingerprint(run_id, plan.fingerprint, current_fingerprint(run.marker.kind, plan.pack_version))


def _line(pools: Sequence[Pool], state: StateStore) -> str:
    counts = [pool.progress(state) for pool in pools]
    total, done = sum(each.total for each in counts), sum(each.done for each in counts)
    running, failed = sum(each.running for each in counts), sum(each.failed for each in counts)
    return f"{done} of {total} units done, {running} in hand, {failed} failed"


def insist(state: StateStore, pool: Pool) -> None:
    """Return when the store says the pool is done; else fail, naming the gap and the next step."""
    if pool.is_finished(state):
        return
    refuse_closed(state, pool.run_id)
    failed = list(pool.rows(state, (UnitState.FAILED,)))
    if failed:
        listed = failed[:_LISTED_FAILURES]
        raise dg.Failure(
            f"run {pool.run_id!r} has failed units: {len(failed)} (unit {failed[0].index}: {failed[0].error}). "
            "The other units are kept: when the cause is gone, re-execute from failure, or launch the job resume_run",
            metadata={
                "failed units": dg.MetadataValue.table(
                    [
                        dg.TableRecord({"unit": row.index, "attempts": row.attempts, "error": row.error or ""})
                        for row in listed
                    ],
                    dg.TableSchema(
                        [
                            dg.TableColumn("unit", "int"),
                            dg.TableColumn("attempts", "int"),
                            dg.TableColumn("error", "string"),
                        ]
                    ),
                )
            },
            allow_retries=False,
        )
    counts = pool.progress(state)
    raise dg.Failure(
        f"the workers ended before run {pool.run_id!r} was done ({counts.done} of {counts.total} units, "
        f"{counts.running} held by others): see their lines in this step's logs, then re-execute from failure",
        allow_retries=False,
    )
