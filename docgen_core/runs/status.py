"""How a run stands, for people and scripts: read from the store, never from memory of a worker.

What does not belong here: how it is shown (the command line), and whether blobs are sound (verify.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from docgen_core.blobs.contract import BlobStore
from docgen_core.runs.keys import root_key, withdrawn_key
from docgen_core.state.contract import Progress, Run, RunState, StateStore, UnitState

PAGE_RUNS = 100


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run, its units by state, and whether its root is there."""

    run: Run
    progress: Progress
    items_done: int
    """Documents (or companies) in DONE units."""
    root_present: bool
    withdrawn: bool

    @property
    def over(self) -> bool:
        """Whether waiting is pointless: sealed, cancelled, paused, or nothing but failures left."""
        waiting = self.progress.pending + self.progress.running
        stuck = waiting == 0 and self.progress.failed > 0
        return stuck or self.run.state in (RunState.COMPLETED, RunState.CANCELLED, RunState.PAUSED)

    @property
    def exit_code(self) -> int:
        """0 sealed, paused or under way; 3 failed units are left; 4 cancelled."""
        if self.run.state is RunState.CANCELLED:
            return 4
        return 3 if self.progress.failed else 0

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        marker = self.run.marker
        return {
            "run": self.run.run_id,
            "kind": marker.kind.value,
            "prefix": marker.prefix,
            "state": self.run.state.value,
            "planned": self.run.planned,
            "withdrawn": self.withdrawn,
            "items": marker.total_items,
            "items_done": self.items_done,
            "unit_size": marker.unit_size,
            "units": asdict(self.progress),
            "root_present": self.root_present,
            "root_digest": self.run.root_digest,
            "spec": dict(marker.spec),
        }

    def as_row(self) -> tuple[str, ...]:
        """run, state, documents, units, pending, running, done, failed, root."""
        progress = self.progress
        state = "withdrawn" if self.withdrawn else self.run.state.value
        counts = (progress.total, progress.pending, progress.running, progress.done, progress.failed)
        documents = f"{self.items_done}/{self.run.marker.total_items}"
        return (self.run.run_id, state, documents, *map(str, counts), "yes" if self.root_present else "no")


def run_status(state: StateStore, blobs: BlobStore, run_id: str) -> RunStatus:
    """How one run stands. Raises `RunUnknown`."""
    return _status(state, blobs, state.run(run_id))


def iter_status(state: StateStore, blobs: BlobStore) -> Iterator[RunStatus]:
    """How every run of the store stands, in run-id order."""
    after = ""
    while page := state.list_runs(after=after, limit=PAGE_RUNS):
        for run in page:
            yield _status(state, blobs, run)
        after = page[-1].run_id


def _status(state: StateStore, blobs: BlobStore, run: Run) -> RunStatus:
    progress = state.progress(run.run_id)
    return RunStatus(
        run,
        progress,
        _items_done(state, run, progress),
        blobs.exists(root_key(run.marker.prefix)),
        blobs.exists(withdrawn_key(run.run_id)),
    )


def _items_done(state: StateStore, run: Run, progress: Progress) -> int:
    """DONE units times their size; the last unit alone may be short."""
    last = run.marker.total_units - 1
    rows = state.units(run.run_id, {UnitState.DONE}, after=last - 1, limit=1)
    short = run.marker.unit_size - len(run.unit_range(last)) if rows else 0
    return progress.done * run.marker.unit_size - short
