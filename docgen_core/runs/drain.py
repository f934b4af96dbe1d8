"""The drain loop: claim, work, complete, until nothing is left; then seal the run.

Workers pull, and the store is all they share. A worker with nothing to claim waits for its peers,
since the last owner may die (decision 0007). What does not belong here: how a unit is made
(unit.py), how leases are kept (keeper.py), signals (the command line sets `stop`).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import (
    DocgenError,
    GlyphMissing,
    LeaseLost,
    RecordRefused,
    RenderFailed,
    RunCancelled,
    RunIncomplete,
    WrongRunState,
)
from docgen_core.runs.finalise import PAGE_UNITS, finalize, refuse_other_plan
from docgen_core.runs.fingerprint import check_fingerprint, current_fingerprint
from docgen_core.runs.keeper import LeaseKeeper
from docgen_core.runs.manifest import Plan, read_plan, refuse_withdrawn
from docgen_core.runs.outcomes import DrainEnd, DrainOutcome, UnitEvent, UnitOutcome
from docgen_core.runs.plan import TAKEOVER_SECONDS, publish_plan
from docgen_core.runs.texts import WriterSettings
from docgen_core.runs.unit import RendererOnDemand, UnitMaker, UnitWaits, open_maker
from docgen_core.state.clocks import warn_of_clock
from docgen_core.state.contract import Claim, Lease, Outlook, RunState, StateStore, UnitState

BATCH_SECONDS = 2.0
"""A batch is sized to about this much work; how the tail is shared is the store's to say, which has just read it."""
MAX_BATCH = 64

LONGEST_WAIT_SECONDS = 2.0
SHORTEST_WAIT_SECONDS = 0.05

SEAL_SECONDS_A_UNIT = 0.01
LONGEST_SEAL_SECONDS = 30.0
"""Whoever seals reads a part of each unit. One who only waited leaves the one who did the last unit so
much time for it, with jitter, and so finds it done; the last one's death costs no more than that."""

RETRY_SECONDS = 1.0
"""Back-off of a failed attempt; it doubles with each further one…"""
LONGEST_RETRY_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reopened:
    """What `reopen_run` gave back to the pool."""

    reset: int
    reclaimed: int


def work_run(
    run_id: str,
    *,
    state: StateStore,
    blobs: BlobStore,
    worker: str,
    wait: bool = True,
    within: Collection[int] | None = None,
    stop: threading.Event | None = None,
    on_event: Callable[[UnitEvent], None] | None = None,
    renderer: RendererOnDemand | None = None,
    writing: WriterSettings | None = None,
    takeover_seconds: float = TAKEOVER_SECONDS,
) -> DrainOutcome:
    """Work on the run until it is drained, and seal it when everything is DONE.

    `within` limits the work to a set of units. `wait=False` leaves when there is nothing to claim.
    Setting `stop` hands leases back before the next document. `renderer` lends a browser that
    outlives this run. `writing` says how language models are asked, where the run has any. Raises
    `RunUnknown`, `RunWithdrawn`, `FingerprintMismatch`, `StorageFailed`, `Damage`; leases are handed
    back first.
    """
    refuse_withdrawn(blobs, run_id)
    warn_of_clock(state)
    with ExitStack() as stack:
        browser = renderer or stack.enter_context(RendererOnDemand())
        tell = on_event or (lambda event: None)
        drain = _Drain(
            run_id, state, blobs, worker, browser, writing or WriterSettings(), stop or threading.Event(), wait, within,
            takeover_seconds, tell,
        )  # fmt: skip
        stack.callback(drain.close)
        return drain.work()


def reopen_run(state: StateStore, run_id: str) -> Reopened:
    """Clear a pause, give failed units their attempts back, and reclaim expired leases."""
    run = state.resume(run_id)
    if run.state is not RunState.RUNNING:
        return Reopened(0, 0)
    return Reopened(state.reset_failed_units(run_id), state.reclaim_expired_units(run_id))


def resume_run(
    run_id: str,
    *,
    state: StateStore,
    blobs: BlobStore,
    worker: str,
    wait: bool = True,
    stop: threading.Event | None = None,
    on_event: Callable[[UnitEvent], None] | None = None,
) -> DrainOutcome:
    """`reopen_run`, and then `work_run`."""
    refuse_withdrawn(blobs, run_id)
    reopen_run(state, run_id)
    return work_run(run_id, state=state, blobs=blobs, worker=worker, wait=wait, stop=stop, on_event=on_event)


