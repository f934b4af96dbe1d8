"""Whole runs: what each stage costs, documents a second with one and two workers, memory over a long life.

Stages are measured in this process: milliseconds of its own CPU, and of the browser's beside them.
Throughput is that of real `docgen work` processes on files and SQLite, from the first quarter of a run
to its end, so that starting them and the faces that each browser loads once are not in it. Memory is
this process's and the browser's own, the most of the last documents before each mark, while everything
a worker does to a document is done.

    python bench/end_to_end.py [--documents N] [--rounds N] [--early N --late N] [--check]

--check exits with 1 for a promise not kept; that of two workers needs two free cores, that of memory
--early 500 --late 2000.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

# ruff: noqa: E402  the path comes first
sys.path[:0] = [str(Path(__file__).parent)]

from render import cpu_seconds

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.golden import CORE_TABLES
from docgen_core.render.capture import CONDITIONS, capture
from docgen_core.render.chromium import Renderer
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.fleet import LocalFleet
from docgen_core.runs.manifest import Plan, blob_entry, read_plan
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.shards import box_rows, documents_row, encode_shard, page_rows
from docgen_core.runs.source import DocumentSource
from docgen_core.state import open_state
from docgen_core.state.contract import StateStore

PROMISED_SPEED_UP = 1.7
PROMISED_GROWTH = 0.05
COMPANIES = 60
UNIT_SIZE = 5
WARM_UP_PARTS = 4
"""One part of so many of a run is made before its pace is taken."""
MIXED = {"clean": 3, **{name: 1 for name in CONDITIONS if name != "clean"}}
LAST = 25
"""Documents before a mark whose most memory counts: the browser is replaced now and then."""
POLL_SECONDS = 0.05


@dataclass
class Desk:
    """Stores in a folder of their own."""

    folder: Path
    state: StateStore
    blobs: BlobStore

    def planned(self, run_id: str, documents: int, conditions: dict[str, int]) -> Plan:
        """A run over the one catalogue."""
        selection = Selection(conditions=conditions)
        request = RunRequest(
            run_id, documents, seed=1, selection=selection, catalogue="bench", unit_size=min(UNIT_SIZE, documents)
        )
        return read_plan(self.blobs, create_run(self.state, self.blobs, request).run.marker.prefix)


@contextmanager
def desk() -> Iterator[Desk]:
    """With a catalogue that is built."""
    with tempfile.TemporaryDirectory(prefix="docgen-bench-") as name:
        folder = Path(name)
        blobs = open_blobs(str(folder / "blobs"))
        with open_state(str(folder / "state.db")) as state:
            spec = CatalogueSpec(companies=COMPANIES, products=24, range_width=COMPANIES, seed=0)
            catalogue = build_catalogue_run(state, blobs, "bench", spec)
            work_run(catalogue.run.run_id, state=state, blobs=blobs, worker="bench")
            yield Desk(folder, state, blobs)


@dataclass
class Line:
    """Makes documents one after the other as a worker does, and knows what each stage cost."""

    plan: Plan
    blobs: BlobStore
    renderer: Renderer
    spent: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.source = DocumentSource.open(self.plan, self.blobs)

    def make(self, index: int) -> None:
        """One document: record, print, capture, publish, golden rows."""
        with self._stage("record and page"):
            document = self.source.generate(index)
        with self._stage("print, gates, boxes"):
            rendered = self.renderer.render(document.page, document_id=document.document_id, subject="bench")
        draws = self.source.view.draws(index).under("capture")
        condition = document.record.condition
        with self._stage(f"capture: {condition}"):
            captured = capture(rendered, condition, draws, document_id=document.document_id)
        with self._stage("publish and golden rows"):
            keys = [f"bench/{document.document_id}{file.ending}" for file in captured.files]
            for key, file in zip(keys, captured.files, strict=True):
                self.blobs.put(key, file.data)
            entries = [blob_entry(key, file.data) for key, file in zip(keys, captured.files, strict=True)]
            about = (self.plan.run_id, "bench", document.record, captured)
            rows = {
                "documents": [documents_row(*about, entries)],
                "pages": page_rows(*about, entries),
                "field_boxes": box_rows(*about),
            }
            for table, found in rows.items():
                encode_shard(table, CORE_TABLES[table], found)
            for table, found in document.rows.items():
                encode_shard(table, self.source.pack.tables[table], found)

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        before = time.process_time()
        yield
        self.spent[name] += time.process_time() - before
        self.spent[f"{name} #"] += 1


def show_stages(at: Desk, documents: int) -> None:
    """What the stages of a mixed run cost."""
    with Renderer() as renderer:
        line = Line(at.planned("stages", documents, MIXED), at.blobs, renderer)
        line.make(0)
        line.spent.clear()
        before = cpu_seconds()
        for index in range(documents):
            line.make(index)
        spent = cpu_seconds() - before
    print(f"Stages of {documents} documents of all conditions, CPU ms each (one document a shard: dearer than a run's)")
    for name in sorted(name for name in line.spent if not name.endswith("#")):
        count = line.spent[f"{name} #"]
        print(f"  {name:28} {line.spent[name] / count * 1000:8.1f}  x {count:.0f}")
    print(
        f"  {'browser and its driver':28} {(spent['browser'] + spent['driver']) / documents * 1000:8.1f}\n", flush=True
    )


def pace(documents: int, workers: int, conditions: dict[str, int]) -> float:
    """Documents a second, made by so many real workers.

    On a desk of their own: a run begins with what another run of the same documents has made.
    """
    with desk() as at:
        plan = at.planned("speed", documents, conditions)
        places = ["--state", str(at.folder / "state.db"), "--blobs", str(at.folder / "blobs")]
        work = [sys.executable, "-m", "docgen_core.cli", "work", "speed", *places]
        with LocalFleet(["sh", "-c", 'exec "$@" >/dev/null', "sh", *work]) as fleet:
            fleet.start(workers)
            return _paced(at, plan, fleet)


def _paced(at: Desk, plan: Plan, fleet: LocalFleet) -> float:
    """From the first quarter on."""
    started, first = None, 0
    while True:
        done = at.state.progress(plan.run_id).done
        if started is None and done * WARM_UP_PARTS >= plan.total_units:
            started, first = time.monotonic(), done
        if done == plan.total_units:
            assert started is not None
            seconds = time.monotonic() - started
            fleet.wait()
            return (plan.total_units - first) * plan.unit_size / seconds
        if not fleet.poll():
            raise SystemExit(f"the workers left with {fleet.exit_codes}, {done} units done")
        time.sleep(POLL_SECONDS)


def show_throughput(documents: int, rounds: int) -> float:
    """Documents a second, the best of each in turn; the least speed-up of a second worker."""
    print(
        f"Documents a second, {documents} documents, best of {rounds}, "
        f"{psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f}"
    )
    least = float("inf")
    for name, conditions in {"clean": {"clean": 1}, "all conditions": MIXED}.items():
        paces = [[pace(documents, workers, conditions) for workers in (1, 2)] for _ in range(rounds)]
        one, two = map(max, zip(*paces, strict=True))
        least = min(least, two / one)
        print(f"  {name:16} one worker {one:6.2f}  two {two:6.2f}  ratio {two / one:.2f}", flush=True)
    return least


def show_memory(at: Desk, early: int, late: int) -> float:
    """Growth of memory between two marks of one worker's life."""
    most: dict[int, int] = {early: 0, late: 0}
    with Renderer() as renderer:
        line = Line(at.planned("memory", late, MIXED), at.blobs, renderer)
        own = psutil.Process()
        for index in range(late):
            line.make(index)
            mark = early if index < early else late
            if index >= mark - LAST:
                gc.collect()
                most[mark] = max(most[mark], own.memory_info().rss + (renderer.private_bytes() or 0))
    growth = most[late] / most[early] - 1
    print(
        f"Memory, worker and browser: {most[early] / 1e6:.0f} MB before document {early}, "
        f"{most[late] / 1e6:.0f} MB before document {late}: {growth:+.1%}\n"
    )
    return growth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=360, help="of each run whose speed is measured")
    parser.add_argument("--rounds", type=int, default=3, help="of each, one and two workers in turn")
    parser.add_argument("--early", type=int, default=60, help="first mark of memory, in documents")
    parser.add_argument("--late", type=int, default=120, help="second mark")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with desk() as at:
        show_stages(at, min(options.documents, 60))
        growth = show_memory(at, options.early, options.late)
    speed_up = show_throughput(options.documents, options.rounds)
    failed = []
    if speed_up < PROMISED_SPEED_UP:
        failed.append(f"two workers are {speed_up:.2f} times one, promised {PROMISED_SPEED_UP:g}")
    if growth >= PROMISED_GROWTH:
        failed.append(f"memory grows by {growth:.1%}, promised below {PROMISED_GROWTH:.0%}")
    if options.check and failed:
        print(f"FAILED: {'; '.join(failed)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
