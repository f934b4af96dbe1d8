"""Real `docgen work` processes, killed, frozen and asked to leave; the run comes out the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from docgen_core.blobs import open_blobs
from docgen_core.canonical import sha256_hex
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import DrainEnd, work_run
from docgen_core.runs.fleet import LocalFleet
from docgen_core.runs.manifest import iter_parts, read_root
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.verify import verify_run
from docgen_core.state import open_state
from docgen_core.state.contract import UnitState

KILLS, FULL_KILLS = 5, 50
KILLS_A_RUN = 5
"""Rounds of kills that one run has to live through."""
DOCUMENTS, UNIT_SIZE = 24, 2
SEED = 20_240_229
SHORT_LEASES = "?lease_seconds=2&max_attempts=1000"


class Site:
    """A folder with stores, and the workers a test starts there."""

    def __init__(self, folder: Path, packs: Path, settings: str = SHORT_LEASES) -> None:
        folder.mkdir(exist_ok=True)
        self.state_uri = f"sqlite://{folder / 'state.db'}{settings}"
        self.state = open_state(self.state_uri)
        self.blobs = open_blobs(str(folder / "blobs"))
        self.env = {**os.environ, "PYTHONPATH": str(packs), "DELIVERY_NOTE_GATE": str(folder / "gate")}
        self.gate = folder / "gate"

    def command(self, run: str) -> list[str]:
        places = ["--state", self.state_uri, "--blobs", self.blobs.uri]
        return [sys.executable, "-m", "docgen_core.cli", "work", run, "--until-stdin-closes", *places]

    def fleet(self, run: str) -> LocalFleet:
        return LocalFleet(self.command(run), env=self.env)

    def work(self, run: str) -> int:
        """One worker's exit code."""
        with self.fleet(run) as fleet:
            fleet.start(1)
            (code,) = fleet.wait()
        return code

    def plan_catalogue(self, pack: str) -> None:
        spec = CatalogueSpec(pack=f"delivery_note_pack:{pack}", companies=8, products=2, range_width=1)
        build_catalogue_run(self.state, self.blobs, "v1", spec)

    def plan(self, run: str = "r1", documents: int = DOCUMENTS) -> None:
        """A sealed catalogue, and a run of documents over it, half of them scans."""
        self.plan_catalogue("PACK")
        work_run("catalogue-v1", state=self.state, blobs=self.blobs, worker="here")
        selection = Selection(conditions={"clean": 1, "light_scan": 1})
        request = RunRequest(run, documents, 7, selection, "v1", unit_size=UNIT_SIZE, pack="delivery_note_pack:PACK")
        create_run(self.state, self.blobs, request)

    def digests(self, run: str = "r1") -> dict[str, str]:
        return {info.key: sha256_hex(self.blobs.get(info.key)) for info in self.blobs.iter_keys(f"runs/{run}/")}

    def row(self, run: str, index: int) -> object:
        return self.state.units(run, after=index - 1, limit=1)[0]


@pytest.fixture
def site(tmp_path: Path, packs_path: Path) -> Callable[..., Site]:
    return lambda name, settings=SHORT_LEASES: Site(tmp_path / name, packs_path, settings)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, packs_path: Path) -> dict[str, str]:
    """What one worker makes that nobody disturbs."""
    site = Site(tmp_path_factory.mktemp("undisturbed"), packs_path)
    site.plan()
    assert site.work("r1") == 0
    return site.digests()


def until(holds: Callable[[], object]) -> None:
    """Wait for a condition; the test's own time-out is what gives up."""
    while not holds():
        threading.Event().wait(0.02)


def descendants(pids: tuple[int, ...]) -> list[psutil.Process]:
    found = []
    for pid in pids:
        try:
            found += psutil.Process(pid).children(recursive=True)
        except psutil.NoSuchProcess:
            continue
    return found


def each_document_once(site: Site, run: str) -> bool:
    root = read_root(site.blobs, f"runs/{run}")
    files = [e.key for part in iter_parts(site.blobs, root) for e in part.blobs if e.key.endswith(".pdf")]
    names = [key.rpartition("/")[2] for key in files]
    return len(names) == len(set(names)) == root.total_items == root.rows["documents"]


