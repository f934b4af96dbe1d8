"""Expired units go back to the pool on resume, and when a catalogue build is planned again; on every store."""

from __future__ import annotations

from docgen_core.blobs import open_blobs
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import Reopened, reopen_run
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.state.contract import UnitState


def test_resuming_a_run_reclaims_what_dead_workers_held(world):
    store = world.planned(4, attempts=2)
    dead, alive = store.claim_next_unit("r", "dead").leases[0], world.store()
    store.fail_unit(store.claim_next_unit("r", "w").leases[0], "it broke")
    store.pause("r")
    world.outlive_lease()
    assert reopen_run(alive, "r") == Reopened(reset=1, reclaimed=1)
    unit = world.unit(alive, dead.index)
    assert (unit.state, unit.generation, unit.attempts) == (UnitState.PENDING, 1, 1)
    assert reopen_run(alive, "r") == Reopened(reset=0, reclaimed=0)
    assert sorted(world.finish(alive)) == [0, 1, 2, 3]


def test_planning_a_catalogue_build_again_reclaims_what_dead_workers_held(world):
    store, blobs = world.store(), open_blobs(f"memory://{id(world)}")
    spec = CatalogueSpec(companies=6, products=2, range_width=2)
    run = build_catalogue_run(store, blobs, "v1", spec).run.run_id
    (dead,) = store.claim_next_unit(run, "dead").leases
    assert not build_catalogue_run(world.store(), blobs, "v1", spec).created
    assert world.unit(store, dead.index, run).state is UnitState.RUNNING, "its lease holds"
    world.outlive_lease()
    assert not build_catalogue_run(world.store(), blobs, "v1", spec).created
    unit = world.unit(store, dead.index, run)
    assert (unit.state, unit.generation, unit.attempts) == (UnitState.PENDING, 1, 1)
