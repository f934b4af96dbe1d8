"""Many threads on one store object, and on several: nothing done twice, nothing lost."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from docgen_core.state.contract import Outlook

UNITS = 120


@pytest.mark.parametrize("shared", [True, False], ids=["one store", "a store each"])
@pytest.mark.parametrize("limit", [1, 8])
def test_threads_complete_each_unit_once(world, shared, limit):
    first = world.planned(UNITS)
    barrier = threading.Barrier(6)

    def work(number):
        store = first if shared else world.store()
        completed = []
        barrier.wait()
        while True:
            claim = store.claim_next_unit("r", f"thread-{number}", limit=limit)
            if claim.outlook is Outlook.DRAINED:
                return completed
            for lease in claim.leases:
                lease, _ = store.renew(lease)
                store.complete_unit(lease, world.part(lease))
                completed.append(lease.index)

    with ThreadPoolExecutor(6) as pool:
        completed = Counter(index for indices in pool.map(work, range(6)) for index in indices)
    assert completed == Counter(range(UNITS))
    assert {unit.generation for unit in first.units("r")} == {1}


def test_threads_under_one_worker_name_share_its_list(world):
    store = world.planned(UNITS)
    barrier = threading.Barrier(4)

    def claim(_):
        barrier.wait()
        claimed = []
        while leases := store.claim_next_unit("r", "same", limit=3).leases:
            claimed += [lease.index for lease in leases]
        return claimed

    with ThreadPoolExecutor(4) as pool:
        claimed = Counter(index for indices in pool.map(claim, range(4)) for index in indices)
    assert claimed == Counter(range(UNITS))


def test_of_many_creators_one_wins(world):
    stores = [world.store() for _ in range(6)]
    barrier = threading.Barrier(6)

    def create(store):
        barrier.wait()
        return store.create_run(world.marker(3))

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(create, stores))
    assert [created for _, created in answers].count(True) == 1
    assert len({run.marker.spec_digest for run, _ in answers}) == 1


def test_of_many_finalizers_all_see_the_same_end(world):
    store = world.planned(4)
    world.finish(store)
    barrier = threading.Barrier(6)

    def finalize(_):
        barrier.wait()
        store.begin_finalize("r")
        return store.complete_run("r", "root").root_digest

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(finalize, range(6))) == {"root"}