def rounds(kills: int) -> Iterator[tuple[int, int]]:
    for number in range(-(-kills // KILLS_A_RUN)):
        yield number, min(KILLS_A_RUN, kills - number * KILLS_A_RUN)


@pytest.mark.timeout(3_600)
def test_workers_killed_at_random_moments_lose_nothing(
    site: Callable[..., Site], undisturbed: dict[str, str], full_figures: bool
) -> None:
    chance = random.Random(SEED)
    for number, kills in rounds(FULL_KILLS if full_figures else KILLS):
        here = site(f"killed-{number}")
        here.plan()
        for _ in range(kills):
            kill_all_at_a_random_moment(here, chance)
        assert here.work("r1") == 0
        found = verify_run("r1", blobs=here.blobs, state=here.state, deep=True)
        assert found.ok, found.findings
        assert here.digests() == undisturbed
        assert each_document_once(here, "r1")


def kill_all_at_a_random_moment(here: Site, chance: random.Random) -> None:
    """Two workers more; -9 for both at a moment anywhere between their start and the end of their work."""
    with here.fleet("r1") as fleet:
        written = len(list(here.blobs.iter_keys("runs/r1/")))
        wanted = written + chance.randrange(12)
        fleet.start(2)
        until(lambda: fleet.poll() == 0 or len(list(here.blobs.iter_keys("runs/r1/"))) >= wanted)
        threading.Event().wait(chance.random() * 0.2)
        browsers = descendants(fleet.pids)
        for pid in fleet.pids:
            os.kill(pid, signal.SIGKILL)
        fleet.wait()
    until(lambda: not any(browser.is_running() and browser.status() != "zombie" for browser in browsers))


def test_a_worker_that_slept_past_its_lease_changes_nothing(
    site: Callable[..., Site], undisturbed: dict[str, str]
) -> None:
    here = site("asleep")
    here.plan()
    with here.fleet("r1") as sleeper, here.fleet("r1") as others:
        sleeper.start(1)
        until(lambda: here.state.units("r1", {UnitState.RUNNING}))
        (pid,) = sleeper.pids
        os.kill(pid, signal.SIGSTOP)
        held = {unit.index: unit.generation for unit in here.state.units("r1", {UnitState.RUNNING})}
        others.start(1)
        assert others.wait() == (0,)
        before = here.digests()
        generations = {unit.index: unit.generation for unit in here.state.units("r1")}
        assert all(generations[index] == generation + 1 for index, generation in held.items()), "taken over"
        os.kill(pid, signal.SIGCONT)
        assert sleeper.wait() == (0,), "the late owner sees that it lost, and that all is done"
    assert here.digests() == before == undisturbed
    assert {unit.index: unit.generation for unit in here.state.units("r1")} == generations
    assert verify_run("r1", blobs=here.blobs, state=here.state, deep=True).ok


def test_a_unit_that_kills_its_process_fails_after_its_attempts_and_the_others_are_done(
    site: Callable[..., Site],
) -> None:
    here = site("poison", "?lease_seconds=0.5&max_attempts=3")
    here.plan_catalogue("POISONOUS")
    deaths = 0
    while (code := here.work("catalogue-v1")) == -signal.SIGKILL:
        deaths += 1
    assert code == 3 and deaths == 3
    (failed,) = here.state.units("catalogue-v1", {UnitState.FAILED})
    assert failed.index == 5 and failed.attempts == 3 and "attempts used up" in str(failed.error)
    assert here.state.progress("catalogue-v1").done == 7
    assert not here.blobs.exists("catalogue/v1/manifest.json")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "stdin"])
def test_a_worker_that_is_asked_to_leave_hands_its_leases_back_at_once(site: Callable[..., Site], how: str) -> None:
    here = site("asked", "?lease_seconds=600")
    here.plan(documents=2_000)
    process = subprocess.Popen(here.command("r1"), env=here.env, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    until(lambda: here.state.units("r1", {UnitState.DONE}) and here.state.units("r1", {UnitState.RUNNING}))
    browsers = descendants((process.pid,))
    if how == "stdin":
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[how])
    assert process.wait() == {"SIGTERM": 143, "SIGINT": 130, "stdin": 143}[how]
    process.stdin.close()
    progress = here.state.progress("r1")
    assert progress.running == 0 and progress.failed == 0, "with leases of ten minutes, nothing expired"
    assert all(unit.attempts == 0 for unit in here.state.units("r1", {UnitState.PENDING}))
    assert browsers and not any(browser.is_running() and browser.status() != "zombie" for browser in browsers)


def test_a_cancelled_run_leaves_no_worker_and_no_lease(site: Callable[..., Site]) -> None:
    here = site("cancelled")
    here.plan(documents=2_000)
    with here.fleet("r1") as fleet:
        fleet.start(2)
        until(lambda: len(here.state.units("r1", {UnitState.DONE})) > 2)
        here.state.cancel("r1")
        assert fleet.wait() == (4, 4)
    assert here.state.progress("r1").running == 0
    outcome = work_run("r1", state=here.state, blobs=here.blobs, worker="late")
    assert outcome.kind is DrainEnd.CANCELLED
