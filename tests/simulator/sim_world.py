"""Virtual time, and processes that live in it: one thread, one turn at a time, nothing left to chance.

A task is a greenlet. Wherever production code would wait (a call to a store, a sleep, an event, a
lock, a thread to join) the task says when it wants to go on, and whoever is next in virtual time
has the turn. The same seed gives the same turns, on any machine. What does not belong here: stores,
faults, what a run has to be.
"""

from __future__ import annotations

import heapq
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Any

from greenlet import getcurrent, greenlet

EPOCH = 1_700_000_000.0
"""Wall time at which every world begins, seconds since 1970."""


class Died(BaseException):
    """The process ends here: production code catches no such thing, and nothing it does has an effect."""


class Process:
    """A worker's process: its clocks, its threads, whether it lives."""

    def __init__(self, world: World, name: str, *, wall_ahead: float = 0.0, slowness: float = 1.0) -> None:
        self.world, self.name = world, name
        self.wall_ahead = wall_ahead
        """How far its wall clock is off, in seconds; its monotonic clock is right, as all are."""
        self.slowness = slowness
        """Its calls take so much longer than others'."""
        self.dead = False
        self.frozen_until = 0.0
        self.tasks: list[Task] = []

    def wall(self) -> float:
        """Seconds since 1970, as this process has them."""
        return EPOCH + self.world.now + self.wall_ahead

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self.world.now

    def spawn(self, work: Callable[[], object], *, after: float = 0.0, name: str = "main") -> Task:
        """A thread of this process, which begins so many seconds from now."""
        task = Task(self, work, name)
        self.tasks.append(task)
        self.world.wake(task, self.world.now + after)
        return task

    def kill(self) -> None:
        """Let the process end at once: each of its threads finds out when it would go on."""
        self.dead = True
        self.frozen_until = 0.0
        for task in self.tasks:
            if not task.finished:
                self.world.wake(task, self.world.now)

    def freeze(self, seconds: float) -> None:
        """Stop the process, as SIGSTOP does: the world goes on without it."""
        self.frozen_until = self.world.now + seconds


class Task:
    """A thread of a process."""

    def __init__(self, process: Process, work: Callable[[], object], name: str) -> None:
        self.process, self.name, self.finished = process, name, False
        self.turn = 0
        """Counts its turns: an alarm set for an earlier one is void."""
        self.ended = VirtualEvent(process.world)
        self._work = work
        self.greenlet = greenlet(self._run, parent=process.world.hub)

    def _run(self) -> None:
        try:
            if not self.process.dead:
                self._work()
        except Died:
            pass
        except Exception as error:  # noqa: BLE001  a thread's end, told to whoever judges the world
            self.process.world.uncaught(self, error)
        finally:
            self.finished = True
            self.ended.set()


class World:
    """The turns of all tasks, in virtual time."""

    def __init__(self, *, max_turns: int) -> None:
        self.now = 0.0
        self.turns = 0
        self.current: Task | None = None
        self.stuck = False
        self.errors: list[str] = []
        """What ended a thread that nobody looks at."""
        self.hub = getcurrent()
        self._max_turns = max_turns
        self._alarms: list[tuple[float, int, Task, int]] = []
        self._number = 0
        self._processes: list[Process] = []

    def process(self, name: str, **nature: float) -> Process:
        """One more process."""
        process = Process(self, name, **nature)
        self._processes.append(process)
        return process

    def wake(self, task: Task, at: float) -> None:
        """Give the task a turn at this time, unless it has another one before."""
        self._number += 1
        heapq.heappush(self._alarms, (at, self._number, task, task.turn))

    def sleep(self, seconds: float) -> None:
        """Let the current task go on so many seconds from now."""
        assert self.current is not None
        self.wake(self.current, self.now + seconds)
        self.give_way()

    def give_way(self) -> None:
        """Let others have their turns until an alarm of the current task rings. Raises `Died`."""
        task = self.current
        assert task is not None
        following = self._next()
        if following is not task:
            self.current = following
            (self.hub if following is None else following.greenlet).switch()
        if task.process.dead:
            raise Died

    def run(self) -> None:
        """Let everything happen. Sets `stuck` when it takes too many turns, or when tasks wait for nothing."""
        self._run_all()
        waiting = [task for process in self._processes for task in process.tasks if not task.finished]
        self.stuck = bool(waiting)
        if waiting:
            # Unwind what is left, so that no frame outlives its world.
            self._max_turns = sys.maxsize
            for process in self._processes:
                process.kill()
            self._run_all()

    def _run_all(self) -> None:
        while (task := self._next()) is not None:
            self.current = task
            task.greenlet.switch()
            # Whoever has the turn when control comes back here has ended, or found nobody to follow.
        self.current = None

    def uncaught(self, task: Task, error: Exception) -> None:
        """Note what ended a thread."""
        self.errors.append(f"{task.process.name}/{task.name}: {type(error).__name__}: {error}")

    def _next(self) -> Task | None:
        while self._alarms:
            at, number, task, turn = heapq.heappop(self._alarms)
            if task.finished or task.turn != turn:
                continue
            if task.process.frozen_until > at:
                heapq.heappush(self._alarms, (task.process.frozen_until, number, task, turn))
                continue
            if self.turns >= self._max_turns:
                return None
            self.turns += 1
            task.turn += 1
            self.now = max(self.now, at)
            return task
        return None


