"""Keeping leases alive while their units are worked on, and knowing when they are not ours any more.

A holder counts from its own monotonic clock, from before it asked, and stops itself before its
lease ends. A holder that no longer turns up loses its leases: the thread that renews says only that
the process lives, not that it works. What does not belong here: claiming, and what a unit is made of.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from docgen_core.errors import DocgenError, LeaseLost, RunCancelled, StorageFailed
from docgen_core.state.contract import Lease, RunState, StateStore

RENEWALS_A_LEASE = 3
RETRIES_A_RENEWAL = 4
"""After a renewal that the store did not answer, the next comes this many times sooner."""
QUIET_SECONDS = 600.0
"""A worker asks before every document. One that has not for so long, well above two prints that run
into their time-outs, hangs: its leases are renewed no more, and expire for its peers."""

_log = logging.getLogger(__name__)


class LeaseKeeper:
    """Renews a claimed batch from a thread of its own. Use as a context manager, one a batch."""

    def __init__(
        self,
        state: StateStore,
        leases: Sequence[Lease],
        lease_seconds: float,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Take charge of the leases. `clock` is the one their expiry is counted on; by default this process's own."""
        self.run_state = RunState.RUNNING
        """As the last renewal told it."""
        self._state, self._clock = state, clock or time.monotonic
        self._interval = lease_seconds / RENEWALS_A_LEASE
        self._held = {lease.index: lease for lease in leases}
        self._lost: dict[int, LeaseLost] = {}
        self._failed: DocgenError | None = None
        """Why nothing can be renewed any more; the worker is told at its next question."""
        self._asked_at = self._clock()
        self._in_hand = leases[0].index
        # Held over each renewal: a slow one must not undo what the worker has done since.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="docgen-leases", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def take(self, lease: Lease) -> None:
        """Turn to this unit; from now on an expiry counts against it.

        The first unit of a batch is in hand from its claim on. Raises `LeaseLost`, and whatever
        `DocgenError` a renewal ended with, such as `StateUnusable`.
        """
        with self._lock:
            self._asked(lease.index)
            if lease.index != self._in_hand:
                self._in_hand = lease.index
                self._renew(self._held[lease.index])

    def drop(self, lease: Lease) -> None:
        """Renew this lease no more: its unit has ended, or was handed back."""
        with self._lock:
            self._held.pop(lease.index, None)

    def check(self) -> None:
        """Raise `LeaseLost`, `RunCancelled` or what a renewal ended with when the unit in hand must be let go."""
        self._asked(self._in_hand)
        lease = self._held[self._in_hand]
        if self._clock() >= lease.expires_monotonic:
            raise LeaseLost(lease.run_id, lease.index, lease.generation, "it could not be renewed in time")
        if self.run_state is RunState.CANCELLED:
            raise RunCancelled(lease.run_id)

    def _asked(self, index: int) -> None:
        self._asked_at = self._clock()
        if index in self._lost:
            raise self._lost[index]
        if self._failed is not None:
            raise self._failed

    def _keep(self) -> None:
        wait = self._interval
        while self._failed is None and not self._ended.wait(wait):
            if (quiet := self._clock() - self._asked_at) >= QUIET_SECONDS:
                _log.warning("the worker has not been heard of for %.0f s: its leases are left to expire", quiet)
                continue
            answered = [self._renew_held(index) for index in list(self._held)]
            wait = self._interval if all(answered) else self._interval / RETRIES_A_RENEWAL

    def _renew_held(self, index: int) -> bool:
        """Whether the store answered."""
        with self._lock:
            if index not in self._held or index in self._lost:
                return True
            try:
                self._renew(self._held[index])
            except LeaseLost as error:
                self._lost[index] = error
            except StorageFailed as error:
                _log.warning("a lease could not be renewed: %s", error)
                return False
            except DocgenError as error:
                self._failed = error
            return True

    def _renew(self, lease: Lease) -> None:
        renewed, self.run_state = self._state.renew(lease, working=lease.index == self._in_hand)
        self._held[lease.index] = renewed
