"""One provider's calls: whose turn it is, under which pace, and what calls say about their provider.

A lane lives as long as its worker: what it has learnt of its provider holds from unit to unit. What
does not belong here: which item goes to whom, and what becomes of texts (runner.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from enum import StrEnum

from docgen_core.errors import StorageFailed
from docgen_core.llm.breakers import Pace, Quarantine, UnusableReplies
from docgen_core.llm.calls import CallFailed
from docgen_core.llm.items import CallRecord
from docgen_core.llm.mix import Provider
from docgen_core.llm.purse import Purse
from docgen_core.llm.requests import Answer, Request

PATIENCE_SECONDS = 240.0
"""How long a request is tried again while its provider fails, and a provider that does nothing else is waited for."""

Call = Callable[[Provider, Request], Awaitable[Answer]]

_log = logging.getLogger(__name__)


class Lost(StrEnum):
    """Why a request gets no answer here."""

    PROVIDER = "provider"
    """It does not answer, or is not asked any more; another one may."""
    BUDGET = "budget"
    """The budget cannot carry the call."""
    ITEM = "item"
    """The provider refused this very request."""


class GivenUp(Exception):
    """A request was given up at its provider."""

    def __init__(self, why: Lost) -> None:
        super().__init__(why.value)
        self.why = why


class Slots:
    """The calls that a worker makes at once. A free one goes to the lane that has the fewest under way.

    So a provider that does not answer keeps no more than its part from the others.
    """

    def __init__(self, most: int) -> None:
        self.most = self._free = most
        self._lanes: list[Lane] = []

    def join(self, lane: Lane) -> None:
        """Let the lane have slots."""
        self._lanes.append(lane)

    def free(self) -> None:
        """A call has ended."""
        self._free += 1
        self.deal()

    def deal(self) -> None:
        """Let calls begin as long as there are slots, and calls that may."""
        while self._free and any(lane.begin_next() for lane in sorted(self._lanes, key=lambda lane: lane.under_way)):
            self._free -= 1


class Lane:
    """The calls of one provider, and what this worker knows of it. Belongs to one event loop."""

    def __init__(
        self,
        provider: Provider,
        *,
        slots: Slots,
        purse: Purse,
        quarantine: Quarantine,
        empty_reply_cap: int,
        call: Call,
        on_call: Callable[[CallRecord], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.provider, self.purse, self.call, self.on_call, self.clock = provider, purse, call, on_call, clock
        self.quarantined = False
        self._slots, self._quarantine = slots, quarantine
        self._pace = Pace(slots.most, clock=clock)
        self._unusable = UnusableReplies(empty_reply_cap)
        self._weighed: set[str] = set()
        """Requests whose unusable replies are counted already."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._under_way: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._hanging = False
        self._failing_since: float | None = None
        self._failed_at = self._answered_at = -float("inf")
        slots.join(self)

    @property
    def under_way(self) -> int:
        """Calls that have begun and not ended."""
        return self._pace.under_way

    # Turns --------------------------------------------------------------------------------

    @property
    def shut(self) -> bool:
        """Whether nobody is to wait for the provider now: it is in quarantine, hangs, or pauses for too long."""
        if self.quarantined:
            return True
        pause = self._pace.closed_for
        return pause > 0 and (self._hanging or self.failing_for + pause > PATIENCE_SECONDS)

    @property
    def failing_for(self) -> float:
        """Seconds since the first failure that no answer came after."""
        return 0.0 if self._failing_since is None else self.clock() - self._failing_since

    async def turn(self) -> None:
        """Wait until a call may begin, which is under way then. Raises `GivenUp`."""
        if self.shut:
            raise GivenUp(Lost.PROVIDER)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._slots.deal()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                self.ended()
            raise

    def begin_next(self) -> bool:
        """Begin the next call that waits, if one may begin now."""
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        pause = self._pace.begins_in() if self._waiting else None
        if pause is None:
            return False
        if pause > 0:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(pause, self._pause_is_over)
            return False
        self._pace.begin()
        self._waiting.popleft().set_result(None)
        return True

    def _pause_is_over(self) -> None:
        self._timer = None
        self._slots.deal()

    def give_up(self, *, under_way: bool) -> None:
        """Give up the calls that have not begun, and those under way too if it is said."""
        for turn in self._waiting:
            if not turn.done():
                turn.set_exception(GivenUp(Lost.PROVIDER))
        self._waiting.clear()
        if under_way:
            for call in self._under_way:
                call.cancel()

    # What calls say about the provider ----------------------------------------------------

    def begun(self, call: asyncio.Future[None]) -> None:
        """The call can be given up from here on."""
        self._under_way.add(call)
        call.add_done_callback(self._under_way.discard)

    def ended(self) -> None:
        """A call has ended in a way that says nothing about the provider."""
        self._pace.ended()
        self._slots.free()

    def succeeded(self) -> None:
        """A call was answered."""
        self._hanging, self._failing_since, self._answered_at = False, None, self.clock()
        self._pace.succeeded()
        self._slots.free()

    def failed(self, failed: CallFailed, began: float) -> None:
        """A call that began at `began` has failed for a while."""
        now = self.clock()
        if self._failing_since is None or now - self._failed_at > PATIENCE_SECONDS:  # not asked in between
            self._failing_since = now
        self._failed_at = now
        self._hanging = failed.timed_out and (self._hanging or self._answered_at <= began)
        # As long as a hanging provider has kept a call waiting, nobody else is made to wait for it.
        self._pace.failed(self.provider.timeout_seconds if self._hanging else failed.retry_after)
        if self.shut:
            self.give_up(under_way=self._hanging)
        self._slots.free()

    def weigh(self, request: Request, usable: bool, cost: int) -> str | None:
        """Count a reply, each once; why the provider is to be quarantined for it, where it is."""
        if usable:
            self._unusable.usable()
            return None
        if (digest := request.digest) in self._weighed:
            return None
        self._weighed.add(digest)
        return self._unusable.add(cost)

    def refused(self) -> str | None:
        """Count a request that the provider did not take; why it is to be quarantined, where it is."""
        return self._unusable.add(0)

    def close(self) -> bool:
        """Ask the provider no more, from here on; whether it was asked until now."""
        was_open, self.quarantined = not self.quarantined, True
        self.give_up(under_way=True)
        return was_open

    async def banish(self, reason: str) -> None:
        """Let no worker ask the provider any more."""
        self.close()
        try:
            await asyncio.to_thread(self._quarantine.add, self.provider.name, reason)
        except StorageFailed as failed:
            _log.warning("the quarantine of %s is not written yet, and holds here: %s", self.provider.name, failed)
