"""A unit's row: each operation against each wrong precondition, attempts, scopes and batches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docgen_core.errors import LeaseLost, UsageError
from docgen_core.state.contract import MAX_ERROR_BYTES, Outlook, Part, Progress, RunState, UnitState

OPERATIONS = {
    "renew": lambda store, lease: store.renew(lease),
    "complete": lambda store, lease: store.complete_unit(lease, Part("part", "sha", 1)),
    "fail": lambda store, lease: store.fail_unit(lease, "it broke"),
    "fail with a retry": lambda store, lease: store.fail_unit(lease, "it broke", retry_seconds=1),
}


def _never_claimed(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    return replace(lease, index=1)


def _older_generation(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    store.release(lease)
    store.claim_next_unit("r", "v", within=[0])
    return lease


def _newer_generation(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    return replace(lease, generation=lease.generation + 1)


def _released(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    store.release(lease)
    return lease


def _reclaimed(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    world.outlive_lease()
    assert store.reclaim_expired_units("r") == 1
    return lease


def _done(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    store.complete_unit(lease, Part("part", "other sha", 1))
    return lease


def _failed(world, store):
    lease = store.claim_next_unit("r", "w", within=[0]).leases[0]
    assert store.fail_unit(lease, "another error") is UnitState.FAILED
    return lease


def _reset(world, store):
    lease = _failed(world, store)
    assert store.reset_failed_units("r") == 1
    return lease


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "lost", [_never_claimed, _older_generation, _newer_generation, _released, _reclaimed, _done, _failed, _reset]
)
def test_a_lost_lease_changes_nothing_and_its_holder_is_told(world, operation, lost):
    store = world.planned(2)
    lease = lost(world, store)
    before = store.units("r")
    with pytest.raises(LeaseLost) as refused:
        OPERATIONS[operation](store, lease)
    assert (refused.value.run_id, refused.value.index) == ("r", lease.index)
    assert store.units("r") == before


@pytest.mark.parametrize(
    "lost", [_never_claimed, _older_generation, _newer_generation, _released, _reclaimed, _done, _failed, _reset]
)
def test_releasing_a_lost_lease_is_ignored(world, lost):
    store = world.planned(2)
    lease = lost(world, store)
    before = store.units("r")
    store.release(lease)
    assert store.units("r") == before


@pytest.mark.parametrize("index", [-1, 2, 10_000])
def test_a_unit_outside_the_run_is_wrong_use_and_gets_no_row(world, index):
    store = world.planned(2)
    lease = replace(store.claim_next_unit("r", "w").leases[0], index=index)
    for operation in [*OPERATIONS.values(), lambda store, lease: store.release(lease)]:
        with pytest.raises(UsageError):
            operation(store, lease)
    with pytest.raises(UsageError):
        store.claim_next_unit("r", "w", within=[0, index])
    assert len(store.units("r")) == 1


def test_a_claim_leases_one_unit_and_says_so_everywhere(world):
    store = world.planned(2)
    claim = store.claim_next_unit("r", "worker-1")
    (lease,) = claim.leases
    assert claim.outlook is Outlook.CLAIMED
    assert (lease.generation, lease.attempt, lease.owner, lease.epoch) == (1, 1, "worker-1", 0)
    assert lease.expires_monotonic == world.monotonic + 60
    unit = world.unit(store, lease.index)
    assert (unit.state, unit.generation, unit.attempts, unit.owner) == (UnitState.RUNNING, 1, 1, "worker-1")
    assert unit.lease_expires_at == world.wall + 60
    assert unit.working
    assert store.progress("r") == Progress(total=2, pending=1, running=1, done=0, failed=0, rows=0, expired=0)


def test_a_done_unit_carries_its_part(world):
    store = world.planned(1)
    lease = store.claim_next_unit("r", "w").leases[0]
    store.complete_unit(lease, Part("runs/r/manifest/unit-000000.json", "abc", 42))
    unit = world.unit(store, 0)
    assert (unit.state, unit.part_key, unit.part_sha256, unit.rows) == (
        UnitState.DONE,
        "runs/r/manifest/unit-000000.json",
        "abc",
        42,
    )
    assert not unit.working
    assert store.progress("r").rows == 42
    assert store.claim_next_unit("r", "w").outlook is Outlook.DRAINED


def test_completing_late_counts_as_long_as_nobody_took_the_unit(world):
    store = world.planned(1)
    lease = store.claim_next_unit("r", "w").leases[0]
    world.outlive_lease()
    store.complete_unit(lease, world.part(lease))
    assert world.unit(store, 0).state is UnitState.DONE


def test_a_renewed_lease_outlives_five_lengths(world):
    store = world.planned(1)
    lease = store.claim_next_unit("r", "w").leases[0]
    for beat in range(1, 16):
        world.wait(20)
        lease, state = store.renew(lease)
        assert state is RunState.RUNNING
        assert lease.expires_monotonic == world.monotonic + 60
        assert world.unit(store, 0).heartbeat == beat
        assert world.store().claim_next_unit("r", "thief").outlook is Outlook.BUSY
    store.complete_unit(lease, world.part(lease))
    assert world.unit(store, 0).attempts == 1


@pytest.mark.parametrize("change", [RunState.PAUSED, RunState.CANCELLED])
def test_a_renewal_tells_of_pause_and_cancel_and_the_unit_in_hand_may_still_end(world, change):
    store = world.planned(2)
    lease = store.claim_next_unit("r", "w").leases[0]
    world.store().pause("r") if change is RunState.PAUSED else world.store().cancel("r")
    lease, state = store.renew(lease)
    assert state is change
    store.complete_unit(lease, world.part(lease))
    assert world.unit(store, lease.index).state is UnitState.DONE


def test_a_released_unit_is_pending_at_once_with_its_attempt_back(world):
    store = world.planned(1)
    for generation in range(1, 12):
        (lease,) = store.claim_next_unit("r", "w").leases
        assert (lease.generation, lease.attempt) == (generation, 1)
        store.release(lease)
        assert world.unit(store, 0).attempts == 0


def test_a_unit_handed_back_for_later_waits_that_long(world):
    store = world.planned(1)
    store.release(store.claim_next_unit("r", "w").leases[0], not_before_seconds=30)
    claim = store.claim_next_unit("r", "w")
    assert claim.outlook is Outlook.BUSY
    assert 0 < claim.retry_seconds <= 30 * 1.25
    world.wait(30)
    assert store.claim_next_unit("r", "w").outlook is Outlook.CLAIMED


def test_failures_back_off_until_the_attempts_are_used_up(world):
    store = world.planned(1, attempts=3)
    for attempt in (1, 2):
        (lease,) = store.claim_next_unit("r", "w").leases
        assert lease.attempt == attempt
        assert store.fail_unit(lease, f"error {attempt}", retry_seconds=10) is UnitState.PENDING
        assert world.unit(store, 0).error == f"error {attempt}"
        assert store.claim_next_unit("r", "w").outlook is Outlook.BUSY
        world.wait(10)
    (lease,) = store.claim_next_unit("r", "w").leases
    assert store.fail_unit(lease, "error 3", retry_seconds=10) is UnitState.FAILED
    unit = world.unit(store, 0)
    assert (unit.state, unit.attempts, unit.error) == (UnitState.FAILED, 3, "error 3")
    assert store.claim_next_unit("r", "w").outlook is Outlook.DRAINED


def test_a_failure_without_a_retry_is_final_at_once(world):
    store = world.planned(1)
    assert store.fail_unit(store.claim_next_unit("r", "w").leases[0], "no") is UnitState.FAILED


@pytest.mark.parametrize("error", ["x" * 2000, "印" * 400, "a" + "印" * 400, "\ud800 alone"])
def test_an_error_is_cut_to_whole_characters(world, error):
    store = world.planned(1)
    store.fail_unit(store.claim_next_unit("r", "w").leases[0], error)
    kept = world.unit(store, 0).error
    assert 0 < len(kept.encode()) <= MAX_ERROR_BYTES
    assert len(kept.encode()) > MAX_ERROR_BYTES - 4 or "alone" in kept


def test_a_reset_gives_attempts_back_and_keeps_the_generation(world):
    store = world.planned(3)
    for _ in range(2):
        store.fail_unit(store.claim_next_unit("r", "w").leases[0], "no")
    survivor = store.claim_next_unit("r", "w").leases[0]
    assert store.reset_failed_units("r") == 2
    for unit in store.units("r"):
        if unit.index != survivor.index:
            assert (unit.state, unit.generation, unit.attempts) == (UnitState.PENDING, 1, 0)
    store.complete_unit(survivor, world.part(survivor))
    leases = store.claim_next_unit("r", "w", limit=3).leases
    assert [(lease.generation, lease.attempt, lease.epoch) for lease in leases] == [(2, 1, 1), (2, 1, 1)]
    assert store.reset_failed_units("r") == 0


# Scope and batches ------------------------------------------------------------------------


def test_a_scope_limits_the_claim_to_a_scattered_set(world):
    store = world.planned(5000)
    scope = {3, 999, 1000, 2500, 4999}
    assert set(world.finish(store, within=scope)) == scope
    assert store.claim_next_unit("r", "w", within=scope).outlook is Outlook.DRAINED
    assert store.progress("r").done == 5
    assert store.claim_next_unit("r", "w", within=[7]).leases[0].index == 7
    assert store.claim_next_unit("r", "w", within=[7]).outlook is Outlook.BUSY
    assert store.claim_next_unit("r", "w", within=scope).outlook is Outlook.DRAINED
    assert store.claim_next_unit("r", "w").outlook is Outlook.CLAIMED


def test_an_empty_scope_is_drained(world):
    assert world.planned(5).claim_next_unit("r", "w", within=[]).outlook is Outlook.DRAINED


@pytest.mark.parametrize("limit", [0, -1])
def test_a_claim_of_nothing_is_wrong_use(world, limit):
    with pytest.raises(UsageError):
        world.planned(5).claim_next_unit("r", "w", limit=limit)


def test_a_batch_is_different_units_with_the_first_in_hand(world):
    store = world.planned(10)
    leases = store.claim_next_unit("r", "w", limit=4).leases
    assert len({lease.index for lease in leases}) == 4
    assert [world.unit(store, lease.index).working for lease in leases] == [True, False, False, False]
    assert len(store.claim_next_unit("r", "w", limit=100).leases) == 6


def test_an_expired_batch_costs_an_attempt_to_the_unit_in_hand_only(world):
    store = world.planned(4, attempts=1)
    first, second, third, fourth = store.claim_next_unit("r", "w", limit=4).leases
    store.complete_unit(first, world.part(first))
    second, _ = store.renew(second)
    third, _ = store.renew(third, working=False)
    world.outlive_lease()
    assert store.reclaim_expired_units("r") == 3
    assert world.unit(store, second.index).state is UnitState.FAILED
    assert "gave no sign of life" in world.unit(store, second.index).error
    for spared in (third, fourth):
        unit = world.unit(store, spared.index)
        assert (unit.state, unit.attempts, unit.generation) == (UnitState.PENDING, 0, 1)
    assert {lease.attempt for lease in store.claim_next_unit("r", "w", limit=4).leases} == {1}


def test_the_batch_has_a_unit_in_hand_even_when_its_first_went_to_a_peer(world):
    store = world.planned(6, meddled=True)
    store.primitives.once_before(
        "write_units",
        lambda changes: world.store().claim_next_unit("r", "peer", within=[changes[0].after.index]),
    )
    leases = store.claim_next_unit("r", "w", limit=3).leases
    assert [world.unit(store, lease.index).owner for lease in leases] == ["w", "w"]
    assert [world.unit(store, lease.index).working for lease in leases] == [True, False]
    store.complete_unit(leases[0], world.part(leases[0]))


def test_peers_share_the_tail_of_a_run(world):
    first, second = world.planned(8), world.store()
    mine = first.claim_next_unit("r", "a", limit=4).leases
    assert len(mine) == 4
    assert len(second.claim_next_unit("r", "b", limit=4).leases) == 2
    assert len(world.store().claim_next_unit("r", "c", limit=4).leases) == 1
    assert len(world.store().claim_next_unit("r", "d", limit=4).leases) == 1
    assert second.claim_next_unit("r", "b", limit=4).outlook is Outlook.BUSY


# Reports ----------------------------------------------------------------------------------


def test_units_are_listed_page_by_page_in_order_and_by_state(world):
    store = world.planned(2500)
    done = world.finish(store, within=range(990, 1010))
    for index in (2499, 0, 1005 + 400):
        store.fail_unit(store.claim_next_unit("r", "w", within=[index]).leases[0], "no")
    running = store.claim_next_unit("r", "w", within=[1700]).leases[0]

    def listed(states):
        after, seen = -1, []
        while page := store.units("r", states, after=after, limit=6):
            seen += [unit.index for unit in page]
            after = page[-1].index
        return seen

    assert listed({UnitState.DONE}) == sorted(done) == list(range(990, 1010))
    assert listed({UnitState.FAILED}) == [0, 1405, 2499]
    assert listed({UnitState.FAILED, UnitState.RUNNING}) == [0, 1405, running.index, 2499]
    assert listed(None) == sorted([*done, 0, 1405, 1700, 2499])
    assert listed(set()) == []


def test_progress_adds_up_and_names_expired_leases(world):
    store = world.planned(1500)
    world.finish(store, within=range(5))
    store.fail_unit(store.claim_next_unit("r", "w", within=[1400]).leases[0], "no")
    store.release(store.claim_next_unit("r", "w", within=[1401]).leases[0])
    store.claim_next_unit("r", "w", within=[1402])
    world.wait(30)
    store.claim_next_unit("r", "w", within=[8])
    world.wait(31)
    assert store.progress("r") == Progress(total=1500, pending=1492, running=2, done=5, failed=1, rows=35, expired=1)
