"""A backend with clocks that move only when told, for one suite over every state store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest
from state_servers import StateServer

from docgen_core.errors import StorageFailed
from docgen_core.state import transitions
from docgen_core.state.contract import SEGMENT_UNITS, Lease, Part, RunKind, RunMarker, Unit
from docgen_core.state.dynamodb import DynamoPrimitives
from docgen_core.state.dynamodb_calls import create_table
from docgen_core.state.firestore import FirestorePrimitives
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.primitives import Change, Primitives
from docgen_core.state.settings import Settings
from docgen_core.state.sqlite import SqlitePrimitives
from docgen_core.state.store import SegmentStore

LEASE_SECONDS = 60.0


Connect = Callable[[], Primitives]
"""Connects as one more process would."""


def _memory(request: pytest.FixtureRequest, folder: Path) -> Connect:
    tables = MemoryPrimitives()
    return lambda: tables


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> Connect:
    return lambda: SqlitePrimitives(folder / "state.db")


def _reach(request: pytest.FixtureRequest, server: StateServer) -> None:
    patch = request.getfixturevalue("monkeypatch")
    for name, value in server.environment.items():
        patch.setenv(name, value)


def _dynamodb(request: pytest.FixtureRequest, folder: Path) -> Connect:
    _reach(request, request.getfixturevalue("dynamodb_server"))
    table = f"docgen-{uuid4().hex}"
    create_table(table, None)
    return lambda: DynamoPrimitives(table, None, run_age_seconds=0.0)


def _firestore(request: pytest.FixtureRequest, folder: Path) -> Connect:
    _reach(request, request.getfixturevalue("firestore_server"))
    project = f"docgen-{uuid4().hex[:16]}"
    return lambda: FirestorePrimitives(project, "(default)", run_age_seconds=0.0)


BACKENDS = {"memory": _memory, "sqlite": _sqlite, "dynamodb": _dynamodb, "firestore": _firestore}
"""A backend joins the suite by a line here: (request, folder) → a function that connects to a store of its own."""

OVER_NETWORK = {"dynamodb", "firestore"}
"""Each write is a request here: large runs are brought near their end in fewer of them."""


def _delegated(name: str) -> Callable[..., object]:
    def call(self: Meddled, *args: object) -> object:
        self.before(name, *args)
        answer = getattr(self.inner, name)(*args)
        self.after(name)
        return answer

    return call


class Meddled(Primitives):
    """A connection on which things happen just before a call, or whose answers are lost just after."""

    def __init__(self, inner: Primitives) -> None:
        self.inner = inner
        self.available_shards = inner.available_shards
        self.calls: list[str] = []
        """Names of the calls so far."""
        self._acts: dict[tuple[str, str], Callable[..., object]] = {}

    def once_before(self, name: str, act: Callable[..., object]) -> None:
        """Let `act` happen, with the call's arguments, just before the next call of this name."""
        self._acts["before", name] = act

    def lose_answer(self, name: str) -> None:
        """Let the next call of this name happen, and raise as if its answer had not come."""
        self._acts["after", name] = self._lost

    def before(self, name: str, *args: object) -> None:
        self.calls.append(name)
        self._acts.pop(("before", name), lambda *_: None)(*args)

    def after(self, name: str) -> None:
        self._acts.pop(("after", name), lambda: None)()

    @staticmethod
    def _lost() -> None:
        raise StorageFailed("the connection was reset")


for _name in Primitives.__abstractmethods__:
    setattr(Meddled, _name, _delegated(_name))
Meddled.__abstractmethods__ = frozenset()


