"""Runs at and around a segment's edge, and a run of a hundred segments."""

from __future__ import annotations

import pytest

from docgen_core.errors import RunIncomplete
from docgen_core.state.contract import SEGMENT_UNITS, Outlook, Progress, RunState


def _drain_in_bulk(world, store):
    """Claim everything in batches and complete what was claimed; its indices."""
    claimed = []
    while leases := store.claim_next_unit("r", "w", limit=SEGMENT_UNITS).leases:
        claimed += [lease.index for lease in leases]
        world.finish_in_bulk(store, leases)
    return claimed


def _seal_all_but_two_segments(store, total):
    """Mark what peers have done, of a run too large to be done unit by unit over a network; the segments."""
    sealed = set(range(total // SEGMENT_UNITS)) - {7, 93}
    for segment in sealed:
        store.primitives.seal("r", segment, 7 * SEGMENT_UNITS)
    return sealed


@pytest.mark.parametrize("total", [1, 999, 1000, 1001, 100_000])
def test_a_run_of_any_size_is_claimed_once_each_and_completes(world, total):
    store = world.planned(total)
    sealed = _seal_all_but_two_segments(store, total) if world.over_network and total > 10_000 else set()
    claimed = _drain_in_bulk(world, store)
    assert sorted(claimed) == [index for index in range(total) if index // SEGMENT_UNITS not in sealed]
    assert store.claim_next_unit("r", "other").outlook is Outlook.DRAINED
    assert store.progress("r") == Progress(
        total=total, pending=0, running=0, done=total, failed=0, rows=7 * total, expired=0
    )
    assert store.begin_finalize("r").state is RunState.FINALIZING


def test_planning_costs_no_row_a_unit(world):
    store = world.planned(1_000_000)
    assert store.units("r") == []
    assert store.progress("r").pending == 1_000_000


@pytest.mark.parametrize("last", [0, 999, 1000, 1999, 2000])
def test_the_last_pending_unit_is_found_wherever_it_is(world, last):
    store = world.planned(2001)
    world.done_before(store, (index for index in range(2001) if index != last))
    assert [lease.index for lease in store.claim_next_unit("r", "w").leases] == [last]


def test_a_sealed_segment_is_never_read_again(world):
    store = world.planned(3000, meddled=True)
    world.done_before(store, range(3000))
    assert store.claim_next_unit("r", "w").outlook is Outlook.DRAINED
    store.primitives.calls.clear()
    assert store.claim_next_unit("r", "newcomer").outlook is Outlook.DRAINED
    assert store.progress("r").done == 3000
    assert store.begin_finalize("r").state is RunState.FINALIZING
    assert "seals" in store.primitives.calls
    assert "read_segment" not in store.primitives.calls


def test_a_segment_with_a_failure_is_never_sealed(world):
    store = world.planned(2000)
    store.fail_unit(store.claim_next_unit("r", "w", within=[5]).leases[0], "no")
    world.done_before(store, (index for index in range(2000) if index != 5))
    assert store.claim_next_unit("r", "w").outlook is Outlook.DRAINED
    assert store.primitives.seals("r") == {1: 7000}
    with pytest.raises(RunIncomplete):
        store.begin_finalize("r")
    store.reset_failed_units("r")
    assert world.finish(store) == [5]
    assert store.claim_next_unit("r", "w").outlook is Outlook.DRAINED
    assert store.primitives.seals("r") == {0: 7000, 1: 7000}


def test_a_lone_worker_reads_a_segment_once_for_all_its_claims(world):
    store = world.planned(1000, meddled=True)
    for _ in range(10):
        assert len(store.claim_next_unit("r", "w", limit=100).leases) == 100
    assert store.primitives.calls.count("read_segment") == 1
    assert store.primitives.calls.count("write_units") == 10


def test_a_worker_whose_list_a_peer_has_used_up_reads_again_instead_of_trying_it_all(world):
    store = world.planned(1000, meddled=True)
    assert store.claim_next_unit("r", "w").leases
    assert len(world.store().claim_next_unit("r", "peer", limit=999).leases) == 999 // 2 + 1
    while store.claim_next_unit("r", "w").leases:
        pass
    own = sum(unit.owner == "w" for unit in store.units("r", limit=1000))
    assert own == 500
    assert store.primitives.calls.count("write_units") <= own + 10


def test_two_workers_begin_in_different_places(world):
    store = world.planned(50_000)
    firsts = {store.claim_next_unit("r", f"worker-{number}").leases[0].index // SEGMENT_UNITS for number in range(12)}
    assert len(firsts) > 6
