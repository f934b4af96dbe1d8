"""Simulated fleets in virtual time: workers die, the store fails and repeats itself, and nothing is overspent."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from docgen_core.errors import StorageFailed
from docgen_core.llm.guard import DistributedBudgetGuard, Reservation
from docgen_core.state.budget import ModelUsage
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

WORST = 10_000_000
"""Nano-dollars: a cent a call."""
CALL_SECONDS = (1.0, 4.0)
LIFE_SECONDS = 600.0
"""On average."""
FAILING, REPEATED, TIMED_OUT = 0.01, 0.01, 0.03
GIVES_UP_AFTER = 3
"""Refusals on end; by then everybody else has given back what was left."""


class Store:
    """The state store as a worker meets it over a bad network."""

    def __init__(self, state: SegmentStore, chance: random.Random, calls: Counter[str]) -> None:
        self._state, self._chance, self._calls = state, chance, calls

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            self._calls["operations"] += 1
            drawn = self._chance.random()
            if drawn < FAILING / 2:
                raise StorageFailed("out of reach")
            answer = getattr(self._state, name)(*args, **named)
            if drawn < FAILING:
                raise StorageFailed("the answer was lost")
            if drawn < FAILING + REPEATED and name != "expire_grants":
                answer = getattr(self._state, name)(*args, **named)
            return answer

        return call


class Fleet:
    """Workers with one call at a time each, in virtual time, until the money is gone."""

    def __init__(self, seed: int, workers: int, calls_of_the_cap: int) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.cap = calls_of_the_cap * WORST
        self.counts: Counter[str] = Counter()
        self.billed = 0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.state = SegmentStore(
            MemoryPrimitives(), Settings(), uri="test", clock=lambda: self.now, monotonic=lambda: self.now
        )
        self.state.create_run(RunMarker("r", RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
        self.state.set_budget("r", self.cap)
        for _ in range(workers):
            Worker(self)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + seconds, next(self._order), act))

    def run(self) -> float:
        """The share of the cap that was not spent."""
        while self._queue:
            self.now, _, act = heapq.heappop(self._queue)
            act()
            assert self.billed <= self.cap, "overspent"
        figures = self.state.spend("r").budget
        assert figures is not None and figures.overshoot == 0
        assert figures.available + figures.reserved + figures.committed == self.cap
        return (self.cap - self.billed) / self.cap


class Worker:
    """Calls one after the other; a call is billed from the moment it is made, whoever learns of it."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet, self.alive, self.refusals = fleet, True, 0
        name = f"w{next(fleet._order)}"
        store: Any = Store(fleet.state, fleet.chance, fleet.counts)
        self.guard = DistributedBudgetGuard(store, "r", name, fleet.cap, clock=lambda: fleet.now)
        fleet.later(fleet.chance.random(), self._begin)
        fleet.later(20.0, self._beat)
        fleet.later(fleet.chance.expovariate(1 / LIFE_SECONDS), self._die)

    def _begin(self) -> None:
        if not self.alive:
            return
        chance = self.fleet.chance
        try:
            reservation = self.guard.reserve("m", ModelUsage(1, 400, 1000, WORST))
        except StorageFailed:
            self.fleet.later(1.0, self._begin)
            return
        if reservation is None:
            self.refusals += 1
            if self.refusals < GIVES_UP_AFTER:
                self.fleet.later(6.0, self._begin)
            else:
                self._leave()
            return
        self.refusals = 0
        cost = chance.randint(WORST // 5, WORST)
        self.fleet.billed += cost
        self.fleet.counts["calls"] += 1
        self.fleet.later(chance.uniform(*CALL_SECONDS), lambda: self._end(reservation, cost))

    def _end(self, reservation: Reservation, cost: int) -> None:
        if not self.alive:
            return
        if self.fleet.chance.random() < TIMED_OUT:
            self.guard.charge(reservation)
        else:
            self.guard.settle(reservation, ModelUsage(1, 300, 500, cost))
        self._begin()

    def _beat(self) -> None:
        if self.alive:
            try:
                self.guard.beat()
            except StorageFailed:
                self.fleet.counts["missed"] += 1
            self.fleet.later(20.0, self._beat)

    def _leave(self) -> None:
        try:
            self.guard.close()
            self.alive = False
        except StorageFailed:
            self.fleet.later(1.0, self._leave)

    def _die(self) -> None:
        if self.alive:
            self.alive = False
            self.fleet.counts["deaths"] += 1
            Worker(self.fleet)


def simulated(seed: int, workers: int) -> tuple[float, Counter[str]]:
    """The unspent share of one fleet's budget, and what it did."""
    logging.disable(logging.CRITICAL)  # it tells of each answer that was lost
    try:
        fleet = Fleet(seed, workers, calls_of_the_cap=workers * 20)
        return fleet.run(), fleet.counts
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.timeout(24 * 3600)
def test_no_fleet_overspends_and_little_is_left(full_figures: bool, say: Callable[[str], None]) -> None:
    fleets, workers = (10_000, 200) if full_figures else (6, 40)
    told = map(simulated, range(fleets), itertools.repeat(workers))
    unspent, counts = zip(*told, strict=True)
    total = sum(counts, Counter())
    mean = sum(unspent) / len(unspent)
    say(f"{fleets} fleets of {workers}: {dict(total)}; unspent {mean:.2%} on average, {max(unspent):.2%} at most")
    assert mean < 0.06
    assert total["operations"] < total["calls"], "less than one operation of the store a call"
