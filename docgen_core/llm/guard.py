"""What a worker may spend: slices of the fleet's budget, out of which each call's worst case is reserved.

A worker takes a slice by one conditional write of the store (decision 12), reserves the worst case
of each call in it without asking anybody, settles to what the call has cost, and gives back what is
left. What does not belong here: prices and worst cases (mix.py), and the rules of grants
(state/budget.py).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from uuid import uuid4

from docgen_core.errors import StorageFailed, UsageError
from docgen_core.state.budget import Grant, GrantState, ModelUsage, Settlement
from docgen_core.state.budget_contract import BudgetStore

SLICE_SECONDS = 15.0
"""A slice is made to last about so long: it is lost with its worker, and each costs the store three writes.

The first is of one call's worst case, since nobody knows yet how long a call takes; none is smaller than what the
worker has under way, since all of that will want to call again.
"""
SLICE_GROWTH = 2
SLICE_SHARE = 100
"""A slice above one call's worst case is at most the budget divided by this, so that the money goes round."""
BEATS_A_GRANT = 3
"""Signs of life while a grant holds."""
REFUSED_SECONDS = 5.0
"""After a refusal, so long nothing as dear is asked for: others give back what they have left."""
EXPIRY_SECONDS = 20.0
"""Between looks for grants of the dead: each reads all grants of the run."""
ASKED_AGAIN = 3
"""Times a grant is asked for, under one id, while the store does not answer."""

_log = logging.getLogger(__name__)


@dataclass(eq=False)
class _Slice:
    """A grant in this worker's hands."""

    grant: Grant
    holds_until: float
    """On this worker's own monotonic clock: no call begins in it later, unless a settlement has renewed it."""
    taken_at: float
    usage: dict[str, ModelUsage] = field(default_factory=dict)
    reserved: int = 0
    calls: int = 0
    """That are under way."""
    sequence: int = 0
    lost: bool = False
    """Expired by somebody: what was called in it is booked, and no call begins in it."""
    largest: int = 0
    """The dearest reservation in it."""

    @property
    def spent(self) -> int:
        return sum(used.known_cost for used in self.usage.values())

    @property
    def room(self) -> int:
        return self.grant.amount - self.spent - self.reserved


@dataclass(eq=False)
class Reservation:
    """The worst case of one call, set aside. Ends by exactly one of `settle`, `charge` and `cancel`."""

    model: str
    worst: ModelUsage
    _slice: _Slice | None = field(repr=False, default=None)
    _ended: bool = field(repr=False, default=False)


class SpendBook:
    """What was used without a grant: free models, and all models where a run has no budget.

    Is a guard itself, of a run without a cap: it never refuses. Thread-safe.
    """

    def __init__(self, state: BudgetStore, run_id: str) -> None:
        self._state, self._run_id = state, run_id
        self._usage: dict[str, ModelUsage] = {}
        self._unwritten: dict[str, dict[str, ModelUsage]] = {}
        self._lock = threading.RLock()

    def reserve(self, model: str, worst: ModelUsage) -> Reservation | None:
        """Always a reservation: without a cap nothing is refused."""
        return Reservation(model, worst)

    def settle(self, reservation: Reservation, actual: ModelUsage) -> None:
        """Book what the call has used; its cost may be unknown."""
        _end(reservation)
        with self._lock:
            self.add(reservation.model, actual)

    def charge(self, reservation: Reservation) -> None:
        """Book the worst case of a call that nobody knows the outcome of."""
        self.settle(reservation, reservation.worst)

    def cancel(self, reservation: Reservation) -> None:
        """The call was never made."""
        _end(reservation)

    def add(self, model: str, used: ModelUsage) -> None:
        """Add to what the next `flush` writes."""
        with self._lock:
            self._usage[model] = self._usage.get(model, ModelUsage()) + used

    def flush(self) -> None:
        """Write what is not written yet. Raises `StorageFailed`; what was not answered is written again, and once."""
        with self._lock:
            if self._usage:
                self._unwritten[f"spend-{uuid4().hex}"] = self._usage
                self._usage = {}
            for entry_id, usage in list(self._unwritten.items()):
                self._state.add_spend(self._run_id, entry_id, usage)
                del self._unwritten[entry_id]

    close = flush

    def settlement(self) -> Settlement | None:
        """None: there is no grant that could be settled with a unit. What was used for it is written now.

        Raises `StorageFailed`, as `flush` does.
        """
        self.flush()
        return None


