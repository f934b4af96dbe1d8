"""Real `docgen work` processes, killed, frozen and asked to leave; the run comes out the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from docgen_core.blobs import open_blobs
from docgen_core.canonical import sha256_hex
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.fleet import LocalFleet
from docgen_core.runs.manifest import iter_parts, read_root
from docgen_core.runs.outcomes import DrainEnd
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.verify import verify_run
from docgen_core.state import open_state, prepare_state
from docgen_core.state.contract import UnitState

KILLS, FULL_KILLS = 5, 500
"""Workers struck over one run; every fifth is frozen past its lease, the others are killed."""
WORKERS, FULL_WORKERS = 2, 4
DOCUMENTS, FULL_DOCUMENTS, UNIT_SIZE = 48, 800, 4
SEED = 20_240_229
LEASE_SECONDS = 2
SHORT_LEASES = f"?lease_seconds={LEASE_SECONDS}&max_attempts=100000"
FROZEN_SECONDS = 2 * LEASE_SECONDS
ANYWHERE = 0.2
"""Of strikes that come at any time, and most often meet a worker that starts; the others wait for one at work."""
LONGEST_CALM_SECONDS = 5.0
LONGEST_BREATH_SECONDS = 0.3


class Site:
    """A folder with stores, and the workers a test starts there."""

    def __init__(self, folder: Path, packs: Path, settings: str = SHORT_LEASES, store: str | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.state_uri = f"{store or 'sqlite://' + str(folder / 'state.db')}{settings}"
        prepare_state(self.state_uri)
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
    return lambda name, settings=SHORT_LEASES, store=None: Site(tmp_path / name, packs_path, settings, store)


@pytest.fixture(params=["sqlite", "dynamodb", "firestore"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """A state store in a cloud, or None for a file."""
    if request.param == "sqlite":
        return None
    for name, value in request.getfixturevalue(f"{request.param}_server").environment.items():
        monkeypatch.setenv(name, value)
    return f"{request.param}://docgen-{uuid4().hex[:16]}"


@pytest.fixture(scope="module")
def documents(full_figures: bool) -> int:
    return FULL_DOCUMENTS if full_figures else DOCUMENTS


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, packs_path: Path, documents: int) -> dict[str, str]:
    """What one worker makes that nobody disturbs."""
    site = Site(tmp_path_factory.mktemp("undisturbed"), packs_path)
    site.plan(documents=documents)
    assert site.work("r1") == 0
    return site.digests()


def until(holds: Callable[[], object], poll_seconds: float = 0.02) -> None:
    """Wait for a condition; the test's own time-out is what gives up."""
    while not holds():
        threading.Event().wait(poll_seconds)


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


