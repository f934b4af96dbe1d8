"""The budget guard, as an event loop uses it: in threads, and no reservation lost to a cancellation.

What does not belong here: when a call is settled, charged or cancelled (lanes.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from docgen_core.llm.guard import DistributedBudgetGuard, Reservation, SpendBook
from docgen_core.state.budget import ModelUsage


class Purse:
    """What a worker may spend. Belongs to one event loop."""

    def __init__(self, guard: DistributedBudgetGuard | SpendBook) -> None:
        self._guard = guard
        self._open: set[Reservation] = set()
        """That hold money."""
        self._ended = 0
        self._next_end = asyncio.Event()

    async def reserve(self, model: str, worst: ModelUsage) -> Reservation | None:
        """Set aside the worst case of one call; None when the budget cannot carry it.

        While others of this worker's are open, their end is waited for before that is taken for an
        answer: they cost less than their worst case as a rule. Raises `UsageError` and `StorageFailed`.
        """
        while True:
            ended = self._ended
            if (reservation := await self._reserve(model, worst)) is not None:
                if worst.known_cost:
                    self._open.add(reservation)
                return reservation
            if ended == self._ended:
                if not self._open:
                    return None
                await self._next_end.wait()

    async def settle(self, reservation: Reservation, actual: ModelUsage) -> None:
        """Book what the call has used."""
        await self._end(reservation, lambda: self._guard.settle(reservation, actual))

    async def charge(self, reservation: Reservation) -> None:
        """Book the worst case of a call that nobody knows the outcome of."""
        await self._end(reservation, lambda: self._guard.charge(reservation))

    async def cancel(self, reservation: Reservation) -> None:
        """Free what was set aside, since the call was not billed."""
        await self._end(reservation, lambda: self._guard.cancel(reservation))

    async def _reserve(self, model: str, worst: ModelUsage) -> Reservation | None:
        asked = asyncio.ensure_future(asyncio.to_thread(self._guard.reserve, model, worst))
        if cancelled := await ended(asked):
            if asked.exception() is None and (unused := asked.result()) is not None:
                await ended(asyncio.ensure_future(asyncio.to_thread(self._guard.cancel, unused)))
            raise cancelled
        return asked.result()

    async def _end(self, reservation: Reservation, book: Callable[[], None]) -> None:
        booked = asyncio.ensure_future(asyncio.to_thread(book))
        cancelled = await ended(booked)
        self._open.discard(reservation)
        self._ended += 1
        self._next_end.set()
        self._next_end = asyncio.Event()
        booked.result()
        if cancelled:
            raise cancelled


async def ended(work: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for the end of the work, whatever comes; the cancellation that came meanwhile, to be raised."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
