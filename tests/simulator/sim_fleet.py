"""Fleets that spend one budget, in virtual time: the production guard and ledger, until nothing is left.

What is proved is money, so a fleet's budget is small enough to be drained and time costs nothing: each event
is a call that begins or ends, a sign of life, a death, or a message to the store that comes late. One seed
decides everything. What does not belong here: units and their leases (sim_world.py and what stands on it),
and races between two halves of one operation, which are met there and in the contract's threads.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import logging
import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sim_fleet_store import Line, Rows
from sim_schedule import Breakage

from docgen_core.errors import StorageFailed
from docgen_core.llm.guard import DistributedBudgetGuard, Reservation
from docgen_core.state.budget import Grant, ModelUsage
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

RUN = "r"
DEAR, CHEAP = 10_000_000, 1_000_000
"""Nano-dollars that a call of the two models costs at most: a cent, and a tenth of one."""
LIFE_SECONDS = 600.0
"""Until a worker dies, on average."""
AWAKE_SECONDS, FROZEN_SECONDS = 1_800.0, (30.0, 200.0)
"""A worker stands still now and then, often for longer than its grants hold."""
TIMED_OUT = 0.03
"""Calls charged at their worst case, whatever they were billed."""
BEAT_SECONDS, AGAIN_SECONDS = 20.0, 6.0
STAYS, GIVES_UP_AFTER = 0.1, 2
"""A refused worker has seldom more to do. Who stays asks again a call's length later, and is at last sure."""

OVERSPENT = "more was billed than there is"
UNSPENT_GOAL = 0.08
CHUNK = 10
"""Fleets that a process is given at a time."""

