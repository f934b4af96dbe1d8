"""Any sequence of operations by two workers with unlike clocks, stale leases included, judged step by step.

The judge knows nothing of the store's code: it keeps the rows as they were before each step and
says of every row that changed whether this operation was allowed to change it, and into what.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule, run_state_machine_as_test

from docgen_core.errors import LeaseLost, RootConflict, RunCancelled, RunIncomplete, WrongRunState
from docgen_core.state.contract import Outlook, Part, RunState, UnitState

UNITS = 3
CAP = 2
LEASE_SECONDS = 60.0
AHEAD_SECONDS = 45.0
CLOSED_OUTLOOK = {
    RunState.PAUSED: Outlook.PAUSED,
    RunState.CANCELLED: Outlook.CANCELLED,
    RunState.FINALIZING: Outlook.CLOSED,
    RunState.COMPLETED: Outlook.CLOSED,
}
ENDED = (UnitState.DONE, UnitState.FAILED)


class Judge(RuleBasedStateMachine):
    """One run of three units; worker B's wall clock is ahead of worker A's."""

    new_world = None
    leases = Bundle("leases")
    workers = st.sampled_from("AB")

    def __init__(self):
        super().__init__()
        # All new each time, time included: an example has to go the same way when it is replayed.
        self.world = self.new_world()
        self.ahead = {"A": 0.0, "B": AHEAD_SECONDS}
        self.stores = {name: self.world.store(attempts=CAP, wall_ahead=ahead) for name, ahead in self.ahead.items()}
        self.stores["A"].create_run(self.world.marker(UNITS))
        self.run = self.stores["A"].mark_planned("r", "digest of r")
        self.rows = {}
        self.changed_at = {}
        self.done_in = set()

    # Reading and judging ------------------------------------------------------------------

    def read(self):
        return {unit.index: unit for unit in self.stores["A"].units("r")}

    def may_take(self, unit, worker):
        """Whether `worker` may call the lease of a running unit expired, by either rule."""
        by_clock = self.world.wall + self.ahead[worker] > unit.lease_expires_at
        return by_clock or self.world.monotonic - self.changed_at[unit.index] > LEASE_SECONDS

    def spared(self, unit):
        """Attempts at a unit whose lease ran out: only the unit in hand pays."""
        return unit.attempts if unit.working else unit.attempts - 1

    def settle(self, permitted):
        """Read the rows again; `permitted(index, before, after)` judges each that changed."""
        after = self.read()
        assert self.rows.keys() <= after.keys()
        for index, row in after.items():
            before = self.rows.get(index)
            if row == before:
                continue
            assert permitted(index, before, row), f"{before} became {row}"
            assert row.generation >= (before.generation if before else 0)
            if before is not None:
                assert before.state is not UnitState.DONE
            if row.state is UnitState.DONE:
                assert (index, row.epoch) not in self.done_in
                self.done_in.add((index, row.epoch))
            self.changed_at[index] = self.world.monotonic
        self.rows = after

    def only(self, lease, expected):
        """Only the lease's unit may have changed, into what is expected."""
        return lambda index, before, after: index == lease.index and after == expected

    def nothing(self, index, before, after):
        return False

    def holds(self, lease):
        row = self.rows.get(lease.index)
        return row is not None and row.state is UnitState.RUNNING and row.generation == lease.generation

    # Units --------------------------------------------------------------------------------

    scopes = st.none() | st.sets(st.integers(0, UNITS - 1))

    @rule(target=leases, worker=workers, limit=st.integers(1, UNITS), scope=scopes)
    def claim_some(self, worker, limit, scope):
        return self.claim(worker, limit, scope)

    def claim(self, worker, limit, scope):
        wall = self.world.wall + self.ahead[worker]
        in_scope = range(UNITS) if scope is None else scope
        rows = {index: self.rows.get(index) for index in in_scope}
        claim = self.stores[worker].claim_next_unit("r", worker, limit=limit, within=scope)
        given = {lease.index: lease for lease in claim.leases}
        assert given.keys() <= rows.keys()
        assert len(given) <= limit

        def permitted(index, before, after):
            expired = before is not None and before.state is UnitState.RUNNING and self.may_take(before, worker)
            if index not in given:
                # Looking at a segment fails what is at the cap there, in scope or not.
                used_up = expired and self.spared(before) >= CAP
                return used_up and after.state is UnitState.FAILED and after.generation == before.generation
            pending = before is None or (before.state is UnitState.PENDING and before.not_before <= wall)
            attempts = 0 if before is None else self.spared(before) if expired else before.attempts
            return (pending or expired) and (after.state, after.generation, after.attempts, after.owner) == (
                UnitState.RUNNING,
                (before.generation if before else 0) + 1,
                attempts + 1,
                worker,
            )

        self.settle(permitted)
        for position, lease in enumerate(claim.leases):
            row = self.rows[lease.index]
            assert (row.generation, row.attempts, row.working) == (lease.generation, lease.attempt, position == 0)
        if not given:
            self.judge_refusal(claim, rows, worker, wall)
        return multiple(*claim.leases)

    def judge_refusal(self, claim, before, worker, wall):
        """A claim that brought nothing says why; nothing claimable was passed over."""
        closed = CLOSED_OUTLOOK.get(self.run.state)
        if closed:
            assert claim.outlook is closed
            return
        for row in before.values():
            assert row is not None
            if row.state is UnitState.PENDING:
                assert row.not_before > wall
            if row.state is UnitState.RUNNING and wall > row.lease_expires_at:
                assert self.rows[row.index].state is UnitState.FAILED
        drained = all(self.rows[index].state in ENDED for index in before)
        assert claim.outlook is (Outlook.DRAINED if drained else Outlook.BUSY)

    @rule(lease=leases, target=leases, working=st.booleans())
    def renew(self, lease, working):
        row = self.rows.get(lease.index)
        try:
            renewed, state = self.stores[lease.owner].renew(lease, working=working)
        except LeaseLost:
            assert not self.holds(lease)
            self.settle(self.nothing)
            return multiple()
        assert self.holds(lease)
        assert state is self.run.state
        expires = self.world.wall + self.ahead[lease.owner] + LEASE_SECONDS
        expected = replace(row, lease_expires_at=expires, heartbeat=row.heartbeat + 1, working=working)
        self.settle(self.only(lease, expected))
        return renewed

    @rule(lease=leases, digest=st.sampled_from(["sha 1", "sha 2"]))
    def complete(self, lease, digest):
        row = self.rows.get(lease.index)
        part = Part("part", digest, 5)
        replayed = row.state is UnitState.DONE and (row.generation, row.part_sha256) == (lease.generation, digest)
        try:
            self.stores[lease.owner].complete_unit(lease, part)
        except LeaseLost:
            assert not self.holds(lease)
            assert not replayed
            self.settle(self.nothing)
            return
        assert self.holds(lease) or replayed
        done = {"state": UnitState.DONE, "working": False, "error": None}
        expected = replace(row, **done, part_key="part", part_sha256=digest, rows=5)
        self.settle(self.nothing if replayed else self.only(lease, expected))

    @rule(lease=leases, error=st.sampled_from(["error 1", "error 2"]), retry=st.sampled_from([None, 0.0, 30.0]))
    def fail(self, lease, error, retry):
        row = self.rows.get(lease.index)
        waiting = row.state in (UnitState.PENDING, UnitState.FAILED)
        replayed = waiting and (row.generation, row.error) == (lease.generation, error)
        try:
            state = self.stores[lease.owner].fail_unit(lease, error, retry_seconds=retry)
        except LeaseLost:
            assert not self.holds(lease)
            assert not replayed
            self.settle(self.nothing)
            return
        if replayed:
            assert state is row.state
            self.settle(self.nothing)
            return
        assert self.holds(lease)
        final = retry is None or row.attempts >= CAP
        assert state is (UnitState.FAILED if final else UnitState.PENDING)
        not_before = row.not_before if final else self.world.wall + self.ahead[lease.owner] + retry
        self.settle(self.only(lease, replace(row, state=state, error=error, working=False, not_before=not_before)))

    @rule(lease=leases, later=st.sampled_from([0.0, 20.0]))
    def release(self, lease, later):
        row, held = self.rows.get(lease.index), self.holds(lease)
        self.stores[lease.owner].release(lease, not_before_seconds=later)
        if not held:
            self.settle(self.nothing)
            return
        not_before = self.world.wall + self.ahead[lease.owner] + later if later else 0.0
        pending = {"state": UnitState.PENDING, "working": False, "not_before": not_before}
        self.settle(self.only(lease, replace(row, **pending, attempts=row.attempts - 1)))

    @rule(worker=workers)
    def reclaim(self, worker):
        before = self.rows
        count = self.stores[worker].reclaim_expired_units("r")

        def permitted(index, before, after):
            expected = UnitState.FAILED if before.working and before.attempts >= CAP else UnitState.PENDING
            return (
                before.state is UnitState.RUNNING
                and self.may_take(before, worker)
                and (after.state, after.generation, after.attempts)
                == (expected, before.generation, self.spared(before))
            )

        self.settle(permitted)
        assert count == sum(self.rows[index] != row for index, row in before.items())
        wall = self.world.wall + self.ahead[worker]
        assert not any(row.state is UnitState.RUNNING and wall > row.lease_expires_at for row in self.rows.values())

    @rule(worker=workers)
    def reset(self, worker):
        failed = {index for index, row in self.rows.items() if row.state is UnitState.FAILED}
        try:
            count = self.stores[worker].reset_failed_units("r")
        except (RunCancelled, WrongRunState):
            assert self.run.state not in (RunState.RUNNING, RunState.PAUSED)
            self.settle(self.nothing)
            return
        assert self.run.state in (RunState.RUNNING, RunState.PAUSED)
        assert count == len(failed)
        self.run = replace(self.run, epoch=self.run.epoch + bool(failed))
        self.settle(
            lambda index, before, after: (
                index in failed
                and (after.state, after.attempts, after.generation) == (UnitState.PENDING, 0, before.generation)
            )
        )

    @rule(seconds=st.sampled_from([1, 20, 50, 61, 130]))
    def wait(self, seconds):
        self.world.wait(seconds)

    @rule(target=leases, worker=workers)
    def outlive_everybody_and_claim(self, worker):
        self.world.wait(LEASE_SECONDS + AHEAD_SECONDS + 1)
        return self.claim(worker, UNITS, None)

    # The run ------------------------------------------------------------------------------

    def change_run(self, operation, expected):
        """Try an operation on the run's row; `expected` maps each state to the next, or to nothing: refused."""
        try:
            run = operation("r")
        except (RunCancelled, WrongRunState):
            assert self.run.state not in expected
        else:
            self.run = replace(self.run, state=expected[self.run.state])
            assert run == self.run
        self.settle(self.nothing)

    # Seldom while there is work, or most examples would do little else than wait or be over.
    @rule(worker=workers, seldom=st.integers(0, 4))
    def pause(self, worker, seldom):
        if seldom == 0 or self.run.state is not RunState.RUNNING:
            states = dict.fromkeys((RunState.RUNNING, RunState.PAUSED), RunState.PAUSED)
            self.change_run(self.stores[worker].pause, states)

    @rule(worker=workers)
    def resume(self, worker):
        states = {state: state for state in RunState if state is not RunState.CANCELLED}
        self.change_run(self.stores[worker].resume, states | {RunState.PAUSED: RunState.RUNNING})

    @rule(worker=workers, seldom=st.integers(0, 9))
    def cancel(self, worker, seldom):
        if seldom == 0 or self.run.state not in (RunState.RUNNING, RunState.PAUSED):
            states = dict.fromkeys((RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED), RunState.CANCELLED)
            self.change_run(self.stores[worker].cancel, states)

    @rule(worker=workers)
    def begin_finalize(self, worker):
        gap = [i for i in range(UNITS) if i not in self.rows or self.rows[i].state is not UnitState.DONE]
        try:
            run = self.stores[worker].begin_finalize("r")
        except RunIncomplete as refused:
            assert list(refused.gap) == gap
            assert self.run.state is RunState.RUNNING
        except (RunCancelled, WrongRunState):
            assert self.run.state in (RunState.PAUSED, RunState.CANCELLED)
        else:
            assert not gap
            if self.run.state is RunState.RUNNING:
                self.run = replace(self.run, state=RunState.FINALIZING)
            assert run == self.run
        self.settle(self.nothing)

    @rule(worker=workers, root=st.sampled_from(["root 1", "root 2"]))
    def complete_run(self, worker, root):
        try:
            run = self.stores[worker].complete_run("r", root)
        except RootConflict:
            assert self.run.root_digest not in (None, root)
        except (RunCancelled, WrongRunState):
            assert self.run.state in (RunState.RUNNING, RunState.PAUSED, RunState.CANCELLED)
        else:
            assert self.run.state is RunState.FINALIZING or self.run.root_digest == root
            self.run = replace(self.run, state=RunState.COMPLETED, root_digest=root)
            assert run == self.run
        self.settle(self.nothing)

    # What always holds ----------------------------------------------------------------------

    @invariant()
    def completed_means_finalized_and_every_unit_done(self):
        run = self.stores["B"].run("r")
        assert run == self.run
        assert (run.root_digest is not None) == (run.state is RunState.COMPLETED)
        if run.state in (RunState.FINALIZING, RunState.COMPLETED):
            assert [row.state for row in self.rows.values()] == [UnitState.DONE] * UNITS

    @invariant()
    def attempts_stay_within_the_cap(self):
        assert all(0 <= row.attempts <= CAP for row in self.rows.values())

    @invariant()
    def progress_adds_up(self):
        progress = self.stores["B"].progress("r")
        states = [row.state for row in self.rows.values()]
        assert progress.pending + progress.running + progress.done + progress.failed == progress.total == UNITS
        assert (progress.running, progress.done, progress.failed) == tuple(
            states.count(state) for state in (UnitState.RUNNING, UnitState.DONE, UnitState.FAILED)
        )

    def teardown(self):
        self.drain()
        self.world.close()

    def drain(self):
        """One live worker and no more faults: the run drains, within a bound."""
        if self.run.state is RunState.PAUSED:
            self.stores["A"].resume("r")
        if self.run.state not in (RunState.RUNNING, RunState.PAUSED):
            return
        for _ in range(1000):
            claim = self.stores["A"].claim_next_unit("r", "last")
            if claim.outlook is Outlook.DRAINED:
                return
            for lease in claim.leases:
                self.stores["A"].complete_unit(lease, self.world.part(lease))
            self.world.wait(claim.retry_seconds)
        raise AssertionError("the run never drained")


EXAMPLES = {"memory": 150, "sqlite": 25, "dynamodb": 3, "firestore": 4}
ALL_EXAMPLES = {"memory": 300, "sqlite": 40, "dynamodb": 6, "firestore": 10}
"""SQLite waits for the disk at every step, the others for a server."""


# Far longer than it takes, for the time Hypothesis needs to make a failure short.
@pytest.mark.timeout(900)
def test_any_sequence_of_operations_keeps_the_contract(worlds, full_figures):
    machine = type("BoundJudge", (Judge,), {"new_world": staticmethod(worlds.new)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=(ALL_EXAMPLES if full_figures else EXAMPLES)[worlds.backend],
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
