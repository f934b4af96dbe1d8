"""Stores as a simulated process sees them: the real in-memory ones, behind a line that may fail.

Three profiles say what a store promises. What does not belong here: the rules of the contract;
`SegmentStore` is the production one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from sim_faults import Line
from sim_referee import Referee

from docgen_core.blobs.contract import BlobInfo, BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import BlobMissing, StorageFailed
from docgen_core.state.contract import Run, RunState, Unit, UnitState
from docgen_core.state.primitives import Change, Entry, Posting, Primitives, Segment


@dataclass(frozen=True, slots=True)
class Profile:
    """What a kind of store promises."""

    name: str
    one_transaction: bool
    """Changes of several units are written together, or not at all."""
    by_version: bool
    """A write's condition is the very version of the row that was read; else its generation, state and heartbeat."""
    seals_may_lag: bool
    """A read of the seals need not be strong: a seal is final, and one not seen yet costs a read."""
    one_clock: bool
    """All workers are on one machine."""
    available_shards: int
    """Over how many rows what is available of a budget is spread."""
    run_age_seconds: float
    """How old the run may be that a claim rests on; in the clouds nearly a whole lease of these schedules."""


SQLITE = Profile(
    "sqlite",
    one_transaction=True,
    by_version=False,
    seals_may_lag=False,
    one_clock=True,
    available_shards=1,
    run_age_seconds=0.0,
)
FIRESTORE = Profile(
    "firestore",
    one_transaction=False,
    by_version=True,
    seals_may_lag=False,
    one_clock=False,
    available_shards=3,
    run_age_seconds=5.0,
)
DYNAMODB = Profile(
    "dynamodb",
    one_transaction=False,
    by_version=False,
    seals_may_lag=True,
    one_clock=False,
    available_shards=3,
    run_age_seconds=5.0,
)
PROFILES = {profile.name: profile for profile in (SQLITE, FIRESTORE, DYNAMODB)}


class Server:
    """What the processes share: tables and blobs, and the referee who sees each change of them."""

    def __init__(self, profile: Profile, tables: Primitives, blobs: BlobStore, referee: Referee) -> None:
        self.profile, self.tables, self.blobs, self.referee = profile, tables, blobs, referee
        self._versions: dict[tuple[str, int], int] = {}
        self._past_seals: list[dict[int, int]] = [{}]

    # Each of these is one atomic step of the server. -------------------------------------------

    def write_unit(self, actor: str, change: Change) -> bool:
        """Apply a change whose condition holds."""
        return self._write(actor, change, lambda: self.tables.write_units([change])[0])

    def commit(self, actor: str, postings: Sequence[Posting], unit: Change | None) -> bool:
        """Apply all of it, or nothing."""
        write = lambda: self.tables.commit(postings, unit)  # noqa: E731
        applied = write() if unit is None else self._write(actor, unit, write)
        if applied:
            self.referee.posted(actor, postings)
        return applied

    def _write(self, actor: str, change: Change, write: Callable[[], bool]) -> bool:
        before, after = change
        key = (after.run_id, after.index)
        stored = self.tables.read_unit(*key)
        if (
            self.profile.by_version
            and before is not None
            and (stored is None or self._versions.get(key) != before.stamp)
        ):
            return False
        if not write():
            return False
        self._versions[key] = self._versions.get(key, 0) + 1
        self.referee.unit_changed(actor, stored, after)
        return True

    def replace_run(self, actor: str, before: Run, after: Run) -> bool:
        """Store `after` when the run is still `before`."""
        stored = self.tables.read_run(before.run_id)
        applied = self.tables.replace_run(before, after)
        if applied:
            self.referee.run_changed(actor, stored, after)
        return applied

    def insert_run(self, actor: str, run: Run) -> bool:
        """Store the run unless it is there."""
        inserted = self.tables.insert_run(run)
        if inserted:
            self.referee.run_changed(actor, None, run)
        return inserted

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        """Mark the segment."""
        self.referee.sealed(run_id, segment)
        self.tables.seal(run_id, segment, rows)
        self._past_seals.append(self.tables.seals(run_id))

    def past_seals(self, behind: int) -> dict[int, int]:
        """The seals as they were so many seals ago."""
        return self._past_seals[max(len(self._past_seals) - 1 - behind, 0)]

    def stamped(self, unit: Unit) -> Unit:
        """The row with its version, as a store that has versions gives it."""
        if not self.profile.by_version:
            return unit
        return replace(unit, stamp=self._versions[unit.run_id, unit.index])

    def put(self, actor: str, key: str, data: bytes, *, create_only: bool) -> None:
        """Publish a blob."""
        try:
            stored = self.blobs.get(key)
        except BlobMissing:
            stored = None
        self.blobs.put(key, data, create_only=create_only)
        self.referee.blob_written(actor, key, stored, data)


