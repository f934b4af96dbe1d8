"""What a grant out of the fleet's budget costs on each state store, with fifty workers at once.

Each worker, with a store of its own, opens grants one after the other, settles each three times and
closes it, with nothing in between: the most that workers can get into each other's way. Requests are
calls of the store's primitives; a commit that lost a race is made again and counted again. A grant
serves as many calls of a model as its worker likes: from as many on as there are requests to a
grant, the budget costs less than one request a call.

The servers are those of the tests (tests/servers). Run: `python bench/budget.py [STORE …] [--check]`.
With `--check` a missed goal exits with 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

# ruff: noqa: E402  the paths come first
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests" / "servers")]

from cost import primitives_of, served
from state_servers import dynamodb_running, firestore_running

from docgen_core.state.budget import NANO, ModelUsage, Settlement
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.primitives import Change, Posting, Primitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

STORES = ("memory", "sqlite", "dynamodb", "firestore")
WORKERS, GRANTS, SETTLEMENTS = 50, 4, 3
AMOUNT = NANO // 1_000
REQUESTS_GOAL = 20.0
"""A grant: of twenty calls then, each costs the store less than one request."""


class Counted:
    """Primitives that count requests and rows, and pass everything on."""

    def __init__(self, inner: Primitives, counts: Counter[str]) -> None:
        self._inner, self._counts, self._lock = inner, counts, threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _count(self, **counts: int) -> None:
        with self._lock:
            self._counts.update(counts)

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> Any:
        self._count(requests=1, rows_read=len(keys))
        return self._inner.read_entries(run_id, keys)

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> Any:
        found = self._inner.list_entries(run_id, kind, after, limit)
        self._count(requests=1, rows_read=max(len(found), 1))
        return found

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        done = self._inner.commit(postings, unit)
        self._count(requests=1, commits=1, rows_written=len(postings) if done else 0, lost=not done)
        return done


def measure(inner: Primitives) -> tuple[Counter[str], float]:
    """Counts of all grants together, and the seconds they took."""
    counts: Counter[str] = Counter()
    run_id = f"bench-{uuid4().hex[:8]}"
    lock = threading.Lock()

    def store() -> tuple[SegmentStore, Counter[str]]:
        own: Counter[str] = Counter()
        return SegmentStore(Counted(inner, own), Settings(), uri="bench"), own  # type: ignore[arg-type]

    planner, _ = store()
    planner.create_run(RunMarker(run_id, RunKind.CATALOGUE, "runs/bench", {}, "0" * 64, 1, 1, 1))
    planner.set_budget(run_id, 2 * WORKERS * AMOUNT)

    def work(worker: int) -> None:
        here, own = store()
        here.run(run_id)
        for number in range(GRANTS):
            name = f"{worker}-{number}"
            assert here.open_grant(run_id, f"worker-{worker}", AMOUNT, name) is not None
            for turn in range(1, SETTLEMENTS + 1):
                usage = {"model": ModelUsage(turn, 300 * turn, 100 * turn, AMOUNT // 10 * turn)}
                here.settle_grant(run_id, Settlement(name, turn, usage))
            here.close_grant(run_id, name)
        with lock:
            counts.update(own)

    started = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(WORKERS)))
    figures = planner.spend(run_id).budget
    assert figures is not None and figures.committed == WORKERS * GRANTS * SETTLEMENTS * (AMOUNT // 10)
    assert (figures.overshoot, figures.reserved) == (0, 0)
    return counts, time.perf_counter() - started


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"of {', '.join(STORES)}; all without any")
    options = parser.parse_args()
    table = Table("store", "requests a grant", "rows read", "rows written", "lost commits", "grants a second")
    table.title = f"{WORKERS} workers, {SETTLEMENTS} settlements a grant"
    met = True
    with tempfile.TemporaryDirectory() as name:
        places = {
            "memory": (None, f"memory://{uuid4()}"),
            "sqlite": (None, f"sqlite://{name}/state.db"),
            "dynamodb": (dynamodb_running, "dynamodb://bench-budget?region=eu-west-1"),
            "firestore": (firestore_running, "firestore://bench-budget"),
        }
        for store in options.stores or STORES:
            server, uri = places[store]
            if server is None:
                counts, seconds = measure(primitives_of(uri))
            else:
                with served(server, Path(name)):
                    counts, seconds = measure(primitives_of(uri))
            grants = WORKERS * GRANTS
            each = [f"{counts[what] / grants:.1f}" for what in ("requests", "rows_read", "rows_written")]
            table.add_row(store, *each, f"{counts['lost'] / counts['commits']:.1%}", f"{grants / seconds:.0f}")
            met = met and counts["requests"] / grants < REQUESTS_GOAL
    Console().print(table)
    print(f"under {REQUESTS_GOAL:.0f} requests a grant: {'met' if met else 'missed'}")
    return int(options.check and not met)


if __name__ == "__main__":
    sys.exit(main())