CALLS = (1, 2, 3, 4, 6, 8, 12, 30)
"""Calls a worker that a budget carries; the larger, the rarer."""
SECONDS = ((1.0, 4.0), (3.0, 12.0), (10.0, 30.0))
"""A call's length."""
COSTS = ((0.2, 1.0), (0.2, 1.0), (0.5, 1.0), (1.0, 1.0))
"""What a call is billed, as a share of its worst case."""
LANES = (1, 1, 2, 4)
"""Calls that a worker makes at a time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a seed makes of a fleet."""

    calls: int
    seconds: tuple[float, float]
    costs: tuple[float, float]
    lanes: int
    cheap: float
    """Share of the calls that go to the cheap model."""
    shards: int
    """Rows that what is available is spread over: one on SQLite, sixteen in the clouds."""
    clocks_apart: float
    """Seconds by which the workers' wall clocks may be wrong, either way."""

    @classmethod
    def drawn(cls, chance: random.Random) -> Shape:
        """One of all there are; small budgets are drawn more often than large ones."""
        return cls(
            calls=chance.choices(CALLS, [1 / calls for calls in CALLS])[0],
            seconds=chance.choice(SECONDS),
            costs=chance.choice(COSTS),
            lanes=chance.choice(LANES),
            cheap=chance.choice((0.0, 0.0, 0.0, 0.0, 0.5)),
            shards=chance.choice((1, 1, 1, 16)),
            clocks_apart=chance.choice((0.0, 0.0, 0.0, 90.0)),
        )

    def cap(self, workers: int) -> int:
        """Nano-dollars, for so many calls a worker at their mean cost."""
        worst = self.cheap * CHEAP + (1 - self.cheap) * DEAR
        return round(workers * self.calls * worst * sum(self.costs) / 2)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a fleet."""

    seed: int
    shape: Shape
    cap: int
    billed: int
    counts: Counter[str]
    problems: tuple[str, ...]

    @property
    def unspent(self) -> float:
        """The share of the budget that nobody was billed."""
        return (self.cap - self.billed) / self.cap


class Fleet:
    """Workers that call until the money is gone, each dead one followed by another."""

    def __init__(self, seed: int, workers: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.shape = Shape.drawn(self.chance)
        self.cap = self.shape.cap(workers)
        self.now, self.billed = 0.0, 0
        self.counts: Counter[str] = Counter()
        self.problems: dict[str, None] = {}
        """In the order in which they showed, once each."""
        self.workers: list[Worker] = []
        self._queue: list[tuple[float, int, Callable[[], None], Worker | None]] = []
        self._order = itertools.count()
        self._rows = Rows(self.shape.shards)
        self.state = self.store(0.0)
        self.state.create_run(RunMarker(RUN, RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
        self.state.set_budget(RUN, self.cap)
        for _ in range(workers):
            self.hire()

    def store(self, wrong: float) -> SegmentStore:
        """The production store, as a process has it whose wall clock is wrong by so much."""
        return SegmentStore(
            self._rows, Settings(), uri="test", clock=lambda: self.now + wrong, monotonic=lambda: self.now
        )

    def hire(self) -> None:
        """One worker more."""
        self.workers.append(Worker(self, f"w{len(self.workers)}"))

    def later(self, seconds: float, act: Callable[[], None], worker: Worker | None = None) -> None:
        """Let it happen then, unless its worker is dead; when its worker wakes, where it is frozen."""
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), act, worker))

    def bill(self, cost: int) -> None:
        """The provider has done its part, and wants its money whoever hears of the reply."""
        self.billed += cost
        self.counts["calls"] += 1
        if self.billed > self.cap:
            self.problems[OVERSPENT] = None

    def run(self) -> Outcome:
        """Until the last worker has left, or more was billed than there is."""
        while self._queue and OVERSPENT not in self.problems:
            self.now, _, act, worker = heapq.heappop(self._queue)
            if worker is None:
                act()
            elif worker.frozen_until > self.now:
                self.later(worker.frozen_until - self.now, act, worker)
            elif worker.alive:
                act()
        self._audit()
        return Outcome(self.seed, self.shape, self.cap, self.billed, self.counts, tuple(self.problems))

    def _audit(self) -> None:
        figures = self.state.spend(RUN).budget
        assert figures is not None
        if figures.overshoot:
            self.problems["the store tells of an overshoot"] = None
        if figures.cap + figures.overshoot != figures.available + figures.reserved + figures.committed:
            self.problems["the account does not add up"] = None
        grants = {grant.id: grant for grant in self.state.grants(RUN)}
        for worker in self.workers:
            for grant_id, ledger in worker.ledgers.items():
                self.problems.update(dict.fromkeys(ledger.problems(grants[grant_id], whole=worker.left)))


@dataclass(slots=True)
class Ledger:
    """What really happened in one grant."""

    billed: int = 0
    told: ModelUsage = field(default_factory=ModelUsage)
    """What its worker lived to tell its guard."""

    def problems(self, grant: Grant, *, whole: bool) -> Iterator[str]:
        """What the store has wrong of it. `whole`: its worker left in order, so all of it should be there."""
        booked = sum(grant.usage.values(), ModelUsage())
        if self.billed > grant.held:
            yield "a grant was billed more than it holds"
        if booked.calls > self.told.calls or booked.known_cost > self.told.known_cost:
            yield "a grant has booked more than happened in it"
        if whole and booked != self.told:
            yield "a grant was given back without all that happened in it"


class Worker:
    """Calls in a few lanes; a call is billed from the moment it is made, whoever learns of it."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.fleet, self.alive, self.left = fleet, True, False
        self.frozen_until = 0.0
        self.ledgers: dict[str, Ledger] = {}
        self._idle, self._refusals = 0, 0
        chance, shape = fleet.chance, fleet.shape
        line: Any = Line(fleet, fleet.store(chance.uniform(-1, 1) * shape.clocks_apart))
        self._guard = DistributedBudgetGuard(line, RUN, name, fleet.cap, clock=lambda: fleet.now)
        for _ in range(shape.lanes):
            self._later(chance.random(), self._begin)
        self._later(BEAT_SECONDS, self._beat)
        fleet.later(chance.expovariate(1 / LIFE_SECONDS), self._die)
        self._later(chance.expovariate(1 / AWAKE_SECONDS), self._freeze)
        self._stays = chance.random() < STAYS

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self.fleet.later(seconds, act, self)

    def _begin(self) -> None:
        fleet, shape = self.fleet, self.fleet.shape
        if self._idle:
            self._idle += 1
            return
        wanted = CHEAP if fleet.chance.random() < shape.cheap else DEAR
        try:
            reservation = self._reserve(wanted)
        except StorageFailed:
            self._later(1.0, self._begin)
            return
        if reservation is None:
            self._idle = 1
            self._later(max(AGAIN_SECONDS, shape.seconds[1]), self._again)
            return
        self._refusals = 0
        worst = reservation.worst.known_cost
        cost = round(worst * fleet.chance.uniform(*shape.costs))
        self._ledger(reservation).billed += cost
        fleet.bill(cost)
        self._later(fleet.chance.uniform(*shape.seconds), lambda: self._end(reservation, cost))

    def _reserve(self, wanted: int) -> Reservation | None:
        """A cheaper call goes where the dear one is refused."""
        prices = (wanted, CHEAP) if wanted > CHEAP and self.fleet.shape.cheap else (wanted,)
        found = (self._guard.reserve(f"m{price}", ModelUsage(1, 400, 1000, price)) for price in prices)
        return next((reservation for reservation in found if reservation), None)

    def _end(self, reservation: Reservation, cost: int) -> None:
        ledger = self._ledger(reservation)
        if self.fleet.chance.random() < TIMED_OUT:
            ledger.told += reservation.worst
            self._guard.charge(reservation)
        else:
            ledger.told += (actual := ModelUsage(1, 300, 500, cost))
            self._guard.settle(reservation, actual)
        self._begin()

    def _ledger(self, reservation: Reservation) -> Ledger:
        assert reservation._slice is not None
        return self.ledgers.setdefault(reservation._slice.grant.id, Ledger())

    def _again(self) -> None:
        self._refusals += 1
        if self._idle == self.fleet.shape.lanes and (not self._stays or self._refusals > GIVES_UP_AFTER):
            self._leave()
            return
        lanes, self._idle = self._idle, 0
        for _ in range(lanes):
            self._begin()

    def _beat(self) -> None:
        try:
            self._guard.beat()
        except StorageFailed:
            self.fleet.counts["missed beats"] += 1
        self._later(BEAT_SECONDS, self._beat)

    def _leave(self) -> None:
        try:
            self._guard.close()
        except StorageFailed:
            self._later(1.0, self._leave)
        else:
            self.alive, self.left = False, True

    def _freeze(self) -> None:
        self.fleet.counts["freezes"] += 1
        self.frozen_until = self.fleet.now + self.fleet.chance.uniform(*FROZEN_SECONDS)
        self._later(self.fleet.chance.expovariate(1 / AWAKE_SECONDS), self._freeze)

    def _die(self) -> None:
        if self.alive:
            self.alive = False
            self.fleet.counts["deaths"] += 1
            self.fleet.hire()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without the guard's warnings of each lost answer, and without looks for garbage that is there only at the end."""
    level, collects = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logging.disable(level)
        if collects:
            gc.enable()
        gc.collect()


