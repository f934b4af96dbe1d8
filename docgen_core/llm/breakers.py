"""When a provider is asked: its pace, its pauses, and the end of it where its replies are worth nothing.

Two breakers. A *transient* one (`Pace`) opens for a while after 429, 5xx and time-outs, and is never
permanent. *Quarantine* is: it stands in the state store for all workers, until an operator lifts it.
What does not belong here: which failure is which (calls.py), and where an item goes then (routing.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from docgen_core.state.budget import NANO
from docgen_core.state.budget_contract import BudgetStore

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds; each failure on end doubles the pause."""
UNUSABLE_STREAK = 25
"""Replies without one usable text on end, after which a provider is asked no more, whatever they cost."""
REFRESH_SECONDS = 15.0
"""How old a worker's knowledge of what others have quarantined may be."""


class Pace:
    """How many calls a provider gets at once: one more for each round of answers, half for each failure.

    After a failure nothing begins until the pause is over (the vendor's own where it asks for one),
    and then one call alone, until one succeeds. For one event loop, or under a lock of the caller's.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """At most `most` calls at once, and that many to begin with."""
        self._most, self._clock = most, clock
        self._limit = float(most)
        self._failures = 0
        """On end."""
        self._closed_until = -float("inf")
        self.under_way = 0

    @property
    def limit(self) -> int:
        """Calls at once, now."""
        return 1 if self._failures else int(self._limit)

    @property
    def closed_for(self) -> float:
        """Seconds that the pause still lasts; 0 without any."""
        return max(self._closed_until - self._clock(), 0.0)

    def begins_in(self) -> float | None:
        """Seconds until a call may begin: 0 now, None when one must end before."""
        if self.under_way >= self.limit:
            return None
        return self.closed_for

    def begin(self) -> None:
        """A call is under way. Raises `ValueError` where none may begin."""
        if self.begins_in() != 0.0:
            raise ValueError("no call may begin now")
        self.under_way += 1

    def succeeded(self) -> None:
        """A call was answered, whatever the answer is worth."""
        self.under_way -= 1
        self._failures = 0
        self._limit = min(self._limit + 1 / self._limit, self._most)

    def failed(self, retry_after: float | None = None) -> None:
        """A call failed for a while; `retry_after` seconds are the vendor's wish, which closes the gate for all.

        Calls that were under way together and fail together are one failure.
        """
        self.under_way -= 1
        now = self._clock()
        if now >= self._closed_until:
            self._limit = max(self._limit / 2, 1.0)
            pause = min(FIRST_PAUSE * 2**self._failures, LONGEST_PAUSE)
            self._failures += 1
            self._closed_until = now + pause
        if retry_after is not None:
            self._closed_until = max(self._closed_until, now + retry_after)

    def ended(self) -> None:
        """A call ended in a way that says nothing about the provider: cancelled, or refused for its item."""
        self.under_way -= 1


@dataclass
class UnusableReplies:
    """What one worker has paid a provider for replies without a usable text."""

    cap: int
    """Nano-dollars."""
    calls: int = 0
    cost: int = 0
    streak: int = 0

    def usable(self) -> None:
        """A reply held a text that passed: the streak is over; what was paid stays counted."""
        self.streak = 0

    def add(self, cost: int) -> str | None:
        """Count a reply that held none; why the provider is to be quarantined, where it is."""
        self.calls += 1
        self.cost += cost
        self.streak += 1
        if self.cost and self.cost >= self.cap:
            paid, cap = (f"${nano / NANO:.6f}" for nano in (self.cost, self.cap))
            return f"{self.calls} replies without a usable text cost {paid}, the cap is {cap}"
        if self.streak >= UNUSABLE_STREAK:
            return f"{self.streak} replies on end without a usable text"
        return None


class Quarantine:
    """Providers of a run that no worker asks any more: a union in the state store. Thread-safe."""

    def __init__(self, state: BudgetStore, run_id: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state, self._run_id, self._clock = state, run_id, clock
        self._reasons: dict[str, str] = {}
        self._unsaved: dict[str, str] = {}
        """What the store has not answered for yet; holds here all the same."""
        self._read_at = -float("inf")
        self._lock = threading.Lock()

    def reasons(self) -> dict[str, str]:
        """Why, by provider; as the store had it not longer than `REFRESH_SECONDS` ago. Raises `StorageFailed`."""
        with self._lock:
            if (now := self._clock()) - self._read_at >= REFRESH_SECONDS:
                self._save()
                self._reasons = self._state.quarantined_providers(self._run_id)
                self._read_at = now
            return self._reasons | self._unsaved

    def add(self, provider: str, reason: str) -> None:
        """Let nobody ask the provider any more: here from now on, also where this raises `StorageFailed`."""
        with self._lock:
            self._unsaved.setdefault(provider, reason)
            self._save()

    def _save(self) -> None:
        if self._unsaved:
            self._state.quarantine_providers(self._run_id, self._unsaved)
            self._reasons |= self._unsaved
            self._unsaved = {}
