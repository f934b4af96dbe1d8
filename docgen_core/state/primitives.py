"""What a backend must be able to do: a handful of reads, and conditional writes of rows.

Every rule of the contract is made of these by `store.SegmentStore` and `ledger.LedgerStore`; a
backend only maps them to its database. Each method is one call to the store, so that a test or a simulator can stand
between any two of them. What does not belong here: leases, attempts, who may claim what.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from docgen_core.errors import RunUnknown
from docgen_core.state.contract import SEGMENT_UNITS, Run, RunState, Unit, UnitState


class Change(NamedTuple):
    """A unit's row before (`None`: there was none) and after.

    It may be applied only while the row's generation, state and heartbeat are still those of
    `before`; every transition changes at least one of them, so the three are a version. `before`
    is a row as this store has given it, its stamp included.
    """

    before: Unit | None
    after: Unit


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of a run's ledger. What is in it is its writer's own business."""

    run_id: str
    kind: str
    """A word; part of the row's key, like the id."""
    id: str
    version: int
    """1 when it is inserted, and one more at each write."""
    body: Mapping[str, object]
    """JSON, as it is read back."""
    stamp: object = field(default=None, compare=False, repr=False)
    """As a run's."""


class Posting(NamedTuple):
    """A ledger row before (`None`: there was none) and after, to be written while its version is that of `before`."""

    before: Entry | None
    after: Entry

    @classmethod
    def of(cls, run_id: str, kind: str, id_: str, before: Entry | None, body: Mapping[str, object]) -> Posting:
        """The next version of the row, with this body."""
        return cls(before, Entry(run_id, kind, id_, before.version + 1 if before else 1, body))


@dataclass(frozen=True, slots=True)
class Segment:
    """One strong read of a segment. Units in none of the three have no row: they are pending."""

    done: frozenset[int]
    failed: frozenset[int]
    unended: Mapping[int, Unit]
    """PENDING and RUNNING rows by index."""
    rows: int
    """Golden rows in the DONE units."""

    @classmethod
    def of(cls, units: Iterable[Unit]) -> Segment:
        """Sort the rows of a segment by state."""
        done, failed, unended, rows = set[int](), set[int](), dict[int, Unit](), 0
        for unit in units:
            if unit.state is UnitState.DONE:
                done.add(unit.index)
                rows += unit.rows
            elif unit.state is UnitState.FAILED:
                failed.add(unit.index)
            else:
                unended[unit.index] = unit
        return cls(frozenset(done), frozenset(failed), unended, rows)


def segment_range(segment: int, total_units: int) -> range:
    """Indices of the units in a segment."""
    first = segment * SEGMENT_UNITS
    return range(first, min(first + SEGMENT_UNITS, total_units))


def segment_count(total_units: int) -> int:
    """Segments in a run of so many units."""
    return -(-total_units // SEGMENT_UNITS)


class Primitives(ABC):
    """Storage of runs, unit rows and seals. Reads are strong. Safe to share among threads.

    Raises `StorageFailed` when the store did not answer and `StateUnusable` when what is there
    is not a state store; a write that raised may or may not have happened.
    """

    run_age_seconds: float = 0.0
    """How long ago a run may have been read for a claim to rest on it: more than 0 where each read is billed."""

    available_shards: int = 1
    """Over how many rows what is available of a budget is spread: more than 1 where many writers of one row wait for
    each other. Part of the format: all processes have to agree."""

    @abstractmethod
    def insert_run(self, run: Run) -> bool:
        """Store the run unless its id is taken; True when this call did."""

    @abstractmethod
    def read_run(self, run_id: str) -> Run | None:
        """The run's row."""

    @abstractmethod
    def replace_run(self, before: Run, after: Run) -> bool:
        """Store `after` while state, planned and epoch are those of `before`; True when it did."""

    @abstractmethod
    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        """Runs in id order behind `after`, by an index."""

    @abstractmethod
    def read_unit(self, run_id: str, index: int) -> Unit | None:
        """A unit's row."""

    @abstractmethod
    def read_segment(self, run_id: str, segment: int) -> Segment:
        """All rows of a segment."""

    @abstractmethod
    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        """Apply each change whose condition holds, in order; says which were applied.

        `before` None means insert-or-nothing. One transaction where the store has cheap ones;
        each change stands for itself in any case.
        """

    @abstractmethod
    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        """Rows in index order behind `after`."""

    @abstractmethod
    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """Mark a segment whose units are all DONE, with its golden rows. Monotone, idempotent."""

    @abstractmethod
    def seals(self, run_id: str) -> dict[int, int]:
        """Golden rows by sealed segment."""

    def read_time(self) -> float | None:
        """The store's own clock, in seconds since 1970, by one read; None where it has none of its own."""
        return None

    @abstractmethod
    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        """Ledger rows by kind and id, in the order asked for: read in this order, or all at one moment."""

    @abstractmethod
    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        """Rows of a kind behind the id `after` (all of them for an empty one), in an order of the store's own."""

    @abstractmethod
    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        """Write all of these rows, and the unit's where there is one, or none of them.

        True when this call did. False when a condition did not hold; should an answer have been lost
        and the rows have changed since, it may have done so and say False: read again.
        """

    @abstractmethod
    def close(self) -> None:
        """Give back connections."""

    # Built on the above, alike for every backend --------------------------------------------

    def change_run(self, run_id: str, transition: Callable[[Run], Run]) -> Run:
        """Store what `transition` makes of the run, read again whenever it changed meanwhile.

        Ends, since each further round means that somebody else's change got through.
        Raises `RunUnknown`, and what the transition raises.
        """
        while True:
            before = self.read_run(run_id)
            if before is None:
                raise RunUnknown(run_id)
            after = transition(before)
            if after == before or self.replace_run(before, after):
                return after

    def change_unit(self, run_id: str, index: int, transition: Callable[[Unit | None], Unit]) -> Unit:
        """Store what `transition` makes of the unit's row, likewise. Raises what the transition raises."""
        while True:
            before = self.read_unit(run_id, index)
            after = transition(before)
            if after == before or self.write_units([Change(before, after)])[0]:
                return after

    def seal_if_done(self, run: Run, segment: int, read: Segment) -> bool:
        """Seal a segment whose read shows all its units DONE, which is final; says whether it does."""
        whole = len(read.done) == len(segment_range(segment, run.marker.total_units))
        if whole:
            self.seal(run.run_id, segment, read.rows)
        return whole
