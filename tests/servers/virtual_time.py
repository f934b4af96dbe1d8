"""An event loop whose time jumps to the next timer when nothing else is to be done: minutes pass in no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

STUCK_SECONDS = 20.0
"""Real ones, in which nothing happens and nothing is to come."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """For `asyncio.Runner(loop_factory=VirtualLoop)`. What goes to threads happens at once, in the loop itself."""

    def __init__(self) -> None:
        self.now = 1_000.0
        super().__init__(_Jumps(self))
        self.set_default_executor(_AtOnce(1))

    def time(self) -> float:
        return self.now


class _Jumps(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            events = super().select(STUCK_SECONDS)
            assert events, "everybody waits for somebody else"
            return events
        self._loop.now += max(timeout, 0)
        return super().select(0)


class _AtOnce(ThreadPoolExecutor):
    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **named))
        except BaseException as error:  # noqa: BLE001  it is the caller's
            done.set_exception(error)
        return done