class VirtualEvent:
    """Stands in for `threading.Event`."""

    def __init__(self, world: World) -> None:
        self._world, self._flag = world, False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        return self._flag

    def set(self) -> None:
        self._flag = True
        for task in self._waiting:
            self._world.wake(task, self._world.now)

    def clear(self) -> None:
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        task = self._world.current
        assert task is not None
        if not self._flag:
            if timeout is not None:
                self._world.wake(task, self._world.now + timeout)
            self._waiting.append(task)
            try:
                self._world.give_way()
            finally:
                self._waiting.remove(task)
        return self._flag


class VirtualLock:
    """Stands in for `threading.Lock` and `threading.RLock`."""

    def __init__(self, world: World, *, reentrant: bool) -> None:
        self._world, self._reentrant = world, reentrant
        self._holder: Task | None = None
        self._depth = 0
        self._waiting: list[Task] = []

    def acquire(self) -> bool:
        task = self._world.current
        while self._holder is not None and not (self._reentrant and self._holder is task):
            assert task is not None
            self._waiting.append(task)
            try:
                self._world.give_way()
            finally:
                self._waiting.remove(task)
        self._holder = task
        self._depth += task is not None
        return True

    def release(self) -> None:
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0:
            self._holder = None
            for task in self._waiting:
                self._world.wake(task, self._world.now)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class VirtualThread:
    """Stands in for `threading.Thread`: a further task of the process that makes it."""

    def __init__(self, world: World, target: Callable[[], object], name: str = "thread", *, daemon: bool = False):
        self._world, self._target, self._name = world, target, name
        self._task: Task | None = None

    def start(self) -> None:
        assert self._world.current is not None
        self._task = self._world.current.process.spawn(self._target, name=self._name)

    def join(self) -> None:
        assert self._task is not None
        self._task.ended.wait()


PARTS = ("docgen_core.runs.", "docgen_core.state.")
"""Packages whose time is virtual in a world…"""
OUTSIDE = ("docgen_core.state.sqlite", "docgen_core.state.memory", "docgen_core.state.cloud")
"""…but for what stands for a server, or talks to one: seen from a process it is one call."""


@cache
def _imports_of_real_time() -> list[tuple[Any, str]]:
    """Production modules that have imported a module of this kind, and under which name."""
    found = [module for name, module in sys.modules.items() if name.startswith(PARTS) and not name.startswith(OUTSIDE)]
    real = {"threading": threading, "time": time, "random": random}
    return [(m, name) for m in found for name, original in real.items() if getattr(m, name, None) is original]


@contextmanager
def virtual_time(world: World, rng: Random) -> Iterator[None]:
    """Put the world's clocks, threads and dice where production modules have imported the real ones.

    The modules themselves stay as they are. A default argument bound to a real clock would not be
    reached, and makes `test_a_seed_replays_its_schedule` fail.
    """

    def here() -> Process:
        assert world.current is not None, "virtual time passes in tasks only"
        return world.current.process

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the simulator has no such thing yet; give it one in sim_world.py")

    stand_ins: dict[str, Any] = {
        "threading": SimpleNamespace(
            Event=lambda: VirtualEvent(world),
            Lock=lambda: VirtualLock(world, reentrant=False),
            RLock=lambda: VirtualLock(world, reentrant=True),
            Thread=lambda target, name="thread", daemon=False: VirtualThread(world, target, name),
            Condition=refuse,
            Timer=refuse,
        ),
        "time": SimpleNamespace(
            time=lambda: here().wall(),
            monotonic=lambda: here().monotonic(),
            perf_counter=lambda: here().monotonic(),
            sleep=world.sleep,
        ),
        "random": SimpleNamespace(Random=Random, uniform=rng.uniform, random=rng.random),
    }
    undo: list[tuple[Any, str, Any]] = []
    try:
        for module, attribute in _imports_of_real_time():
            undo.append((module, attribute, getattr(module, attribute)))
            setattr(module, attribute, stand_ins[attribute])
        yield
    finally:
        for module, attribute, original in undo:
            setattr(module, attribute, original)
