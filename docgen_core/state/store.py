"""The contract over any backend: claims from segments, leases, seals, all by conditional writes.

Each operation reads what it needs, lets `transitions` say what becomes of it, and writes that on
condition that nothing has changed since; when something has, it reads again. Such a loop ends,
since each further round means that another worker's write got through. What does not belong
here: the rules (transitions.py), claim order (claiming.py), the budget (ledger.py), databases.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator

from docgen_core.errors import LeaseLost, RunIncomplete, RunUnknown, UsageError
from docgen_core.state import transitions
from docgen_core.state.budget import Settlement
from docgen_core.state.claiming import Claimer
from docgen_core.state.clocks import ClockOffset
from docgen_core.state.contract import (
    SEGMENT_UNITS,
    Claim,
    Lease,
    Part,
    Progress,
    Run,
    RunMarker,
    RunState,
    StateStore,
    Unit,
    UnitState,
)
from docgen_core.state.ledger import LedgerStore
from docgen_core.state.primitives import Change, Primitives, Segment, segment_count, segment_range
from docgen_core.state.settings import Settings
from docgen_core.state.watch import Watch, by_segment

_PAGE_UNITS = SEGMENT_UNITS

_MAX_RUNS = 1024
"""Runs remembered at most; then all are forgotten, at the price of one more read each."""


class SegmentStore(LedgerStore, StateStore):
    """A state store over `primitives`. Clocks: `clock` is wall time in seconds since 1970,
    compared with other machines' only to decide when to try again; `monotonic` is this process's own.
    """

    def __init__(
        self,
        primitives: Primitives,
        settings: Settings,
        *,
        uri: str,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.uri = uri
        self.primitives = primitives
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic
        self._runs: dict[str, tuple[float, Run]] = {}
        """As last read, and when, by the monotonic clock before the read."""
        self._watch = Watch(skew_seconds=settings.skew_seconds, clock=clock, monotonic=monotonic)
        self._claimer = Claimer(primitives, self._watch, clock=clock, monotonic=monotonic)

    # Runs ---------------------------------------------------------------------------------

    def create_run(self, marker: RunMarker) -> tuple[Run, bool]:
        """See `StateStore.create_run`. Raises `UsageError` for a run without units."""
        if marker.total_units < 1 or marker.unit_size < 1:
            raise UsageError(f"run {marker.run_id!r} needs at least one unit of at least one item")
        run = Run(
            marker=marker,
            state=RunState.RUNNING,
            planned=False,
            epoch=0,
            root_digest=None,
            created_at=self._clock(),
            max_attempts=self._settings.max_attempts,
            lease_seconds=self._settings.lease_seconds,
        )
        created = self.primitives.insert_run(run)
        return self.run(marker.run_id), created

    def mark_planned(self, run_id: str, spec_digest: str) -> Run:
        """See `StateStore.mark_planned`."""
        return self._change(run_id, lambda run: transitions.planned(run, spec_digest))

    def run(self, run_id: str) -> Run:
        """See `StateStore.run`."""
        asked = self._monotonic()
        run = self.primitives.read_run(run_id)
        if run is None:
            raise RunUnknown(run_id)
        return self._remember(asked, run)

    def list_runs(self, states: Collection[RunState] | None = None, *, after: str = "", limit: int = 100) -> list[Run]:
        """See `StateStore.list_runs`."""
        return self.primitives.list_runs(states, after, limit)

    def pause(self, run_id: str) -> Run:
        """See `StateStore.pause`."""
        return self._change(run_id, transitions.paused)

    def resume(self, run_id: str) -> Run:
        """See `StateStore.resume`."""
        return self._change(run_id, transitions.resumed)

    def cancel(self, run_id: str) -> Run:
        """See `StateStore.cancel`."""
        return self._change(run_id, transitions.cancelled)

    # Claiming -----------------------------------------------------------------------------

    def claim_next_unit(
        self, run_id: str, worker: str, *, limit: int = 1, within: Collection[int] | None = None
    ) -> Claim:
        """See `StateStore.claim_next_unit`. Rests on a run read at most `Primitives.run_age_seconds` ago."""
        if limit < 1:
            raise UsageError(f"a claim takes at least one unit, not {limit}")
        run = self._open_run(run_id)
        closed = transitions.outlook_of(run)
        if closed is not None:
            return Claim(closed)
        for index in within or ():
            transitions.check_index(run, index)
        return self._claimer.claim(run, worker, limit, within)

    # Leases -------------------------------------------------------------------------------

    def renew(self, lease: Lease, *, working: bool = True) -> tuple[Lease, RunState]:
        """See `StateStore.renew`."""
        asked = self._monotonic()
        run = self.run(lease.run_id)
        transitions.check_index(run, lease.index)
        unit = self.primitives.change_unit(
            lease.run_id,
            lease.index,
            lambda unit: transitions.renewed(run, unit, lease, now=self._clock(), working=working),
        )
        return transitions.lease_of(unit, asked_at=asked, lease_seconds=run.lease_seconds), run.state

    def complete_unit(self, lease: Lease, part: Part, settlement: Settlement | None = None) -> None:
        """See `StateStore.complete_unit`."""
        self._run_of(lease)
        if settlement is None:
            self.primitives.change_unit(
                lease.run_id, lease.index, lambda unit: transitions.completed(unit, lease, part)
            )
            return

        def done() -> Change | None:
            before = self.primitives.read_unit(lease.run_id, lease.index)
            after = transitions.completed(before, lease, part)
            return None if after == before else Change(before, after)

        self._settle(lease.run_id, settlement, done)

    def fail_unit(self, lease: Lease, error: str, *, retry_seconds: float | None = None) -> UnitState:
        """See `StateStore.fail_unit`."""
        run = self._run_of(lease)
        return self.primitives.change_unit(
            lease.run_id,
            lease.index,
            lambda unit: transitions.failed(run, unit, lease, error, retry_seconds=retry_seconds, now=self._clock()),
        ).state

    def release(self, lease: Lease, *, not_before_seconds: float = 0.0) -> None:
        """See `StateStore.release`."""
        self._run_of(lease)
        try:
            self.primitives.change_unit(
                lease.run_id,
                lease.index,
                lambda unit: transitions.released(
                    unit, lease, now=self._clock(), not_before_seconds=not_before_seconds
                ),
            )
        except LeaseLost:
            return

    # Repair and reports -------------------------------------------------------------------

    def reset_failed_units(self, run_id: str) -> int:
        """See `StateStore.reset_failed_units`."""
        transitions.open_to_reset(self.run(run_id))
        count = self._write_counted(
            Change(unit, transitions.reset(unit)) for unit in self._every(run_id, {UnitState.FAILED})
        )
        # Behind the units: whoever reads a segment in the new epoch reads it after they were reset.
        if count:
            self._change(run_id, transitions.next_epoch)
        return count

    def reclaim_expired_units(self, run_id: str) -> int:
        """See `StateStore.reclaim_expired_units`."""
        run = self.run(run_id)
        return self._write_counted(
            Change(unit, transitions.expired(run, unit))
            for segment, units in by_segment(self._every(run_id, {UnitState.RUNNING}))
            for unit, seconds in zip(units, self._watch.seconds_left(run, segment, units).values(), strict=True)
            if seconds < 0
        )

    def units(
        self, run_id: str, states: Collection[UnitState] | None = None, *, after: int = -1, limit: int = 1000
    ) -> list[Unit]:
        """See `StateStore.units`."""
        self.run(run_id)
        return self.primitives.list_units(run_id, states, after, limit)

    def progress(self, run_id: str) -> Progress:
        """See `StateStore.progress`. Reads sealed segments' marks instead of their units."""
        run = self.run(run_id)
        total = run.marker.total_units
        done = failed = running = rows = expired = 0
        for segment, sealed_rows, read in self._survey(run):
            if read is None:
                done += len(segment_range(segment, total))
                rows += sealed_rows
                continue
            done += len(read.done)
            failed += len(read.failed)
            rows += read.rows
            for unit in read.unended.values():
                if unit.state is UnitState.RUNNING:
                    running += 1
                    expired += self._watch.is_past(unit)
        pending = total - done - failed - running
        return Progress(total, pending, running, done, failed, rows, expired)

    # Finalising ---------------------------------------------------------------------------

    def begin_finalize(self, run_id: str) -> Run:
        """See `StateStore.begin_finalize`."""
        run = self.run(run_id)
        if transitions.finalizing(run) is run:
            return run
        gap: list[int] = []
        failures = 0
        for segment, _, read in self._survey(run):
            if read is not None and not self.primitives.seal_if_done(run, segment, read):
                failures += len(read.failed)
                gap += [i for i in segment_range(segment, run.marker.total_units) if i not in read.done]
        if failures:
            raise RunIncomplete(
                run_id,
                gap,
                f"{failures} failed (`docgen failures {run_id}`); `docgen resume {run_id}` tries them again",
            )
        if gap:
            raise RunIncomplete(run_id, gap, f"not done yet; `docgen work {run_id}` goes on with them")
        return self._change(run_id, transitions.finalizing)

    def complete_run(self, run_id: str, root_digest: str) -> Run:
        """See `StateStore.complete_run`."""
        return self._change(run_id, lambda run: transitions.run_completed(run, root_digest))

    def clock_offset(self) -> ClockOffset | None:
        """See `StateStore.clock_offset`."""
        asked = self._clock()
        there = self.primitives.read_time()
        if there is None:
            return None
        return ClockOffset.seen(asked, there, self._clock(), skew_seconds=self._settings.skew_seconds)

    def close(self) -> None:
        """See `StateStore.close`."""
        self.primitives.close()

    # Shared steps -------------------------------------------------------------------------

    def _known(self, run_id: str) -> Run:
        """The run, for what never changes in it: its units, attempts and lease length."""
        known = self._runs.get(run_id)
        return self.run(run_id) if known is None else known[1]

    def _run_of(self, lease: Lease) -> Run:
        """The lease's run, as `_known` has it."""
        run = self._known(lease.run_id)
        transitions.check_index(run, lease.index)
        return run

    def _open_run(self, run_id: str) -> Run:
        """The run as known, while that is recent enough and open for claims; else by a read."""
        asked, run = self._runs.get(run_id, (0.0, None))
        recent = self._monotonic() - asked < self.primitives.run_age_seconds
        return run if run and recent and transitions.outlook_of(run) is None else self.run(run_id)

    def _change(self, run_id: str, transition: Callable[[Run], Run]) -> Run:
        asked = self._monotonic()
        return self._remember(asked, self.primitives.change_run(run_id, transition))

    def _remember(self, asked: float, run: Run) -> Run:
        if len(self._runs) >= _MAX_RUNS:
            self._runs = {}
        self._runs[run.run_id] = asked, run
        return run

    def _write_counted(self, changes: Iterable[Change]) -> int:
        """Write in pages; how many applied."""
        count = 0
        page: list[Change] = []
        for change in changes:
            page.append(change)
            if len(page) == _PAGE_UNITS:
                count += sum(self.primitives.write_units(page))
                page = []
        return count + (sum(self.primitives.write_units(page)) if page else 0)

    def _every(self, run_id: str, states: Collection[UnitState]) -> Iterator[Unit]:
        """All rows in these states, read page by page."""
        after = -1
        while page := self.primitives.list_units(run_id, states, after, _PAGE_UNITS):
            yield from page
            after = page[-1].index

    def _survey(self, run: Run) -> Iterator[tuple[int, int, Segment | None]]:
        """Each segment: its golden rows when it is sealed, else a strong read of it."""
        seals = self.primitives.seals(run.run_id)
        for segment in range(segment_count(run.marker.total_units)):
            if segment in seals:
                yield segment, seals[segment], None
            else:
                yield segment, 0, self.primitives.read_segment(run.run_id, segment)
