"""What a unit costs on each state store: reads, writes, and races lost by fifty workers at once.

Fifty threads, each with a store of its own, claim and complete every unit of a run and do nothing
in between: the most that workers can get into each other's way. Counted by the service's own rule:
on DynamoDB units of 4 KiB read strongly and 1 KiB written, refused conditional writes included; on
Firestore documents; on the others rows. On DynamoDB the count is held against the capacity that the
server itself reports. What comes with time, and not with units, is counted apart: a renewal, and the looks at the run
on which claims rest (one a worker in two seconds at most), of which a slow machine makes more.

The servers are those of the tests (tests/servers). Run: `python bench/cost.py [STORE …] [--units N …] [--check]`:
1,000 and 10,000 units without more; up to 1,000,000 are counted in memory, by the rule of each service.
With `--check` a missed goal exits with 1.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "servers")]

from state_servers import StateServer, dynamodb_running, firestore_running  # noqa: E402

from docgen_core.state import dynamodb, dynamodb_calls, firestore_calls, open_state, prepare_state  # noqa: E402
from docgen_core.state.cloud import RUN_AGE_SECONDS, new_token  # noqa: E402
from docgen_core.state.contract import Outlook, Part, Run, RunKind, RunMarker, RunState, Unit, UnitState  # noqa: E402
from docgen_core.state.primitives import Change, Entry, Posting, Primitives, Segment  # noqa: E402
from docgen_core.state.settings import Settings  # noqa: E402
from docgen_core.state.store import SegmentStore  # noqa: E402

STORES = ("memory", "sqlite", "dynamodb", "firestore")
WORKERS = 50
SIZES = [1_000, 10_000]
LARGE = 100_000
"""Units from which on the goals for reads and lost races hold."""
DIGEST = "0" * 64
READ_UNIT_BYTES, WRITE_UNIT_BYTES = 4_096, 1_024
LEASE_SECONDS = 3_600.0
"""No lease ends while the bench runs."""
UNHURRIED_SECONDS = 600.0
"""For one answer of Firestore's emulator."""

WRITES_GOAL = (2.0, 3.0)
READ_UNITS_GOAL = 0.5
"""A claim, on DynamoDB from 100,000 units."""
LOST_GOAL = 0.05
"""Of all tries to claim, by 50 workers, from 100,000 units."""
MODEL_GOAL = 0.05
"""Between what is counted here and what the server reports, at most."""


# What is billed ----------------------------------------------------------------------------


class Rule:
    """One read for each row, and for each empty answer; one write for each row that was written."""

    def read(self, rows: Sequence[Unit | Run | None]) -> float:
        return max(len(rows), 1)

    def seals(self, count: int) -> float:
        return max(count, 1)

    def write(self, row: Unit | Run, applied: bool) -> float:
        return float(applied)


