"""Claims on SQLite: in batches against one commit a claim; at 100,000 units, fresh and nearly done, against 1,000.

The baseline is the simplest documented queue on a table of jobs: `BEGIN IMMEDIATE`, select the first
pending row, update it, `COMMIT`; with an index for the select, WAL, and the same `synchronous`. Each
side works on files of its own, all sides take turns, and the best turn of each counts: whatever else the
machine does can only make a turn slower. Batching is judged by claims a second. Size is judged by CPU time a
claim: the sides compared make the same number of commits, and how long the disk takes over one is noise.

Run: `python bench/claims.py [--check]`; with `--check` a missed goal exits with 1.
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from docgen_core.state import open_state, transitions
from docgen_core.state.contract import SEGMENT_UNITS, Part, RunKind, RunMarker
from docgen_core.state.primitives import Change
from docgen_core.state.store import SegmentStore

RUN = "bench"
SMALL, LARGE = 1_000, 100_000
BATCH = 100
CLAIMS = 1_000
TURNS = 7
DONE = 90_000
"""Units already done in the run that is nearly over."""
BATCH_GOAL = 10.0
"""Batched claims a second over single-claim commits a second, at least."""
SIZE_GOAL = 1.1
"""CPU time a claim at 100,000 units over that at 1,000, at most: no slower, but for noise."""

_files = itertools.count()


class Figure(NamedTuple):
    per_second: float
    cpu_microseconds: float
    """A claim."""

    @classmethod
    def of(cls, claim: Callable[[], int]) -> Figure:
        """Time a number of claims that `claim` makes and returns."""
        begin, cpu = time.perf_counter(), time.process_time()
        count = claim()
        return cls(count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1e6)

    def better(self, other: Figure) -> Figure:
        return Figure(max(self.per_second, other.per_second), min(self.cpu_microseconds, other.cpu_microseconds))


def single_commits(folder: Path, units: int) -> Figure:
    """Claims, each in a transaction of its own."""
    db = sqlite3.connect(folder / f"baseline-{next(_files)}.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT NOT NULL, owner TEXT, expires_at REAL)")
    db.execute("BEGIN")
    db.executemany("INSERT INTO jobs (id, state) VALUES (?, 'PENDING')", ((index,) for index in range(units)))
    db.execute("CREATE INDEX jobs_by_state ON jobs (state, id)")
    db.execute("COMMIT")

    def claim() -> int:
        for _ in range(CLAIMS // 10):
            db.execute("BEGIN IMMEDIATE")
            (index,) = db.execute("SELECT id FROM jobs WHERE state = 'PENDING' ORDER BY id LIMIT 1").fetchone()
            db.execute(
                "UPDATE jobs SET state = 'RUNNING', owner = 'worker', expires_at = ? WHERE id = ?",
                (time.time() + 60, index),
            )
            db.execute("COMMIT")
        return CLAIMS // 10

    figure = Figure.of(claim)
    db.close()
    return figure


def planned(folder: Path, units: int) -> SegmentStore:
    """A store with a planned run and nothing claimed."""
    store = open_state(folder / f"state-{next(_files)}.db")
    assert isinstance(store, SegmentStore)
    store.create_run(RunMarker(RUN, RunKind.DOCUMENTS, "runs/bench", {}, "digest", units, 1, units))
    store.mark_planned(RUN, "digest")
    return store


def nearly_done(folder: Path) -> SegmentStore:
    """A store whose large run has `DONE` units done; written in bulk, by the rules of the store."""
    store = planned(folder, LARGE)
    part = Part("runs/bench/manifest/unit.json", "0" * 64, 100)
    for segment in range(DONE // SEGMENT_UNITS):
        scope = range(segment * SEGMENT_UNITS, (segment + 1) * SEGMENT_UNITS)
        leases = store.claim_next_unit(RUN, "earlier", limit=SEGMENT_UNITS, within=scope).leases
        rows = store.primitives.read_segment(RUN, segment).unended
        store.primitives.write_units(
            [Change(rows[lease.index], transitions.completed(rows[lease.index], lease, part)) for lease in leases]
        )
    return store


def batched(store: SegmentStore, limit: int, claims: int) -> Figure:
    """Claims by a worker that is new to the run."""
    worker = f"worker-{next(_files)}"

    def claim() -> int:
        claimed = 0
        while claimed < claims:
            claimed += len(store.claim_next_unit(RUN, worker, limit=min(limit, claims - claimed)).leases)
        return claimed

    return Figure.of(claim)


def fresh(folder: Path, units: int, limit: int, claims: int) -> Figure:
    """Claims in a run where nothing has been claimed yet."""
    with planned(folder, units) as store:
        return batched(store, limit, claims)


def measure(sides: dict[str, Callable[[], Figure]]) -> dict[str, Figure]:
    """The best turn of each side."""
    best = {name: side() for name, side in sides.items()}
    for _ in range(TURNS - 1):
        for name, side in sides.items():
            best[name] = best[name].better(side())
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        with nearly_done(folder) as late:
            figures = measure(
                {
                    "baseline, one commit a claim, 1,000 units": lambda: single_commits(folder, SMALL),
                    "store, 1 a claim, 1,000 units": lambda: fresh(folder, SMALL, 1, CLAIMS // 10),
                    f"store, {BATCH} a claim, 1,000 units": lambda: fresh(folder, SMALL, BATCH, CLAIMS),
                    f"store, {BATCH} a claim, 100,000 units": lambda: fresh(folder, LARGE, BATCH, CLAIMS),
                    f"store, {BATCH} a claim, 100,000 units, 90,000 done": lambda: batched(late, BATCH, CLAIMS),
                }
            )
    baseline, _, small, large, late_figure = figures.values()
    cost = small.cpu_microseconds
    goals = [
        ("batched claims over single commits", small.per_second / baseline.per_second, BATCH_GOAL, True),
        ("CPU a claim, 100,000 units over 1,000", large.cpu_microseconds / cost, SIZE_GOAL, False),
        ("CPU a claim, 90,000 of 100,000 done over 1,000", late_figure.cpu_microseconds / cost, SIZE_GOAL, False),
    ]
    met = [ratio >= goal if more_is_better else ratio <= goal for _, ratio, goal, more_is_better in goals]
    table = Table(
        "measured", "claims/s", "CPU µs/claim", title=f"Claims on SQLite, synchronous=FULL, best of {TURNS} turns"
    )
    for title, figure in figures.items():
        table.add_row(title, f"{figure.per_second:,.0f}", f"{figure.cpu_microseconds:.1f}")
    verdicts = Table("ratio", "measured", "goal", "")
    for (title, ratio, goal, more_is_better), reached in zip(goals, met, strict=True):
        verdicts.add_row(
            title, f"{ratio:.2f}", f"{'≥' if more_is_better else '≤'} {goal}", "met" if reached else "missed"
        )
    Console().print(table, verdicts)
    return int(check and not all(met))


if __name__ == "__main__":
    sys.exit(main())
