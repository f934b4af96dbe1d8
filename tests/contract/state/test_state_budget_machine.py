"""Any sequence of budget operations by two workers with unlike clocks, foretold step by step; I8 after each.

The model knows nothing of the store's code or of shards: it keeps one account, foretells every
answer, and the rows have to add up to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from docgen_core.errors import BudgetTooLow, BudgetUnset, GrantUnknown, LeaseLost
from docgen_core.state.budget import ExpiredGrants, GrantState, ModelUsage, Settlement
from docgen_core.state.contract import UnitState

UNITS = 3
LEASE_SECONDS = 60.0
AHEAD_SECONDS = 45.0


@dataclass
class Account:
    """A grant, or a spend without one, as the model has it."""

    owner: str
    amount: int
    held: int
    state: GrantState
    expires_at: float
    changed_at: float
    cost: int = 0
    sequence: int = 0


class BudgetJudge(RuleBasedStateMachine):
    """One run; worker B's wall clock is ahead of worker A's."""

    new_world = None
    workers = st.sampled_from("AB")
    names = st.sampled_from(["g1", "g2", "g3"])
    caps = st.sampled_from([0, 60, 100, 150, 151, 400])
    amounts = st.sampled_from([1, 30, 60, 100, 151])
    costs = st.sampled_from([0, 7, 30, 60, 200])

    def __init__(self):
        super().__init__()
        self.world = self.new_world()
        self.ahead = {"A": 0.0, "B": AHEAD_SECONDS}
        self.stores = {name: self.world.store(wall_ahead=ahead) for name, ahead in self.ahead.items()}
        self.stores["A"].create_run(self.world.marker(UNITS))
        self.stores["A"].mark_planned("r", "digest of r")
        self.cap = None
        self.policy = ExpiredGrants.CHARGED
        self.grants, self.spends = {}, {}
        self.leases = []
        self.watched = {}

    def accounts(self):
        return [*self.grants.values(), *self.spends.values()]

    def held(self):
        return sum(account.held for account in self.accounts())

    def available(self):
        return max(self.cap - self.held(), 0)

    # The cap --------------------------------------------------------------------------------

    # Most examples begin with a budget, or they would do little else than ask for one.
    @initialize(cap=st.sampled_from([None, 100, 150, 151]), policy=st.sampled_from(ExpiredGrants))
    def begin(self, cap, policy):
        if cap is not None:
            self.set_budget("A", cap, policy)

    @rule(worker=workers, cap=caps, policy=st.sampled_from([None, *ExpiredGrants]))
    def set_budget(self, worker, cap, policy):
        owed = sum(spend.cost - spend.held for spend in self.spends.values())
        least = self.held() + owed
        try:
            budget = self.stores[worker].set_budget("r", cap, expired_grants=policy)
        except BudgetTooLow as refused:
            assert cap < least == refused.least
            assert self.cap is None or cap < self.cap
            return
        assert cap >= least or cap >= self.cap
        self.cap, self.policy = cap, policy or self.policy
        for spend in self.spends.values():
            spend.held = spend.cost
        assert (budget.cap, budget.expired_grants) == (cap, self.policy)

    # Grants ---------------------------------------------------------------------------------

    @rule(worker=workers, name=names, amount=amounts)
    def open(self, worker, name, amount):
        there, store, now = self.grants.get(name), self.stores[worker], self.world.wall + self.ahead[worker]
        if there is not None:
            # The same request once more, by whoever made it.
            grant = self.stores[there.owner].open_grant("r", there.owner, there.amount, name)
            assert (grant.state, grant.held, grant.sequence) == (there.state, there.held, there.sequence)
            return
        if self.cap is None:
            with pytest.raises(BudgetUnset):
                store.open_grant("r", worker, amount, name)
            return
        grant = store.open_grant("r", worker, amount, name)
        assert (grant is None) == (amount > self.available())
        if grant is not None:
            expires_at = now + LEASE_SECONDS
            self.grants[name] = Account(worker, amount, amount, GrantState.OPEN, expires_at, self.world.monotonic)

    def settlement(self, data, more, step):
        """One for any grant there is, booked already where `step` is not above 0."""
        name = data.draw(st.sampled_from(sorted(self.grants)))
        there = self.grants[name]
        cost = there.cost + more
        return Settlement(name, max(there.sequence + step, 1), {"m": ModelUsage(cost + 1, cost, cost, cost)})

    def booked(self, settlement, now):
        """What the model makes of a settlement."""
        there = self.grants[settlement.grant_id]
        if settlement.sequence <= there.sequence:
            return
        there.sequence, there.cost = settlement.sequence, settlement.usage["m"].known_cost
        there.held = max(there.held, there.cost)
        if there.state is GrantState.OPEN:
            there.expires_at = now + LEASE_SECONDS
        there.changed_at = self.world.monotonic

    @precondition(lambda self: self.grants)
    @rule(worker=workers, data=st.data(), more=costs, step=st.sampled_from([-1, 0, 1, 1, 1, 2]))
    def settle(self, worker, data, more, step):
        settlement = self.settlement(data, more, step)
        grant = self.stores[worker].settle_grant("r", settlement)
        self.booked(settlement, self.world.wall + self.ahead[worker])
        there = self.grants[settlement.grant_id]
        assert (grant.settled, grant.held, grant.state) == (there.cost, there.held, there.state)

    @precondition(lambda self: self.grants)
    @rule(worker=workers, data=st.data())
    def close(self, worker, data):
        name = data.draw(st.sampled_from(sorted(self.grants)))
        there = self.grants[name]
        assert self.stores[worker].close_grant("r", name) == max(there.amount - there.cost, 0)
        there.state, there.held = GrantState.CLOSED, there.cost

    @rule(worker=workers, name=names)
    def ask_for_a_grant_that_is_not_there(self, worker, name):
        if name not in self.grants:
            for operation in (
                lambda: self.stores[worker].close_grant("r", name),
                lambda: self.stores[worker].settle_grant("r", Settlement(name, 1, {})),
            ):
                with pytest.raises(GrantUnknown):
                    operation()

    @rule(worker=workers)
    def expire(self, worker):
        now, expected = self.world.wall + self.ahead[worker], set()
        seen = self.watched.get(worker, {})
        still = {}
        for name, there in self.grants.items():
            if there.state is not GrantState.OPEN:
                continue
            # Watched by this worker itself, from when it first saw the grant as it is now.
            mark = (there.sequence, there.expires_at)
            since = seen[name][1] if name in seen and seen[name][0] == mark else self.world.monotonic
            still[name] = (mark, since)
            if now > there.expires_at or self.world.monotonic - since > LEASE_SECONDS:
                expected.add(name)
        self.watched[worker] = still
        assert self.stores[worker].expire_grants("r") == len(expected)
        for name in expected:
            there = self.grants[name]
            there.state = GrantState.EXPIRED
            there.held = there.cost if self.policy is ExpiredGrants.RETURNED else there.held

    @rule(seconds=st.sampled_from([1, 20, 50, 61, 130]))
    def wait(self, seconds):
        self.world.wait(seconds)

    # Together with units, and without grants -------------------------------------------------

    @rule(worker=workers)
    def claim(self, worker):
        self.leases += self.stores[worker].claim_next_unit("r", worker).leases

    @precondition(lambda self: self.leases and self.grants)
    @rule(data=st.data(), more=costs, step=st.sampled_from([0, 1, 1]))
    def complete(self, data, more, step):
        lease = data.draw(st.sampled_from(self.leases))
        settlement = self.settlement(data, more, step)
        before = self.world.unit(self.stores["A"], lease.index)
        held = before.generation == lease.generation and before.state in (UnitState.RUNNING, UnitState.DONE)
        try:
            self.stores[lease.owner].complete_unit(lease, self.world.part(lease), settlement)
        except LeaseLost:
            assert not held
            assert self.world.unit(self.stores["A"], lease.index) == before
            return
        assert held
        assert self.world.unit(self.stores["A"], lease.index).state is UnitState.DONE
        self.booked(settlement, self.world.wall + self.ahead[lease.owner])

    @rule(worker=workers, name=st.sampled_from(["e1", "e2"]), cost=costs)
    def add_spend(self, worker, name, cost):
        self.stores[worker].add_spend("r", name, {"m": ModelUsage(cost + 1, cost, cost, cost)})
        fresh = Account("", 0, 0, GrantState.CLOSED, 0.0, 0.0, cost)
        spend = self.spends.setdefault(name, fresh)
        if self.cap is not None:
            spend.held = spend.cost

    # What always holds ----------------------------------------------------------------------

    @invariant()
    def the_account_is_exact(self):
        spend = self.stores["B"].spend("r")
        assert spend.total.known_cost == sum(account.cost for account in self.accounts())
        counted = [account for account in self.accounts() if account.sequence or account in self.spends.values()]
        assert spend.total.calls == sum(account.cost + 1 for account in counted)
        assert (spend.budget is None) == (self.cap is None)

    @invariant()
    def nothing_is_granted_that_is_not_there(self):
        if self.cap is None:
            return
        overshoot = max(self.held() - self.cap, 0)
        assert self.world.balance(self.stores["A"]) == (self.available(), overshoot)
        figures = self.stores["B"].spend("r").budget
        assert (figures.cap, figures.available, figures.overshoot) == (self.cap, self.available(), overshoot)
        assert figures.reserved + figures.committed == self.held()

    def teardown(self):
        self.world.close()


EXAMPLES = {"memory": 80, "sqlite": 12, "dynamodb": 2, "firestore": 2}
ALL_EXAMPLES = {"memory": 150, "sqlite": 20, "dynamodb": 3, "firestore": 4}
"""SQLite waits for the disk at every step, the others for a server."""


@pytest.mark.timeout(900)
def test_any_sequence_of_operations_keeps_the_budget(worlds, full_figures):
    machine = type("BoundBudgetJudge", (BudgetJudge,), {"new_world": staticmethod(worlds.new)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=(ALL_EXAMPLES if full_figures else EXAMPLES)[worlds.backend],
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