class SimulatedTables(Primitives):
    """The primitives as one process calls them."""

    def __init__(self, server: Server, line: Line) -> None:
        self._server, self._line, self._actor = server, line, line.process.name
        self.run_age_seconds = server.profile.run_age_seconds
        self.available_shards = server.profile.available_shards

    def insert_run(self, run: Run) -> bool:
        return self._line.call("insert_run", lambda: self._server.insert_run(self._actor, run), write=True)

    def read_run(self, run_id: str) -> Run | None:
        return self._line.call("read_run", lambda: self._server.tables.read_run(run_id), write=False)

    def replace_run(self, before: Run, after: Run) -> bool:
        what = f"replace_run {before.state}→{after.state}"
        return self._line.call(what, lambda: self._server.replace_run(self._actor, before, after), write=True)

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        return self._line.call("list_runs", lambda: self._server.tables.list_runs(states, after, limit), write=False)

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        def act() -> Unit | None:
            unit = self._server.tables.read_unit(run_id, index)
            return None if unit is None else self._server.stamped(unit)

        return self._line.call(f"read_unit {index}", act, write=False)

    def read_segment(self, run_id: str, segment: int) -> Segment:
        def act() -> Segment:
            read = self._server.tables.read_segment(run_id, segment)
            return replace(read, unended={i: self._server.stamped(unit) for i, unit in read.unended.items()})

        return self._line.call(f"read_segment {segment}", act, write=False)

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        def together() -> list[bool]:
            return [self._server.write_unit(self._actor, change) for change in changes]

        if self._server.profile.one_transaction:
            applied = self._line.call(_named(changes), together, write=True)
        else:
            applied = self._write_one_by_one(changes)
        return applied

    def _write_one_by_one(self, changes: Sequence[Change]) -> list[bool]:
        """Requests that are under way at once: when one of them fails, the others happen all the same."""

        def alone(change: Change) -> Callable[[], bool]:
            return lambda: self._server.write_unit(self._actor, change)

        applied: list[bool] = []
        failure: StorageFailed | None = None
        for change in changes:
            try:
                applied.append(self._line.call(_named([change]), alone(change), write=True))
            except StorageFailed as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return applied

    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        def act() -> list[Unit]:
            return [self._server.stamped(u) for u in self._server.tables.list_units(run_id, states, after, limit)]

        return self._line.call(f"list_units after {after}", act, write=False)

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        self._line.call(f"seal {segment}", lambda: self._server.seal(run_id, segment, rows), write=True)

    def seals(self, run_id: str) -> dict[int, int]:
        lagging = (lambda: self._server.past_seals(2)) if self._server.profile.seals_may_lag else None
        return self._line.call("seals", lambda: self._server.tables.seals(run_id), write=False, before=lagging)

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        what = " ".join(f"{kind} {id_}" for kind, id_ in keys)
        return self._line.call(f"read {what}", lambda: self._server.tables.read_entries(run_id, keys), write=False)

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        tables = self._server.tables
        return self._line.call(f"list {kind}", lambda: tables.list_entries(run_id, kind, after, limit), write=False)

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        what = " ".join(f"{after.kind} {after.id} v{after.version}" for _, after in postings)
        what = f"commit {what}" if unit is None else f"commit {what} with {_named([unit])}"
        return self._line.call(what, lambda: self._server.commit(self._actor, postings, unit), write=True)

    def close(self) -> None:
        """Nothing to give back."""


def _named(changes: Sequence[Change]) -> str:
    units = ", ".join(
        f"{after.index}: {before.state if before else 'no row'}→{after.state} g{after.generation} h{after.heartbeat}"
        for before, after in changes
    )
    return f"write_units {units}"


class SimulatedBlobs(BlobStore):
    """The blob store as one process calls it."""

    def __init__(self, server: Server, line: Line) -> None:
        self.uri = "simulated"
        self._server, self._line = server, line

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        actor = self._line.process.name
        act = lambda: self._server.put(actor, key, data, create_only=create_only)  # noqa: E731
        self._line.call(f"put {key}", act, write=True)

    def get(self, key: str) -> bytes:
        return self._line.call(f"get {key}", lambda: self._server.blobs.get(key), write=False)

    def open(self, key: str) -> BinaryIO:
        return io.BytesIO(self.get(key))

    def size(self, key: str) -> int:
        return self._line.call(f"size {key}", lambda: self._server.blobs.size(key), write=False)

    def delete(self, key: str) -> None:
        self._line.call(f"delete {key}", lambda: self._server.blobs.delete(key), write=True)

    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        found = list[BlobInfo]
        return iter(
            self._line.call(
                f"list {prefix}", lambda: found(self._server.blobs.iter_keys(prefix, after=after)), write=False
            )
        )

    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> Iterator[str]:
        found = self._server.blobs.iter_prefixes(prefix, delimiter=delimiter)
        return iter(self._line.call(f"list {prefix}", lambda: list(found), write=False))


def contents_of(blobs: BlobStore) -> dict[str, bytes]:
    """Every blob by its key."""
    if isinstance(blobs, MemoryBlobStore):
        # Without the checks of keys, which would take most of a schedule's time.
        return dict(blobs._blobs)
    return {info.key: blobs.get(info.key) for info in blobs.iter_keys()}


def copy_of(blobs: BlobStore, into: BlobStore | None = None) -> BlobStore:
    """The same blobs in a store of their own: `into`, or memory."""
    if into is None:
        into = MemoryBlobStore()
        into._blobs = contents_of(blobs)
        return into
    for key, data in contents_of(blobs).items():
        into.put(key, data)
    return into
