"""Owners, planners and answers that come late or never: each fault seen in systems of this kind."""

from __future__ import annotations

import pytest

from docgen_core.errors import LeaseLost, RunIncomplete, StorageFailed
from docgen_core.state.contract import Outlook, RunState, UnitState


def test_the_late_owner_is_refused_and_the_unit_stays_with_its_taker(world):
    a_store, b_store = world.planned(1), world.store()
    (a,) = a_store.claim_next_unit("r", "A").leases
    world.outlive_lease()
    (b,) = b_store.claim_next_unit("r", "B").leases
    with pytest.raises(LeaseLost):
        a_store.complete_unit(a, world.part(a))
    b_store.complete_unit(b, world.part(b))
    with pytest.raises(LeaseLost):
        a_store.fail_unit(a, "too late")
    with pytest.raises(LeaseLost):
        a_store.complete_unit(a, world.part(a))
    a_store.release(a)
    unit = world.unit(a_store, 0)
    assert (unit.state, unit.owner, unit.attempts, unit.generation) == (UnitState.DONE, "B", 2, 2)


def test_the_last_owner_may_die_and_a_waiting_peer_takes_over(world):
    dying, peer = world.planned(1), world.store()
    dying.claim_next_unit("r", "dying")
    waited = 0.0
    while (claim := peer.claim_next_unit("r", "peer")).outlook is Outlook.BUSY:
        assert 0 < claim.retry_seconds <= 60 * 1.25
        world.wait(claim.retry_seconds)
        waited += claim.retry_seconds
        assert waited < 2 * 60
    assert claim.outlook is Outlook.CLAIMED


def test_a_unit_that_kills_its_worker_is_failed_at_the_cap_and_the_others_are_done(world):
    victims = 0
    store, worker = world.planned(5, attempts=3), world.store()
    while True:
        claim = worker.claim_next_unit("r", f"worker-{victims}")
        if claim.outlook is Outlook.BUSY:
            world.wait(claim.retry_seconds)
        elif claim.leases:
            (lease,) = claim.leases
            if lease.index == 2:
                victims += 1
                worker = world.store()
            else:
                store.complete_unit(lease, world.part(lease))
        else:
            break
    assert claim.outlook is Outlook.DRAINED
    assert victims == 3
    poison = world.unit(store, 2)
    assert (poison.state, poison.attempts) == (UnitState.FAILED, 3)
    assert "attempts used up (3)" in poison.error
    assert store.progress("r").done == 4


def test_a_sweeper_with_a_stale_read_takes_nothing_from_a_fresh_claim(world):
    sweeper = world.planned(1, meddled=True)
    sweeper.claim_next_unit("r", "dead")
    world.outlive_lease()
    fresh = []
    sweeper.primitives.once_before(
        "write_units", lambda *_: fresh.extend(world.store().claim_next_unit("r", "fresh").leases)
    )
    assert sweeper.reclaim_expired_units("r") == 0
    unit = world.unit(sweeper, 0)
    assert (unit.state, unit.owner, unit.generation) == (UnitState.RUNNING, "fresh", 2)
    sweeper.complete_unit(fresh[0], world.part(fresh[0]))


def test_a_sweeper_with_a_stale_read_takes_nothing_from_an_owner_that_has_just_renewed(world):
    sweeper = world.planned(1, meddled=True)
    owner = world.store()
    (lease,) = owner.claim_next_unit("r", "owner").leases
    world.outlive_lease()
    sweeper.primitives.once_before("write_units", lambda *_: owner.renew(lease))
    assert sweeper.reclaim_expired_units("r") == 0
    owner.complete_unit(lease, world.part(lease))


def test_a_taker_with_a_stale_read_takes_nothing_from_a_unit_just_done(world):
    taker = world.planned(1, meddled=True)
    owner = world.store()
    (lease,) = owner.claim_next_unit("r", "owner").leases
    world.outlive_lease()
    taker.primitives.once_before("write_units", lambda *_: owner.complete_unit(lease, world.part(lease)))
    assert taker.claim_next_unit("r", "taker").outlook is Outlook.DRAINED
    assert world.unit(taker, 0).owner == "owner"


def test_two_planners_at_once_make_one_run(world):
    slow = world.store(meddled=True)
    slow.primitives.once_before("insert_run", lambda *_: world.planned(3))
    run, created = slow.create_run(world.marker(3))
    assert not created
    assert run.planned