class DynamoRule(Rule):
    """Bytes, in units: strong reads by the answer as a whole, writes by the row, refused ones too."""

    SEAL_BYTES = 40

    def read(self, rows: Sequence[Unit | Run | None]) -> float:
        return max(-(-sum(_item_bytes(row) for row in rows if row is not None) // READ_UNIT_BYTES), 1)

    def seals(self, count: int) -> float:
        return max(-(-count * self.SEAL_BYTES // READ_UNIT_BYTES), 1)

    def write(self, row: Unit | Run, applied: bool) -> float:
        return -(-_item_bytes(row) // WRITE_UNIT_BYTES)


def _item_bytes(row: Unit | Run) -> int:
    """The size of a row as DynamoDB counts it: names and texts in bytes, numbers by their digits."""
    item = dynamodb._unit_item(row) if isinstance(row, Unit) else dynamodb._run_item(row)
    size = len("t") + len(new_token())
    for name, value in item.items():
        ((tag, content),) = value.items()
        size += len(name) + (1 if tag == "BOOL" else len(content.strip("-.0")) // 2 + 2 if tag == "N" else len(content))
    return size


@dataclass
class Bill:
    """Of each kind of call, what it cost."""

    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    tries: int = 0
    lost: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Counting(Primitives):
    """Primitives that write a bill, to what their caller is doing at the time."""

    def __init__(self, inner: Primitives, rule: Rule, bill: Bill, run_age_seconds: float) -> None:
        self.inner, self.rule, self.bill, self.run_age_seconds = inner, rule, bill, run_age_seconds
        self.doing = threading.local()

    @contextmanager
    def as_(self, name: str) -> Iterator[None]:
        self.doing.name = name
        yield

    def _read(self, cost: float, of: str = "") -> None:
        with self.bill.lock:
            self.bill.reads[self.doing.name + of] += cost  # type: ignore[assignment]

    def _write(self, cost: float) -> None:
        with self.bill.lock:
            self.bill.writes[self.doing.name] += cost  # type: ignore[assignment]

    def insert_run(self, run: Run) -> bool:
        done = self.inner.insert_run(run)
        self._write(self.rule.write(run, done))
        return done

    def read_run(self, run_id: str) -> Run | None:
        run = self.inner.read_run(run_id)
        self._read(self.rule.read([run]), of=" look")
        return run

    def replace_run(self, before: Run, after: Run) -> bool:
        done = self.inner.replace_run(before, after)
        self._write(self.rule.write(after, done))
        return done

    def list_runs(self, states: Collection[RunState] | None, after: str, limit: int) -> list[Run]:
        return self.inner.list_runs(states, after, limit)

    def read_unit(self, run_id: str, index: int) -> Unit | None:
        unit = self.inner.read_unit(run_id, index)
        self._read(self.rule.read([unit]))
        return unit

    def read_segment(self, run_id: str, segment: int) -> Segment:
        read = self.inner.read_segment(run_id, segment)
        done = [_done_row(run_id, index) for index in read.done]
        self._read(self.rule.read([*done, *read.unended.values()]))
        return read

    def write_units(self, changes: Sequence[Change]) -> list[bool]:
        applied = self.inner.write_units(changes)
        for change, done in zip(changes, applied, strict=True):
            self._write(self.rule.write(change.after, done))
        with self.bill.lock:
            if self.doing.name == "claim":
                self.bill.tries += len(applied)
                self.bill.lost += applied.count(False)
        return applied

    def list_units(self, run_id: str, states: Collection[UnitState] | None, after: int, limit: int) -> list[Unit]:
        return self.inner.list_units(run_id, states, after, limit)

    def seal(self, run_id: str, segment: int, rows: int) -> None:
        self.inner.seal(run_id, segment, rows)
        self._write(1.0)

    def seals(self, run_id: str) -> dict[int, int]:
        seals = self.inner.seals(run_id)
        self._read(self.rule.seals(len(seals)))
        return seals

    # A run without a budget has no ledger (bench/budget.py counts one that has).

    def read_entries(self, run_id: str, keys: Sequence[tuple[str, str]]) -> list[Entry | None]:
        return self.inner.read_entries(run_id, keys)

    def list_entries(self, run_id: str, kind: str, after: str, limit: int) -> list[Entry]:
        return self.inner.list_entries(run_id, kind, after, limit)

    def commit(self, postings: Sequence[Posting], unit: Change | None = None) -> bool:
        return self.inner.commit(postings, unit)

    def close(self) -> None:
        self.inner.close()


def _part(index: int) -> Part:
    return Part(f"runs/bench/manifest/unit-{index:06d}.json", DIGEST, 100)


def _done_row(run_id: str, index: int) -> Unit:
    """A row as the bench's workers leave it."""
    part = _part(index)
    return Unit(
        run_id, index, UnitState.DONE, 1, 1, "host-12345-worker-00", 1_700_000_060.123456, 0, False, 0.0, None,
        part.key, part.sha256, part.rows, 0,
    )  # fmt: skip


# One run -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    store: str
    units: int
    bill: Bill
    renewals: Bill
    reported_reads: float | None
    """Read units that the server reported, all told."""

    @property
    def claim_reads(self) -> float:
        return self.bill.reads["claim"] / self.units

    @property
    def looks(self) -> float:
        return self.bill.reads["claim look"] / self.units

    @property
    def other_reads(self) -> float:
        return self.bill.reads.total() / self.units - self.claim_reads - self.looks

    @property
    def writes(self) -> float:
        return self.bill.writes.total() / self.units

    @property
    def lost(self) -> float:
        return self.bill.lost / max(self.bill.tries, 1)


def measure(name: str, inner: Primitives, rule: Rule, units: int, *, age: float, reported: Counter[str]) -> Figure:
    """Plan a run, let the workers drain it, finish it; then renew once more, apart."""
    run_id, bill, renewals = f"bench-{units}", Bill(), Bill()
    reported.clear()

    def store(to: Bill) -> tuple[SegmentStore, Counting]:
        counting = Counting(inner, rule, to, age)
        return SegmentStore(counting, Settings(lease_seconds=LEASE_SECONDS), uri=name), counting

    planner, counting = store(bill)
    with counting.as_("run"):
        planner.create_run(RunMarker(run_id, RunKind.DOCUMENTS, "runs/bench", {}, DIGEST, units, 1, units))
        planner.mark_planned(run_id, DIGEST)
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda number: _work(*store(bill), run_id, f"host-12345-worker-{number:02d}"), range(WORKERS)))
    with counting.as_("run"):
        planner.begin_finalize(run_id)
        planner.complete_run(run_id, DIGEST)
    total = reported["query"] + reported["get_item"] if reported else None
    other, renewing = store(renewals)
    with renewing.as_("renew"):
        other.create_run(RunMarker("renewals", RunKind.DOCUMENTS, "runs/bench", {}, DIGEST, 1, 1, 1))
        other.mark_planned("renewals", DIGEST)
        leases = other.claim_next_unit("renewals", "w").leases
        renewals.reads.clear()
        renewals.writes.clear()
        for lease in leases:
            other.renew(lease)
    return Figure(name, units, bill, renewals, total)


def _work(store: SegmentStore, counting: Counting, run_id: str, worker: str) -> None:
    while True:
        with counting.as_("claim"):
            claim = store.claim_next_unit(run_id, worker)
        if claim.outlook is Outlook.DRAINED:
            return
        if claim.outlook is Outlook.BUSY:
            threading.Event().wait(claim.retry_seconds)
        for lease in claim.leases:
            with counting.as_("complete"):
                store.complete_unit(lease, _part(lease.index))


# The stores --------------------------------------------------------------------------------


def primitives_of(uri: str) -> Primitives:
    prepare_state(uri)
    store = open_state(uri)
    assert isinstance(store, SegmentStore)
    return store.primitives


def report_capacity(reported: Counter[str]) -> None:
    """Ask DynamoDB's server for the capacity of each request, and add it up by operation."""
    events, lock = dynamodb_calls.client("eu-west-1").meta.events, threading.Lock()

    def ask(params: dict[str, Any], **_: Any) -> None:
        params["ReturnConsumedCapacity"] = "TOTAL"

    def note(name: str) -> Callable[..., None]:
        def add(parsed: dict[str, Any], **_: Any) -> None:
            with lock:
                reported[name] += parsed.get("ConsumedCapacity", {}).get("CapacityUnits", 0)

        return add

    for name, operation in {"query": "Query", "get_item": "GetItem", "put_item": "PutItem"}.items():
        events.register(f"before-parameter-build.dynamodb.{operation}", ask)
        events.register(f"after-call.dynamodb.{operation}", note(name))


def figures(stores: Collection[str], sizes: Sequence[int], folder: Path) -> Iterator[Figure]:
    nothing: Counter[str] = Counter()
    if "memory" in stores:
        for service, units in product(("dynamodb", "firestore"), sizes):
            rule = DynamoRule() if service == "dynamodb" else Rule()
            inner = primitives_of(f"memory://{uuid4()}")
            yield measure(f"{service} in memory", inner, rule, units, age=RUN_AGE_SECONDS, reported=nothing)
    if "sqlite" in stores:
        for units in sizes:
            inner = primitives_of(f"sqlite://{folder}/{units}.db")
            yield measure("sqlite", inner, Rule(), units, age=0.0, reported=nothing)
    if "dynamodb" in stores:
        with served(dynamodb_running, folder):
            reported: Counter[str] = Counter()
            report_capacity(reported)
            for units in sizes:
                inner = primitives_of(f"dynamodb://bench-{units}?region=eu-west-1")
                yield measure("dynamodb", inner, DynamoRule(), units, age=RUN_AGE_SECONDS, reported=reported)
    if "firestore" in stores:
        # What is counted does not depend on how long fifty threads of one process wait for one another.
        firestore_calls.ANSWER_SECONDS = UNHURRIED_SECONDS
        with served(firestore_running, folder):
            for units in sizes:
                inner = primitives_of(f"firestore://bench-{units}")
                yield measure("firestore", inner, Rule(), units, age=RUN_AGE_SECONDS, reported=nothing)


@contextmanager
def served(start: Callable[[Path], AbstractContextManager[StateServer]], folder: Path) -> Iterator[None]:
    """A server of the tests, known to the clients of this process."""
    place = folder / start.__name__
    place.mkdir()
    with start(place) as server:
        os.environ.update(server.environment)
        yield


def verdicts(figure: Figure) -> Iterator[tuple[str, bool]]:
    low, high = WRITES_GOAL
    yield f"{low:.0f} to {high:.0f} writes a unit", low <= figure.writes <= high
    if figure.reported_reads is not None:
        ratio = figure.bill.reads.total() / figure.reported_reads
        yield f"counted reads are the server's ({ratio:.2f})", abs(ratio - 1) <= MODEL_GOAL
    if figure.units >= LARGE:
        yield f"lost races under {LOST_GOAL:.0%}", figure.lost < LOST_GOAL
        if "dynamodb" in figure.store.lower():
            yield f"under {READ_UNITS_GOAL} read units a claim", figure.claim_reads < READ_UNITS_GOAL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"of {', '.join(STORES)}; all without any")
    parser.add_argument("--units", nargs="+", type=int, default=SIZES, metavar="N", help="sizes of the runs")
    options = parser.parse_args()
    console = Console()
    table = Table("store", "units", "reads a claim", "looks", "other reads", "writes", "lost", "renewal")
    table.title = f"Cost of a unit, {WORKERS} workers, claims one by one"
    goals = Table("store", "units", "goal", "")
    all_met = True
    with tempfile.TemporaryDirectory() as name:
        for figure in figures(options.stores or STORES, options.units, Path(name)):
            about = (figure.store, f"{figure.units:,}")
            reads = (f"{figure.claim_reads:.3f}", f"{figure.looks:.3f}", f"{figure.other_reads:.3f}")
            renewal = f"{figure.renewals.reads.total():.0f} + {figure.renewals.writes.total():.0f}"
            row = (*about, *reads, f"{figure.writes:.3f}", f"{figure.lost:.2%}", renewal)
            table.add_row(*row)
            # A large run takes long: what it gave is told at once.
            console.print(" | ".join(row), style="dim", soft_wrap=True)
            for goal, met in verdicts(figure):
                goals.add_row(*about, goal, "met" if met else "missed")
                all_met = all_met and met
    console.print(table, goals)
    return int(options.check and not all_met)


if __name__ == "__main__":
    sys.exit(main())
