"""The coordination contract: records, operations, and what each promises.

The store is the only coordinator. Each operation is one atomic conditional write on one row.
Clocks decide only when to try again; the generation (a fencing token) decides who wins.
A missing unit row means PENDING, so that planning a million units costs what planning ten costs.

What does not belong here: how a backend does it, how a worker uses it, what a unit is made of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from docgen_core.state.budget import Settlement
from docgen_core.state.budget_contract import BudgetStore
from docgen_core.state.clocks import ClockOffset

SEGMENT_UNITS = 1_000
"""Units to a segment: what one strong read on the claim path covers."""

MAX_ERROR_BYTES = 512
"""An error kept with a unit is cut to this many bytes of UTF-8."""


class RunKind(StrEnum):
    """What the units of a run make."""

    DOCUMENTS = "documents"
    CATALOGUE = "catalogue"


class RunState(StrEnum):
    """Where a run stands. COMPLETED implies that its root manifest is present."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    FINALIZING = "FINALIZING"
    COMPLETED = "COMPLETED"


class UnitState(StrEnum):
    """Where a unit stands; PENDING is also what a missing row means."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True)
class RunMarker:
    """What a planner records of a run: everything but its progress."""

    run_id: str
    kind: RunKind
    prefix: str
    """Blob prefix of the run, without a slash at its end, e.g. `runs/r1`."""
    spec: Mapping[str, object]
    """JSON; no worker, fleet or lease in it."""
    spec_digest: str
    total_units: int
    unit_size: int
    total_items: int
    """Documents (or companies) in all; the last unit may be short."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run as the store holds it."""

    marker: RunMarker
    state: RunState
    planned: bool
    epoch: int
    root_digest: str | None
    created_at: float
    """Seconds since 1970, for people and listings; it orders nothing."""
    max_attempts: int
    lease_seconds: float
    stamp: object = field(default=None, compare=False, repr=False)
    """By what the store that gave this row would know it again; the row's version, where the store has versions."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.marker.run_id

    def unit_range(self, index: int) -> range:
        """Item indices of a unit: contiguous, the last one short."""
        first = index * self.marker.unit_size
        return range(first, min(first + self.marker.unit_size, self.marker.total_items))


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit's row. `generation` never goes down, not even on reset."""

    run_id: str
    index: int
    state: UnitState
    generation: int
    attempts: int
    owner: str
    lease_expires_at: float
    heartbeat: int
    """Counts renewals; with the generation it tells a watcher whether the owner lives."""
    working: bool
    """Whether this unit of a claimed batch is the one in hand: only then does an expiry cost an attempt."""
    not_before: float
    error: str | None
    part_key: str | None
    part_sha256: str | None
    rows: int
    epoch: int
    stamp: object = field(default=None, compare=False, repr=False)
    """As a run's."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on a unit, good as long as the unit's generation is this one."""

    run_id: str
    index: int
    generation: int
    attempt: int
    """1 for the first attempt at the unit since its last reset."""
    owner: str
    epoch: int
    expires_monotonic: float
    """On the holder's own monotonic clock, counted from before it asked."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a finished unit published: its manifest part, and how many golden rows it holds."""

    key: str
    sha256: str
    rows: int