def test_every_lost_race_for_the_only_unit_ends_in_an_answer(world):
    stores = [world.planned(1, meddled=True)] + [world.store(meddled=True) for _ in range(4)]
    won = []

    def claim(position):
        if position + 1 < len(stores):
            stores[position].primitives.once_before("write_units", lambda *_: claim(position + 1))
        answer = stores[position].claim_next_unit("r", f"worker-{position}")
        won.extend(answer.leases)
        return answer.outlook

    assert claim(0) is Outlook.BUSY
    assert [lease.owner for lease in won] == ["worker-4"]


# Lost answers: the write happened, the answer did not come, the call is made again ----------


def test_a_lost_answer_to_create_run(world):
    store = world.store(meddled=True)
    store.primitives.lose_answer("insert_run")
    with pytest.raises(StorageFailed):
        store.create_run(world.marker(3))
    run, created = store.create_run(world.marker(3))
    assert not created
    assert run.marker == world.marker(3)


def test_a_lost_answer_to_a_claim_costs_a_lease_length_and_no_unit(world):
    store = world.planned(1, meddled=True)
    store.primitives.lose_answer("write_units")
    with pytest.raises(StorageFailed):
        store.claim_next_unit("r", "w")
    assert store.claim_next_unit("r", "w").outlook is Outlook.BUSY
    world.outlive_lease()
    assert world.finish(store) == [0]


def test_a_lost_answer_to_complete(world):
    store = world.planned(1, meddled=True)
    (lease,) = store.claim_next_unit("r", "w").leases
    store.primitives.lose_answer("write_units")
    with pytest.raises(StorageFailed):
        store.complete_unit(lease, world.part(lease))
    store.complete_unit(lease, world.part(lease))
    assert store.progress("r").done == 1


def test_a_lost_answer_to_renew(world):
    store = world.planned(1, meddled=True)
    (lease,) = store.claim_next_unit("r", "w").leases
    store.primitives.lose_answer("write_units")
    with pytest.raises(StorageFailed):
        store.renew(lease)
    store.complete_unit(store.renew(lease)[0], world.part(lease))


@pytest.mark.parametrize(("retry", "state"), [(None, UnitState.FAILED), (5.0, UnitState.PENDING)])
def test_a_lost_answer_to_fail(world, retry, state):
    store = world.planned(1, meddled=True)
    (lease,) = store.claim_next_unit("r", "w").leases
    store.primitives.lose_answer("write_units")
    with pytest.raises(StorageFailed):
        store.fail_unit(lease, "it broke", retry_seconds=retry)
    before = world.unit(store, 0)
    assert store.fail_unit(lease, "it broke", retry_seconds=retry) is state
    assert world.unit(store, 0) == before


def test_a_lost_answer_to_release(world):
    store = world.planned(1, meddled=True)
    (lease,) = store.claim_next_unit("r", "w").leases
    store.primitives.lose_answer("write_units")
    with pytest.raises(StorageFailed):
        store.release(lease)
    store.release(lease)
    assert world.unit(store, 0).attempts == 0


@pytest.mark.parametrize(
    ("operation", "state"),
    [
        (lambda store: store.pause("r"), RunState.PAUSED),
        (lambda store: store.cancel("r"), RunState.CANCELLED),
        (lambda store: store.begin_finalize("r"), RunState.FINALIZING),
    ],
)
def test_a_lost_answer_to_a_change_of_the_run(world, operation, state):
    store = world.planned(1, meddled=True)
    world.finish(store)
    store.primitives.lose_answer("replace_run")
    with pytest.raises(StorageFailed):
        operation(store)
    assert operation(store).state is state


def test_a_lost_answer_to_complete_run(world):
    store = world.planned(1, meddled=True)
    world.finish(store)
    store.begin_finalize("r")
    store.primitives.lose_answer("replace_run")
    with pytest.raises(StorageFailed):
        store.complete_run("r", "root")
    assert store.complete_run("r", "root").root_digest == "root"


@pytest.mark.parametrize("lost_call", ["write_units", "replace_run"])
def test_a_reset_cut_off_in_the_middle_strands_no_unit(world, lost_call):
    store, peer = world.planned(3, meddled=True), world.store()
    for _ in range(3):
        store.fail_unit(store.claim_next_unit("r", "w").leases[0], "no")
    assert peer.claim_next_unit("r", "peer").outlook is Outlook.DRAINED
    store.primitives.lose_answer(lost_call)
    with pytest.raises(StorageFailed):
        store.reset_failed_units("r")
    assert len(world.finish(peer, "peer")) == 3
    assert peer.claim_next_unit("r", "peer").outlook is Outlook.DRAINED


# Clocks ------------------------------------------------------------------------------------


