"""What the drain step reads of the store: a pool of scattered units is read by the page, not by the unit."""

from __future__ import annotations

from docgen_assets.drain import Pool
from docgen_core.state import open_state
from docgen_core.state.contract import Part, RunKind, RunMarker, StateStore


def with_units_done(name: str, done: set[int]) -> StateStore:
    state = open_state(f"memory://{name}")
    state.create_run(RunMarker("r1", RunKind.DOCUMENTS, "runs/r1", {}, "d", 3_000, 2, 6_000))
    state.mark_planned("r1", "d")
    while leases := state.claim_next_unit("r1", "w", limit=len(done), within=done).leases:
        for lease in leases:
            state.complete_unit(lease, Part(key="k", sha256="s", rows=5))
    return state


def test_scattered_units_are_read_by_the_page(monkeypatch):
    state = with_units_done("scattered", {7, 8, 2_000, 2_900})
    asked: list[int] = []
    units = state.units
    monkeypatch.setattr(state, "units", lambda *of, after, **how: asked.append(after) or units(*of, after=after, **how))
    pool = Pool("r1", (2_900, 8, 10, 2_950))
    assert [row.index for row in pool.rows(state)] == [8, 2_900]
    assert len(asked) <= 2
    progress = pool.progress(state)
    assert (progress.total, progress.done, progress.pending, progress.rows) == (4, 2, 2, 10)
    assert pool.items_done(state) == 4


def test_a_whole_run_is_every_row():
    state = with_units_done("whole", {7, 8, 2_900})
    assert [row.index for row in Pool("r1").rows(state)] == [7, 8, 2_900]
    assert not Pool("r1").is_finished(state)
    assert Pool("r1", (7, 2_900)).is_finished(state)