def simulate_fleet(seed: int, workers: int, broken: Breakage = nullcontext) -> Outcome:
    """The fleet of this seed, from its first call to the last worker's leaving."""
    with _undisturbed(), broken():
        return Fleet(seed, workers).run()


def simulate_fleets(
    seeds: Sequence[int], workers: int, *, processes: int = 1, broken: Breakage = nullcontext
) -> Iterator[Outcome]:
    """The fleets of these seeds, in their order; broken ones in this process alone."""
    if processes == 1:
        yield from (simulate_fleet(seed, workers, broken) for seed in seeds)
        return
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(partial(simulate_fleet, workers=workers), seeds, chunksize=CHUNK)


@dataclass
class Account:
    """The figures of many fleets."""

    unspent: list[float] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    red: int = 0
    overspent: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count this one too."""
        self.unspent.append(outcome.unspent)
        self.counts += outcome.counts
        self.red += bool(outcome.problems)
        self.overspent += OVERSPENT in outcome.problems

    @property
    def mean(self) -> float:
        """Share that is left of a budget, on average."""
        return sum(self.unspent) / len(self.unspent)

    def __str__(self) -> str:
        fleets = len(self.unspent)
        counts = ", ".join(f"{count:,} {what}" for what, count in self.counts.most_common())
        over = sum(share >= UNSPENT_GOAL for share in self.unspent)
        return (
            f"{fleets:,} fleets, {self.overspent} overspent, {self.red} red; unspent {self.mean:.2%} on average, "
            f"{sorted(self.unspent)[fleets * 99 // 100]:.2%} in one of a hundred, {max(self.unspent):.2%} at worst, "
            f"{UNSPENT_GOAL:.0%} or more in {over}; {counts}"
        )