class Outlook(StrEnum):
    """Why a claim brought nothing (or what is left beside what it brought)."""

    CLAIMED = "CLAIMED"
    BUSY = "BUSY"
    """Units are running elsewhere or not yet due: ask again after `Claim.retry_seconds`."""
    DRAINED = "DRAINED"
    """Every unit in scope is DONE or FAILED."""
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    CLOSED = "CLOSED"
    """FINALIZING or COMPLETED: nothing is left to claim, ever."""
    UNPLANNED = "UNPLANNED"
    """The planner has not finished: ask again, or take the planning over."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim: leases (the first one is in hand), or why there are none."""

    outlook: Outlook
    leases: tuple[Lease, ...] = ()
    retry_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Units by state, and golden rows in DONE units. pending + running + done + failed = total."""

    total: int
    pending: int
    running: int
    done: int
    failed: int
    rows: int
    expired: int
    """Of `running`: leases past their expiry."""


class StateStore(BudgetStore):
    """The contract over SQLite, Firestore, DynamoDB and memory. Safe to share among threads.

    What a fleet may spend is `BudgetStore`'s part of it.

    Every mutation raises `RunUnknown` for a run that is not there and `UsageError` for a unit
    index outside the run; none creates a row for a unit that was never claimed.
    `StorageFailed` means the store did not answer; the operation may or may not have happened,
    and every operation may be called again.
    """

    uri: str
    """The URI that opens this store again in another process."""

    # Runs ---------------------------------------------------------------------------------

    @abstractmethod
    def create_run(self, marker: RunMarker) -> tuple[Run, bool]:
        """Record the run unless there is one; True when this call did.

        Holds before: no such run. Otherwise the run that is there is returned unchanged,
        whatever its spec; comparing digests is the planner's part.
        """

    @abstractmethod
    def mark_planned(self, run_id: str, spec_digest: str) -> Run:
        """Open the run for claims. Idempotent; another digest raises `PlanConflict`.

        Never touches a unit: a late planner changes nothing.
        """

    @abstractmethod
    def run(self, run_id: str) -> Run:
        """The run, by a strong read. Raises `RunUnknown`."""

    @abstractmethod
    def list_runs(self, states: Collection[RunState] | None = None, *, after: str = "", limit: int = 100) -> list[Run]:
        """Runs in run-id order behind `after`. No table scan."""

    @abstractmethod
    def pause(self, run_id: str) -> Run:
        """RUNNING → PAUSED: claims stop, units in hand are finished. Already paused is fine.

        Raises `WrongRunState` from CANCELLED, FINALIZING and COMPLETED.
        """

    @abstractmethod
    def resume(self, run_id: str) -> Run:
        """PAUSED → RUNNING. RUNNING, FINALIZING and COMPLETED stay as they are.

        Raises `RunCancelled`.
        """

    @abstractmethod
    def cancel(self, run_id: str) -> Run:
        """RUNNING or PAUSED → CANCELLED; workers learn at their next renewal. Already cancelled is fine.

        Raises `WrongRunState` from FINALIZING on: it is too late.
        """

    # Units --------------------------------------------------------------------------------

    @abstractmethod
    def claim_next_unit(
        self, run_id: str, worker: str, *, limit: int = 1, within: Collection[int] | None = None
    ) -> Claim:
        """Claim up to `limit` units, of `within` only where it is given.

        Holds before, for each: run RUNNING and planned; unit pending and due, or its lease
        expired; attempts below the cap (an expired unit whose attempts are used up becomes
        FAILED instead). After: RUNNING, generation + 1, attempts + 1, lease stamped.
        What is held of the run may be as old as the store says (`Primitives.run_age_seconds`; a claim
        may be overtaken by a pause in any case, and its worker learns at its next renewal).
        A lost race is the next candidate. Fewer than `limit` come where peers are seen at work
        and little is left, so that the tail of a run is shared.
        """

    @abstractmethod
    def renew(self, lease: Lease, *, working: bool = True) -> tuple[Lease, RunState]:
        """Extend the lease; tells the worker of pause and cancel.

        `working` marks the unit in hand among a claimed batch. Raises `LeaseLost`.
        """

    @abstractmethod
    def complete_unit(self, lease: Lease, part: Part, settlement: Settlement | None = None) -> None:
        """RUNNING with this generation → DONE with the part's digest. The expiry does not matter.

        What the unit has cost is settled in the same write, as `settle_grant` would, or not at all.
        Already DONE with the same generation and digest is fine (the answer was lost);
        anything else raises `LeaseLost`, and nothing is settled.
        """

    @abstractmethod
    def fail_unit(self, lease: Lease, error: str, *, retry_seconds: float | None = None) -> UnitState:
        """Record a failed attempt: PENDING again after `retry_seconds` while attempts are left
        and it is given, else FAILED. Returns which.

        The same failure reported again is fine (the answer was lost). Raises `LeaseLost`.
        """

    @abstractmethod
    def release(self, lease: Lease, *, not_before_seconds: float = 0.0) -> None:
        """Hand the unit back, pending again, without using up an attempt. A lost lease is ignored."""

    @abstractmethod
    def reset_failed_units(self, run_id: str) -> int:
        """FAILED → PENDING, attempts 0, generation kept; run RUNNING or PAUSED. Returns how many.

        Raises `RunCancelled`, or `WrongRunState` from FINALIZING on.
        """

    @abstractmethod
    def reclaim_expired_units(self, run_id: str) -> int:
        """Expired units pending again (or FAILED at the cap), each by a conditional write on the
        generation and heartbeat it read. Returns how many.
        """

    @abstractmethod
    def units(
        self, run_id: str, states: Collection[UnitState] | None = None, *, after: int = -1, limit: int = 1000
    ) -> list[Unit]:
        """Unit rows in index order behind `after`. Units that were never claimed have no row
        and are not listed.
        """

    @abstractmethod
    def progress(self, run_id: str) -> Progress:
        """Counts by state, by a strong read."""

    # Finalising ---------------------------------------------------------------------------

    @abstractmethod
    def begin_finalize(self, run_id: str) -> Run:
        """RUNNING → FINALIZING when every unit is DONE by a strong read; already FINALIZING or
        COMPLETED is returned as it is. Raises `RunIncomplete` with the gap's indices,
        `RunCancelled`, or `WrongRunState` when paused.
        """

    @abstractmethod
    def complete_run(self, run_id: str, root_digest: str) -> Run:
        """FINALIZING → COMPLETED with the root's digest. COMPLETED with the same digest is fine,
        with another raises `RootConflict`. Raises `WrongRunState` before FINALIZING, or `RunCancelled`.
        """

    # The store itself ---------------------------------------------------------------------

    @abstractmethod
    def clock_offset(self) -> ClockOffset | None:
        """How far this machine's clock is off the store's, by one read; None where there is no other clock.

        For people: nothing that the store decides rests on it.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections. The store may not be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