def test_within_the_allowed_skew_a_live_lease_is_left_alone(world):
    owner, ahead = world.planned(1, skew=60), world.store(skew=60, wall_ahead=59)
    (lease,) = owner.claim_next_unit("r", "owner").leases
    world.wait(59)
    assert ahead.claim_next_unit("r", "ahead").outlook is Outlook.BUSY
    assert ahead.reclaim_expired_units("r") == 0
    owner.complete_unit(lease, world.part(lease))


def test_past_the_skew_a_dead_lease_is_taken(world):
    store = world.planned(1, skew=60)
    store.claim_next_unit("r", "dead")
    world.wait(119)
    assert world.store(skew=60).claim_next_unit("r", "w").outlook is Outlook.BUSY
    world.wait(2)
    assert world.store(skew=60).claim_next_unit("r", "w").outlook is Outlook.CLAIMED


def test_a_dead_owner_whose_clock_ran_ahead_is_found_by_watching(world):
    fast, peer = world.planned(1, wall_ahead=600), world.store()
    fast.claim_next_unit("r", "fast")
    assert peer.claim_next_unit("r", "peer").outlook is Outlook.BUSY
    world.wait(59)
    assert peer.claim_next_unit("r", "peer").outlook is Outlook.BUSY
    assert peer.reclaim_expired_units("r") == 0
    world.wait(2)
    (lease,) = peer.claim_next_unit("r", "peer").leases
    assert lease.generation == 2


def test_a_sweeper_that_watched_long_enough_reclaims_too(world):
    fast, sweeper = world.planned(1, wall_ahead=600), world.store()
    fast.claim_next_unit("r", "fast")
    assert sweeper.reclaim_expired_units("r") == 0
    world.outlive_lease()
    assert sweeper.reclaim_expired_units("r") == 1


def test_a_live_owner_whose_clock_ran_ahead_keeps_its_unit_while_it_renews(world):
    fast, peer = world.planned(1, wall_ahead=600), world.store()
    (lease,) = fast.claim_next_unit("r", "fast").leases
    for _ in range(12):
        assert peer.claim_next_unit("r", "peer").outlook is Outlook.BUSY
        world.wait(20)
        lease, _ = fast.renew(lease)
    fast.complete_unit(lease, world.part(lease))


@pytest.mark.parametrize("ahead", [-600.0, 600.0])
def test_clocks_ten_minutes_apart_cost_work_but_never_a_unit(world, ahead):
    stores = [world.planned(6, attempts=50), world.store(attempts=50, wall_ahead=ahead)]
    held, refused = [], 0
    for _ in range(200):
        for position, store in enumerate(stores):
            claim = store.claim_next_unit("r", f"worker-{position}")
            held += [(store, lease) for lease in claim.leases]
        if held:
            store, lease = held.pop(0)
            try:
                store.complete_unit(lease, world.part(lease))
            except LeaseLost:
                refused += 1
        world.wait(7)
    progress = stores[0].progress("r")
    assert (progress.done, progress.failed) == (6, 0)
    assert refused > 0


# The end of a run --------------------------------------------------------------------------


def test_a_gap_is_refused_by_index_and_not_by_count(world):
    store = world.planned(9)
    world.finish(store, within=[0, 1, 7])
    with pytest.raises(RunIncomplete) as refused:
        store.begin_finalize("r")
    assert refused.value.gap == (2, 3, 4, 5, 6, 8)
    assert "2, 3, 4, 5, 6, 8" in str(refused.value)
    assert store.run("r").state is RunState.RUNNING


def test_failed_units_are_named_as_the_gap(world):
    store = world.planned(4)
    store.fail_unit(store.claim_next_unit("r", "w", within=[2]).leases[0], "no")
    world.finish(store)
    with pytest.raises(RunIncomplete, match=r"1 failed.*docgen resume r") as refused:
        store.begin_finalize("r")
    assert refused.value.gap == (2,)
    store.reset_failed_units("r")
    assert world.finish(store) == [2]
    assert store.begin_finalize("r").state is RunState.FINALIZING


def test_a_running_unit_is_a_gap_even_when_its_lease_is_over(world):
    store = world.planned(2)
    world.finish(store, within=[0])
    store.claim_next_unit("r", "w")
    world.outlive_lease()
    with pytest.raises(RunIncomplete) as refused:
        store.begin_finalize("r")
    assert refused.value.gap == (1,)


def test_finalizing_may_be_taken_up_by_anybody(world):
    store = world.planned(2)
    world.finish(store)
    assert store.begin_finalize("r").state is RunState.FINALIZING
    assert world.store().begin_finalize("r").state is RunState.FINALIZING
    assert world.store().complete_run("r", "root").state is RunState.COMPLETED
    assert store.begin_finalize("r").state is RunState.COMPLETED