class DistributedBudgetGuard:
    """One worker's part of the fleet's budget: never more than its grants, whatever happens to it.

    Calls of the store are made under a lock, by whoever reserves or settles: from asyncio, use a
    thread. As a context manager it gives signs of life from a thread of its own, and gives back
    what is left at the end. Raises `BudgetUnset` where the run has no budget, and `StorageFailed`.
    """

    def __init__(
        self,
        state: BudgetStore,
        run_id: str,
        worker: str,
        cap: int,
        *,
        grant_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`cap` is the run's, in nano-dollars, for the size of slices; `grant_seconds` a lease length without it."""
        self._state, self._run_id, self._worker = state, run_id, worker
        self._most, self._seconds, self._clock = cap // SLICE_SHARE, grant_seconds, clock
        self._size = 0
        """Nano-dollars of the next slice; at least one call's worst case is asked for."""
        self._slices: list[_Slice] = []
        self._unanswered: dict[str, tuple[int, float]] = {}
        """Grants that were asked for, and nobody knows whether they are there: amount, and when it was."""
        self._refused: tuple[int, float] | None = None
        """The least amount that was refused, and when that is forgotten."""
        self._looked_at = -float("inf")
        """When grants were last looked through for those of the dead."""
        self._book = SpendBook(state, run_id)
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.declined = 0
        """Reservations that the budget could not carry."""

    # A call -------------------------------------------------------------------------------

    def reserve(self, model: str, worst: ModelUsage) -> Reservation | None:
        """Set aside what the call can cost at most; None when the budget cannot carry it.

        Raises `UsageError` for a model without a price, and `StorageFailed` with nothing set aside.
        """
        if worst.unpriced_calls:
            raise UsageError(f"a budget needs the price of every model, and {model} has none")
        if worst.known_cost == 0:
            return Reservation(model, worst)
        with self._lock:
            part = self._with_room(worst.known_cost)
            if part is None:
                self.declined += 1
                return None
            part.reserved += worst.known_cost
            part.calls += 1
            part.largest = max(part.largest, worst.known_cost)
            return Reservation(model, worst, part)

    def settle(self, reservation: Reservation, actual: ModelUsage) -> None:
        """Book what the call has really used and cost, also when that is more than was set aside."""
        _end(reservation)
        with self._lock:
            if reservation._slice is None:
                self._book.add(reservation.model, actual)
                return
            part = reservation._slice
            part.usage[reservation.model] = part.usage.get(reservation.model, ModelUsage()) + actual
            self._release(part, reservation.worst.known_cost)

    def charge(self, reservation: Reservation) -> None:
        """Book the worst case: the call timed out or was given up, and may have been billed."""
        self.settle(reservation, reservation.worst)

    def cancel(self, reservation: Reservation) -> None:
        """Free what was set aside: the call was never made, or was refused before it was billed."""
        _end(reservation)
        with self._lock:
            if reservation._slice is not None:
                self._release(reservation._slice, reservation.worst.known_cost)

    # Signs of life ------------------------------------------------------------------------

    def beat(self) -> None:
        """Settle what was used so far, which begins the time of grants anew that were not settled lately.

        Raises `StorageFailed`.
        """
        with self._lock:
            for part in list(self._slices):
                if part.holds_until - self._clock() < part.grant.seconds * (1 - 1 / BEATS_A_GRANT):
                    self._settle(part)
            self._book.flush()

    def settlement(self) -> Settlement | None:
        """What the newest slice was used for so far, for `complete_unit` to book with the unit."""
        with self._lock:
            if not self._slices:
                return None
            part = self._slices[-1]
            part.sequence += 1
            return Settlement(part.grant.id, part.sequence, dict(part.usage))

    def close(self) -> None:
        """Settle everything, and give back what is left; calls under way can still be settled.

        Raises `StorageFailed`; another `close` goes on from there.
        """
        with self._lock:
            self._resolve()
            for part in list(self._slices):
                if part.calls:
                    self._settle(part)
                else:
                    self._give_back(part)
            self._book.flush()

    def __enter__(self) -> DistributedBudgetGuard:
        self._thread = threading.Thread(target=self._beat_on, name="docgen-budget", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.close()
        except StorageFailed as failed:
            _log.warning("what is left of a grant could not be given back, and is charged when it expires: %s", failed)

    def _beat_on(self) -> None:
        while not self._ended.wait(self._between_beats()):
            try:
                self.beat()
            except StorageFailed as failed:
                _log.warning("a grant could not be renewed: %s", failed)

    def _between_beats(self) -> float:
        with self._lock:
            seconds = [part.grant.seconds for part in self._slices]
        return min(seconds, default=self._seconds or SLICE_SECONDS) / BEATS_A_GRANT

    # Slices -------------------------------------------------------------------------------

    def _with_room(self, amount: int) -> _Slice | None:
        if part := self._held_with_room(amount):
            return part
        self._resolve()
        if part := self._held_with_room(amount):
            return part
        if self._refused and (amount < self._refused[0] or self._clock() >= self._refused[1]):
            self._refused = None
        if self._refused:
            return None
        for idle in [part for part in self._slices if not part.calls]:
            self._outgrown(idle, amount)
            self._give_back(idle)
        wanted = max(self._size, sum(part.reserved for part in self._slices))
        for size in dict.fromkeys((max(amount, min(wanted, self._most)), amount)):
            if part := self._open(size):
                return part
        if self._expired_any() and (part := self._open(amount)):
            return part
        self._refused = amount, self._clock() + REFUSED_SECONDS
        return None

    def _expired_any(self) -> bool:
        now = self._clock()
        if now - self._looked_at < EXPIRY_SECONDS:
            return False
        self._looked_at = now
        return self._state.expire_grants(self._run_id) > 0

    def _held_with_room(self, amount: int) -> _Slice | None:
        now = self._clock()
        usable = (p for p in self._slices if not p.lost and now < p.holds_until and p.room >= amount)
        return next(usable, None)

    def _outgrown(self, part: _Slice, amount: int) -> None:
        """Let slices grow while they last too short, and shrink while they last too long."""
        lasted = self._clock() - part.taken_at
        if lasted < SLICE_SECONDS / SLICE_GROWTH:
            self._size = max(part.grant.amount, amount) * SLICE_GROWTH
        elif lasted > SLICE_SECONDS * SLICE_GROWTH:
            self._size = part.grant.amount // SLICE_GROWTH

    def _open(self, amount: int) -> _Slice | None:
        grant_id = f"grant-{uuid4().hex}"
        self._unanswered[grant_id] = amount, self._clock()
        for left in reversed(range(ASKED_AGAIN)):
            try:
                return self._answered(grant_id)
            except StorageFailed:
                if not left:
                    raise
        return None

    def _answered(self, grant_id: str) -> _Slice | None:
        """Ask for the grant, again under the same id; whether there or not, it is known then."""
        amount, asked_at = self._unanswered[grant_id]
        grant = self._state.open_grant(self._run_id, self._worker, amount, grant_id, seconds=self._seconds)
        del self._unanswered[grant_id]
        if grant is None:
            return None
        part = _Slice(grant, asked_at + grant.seconds, self._clock(), lost=grant.state is not GrantState.OPEN)
        self._slices.append(part)
        return part

    def _resolve(self) -> None:
        for grant_id in list(self._unanswered):
            self._answered(grant_id)

    def _release(self, part: _Slice, worst: int) -> None:
        """One call less in the slice. A slice that carries no other such call is given back with its last one."""
        part.reserved -= worst
        part.calls -= 1
        try:
            if part.spent > part.grant.amount:
                self._settle(part)
            if not part.calls and (part.room < part.largest or part.lost):
                self._outgrown(part, part.largest)
                self._give_back(part)
        except StorageFailed as failed:
            _log.warning("what a call cost could not be settled yet: %s", failed)

    def _settle(self, part: _Slice) -> None:
        asked_at = self._clock()
        part.sequence += 1
        grant = self._state.settle_grant(self._run_id, Settlement(part.grant.id, part.sequence, dict(part.usage)))
        part.lost = part.lost or grant.state is not GrantState.OPEN
        part.holds_until = asked_at + grant.seconds

    def _give_back(self, part: _Slice) -> None:
        part.lost = True  # whatever the store answers: it may be closed from here on
        self._settle(part)
        given = self._state.close_grant(self._run_id, part.grant.id)
        self._slices.remove(part)
        if given:
            self._refused = None


def _end(reservation: Reservation) -> None:
    if reservation._ended:
        raise ValueError("a reservation ends once")
    reservation._ended = True