@dataclass(slots=True)
class _Drain:
    """One worker's drain of one run."""

    run_id: str
    state: StateStore
    blobs: BlobStore
    worker: str
    browser: RendererOnDemand
    writing: WriterSettings
    stop: threading.Event
    wait: bool
    within: Collection[int] | None
    takeover_seconds: float
    tell: Callable[[UnitEvent], None]
    maker: UnitMaker | None = None
    plan: Plan | None = None
    lease_seconds: float = 1.0
    """The run's own, once it is joined."""
    units: int = 0
    seconds_a_unit: float | None = None
    unplanned_since: float | None = None
    waited: bool = False
    """For peers, since it last claimed something."""

    def work(self) -> DrainOutcome:
        while not self.stop.is_set():
            self._join()
            claim = self.state.claim_next_unit(self.run_id, self.worker, limit=self._batch_limit(), within=self.within)
            try:
                if claim.leases:
                    self.waited = False
                    self._work_batch(claim.leases)
                elif (ended := self._without_work(claim)) is not None:
                    return ended
            except RunCancelled:
                return self._end(DrainEnd.CANCELLED)
            except _Stopped:
                break
        return self._end(DrainEnd.STOPPED)

    def close(self) -> None:
        if self.maker is not None:
            self.maker.close()

    def _end(self, kind: DrainEnd, *, root_digest: str | None = None, failed: tuple[int, ...] = ()) -> DrainOutcome:
        return DrainOutcome(self.run_id, kind, self.units, root_digest, failed)

    # Nothing claimed ----------------------------------------------------------------------

    def _without_work(self, claim: Claim) -> DrainOutcome | None:
        match claim.outlook:
            case Outlook.PAUSED:
                return self._end(DrainEnd.PAUSED)
            case Outlook.CANCELLED:
                return self._end(DrainEnd.CANCELLED)
            case Outlook.CLOSED:
                return self._end(DrainEnd.COMPLETED, root_digest=finalize(self.run_id, self.state, self.blobs))
            case Outlook.DRAINED:
                return self._drained()
        if not self.wait:
            unplanned = claim.outlook is Outlook.UNPLANNED
            return self._end(DrainEnd.UNPLANNED if unplanned else DrainEnd.PEERS_AT_WORK)
        if claim.outlook is Outlook.UNPLANNED and self._planner_is_gone():
            publish_plan(self.state, self.blobs, self.state.run(self.run_id))
        else:
            self.waited = True
            self._pause(claim.retry_seconds)
        return None

    def _drained(self) -> DrainOutcome | None:
        failed = tuple(index for index in self._failed_units() if self.within is None or index in self.within)
        if failed:
            return self._end(DrainEnd.DRAINED_WITH_FAILURES, failed=failed)
        if self.waited and self.plan is not None:
            seconds = min(SEAL_SECONDS_A_UNIT * self.plan.total_units, LONGEST_SEAL_SECONDS)
            self.stop.wait(seconds * random.uniform(0.5, 1.5))
        try:
            return self._end(DrainEnd.COMPLETED, root_digest=finalize(self.run_id, self.state, self.blobs))
        except RunIncomplete:
            if self.within is not None:
                return self._end(DrainEnd.SCOPE_DONE)
        except WrongRunState:
            _log.info("run %r was paused before it could be sealed", self.run_id)
        # Units were reset, or the run was paused, since the claim: ask again.
        self._pause(SHORTEST_WAIT_SECONDS)
        return None

    def _failed_units(self) -> Iterator[int]:
        after = -1
        while page := self.state.units(self.run_id, {UnitState.FAILED}, after=after, limit=PAGE_UNITS):
            yield from (unit.index for unit in page)
            after = page[-1].index

    def _planner_is_gone(self) -> bool:
        now = time.monotonic()
        if self.unplanned_since is None:
            self.unplanned_since = now
        return now - self.unplanned_since >= self.takeover_seconds

    def _pause(self, seconds: float) -> None:
        """Wait with jitter, so that peers do not ask all at once; `stop` ends the wait."""
        bounded = min(max(seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)
        self.stop.wait(bounded * random.uniform(0.5, 1.0))

    # Claimed ------------------------------------------------------------------------------

    def _join(self) -> None:
        """Before the first claim: refuse to work with other software than the plan's."""
        if self.maker is not None:
            return
        run = self.state.run(self.run_id)
        if not run.planned or run.state is not RunState.RUNNING:
            return
        plan = read_plan(self.blobs, run.marker.prefix)
        refuse_other_plan(plan, run)
        check_fingerprint(self.run_id, plan.fingerprint, current_fingerprint(run.marker.kind, plan.pack_version))
        self.lease_seconds = run.lease_seconds
        self.plan = plan
        self.maker = open_maker(
            plan, self.blobs, self.browser, state=self.state, worker=self.worker, writing=self.writing
        )

    def _batch_limit(self) -> int:
        if self.maker is None or self.seconds_a_unit is None:
            return 1
        by_time = int(BATCH_SECONDS / max(self.seconds_a_unit, BATCH_SECONDS / MAX_BATCH))
        return min(max(by_time, 1), MAX_BATCH)

    def _work_batch(self, leases: tuple[Lease, ...]) -> None:
        """Work on the leases in order; whatever ends it, the rest is handed back at once."""
        waiting = list(leases)
        try:
            with LeaseKeeper(self.state, leases, self.lease_seconds) as keeper:
                # Without a maker the run was opened between our look and our claim: join it first.
                while waiting and self.maker is not None:
                    if self.stop.is_set():
                        raise _Stopped
                    if not self._work_unit(self.maker, waiting[0], keeper):
                        break
                    keeper.drop(waiting.pop(0))
        finally:
            for lease in waiting:
                self._hand_back(lease)

    def _work_unit(self, maker: UnitMaker, lease: Lease, keeper: LeaseKeeper) -> bool:
        """Make the unit and report it; False when the run takes no more work, and the lease is still held.

        Raises what is not the unit's fault; the lease is then still held, too.
        """
        started = time.monotonic()
        detail: str | None = None
        try:
            keeper.take(lease)
            if keeper.run_state is not RunState.RUNNING:
                return False
            part = maker.make(lease, lambda: self._check(keeper))
            self.state.complete_unit(lease, part, settlement=maker.settlement())
            outcome = UnitOutcome.DONE
            self._learn(time.monotonic() - started)
        except LeaseLost as error:
            outcome, detail = UnitOutcome.LOST, str(error)
        except UnitWaits as waits:
            self.state.release(lease, not_before_seconds=waits.seconds)
            outcome = UnitOutcome.RELEASED
        except (RecordRefused, GlyphMissing) as error:
            # The document's content is wrong, and will be at the next attempt too.
            detail = str(error)
            outcome = self._fail(lease, detail, None)
        except Exception as error:
            if isinstance(error, _Stopped | DocgenError) and not isinstance(error, RenderFailed):
                self._report(lease, UnitOutcome.RELEASED, started, None)
                raise
            _log.debug("attempt %d at unit %d failed", lease.attempt, lease.index, exc_info=True)
            detail = str(error) if isinstance(error, RenderFailed) else f"{type(error).__name__}: {error}"
            outcome = self._fail(lease, detail, _back_off(lease.attempt))
        self._report(lease, outcome, started, detail)
        return True

    def _check(self, keeper: LeaseKeeper) -> None:
        if self.stop.is_set():
            raise _Stopped
        keeper.check()

    def _fail(self, lease: Lease, error: str, retry_seconds: float | None) -> UnitOutcome:
        try:
            ended = self.state.fail_unit(lease, " ".join(error.split()), retry_seconds=retry_seconds)
        except LeaseLost:
            return UnitOutcome.LOST
        return UnitOutcome.FAILED if ended is UnitState.FAILED else UnitOutcome.RETRY

    def _hand_back(self, lease: Lease) -> None:
        # A store that cannot take it back now will see the lease expire.
        with suppress(DocgenError):
            self.state.release(lease)

    def _learn(self, seconds: float) -> None:
        self.units += 1
        before = seconds if self.seconds_a_unit is None else self.seconds_a_unit
        self.seconds_a_unit = (before + seconds) / 2

    def _report(self, lease: Lease, outcome: UnitOutcome, started: float, error: str | None) -> None:
        seconds = time.monotonic() - started
        items = len(self.plan.unit_range(lease.index)) if self.plan else 0
        self.tell(
            UnitEvent(
                self.run_id, lease.index, lease.generation, lease.attempt, self.worker, outcome, seconds, items, error
            )
        )


class _Stopped(Exception):
    """`stop` was set: the unit in hand goes back as it was."""


def _back_off(attempt: int) -> float:
    return min(RETRY_SECONDS * 2.0 ** (attempt - 1), LONGEST_RETRY_SECONDS)
