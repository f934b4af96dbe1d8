"""For every k: something goes wrong at the k-th write of a clean run; one new worker under the same name mends it.

Writes are those to the state store and to the blobs alike. The stores are the in-memory ones under
each profile, and a real SQLite file with a real folder of blobs; time is virtual in both.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from sim_faults import Fault, Faults
from sim_purse import GRANT, WORST_CASE
from sim_schedule import LEASE_SECONDS, Schedule, Shape
from sim_stores import PROFILES
from sim_world import Process

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.primitives import Primitives
from docgen_core.state.sqlite import SqlitePrimitives

AT_A_WRITE = (
    Fault.DEATH_BEFORE,
    Fault.DEATH_AFTER,
    Fault.REFUSED,
    Fault.ANSWER_LOST,
    Fault.LATE_DELIVERY,
    Fault.DELIVERED_TWICE,
    Fault.FROZEN,
)
UNITS = 3
WRITES_A_UNIT = {True: 5, False: 4}
"""At least: the claim, the blobs, the part, the done; by whether it is reproducible."""
WORKER = "worker"

Stores = Callable[[int], tuple[Primitives | None, BlobStore | None]]


class FaultAtWrite(Faults):
    """One fault, at the write of this number."""

    def __init__(self, schedule: Schedule, fault: Fault, number: int) -> None:
        super().__init__(schedule.rng, 1, 1.0, LEASE_SECONDS)
        self._fault, self._until = fault, number

    def draw(self, what: str, *, write: bool, may_lag: bool) -> Fault | None:
        self._until -= write
        if self._until >= 0 or not self.left:
            return None
        self.left = 0
        self.happened[self._fault] += 1
        return self._fault


class Mended(Schedule):
    """A worker that plans and works; when it has ended badly, one more of its name, and no other."""

    lives = 0

    def live(self, process: Process) -> str:
        self.lives += 1
        if self.tables.read_run(self.shape.run_id) is None:
            self.plan(process)
        return self.work(process)

    def after(self, kind: str, end: str) -> None:
        if end != "COMPLETED" and self.lives < 2:
            self.start(kind, self.live, after=1.0, name=WORKER)


def mended(
    profile: str, fault: Fault, *, reproducible: bool, stores: Stores, units: int = UNITS, cap: int = 0
) -> list[Mended]:
    """A schedule for each write, up to the number of writes that a clean run has."""
    shape = Shape(reproducible, units, 1, 2, 1000, 1, 5, 0.1, 0.01, 1, 1.0, 0.0, 0.0, cap=cap)
    schedules = []
    for number in itertools.count():
        tables, blobs = stores(number)
        schedule = Mended(PROFILES[profile], 0, shape, tables=tables, blobs=blobs)
        schedule.faults = FaultAtWrite(schedule, fault, number)

        def set_out(schedule: Mended = schedule) -> None:
            schedule.start(WORKER, schedule.live, after=0.0, name=WORKER)

        result = schedule.run(set_out)
        assert (result.end, result.problems) == ("COMPLETED", ()), f"write {number}:\n" + "\n".join(result.trace)
        if tables is not None:
            tables.close()
        if not result.faults:
            return schedules
        schedules.append(schedule)
    raise AssertionError("unreachable")


def in_memory(_: int) -> tuple[Primitives | None, BlobStore | None]:
    return None, None


@pytest.mark.parametrize("reproducible", [True, False], ids=["documents", "texts"])
@pytest.mark.parametrize("fault", AT_A_WRITE, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("profile", PROFILES)
def test_whatever_happens_at_a_write_the_run_is_the_clean_one(profile: str, fault: Fault, reproducible: bool) -> None:
    schedules = mended(profile, fault, reproducible=reproducible, stores=in_memory)
    assert len(schedules) >= UNITS * WRITES_A_UNIT[reproducible] + 6, "marker, plan, planned; two seals, root, …"
    died = fault in (Fault.DEATH_BEFORE, Fault.DEATH_AFTER)
    assert all(schedule.lives == 2 for schedule in schedules) or not died


@pytest.mark.parametrize("fault", AT_A_WRITE, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("profile", PROFILES)
def test_and_what_was_billed_is_within_the_budget(profile: str, fault: Fault) -> None:
    schedules = mended(profile, fault, reproducible=False, stores=in_memory, cap=3 * GRANT)
    assert all(schedule.bill.billed.total() <= 3 * GRANT for schedule in schedules)
    assert any(schedule.bill.billed.total() > 2 * WORST_CASE for schedule in schedules)


@pytest.mark.parametrize("fault", [Fault.DEATH_AFTER, Fault.ANSWER_LOST], ids=lambda fault: fault.name.lower())
def test_so_it_is_on_a_sqlite_file_and_a_folder(fault: Fault, tmp_path: Path) -> None:
    def on_disk(number: int) -> tuple[Primitives, BlobStore]:
        place = tmp_path / str(number)
        place.mkdir()
        return SqlitePrimitives(place / "state.db"), FileBlobStore(place / "blobs")

    schedules = mended("sqlite", fault, reproducible=True, stores=on_disk, units=1)
    assert len(schedules) >= WRITES_A_UNIT[True] + 6


def test_a_write_is_a_write_of_either_store() -> None:
    (first, *_, last) = mended("dynamodb", Fault.DEATH_AFTER, reproducible=True, stores=in_memory)
    assert isinstance(first.tables, MemoryPrimitives)
    struck = [what for schedule in (first, last) for _, _, what, fault in schedule.trace if fault]
    assert struck[0] == "insert_run" and struck[1].endswith("FINALIZING→COMPLETED")
