"""Keeping leases alive while their units are worked on, and knowing when they are not ours any more.

A holder counts from its own monotonic clock, from before it asked, and stops itself before its
lease ends. What does not belong here: claiming, and what a unit is made of.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from docgen_core.errors import LeaseLost, RunCancelled, StorageFailed
from docgen_core.state.contract import Lease, RunState, StateStore

RENEWALS_A_LEASE = 3
RETRIES_A_RENEWAL = 4
"""After a renewal that the store did not answer, the next comes this many times sooner."""

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
        """Turn to this unit; from now on an expiry counts against it. Raises `LeaseLost`.

        The first unit of a batch is in hand from its claim on.
        """
        with self._lock:
            if lease.index in self._lost:
                raise self._lost[lease.index]
            if lease.index != self._in_hand:
                self._in_hand = lease.index
                self._renew(self._held[lease.index])

    def drop(self, lease: Lease) -> None:
        """Renew this lease no more: its unit has ended, or was handed back."""
        with self._lock:
            self._held.pop(lease.index, None)

    def check(self) -> None:
        """Raise `LeaseLost` or `RunCancelled` when the unit in hand must be let go."""
        if self._in_hand in self._lost:
            raise self._lost[self._in_hand]
        lease = self._held[self._in_hand]
        if self._clock() >= lease.expires_monotonic:
            raise LeaseLost(lease.run_id, lease.index, lease.generation, "it could not be renewed in time")
        if self.run_state is RunState.CANCELLED:
            raise RunCancelled(lease.run_id)

    def _keep(self) -> None:
        wait = self._interval
        while not self._ended.wait(wait):
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
            return True

    def _renew(self, lease: Lease) -> None:
        renewed, self.run_state = self._state.renew(lease, working=lease.index == self._in_hand)
        self._held[lease.index] = renewed