class World:
    """Stores on one backend, and the time they live in."""

    def __init__(self, connect: Connect, *, over_network: bool = False) -> None:
        self._connect = connect
        self.over_network = over_network
        self._opened: list[SegmentStore] = []
        self.wall = 1_700_000_000.0
        self.monotonic = 5_000.0

    def store(
        self, *, attempts: int = 3, skew: float = 0.0, wall_ahead: float = 0.0, meddled: bool = False
    ) -> SegmentStore:
        """One more process's store; its wall clock may be ahead of (or behind) the true time."""
        primitives = self._connect()
        store = SegmentStore(
            Meddled(primitives) if meddled else primitives,
            Settings(LEASE_SECONDS, attempts, skew),
            uri="test",
            clock=lambda: self.wall + wall_ahead,
            monotonic=lambda: self.monotonic,
        )
        self._opened.append(store)
        return store

    def planned(self, units: int, *, run_id: str = "r", **settings: object) -> SegmentStore:
        """A store with a planned run of so many units of ten items."""
        store = self.store(**settings)  # type: ignore[arg-type]
        store.create_run(self.marker(units, run_id))
        store.mark_planned(run_id, f"digest of {run_id}")
        return store

    @staticmethod
    def marker(units: int, run_id: str = "r") -> RunMarker:
        return RunMarker(
            run_id=run_id,
            kind=RunKind.DOCUMENTS,
            prefix=f"runs/{run_id}",
            spec={"kind": "documents", "documents": units * 10, "selection": {"locales": ["ja-JP"]}},
            spec_digest=f"digest of {run_id}",
            total_units=units,
            unit_size=10,
            total_items=units * 10,
        )

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def outlive_lease(self) -> None:
        self.wait(LEASE_SECONDS + 1)

    @staticmethod
    def part(lease: Lease) -> Part:
        return Part(f"runs/{lease.run_id}/manifest/unit-{lease.index:06d}.json", f"sha of {lease.index}", rows=7)

    def finish(self, store: SegmentStore, worker: str = "w", run_id: str = "r", **claim: object) -> list[int]:
        """Claim and complete until nothing is left to claim; the indices completed."""
        finished: list[int] = []
        while leases := store.claim_next_unit(run_id, worker, **claim).leases:  # type: ignore[arg-type]
            for lease in leases:
                store.complete_unit(lease, self.part(lease))
                finished.append(lease.index)
        return finished

    def finish_in_bulk(self, store: SegmentStore, leases: Sequence[Lease]) -> None:
        """Complete units of one segment by the rules, in one write: for runs too large for one by one."""
        run_id, segment = leases[0].run_id, leases[0].index // SEGMENT_UNITS
        rows = store.primitives.read_segment(run_id, segment).unended
        changes = [
            Change(rows[lease.index], transitions.completed(rows[lease.index], lease, self.part(lease)))
            for lease in leases
        ]
        assert all(store.primitives.write_units(changes))

    def done_before(self, store: SegmentStore, indices: Iterable[int], run_id: str = "r") -> None:
        """Leave units of a run as a peer does that has done them long ago, in one write a segment."""
        run, now = store.run(run_id), self.wall
        for _, group in itertools.groupby(indices, key=lambda index: index // SEGMENT_UNITS):
            rows = [transitions.claimed(run, index, None, worker="peer", now=now, working=True) for index in group]
            leases = [transitions.lease_of(row, asked_at=0.0, lease_seconds=LEASE_SECONDS) for row in rows]
            done = [transitions.completed(row, x, self.part(x)) for row, x in zip(rows, leases, strict=True)]
            assert all(store.primitives.write_units([Change(None, row) for row in done]))

    @staticmethod
    def unit(store: SegmentStore, index: int, run_id: str = "r") -> Unit:
        """The unit's row, which must be there."""
        (unit,) = (unit for unit in store.units(run_id, after=index - 1, limit=1) if unit.index == index)
        return unit

    @staticmethod
    def balance(store: SegmentStore, run_id: str = "r") -> tuple[int, int]:
        """What is available of the budget, and the overshoot, by the very rows, which have to add up (I8)."""
        rows = store.primitives
        (budget,) = rows.read_entries(run_id, [("budget", "cap")])
        available = [entry.body["nano"] for entry in rows.list_entries(run_id, "available", "", 100)]
        held = [e.body["held"] for kind in ("grant", "spend") for e in rows.list_entries(run_id, kind, "", 1000)]
        cap, overshoot = budget.body["cap"], budget.body["overshoot"]
        assert len(available) == rows.available_shards
        assert min(available) >= 0 and overshoot >= 0 and min(held, default=0) >= 0
        assert cap + overshoot == sum(available) + sum(held)
        assert not (overshoot and sum(available)), "over the cap with money to spare"
        return sum(available), overshoot

    def close(self) -> None:
        for store in self._opened:
            store.close()


@pytest.fixture(params=BACKENDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(BACKENDS[request.param](request, tmp_path), over_network=request.param in OVER_NETWORK)
    yield world
    world.close()


class Worlds(NamedTuple):
    """Worlds without end on one kind of backend, for generated tests."""

    backend: str
    new: Callable[[], World]


@pytest.fixture(params=BACKENDS)
def worlds(request: pytest.FixtureRequest, tmp_path: Path) -> Worlds:
    numbers = itertools.count()

    def new() -> World:
        folder = tmp_path / f"world-{next(numbers)}"
        return World(BACKENDS[request.param](request, folder))

    return Worlds(request.param, new)
