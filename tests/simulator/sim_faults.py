"""What may go wrong at a call, drawn by seed, so many times a schedule and no more.

What does not belong here: what it is a call to (sim_stores.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import TypeVar

from sim_world import Died, Process

from docgen_core.errors import DocgenError, StorageFailed

T = TypeVar("T")


class Fault(StrEnum):
    DEATH_BEFORE = "the process dies before the call"
    DEATH_AFTER = "the process dies after the call"
    REFUSED = "the store does not answer, and nothing has happened"
    ANSWER_LOST = "it happens, and the answer is lost"
    LATE_DELIVERY = "the caller hears of a failure, and it happens later"
    DELIVERED_TWICE = "it happens twice, and the second answer counts"
    FROZEN = "the process stands still before the call, past its lease perhaps"
    SLOW_REQUEST = "the request takes long, and other threads go on"
    SLOW_ANSWER = "the answer takes long, and is old when it comes"
    STALE_READ = "a read that need not be strong shows what was there before"
    TERMINATED = "somebody asks the process to end"


OF_WRITES = (Fault.LATE_DELIVERY, Fault.DELIVERED_TWICE)
EVERYWHERE = tuple(fault for fault in Fault if fault not in OF_WRITES and fault is not Fault.STALE_READ)

LATEST_SECONDS = 4.0
"""In leases: how long a freeze, a slow call or a late delivery lasts at most."""

CHANCE_AT_SEALING = 0.2


@dataclass(slots=True)
class Faults:
    """The faults of one schedule."""

    rng: Random
    left: int
    """How many there are still to come."""
    chance: float
    """That one happens at a call, while there are some left."""
    lease_seconds: float
    sealing_only: bool = False
    """None happens before somebody is about to seal the run, and then they are frequent."""
    happened: Counter[Fault] = field(default_factory=Counter)

    def draw(self, what: str, *, write: bool, may_lag: bool) -> Fault | None:
        """The fault of a call, if any."""
        if self.sealing_only:
            if "FINALIZING" not in what:
                return None
            self.sealing_only, self.chance = False, CHANCE_AT_SEALING
        if self.left <= 0 or self.rng.random() >= self.chance * (2.0 if write else 1.0):
            return None
        # Weighted, since most calls are reads that have to be strong.
        there = EVERYWHERE + (OF_WRITES * 2 if write else ()) + ((Fault.STALE_READ,) * 9 if may_lag else ())
        fault = self.rng.choice(there)
        self.left -= 1
        self.happened[fault] += 1
        return fault

    def delay(self) -> float:
        """Seconds that something takes that should take none."""
        return self.rng.random() * LATEST_SECONDS * self.lease_seconds


@dataclass(slots=True)
class Line:
    """What connects a process with its stores: each call is a yield point, and may go wrong."""

    process: Process
    faults: Faults | None
    """None: nothing goes wrong here."""
    latency: float
    """Mean seconds of a call."""
    note: Callable[[Process, str, Fault | None], None]
    """Writes the call into the trace."""
    terminate: Callable[[], None] = lambda: None

    def call(self, what: str, act: Callable[[], T], *, write: bool, before: Callable[[], T] | None = None) -> T:
        """Let `act` happen after others had their turns. `before` answers as a lagging replica would."""
        process = self.process
        if process.dead:
            raise Died
        world = process.world
        spread = self.faults.rng.random() if self.faults else 0.5
        world.sleep(self.latency * process.slowness * 2.0 * spread)
        fault = self.faults.draw(what, write=write, may_lag=before is not None) if self.faults else None
        self.note(process, what, fault)
        if fault is None:
            return act()
        return self._strike(fault, what, act, before)

    def _strike(self, fault: Fault, what: str, act: Callable[[], T], before: Callable[[], T] | None) -> T:
        assert self.faults is not None
        world = self.process.world
        match fault:
            case Fault.DEATH_BEFORE:
                self._die()
            case Fault.DEATH_AFTER:
                _done(act)
                self._die()
            case Fault.REFUSED:
                raise StorageFailed(f"{what}: out of reach")
            case Fault.ANSWER_LOST:
                _done(act)
                raise StorageFailed(f"{what}: the connection was reset")
            case Fault.LATE_DELIVERY:
                network = world.process(f"network of {self.process.name}")
                network.spawn(lambda: _done(act), after=self.faults.delay())
                raise StorageFailed(f"{what}: no answer in time")
            case Fault.DELIVERED_TWICE:
                _done(act)
                world.sleep(self.latency)
            case Fault.FROZEN:
                self.process.freeze(self.faults.delay())
                world.sleep(0.0)
            case Fault.SLOW_REQUEST:
                world.sleep(self.faults.delay())
            case Fault.SLOW_ANSWER:
                answer = act()
                world.sleep(self.faults.delay())
                return answer
            case Fault.STALE_READ:
                assert before is not None
                return before()
            case Fault.TERMINATED:
                self.terminate()
        return act()

    def _die(self) -> None:
        self.process.kill()
        raise Died


def _done(act: Callable[[], object]) -> None:
    """Let it happen; nobody hears how it went."""
    try:
        act()
    except DocgenError:
        return
