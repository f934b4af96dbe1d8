"""Calls that cost money: what the provider bills for them, and how a worker keeps them within its grants.

A call's worst case is set aside from the grant before it is made; the provider bills it whether or
not the worker lives to hear of it. What does not belong here: the store's side of a budget, which is
the production one, and what is made of an answer.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from random import Random

from sim_world import Process

from docgen_core.errors import BudgetUnset, StorageFailed
from docgen_core.state.budget import ExpiredGrants, Grant, GrantState, ModelUsage, Settlement
from docgen_core.state.contract import Lease, Part
from docgen_core.state.primitives import Primitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

WORST_CASE = 100
"""Nano-dollars that a call costs at most."""
GRANT = 250
REPLY_SECONDS = 0.2
TRIES = 3


class Bill:
    """What the provider has billed, by grant, and by entry where there was none."""

    def __init__(self) -> None:
        self.billed: Counter[str] = Counter()
        self.numbers = itertools.count(1)

    def problems(self, tables: Primitives, run_id: str) -> list[str]:
        """What the store's account gets wrong, now that nobody works any more."""
        store = SegmentStore(tables, Settings(), uri="plain")
        spend = store.spend(run_id)
        wrong = []
        for grant in store.grants(run_id):
            billed = self.billed[grant.id]
            if grant.settled > billed:
                wrong.append(f"I8: grant {grant.id} has settled {grant.settled}, and {billed} were billed")
            charged = spend.budget is not None and spend.budget.expired_grants is ExpiredGrants.CHARGED
            if charged and billed > grant.held:
                wrong.append(f"I8: {billed} were billed to grant {grant.id}, which holds {grant.held}")
        if (figures := spend.budget) is not None:
            held = figures.reserved + figures.committed
            if figures.cap + figures.overshoot != figures.available + held:
                wrong.append(f"I8: the report does not add up: {figures}")
        return wrong


class Purse:
    """A worker's own side of the budget: one grant at a time."""

    def __init__(self, store: SegmentStore, run_id: str, process: Process, rng: Random, bill: Bill) -> None:
        self._store, self._run_id, self._process, self._rng, self._bill = store, run_id, process, rng, bill
        self._grant: Grant | None = None
        self._until = self._left = 0.0
        self._used, self._sequence = ModelUsage(), 0
        self._swept = False

    def call(self) -> None:
        """Call a model, unless the budget refuses it: then the text is the procedural one."""
        if self._grant is not None and (self._left < WORST_CASE or self._process.monotonic() >= self._until):
            self.close()
        if self._grant is None:
            self._open()
        if self._grant is None:
            return
        self._left -= WORST_CASE
        used = self._billed(self._grant.id)
        self._left += WORST_CASE - used.known_cost
        self._used += used
        if self._rng.random() < 0.3:
            with suppress(StorageFailed):
                self._settle(self._grant)

    def settlement(self) -> Settlement | None:
        """What the grant in hand has been used for so far."""
        if self._grant is None:
            return None
        self._sequence += 1
        return Settlement(self._grant.id, self._sequence, {"model": self._used})

    def close(self) -> None:
        """Settle and close the grant in hand; without an answer it is left to expire."""
        grant = self._grant
        if grant is not None:
            with suppress(StorageFailed):
                self._settle(grant)
                self._store.close_grant(self._run_id, grant.id)
            self._grant = None

    def _settle(self, grant: Grant) -> None:
        asked, settlement = self._process.monotonic(), self.settlement()
        assert settlement is not None
        settled = self._store.settle_grant(self._run_id, settlement)
        self._until = asked + grant.seconds if settled.state is GrantState.OPEN else 0.0

    def _open(self) -> None:
        name = f"{self._process.name}-{next(self._bill.numbers)}"
        for _ in range(TRIES):
            asked = self._process.monotonic()
            try:
                grant = self._store.open_grant(self._run_id, self._process.name, GRANT, name)
                # Whoever died may have left one: looked for at first, and when there is no money.
                if grant is None or not self._swept:
                    self._store.expire_grants(self._run_id)
                    self._swept = True
                if grant is None:
                    return
            except StorageFailed:
                continue
            except BudgetUnset:
                self._call_without(name)
                return
            if grant.state is GrantState.OPEN:
                self._grant, self._until, self._left = grant, asked + grant.seconds, GRANT
                self._used, self._sequence = ModelUsage(), 0
            return

    def _call_without(self, name: str) -> None:
        """Call, and record it, in a run that has no budget (yet)."""
        used = self._billed(name)
        for _ in range(TRIES):
            with suppress(StorageFailed):
                self._store.add_spend(self._run_id, name, {"model": used})
                return

    def _billed(self, name: str) -> ModelUsage:
        cost = self._rng.randint(WORST_CASE // 3, WORST_CASE)
        self._bill.billed[name] += cost
        self._process.world.sleep(self._rng.random() * REPLY_SECONDS)
        return ModelUsage(1, 30, 20, cost)


class PayingStore(SegmentStore):
    """The production store, told with each unit what its texts have cost."""

    purse: Purse | None = None

    def complete_unit(self, lease: Lease, part: Part, settlement: Settlement | None = None) -> None:
        super().complete_unit(lease, part, self.purse.settlement() if self.purse else None)