class Storm:
    """Strikes workers of a fleet at random moments, most often in the midst of a unit, and replaces the killed.

    In step with the run's own progress: the strikes are spread over the whole run, however fast or
    slow the machine.
    """

    def __init__(self, here: Site, fleet: LocalFleet, chance: random.Random) -> None:
        self.here, self.fleet, self.chance = here, fleet, chance
        self.killed = self.frozen = self.at_work = 0
        self.waking: dict[int, float] = {}
        """When each frozen worker may go on, on the monotonic clock."""
        self.browsers: list[psutil.Process] = []

    def rage(self, strikes: int, workers: int, units: int) -> None:
        for number in range(strikes):
            self.keep(workers)
            self.wait(units * number // strikes, units)
            awake, working = self.awake(), self.working()
            assert awake, f"all workers had left before strike {number}: {self.fleet.exit_codes}"
            victim = self.chance.choice(working or awake)
            self.at_work += victim in working
            self.strike(victim, freeze=number % 5 == 4)
        self.keep(workers)
        until(lambda: not self.wake())

    def keep(self, workers: int) -> None:
        """So many are awake."""
        self.wake()
        self.fleet.start(max(workers - self.fleet.poll() + len(self.waking), 0))

    def wait(self, done: int, units: int) -> None:
        """A random time; or else until some are at work and, unless the run is ahead, a few blobs more are there."""

        def ahead() -> bool:
            now = self.here.state.progress("r1").done
            return now > done or now >= units - WORKERS

        if self.chance.random() < ANYWHERE:
            over = time.monotonic() + self.chance.random() * LONGEST_CALM_SECONDS
            until(lambda: time.monotonic() >= over or ahead(), poll_seconds=0.05)
            return
        haste = ahead()
        wanted = self.published() + (0 if haste else self.chance.randrange(8))
        until(lambda: not self.awake() or (self.working() and self.published() >= wanted), poll_seconds=0.05)
        threading.Event().wait(self.chance.random() * LONGEST_BREATH_SECONDS / (3 if haste else 1))

    def awake(self) -> list[int]:
        return [pid for pid in self.fleet.pids if pid not in self.waking]

    def working(self) -> list[int]:
        """Those awake who hold a lease; a worker's name ends in its process id and a random text."""
        holders = {str(unit.owner).split("-")[-2] for unit in self.here.state.units("r1", {UnitState.RUNNING})}
        return [pid for pid in self.awake() if str(pid) in holders]

    def published(self) -> int:
        return sum(len(files) for _, _, files in os.walk(self.here.folder / "blobs" / "runs" / "r1"))

    def strike(self, pid: int, *, freeze: bool) -> None:
        if freeze:
            os.kill(pid, signal.SIGSTOP)
            self.waking[pid] = time.monotonic() + FROZEN_SECONDS
            self.frozen += 1
        else:
            self.browsers += descendants((pid,))
            os.kill(pid, signal.SIGKILL)
            self.killed += 1
            until(lambda: pid not in self.fleet.pids)

    def wake(self) -> bool:
        """Let those go on who have been frozen long enough. True while others are frozen."""
        now = time.monotonic()
        for pid in [pid for pid, at in self.waking.items() if at <= now]:
            os.kill(pid, signal.SIGCONT)
            del self.waking[pid]
        return bool(self.waking)


@pytest.mark.timeout(7_200)
def test_workers_killed_and_frozen_at_random_moments_lose_nothing(
    site: Callable[..., Site], undisturbed: dict[str, str], documents: int, full_figures: bool, say: Any
) -> None:
    strikes, workers = (FULL_KILLS, FULL_WORKERS) if full_figures else (KILLS, WORKERS)
    here, units = site("storm"), documents // UNIT_SIZE
    here.plan(documents=documents)
    with here.fleet("r1") as fleet:
        storm = Storm(here, fleet, random.Random(SEED))
        storm.rage(strikes, workers, units)
        codes = fleet.wait()
    assert sorted(codes)[storm.killed :] == [0] * (len(codes) - storm.killed), "nobody else gave up"
    assert (storm.killed, storm.frozen) == (strikes - strikes // 5, strikes // 5)
    found = verify_run("r1", blobs=here.blobs, state=here.state, deep=True)
    assert found.ok, found.findings
    assert here.digests() == undisturbed
    assert each_document_once(here, "r1")
    progress, attempts = here.state.progress("r1"), sum(unit.attempts for unit in here.state.units("r1"))
    assert (progress.done, progress.failed) == (units, 0)
    struck = f"{storm.killed} killed and {storm.frozen} frozen, {storm.at_work} of them with a lease in hand"
    say(f"{struck}; {len(codes)} workers, {attempts} attempts at {units} units")
    until(lambda: not any(browser.is_running() and browser.status() != "zombie" for browser in storm.browsers))


def test_a_worker_that_slept_past_its_lease_changes_nothing(
    site: Callable[..., Site], undisturbed: dict[str, str], documents: int
) -> None:
    here = site("asleep")
    here.plan(documents=documents)
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


@pytest.mark.parametrize(
    ("store", "how"),
    [
        ("sqlite", "SIGTERM"),
        ("sqlite", "SIGINT"),
        ("sqlite", "stdin"),
        ("dynamodb", "SIGTERM"),
        ("firestore", "SIGTERM"),
    ],
    indirect=["store"],
)
def test_a_worker_that_is_asked_to_leave_hands_its_leases_back_at_once(
    site: Callable[..., Site], store: str | None, how: str, say: Any
) -> None:
    here = site("asked", "?lease_seconds=600", store)
    here.plan(documents=2_000)
    process = subprocess.Popen(here.command("r1"), env=here.env, stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    until(lambda: here.state.units("r1", {UnitState.DONE}) and here.state.units("r1", {UnitState.RUNNING}))
    browsers, asked_at = descendants((process.pid,)), time.monotonic()
    if how == "stdin":
        process.stdin.close()
    else:
        process.send_signal(signal.Signals[how])
    assert process.wait() == {"SIGTERM": 143, "SIGINT": 130, "stdin": 143}[how]
    process.stdin.close()
    say(f"{here.state_uri.partition(':')[0]}, {how}: gone {time.monotonic() - asked_at:.1f} s after it was asked")
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
