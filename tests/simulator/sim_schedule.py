"""One schedule from a seed: planners, workers and operators over one profile's stores, and the verdict.

Everything that acts is production code: `create_run`, `build_catalogue_run`, `work_run` with its
lease keeper and finaliser, `SegmentStore`. What does not belong here: how time passes
(sim_world.py), what fails (sim_faults.py), which change breaks an invariant (sim_referee.py).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any
from unittest.mock import patch

from sim_faults import Fault, Faults, Line
from sim_maker import ReproducibleMaker, UnreproducibleMaker, decode_once, encode_once
from sim_purse import WORST_CASE, Bill, PayingStore, Purse
from sim_referee import Referee
from sim_stores import PROFILES, Profile, Server, SimulatedBlobs, SimulatedTables, contents_of, copy_of
from sim_world import Died, Process, VirtualEvent, World, virtual_time

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import (
    BlobMissing,
    BudgetTooLow,
    PlanConflict,
    RecordRefused,
    RunCancelled,
    RunUnknown,
    StorageFailed,
    WrongRunState,
)
from docgen_core.runs import catalogue_view, contents, drain, finalise, keeper, unit
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.manifest import Plan, iter_parts, read_blob, read_root
from docgen_core.runs.outcomes import DrainEnd
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.verify import FindingKind, verify_run
from docgen_core.state import store as store_module
from docgen_core.state.budget import ExpiredGrants
from docgen_core.state.contract import RunState, StateStore, UnitState
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.primitives import Primitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

LEASE_SECONDS = 6.0
TAKEOVER_SECONDS = 3.0
MAX_SKEW_SECONDS = 600.0
"""How far a machine's wall clock is off, either way."""
QUIET_SECONDS = 3 * LEASE_SECONDS
"""After so long without a sign of life from a worker, its keeper lets its leases go."""
HANG_SECONDS = 8 * LEASE_SECONDS
MAX_TURNS = 40_000
"""A schedule that takes more turns than this is stuck; the usual one takes some hundreds."""

DOCUMENTS, CATALOGUE = "r1", "catalogue-v2"
"""The run of a schedule whose bytes are reproducible, and of one whose bytes are not."""
SOURCE = CatalogueSpec(pack="sim_pack:PACK", companies=2, products=1, range_width=2)
"""The catalogue `v1` that documents draw on."""


Breakage = Callable[[], AbstractContextManager[object]]
"""Patches production code while it is entered."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a schedule is like before anything goes wrong."""

    reproducible: bool
    units: int
    unit_size: int
    segment_units: int
    page_units: int
    workers: int
    max_attempts: int
    item_seconds: float
    latency: float
    faults: int
    fault_chance: float
    skew_seconds: float
    wall_ahead: float
    """Clocks are off by up to so many seconds, either way."""
    faults_at_sealing: bool = False
    """All faults are kept for the end."""
    cap: int = 0
    """What texts may cost, in nano-dollars; 0 where none are bought."""
    expired_grants: ExpiredGrants = ExpiredGrants.CHARGED

    @property
    def run_id(self) -> str:
        return DOCUMENTS if self.reproducible else CATALOGUE

    @classmethod
    def draw(cls, rng: Random, profile: Profile) -> Shape:
        return cls(
            reproducible=rng.random() < 0.6,
            units=rng.choice((1, 2, 3, 4, 6, 10)),
            unit_size=rng.choice((1, 1, 2)),
            segment_units=rng.choice((1, 2, 3, 1000)),
            page_units=rng.choice((1, 2, 1000)),
            workers=rng.choice((1, 2, 2, 3, 4)),
            max_attempts=rng.choice((2, 3, 5)),
            item_seconds=rng.choice((0.01, 0.3, 2.0, 8.0)),
            latency=rng.choice((0.002, 0.05, 0.3)),
            faults=rng.choice((0, 2, 4, 8, 12)),
            fault_chance=rng.choice((0.01, 0.05, 0.2)),
            # Set as the clocks are, or as a cloud's default: then a clock that runs ahead takes leases that live.
            skew_seconds=0.0 if profile.one_clock else rng.choice((2 * MAX_SKEW_SECONDS, 60.0)),
            wall_ahead=0.0 if profile.one_clock else rng.choice((0.0, MAX_SKEW_SECONDS)),
            faults_at_sealing=rng.random() < 0.2,
        )

    def with_budget(self, rng: Random) -> Shape:
        """The same, and in half of those that make texts, for money. Drawn apart: the others stay as they were."""
        if self.reproducible or rng.random() < 0.5:
            return self
        calls = rng.choice((0.5, 1.0, 3.0, 10.0)) * self.units * self.unit_size
        policy = rng.choice((ExpiredGrants.CHARGED, ExpiredGrants.CHARGED, ExpiredGrants.RETURNED))
        return replace(self, cap=int(calls * WORST_CASE), expired_grants=policy)


@dataclass(frozen=True, slots=True)
class Result:
    """How a schedule ended."""

    profile: str
    seed: int
    shape: Shape
    end: str
    """COMPLETED, CANCELLED, FAILED, or stuck."""
    problems: tuple[str, ...]
    turns: int
    faults: Counter[Fault]
    calls: Sequence[tuple[float, str, str, str]]
    """Time, process, what it called, what went wrong."""

    @property
    def trace(self) -> tuple[str, ...]:
        """The calls, a line each."""
        return tuple(
            f"{now:10.3f}  {name:12} {what}  {fault and f'[{fault}]'}" for now, name, what, fault in self.calls
        )

    @property
    def replay(self) -> str:
        """The command that does it again."""
        return f"{sys.executable} tests/simulator/simulate.py {self.profile} --seed {self.seed}"


class Schedule:
    """One schedule. `run` it once."""

    def __init__(
        self,
        profile: Profile,
        seed: int,
        shape: Shape | None = None,
        *,
        tables: Primitives | None = None,
        blobs: BlobStore | None = None,
    ) -> None:
        self.profile, self.seed = profile, seed
        self.rng = Random(f"{profile.name} {seed}")
        drawn = Shape.draw(self.rng, profile)
        self.shape = shape or drawn.with_budget(Random(f"budget {profile.name} {seed}"))
        self.world = World(max_turns=MAX_TURNS)
        self.tables = tables or MemoryPrimitives()
        self.blobs = copy_of(_sealed_source(), blobs)
        self.referee = Referee(self.tables, self.blobs, self.shape.max_attempts)
        self.server = Server(profile, self.tables, self.blobs, self.referee)
        self.faults = Faults(
            self.rng, self.shape.faults, self.shape.fault_chance, LEASE_SECONDS, self.shape.faults_at_sealing
        )
        self.trace: list[tuple[float, str, str, str]] = []
        self.problems: list[str] = []
        self.digests: set[str | None] = set()
        """Of the root, as workers reported it."""
        self.trouble: dict[int, str] = {}
        """What a unit does to whoever works on it: kills, crashes, hangs, or is refused."""
        self.alive: set[str] = set()
        self.makers: dict[BlobStore, tuple[Process, Purse | None]] = {}
        """By the blob store that a worker was given: who it is, and its money."""
        self.bill = Bill()
        self._numbers: Counter[str] = Counter()

    # Processes ----------------------------------------------------------------------------------

    def line(self, process: Process, *, faults: bool = True, stop: VirtualEvent | None = None) -> Line:
        """A process's connection to the stores."""
        terminate = stop.set if stop else lambda: None
        return Line(process, self.faults if faults else None, self.shape.latency, self._note, terminate)

    def store(self, line: Line) -> PayingStore:
        """The production store of a process, over the simulated primitives."""
        tables = SimulatedTables(self.server, line)
        settings = Settings(LEASE_SECONDS, self.shape.max_attempts, self.shape.skew_seconds)
        process = line.process
        return PayingStore(tables, settings, uri="sim", clock=process.wall, monotonic=process.monotonic)

    def blobs_of(self, line: Line) -> BlobStore:
        """The blob store of a process."""
        return SimulatedBlobs(self.server, line)

    def start(self, kind: str, work: Callable[[Process], str], *, after: float, name: str | None = None) -> Process:
        """A process that lives until `work` says how it ended."""
        self._numbers[kind] += 1
        ahead = self.shape.wall_ahead * self.rng.uniform(-1.0, 1.0)
        process = self.world.process(
            name or f"{kind}{self._numbers[kind]}", wall_ahead=ahead, slowness=self.rng.choice((1.0, 1.0, 1.0, 10.0))
        )
        self.alive.add(process.name)

        def live() -> None:
            end = "died"
            try:
                end = work(process)
            except BlobMissing as error:
                self.problems.append(f"{process.name} missed {error}")
            except StorageFailed:
                end = "storage failed"
            except (RunUnknown, RunCancelled, WrongRunState) as error:
                end = type(error).__name__
            except Exception as error:  # noqa: BLE001  whatever it is, it may not end a worker
                self.problems.append(f"{process.name} ended with {type(error).__name__}: {error}")
            finally:
                self.alive.discard(process.name)
                self._note(process, f"ended: {end}", None)
                self.after(kind, end)

        process.spawn(live, after=after)
        return process

    def plan(self, process: Process) -> str:
        """A planner's whole life."""
        line = self.line(process)
        store, blobs = self.store(line), self.blobs_of(line)
        self.plan_with(store, blobs, process.world.sleep)
        if self.shape.cap:
            # Late, after an operator perhaps has set another and workers have spent it.
            with suppress(BudgetTooLow):
                store.set_budget(self.shape.run_id, self.shape.cap, expired_grants=self.shape.expired_grants)
        return "planned"

    def plan_with(self, store: StateStore, blobs: BlobStore, sleep: Callable[[float], None], *, seed: int = 1) -> None:
        """Plan the schedule's run."""
        shape, how = self.shape, {"takeover_seconds": TAKEOVER_SECONDS, "sleep": sleep}
        items = shape.units * shape.unit_size
        if shape.reproducible:
            request = RunRequest(DOCUMENTS, items, seed, Selection(), "v1", unit_size=shape.unit_size, pack=SOURCE.pack)
            create_run(store, blobs, request, **how)  # type: ignore[arg-type]
        else:
            spec = SOURCE.model_copy(update={"companies": items, "range_width": shape.unit_size, "seed": seed})
            build_catalogue_run(store, blobs, "v2", spec, **how)  # type: ignore[arg-type]

    def rival(self, process: Process) -> str:
        """A planner who wants the same run with other parameters."""
        line = self.line(process, faults=False)
        while self.tables.read_run(self.shape.run_id) is None:
            process.world.sleep(1.0)
        try:
            self.plan_with(self.store(line), self.blobs_of(line), process.world.sleep, seed=2)
        except PlanConflict:
            return "refused"
        self.problems.append("another plan under the same run id was not refused")
        return "planned"

    def work(self, process: Process, *, wait: bool = True, within: set[int] | None = None) -> str:
        """A worker's whole life."""
        stop = VirtualEvent(self.world)
        line = self.line(process, stop=stop)
        store, blobs = self.store(line), self.blobs_of(line)
        if self.shape.cap:
            store.purse = Purse(store, self.shape.run_id, process, self.rng, self.bill)
        self.makers[blobs] = (process, store.purse)
        outcome = work_run(
            self.shape.run_id,
            state=store,
            blobs=blobs,
            worker=process.name,
            wait=wait,
            within=within,
            stop=stop,  # type: ignore[arg-type]
            takeover_seconds=TAKEOVER_SECONDS,
        )
        if store.purse is not None:
            store.purse.close()
        if outcome.kind is DrainEnd.COMPLETED:
            self.digests.add(outcome.root_digest)
        return outcome.kind

    def operate(self, act: Callable[[StateStore], object]) -> Callable[[Process], str]:
        """An operator who does one thing, as soon as there is a run."""

        def life(process: Process) -> str:
            store = self.store(self.line(process, faults=False))
            while True:
                try:
                    act(store)
                except RunUnknown:
                    process.world.sleep(1.0)
                    continue
                return "operated"

        return life

    # What is made -------------------------------------------------------------------------------

    def open_maker(self, plan: Plan, blobs: BlobStore, _: object, **__: object) -> Any:
        """In place of `drain.open_maker`."""
        process, purse = self.makers[blobs]

        def work(number: int) -> None:
            self.world.sleep(self.shape.item_seconds * self.rng.uniform(0.5, 1.5))
            if purse is not None:
                purse.call()
            match self.trouble.get(number):
                case "kills":
                    process.kill()
                    raise Died
                case "hangs" if self.rng.random() < 0.5:
                    self.world.sleep(HANG_SECONDS)
                case "crashes":
                    raise ZeroDivisionError("a bug")
                case "crashes at times" if self.rng.random() < 0.5:
                    raise ZeroDivisionError("a bug that comes and goes")
                case "is refused":
                    raise RecordRefused("it does not reconcile")

        if self.shape.reproducible:
            return ReproducibleMaker(plan, blobs, work)
        return UnreproducibleMaker(plan, blobs, work, author=process.name)

    # The schedule -------------------------------------------------------------------------------

    def set_out(self) -> None:
        """Planners, workers, operators, each at its time."""
        rng, run_id, shape = self.rng, self.shape.run_id, self.shape
        span = shape.units * shape.unit_size * shape.item_seconds + 5.0
        self.start("planner", self.plan, after=0.0)
        if rng.random() < 0.3:
            self.start("planner", self.plan, after=rng.random())
        if rng.random() < 0.1:
            self.start("rival", self.rival, after=10.0 + rng.random() * span)
        for _ in range(shape.workers):
            self.start("worker", self.work, after=rng.random() * 2.0)
        if rng.random() < 0.15:
            self.start("worker", lambda p: self.work(p, wait=False), after=rng.random() * span)
        if rng.random() < 0.15:
            scope = {index for index in range(shape.units) if rng.random() < 0.5} or {0}
            self.start("worker", lambda p: self.work(p, within=scope), after=rng.random() * span)
        if rng.random() < 0.2:
            kind = rng.choice(("kills", "crashes", "crashes at times", "hangs", "hangs", "is refused"))
            self.trouble[rng.randrange(shape.units)] = kind
        if rng.random() < 0.25:
            self.start("resumer", self.operate(self._pause_and_resume), after=rng.random() * span)
        if rng.random() < 0.1:
            self.start("operator", self.operate(lambda s: s.cancel(run_id)), after=rng.random() * span)
        if rng.random() < 0.2:
            self.start("operator", self.operate(lambda s: s.reclaim_expired_units(run_id)), after=rng.random() * span)
        if rng.random() < 0.2:
            self.start("operator", self.operate(self._look), after=rng.random() * span)
        if rng.random() < 0.3:
            self.start("resumer", self.operate(self._resume), after=span + rng.random() * 60.0)
        if shape.cap:
            self.start("operator", self.operate(self._watch_grants), after=span + rng.random() * 60.0)
        if shape.cap and rng.random() < 0.5:
            self.start("operator", self.operate(self._set_another_budget), after=rng.random() * span)

    def _resume(self, store: StateStore) -> None:
        if self.rng.random() < 0.5:
            self.trouble.clear()
        drain.reopen_run(store, self.shape.run_id)

    def _pause_and_resume(self, store: StateStore) -> None:
        store.pause(self.shape.run_id)
        self.world.sleep(5.0 + self.rng.random() * 10.0)
        self._resume(store)

    def _set_another_budget(self, store: StateStore) -> None:
        with suppress(BudgetTooLow):
            store.set_budget(self.shape.run_id, self.rng.randrange(2 * self.shape.cap))
        store.expire_grants(self.shape.run_id)
        store.spend(self.shape.run_id)

    def _watch_grants(self, store: StateStore) -> None:
        """Long enough to know a dead owner whatever the clocks say."""
        store.expire_grants(self.shape.run_id)
        self.world.sleep(LEASE_SECONDS + 1.0)
        store.expire_grants(self.shape.run_id)

    def _look(self, store: StateStore) -> None:
        seen = store.progress(self.shape.run_id)
        if seen.pending + seen.running + seen.done + seen.failed != seen.total:
            self.problems.append(f"progress does not add up: {seen}")

    def after(self, kind: str, end: str) -> None:
        """Somebody has ended: whoever runs fleets starts another, unless the process says that it is over."""
        if self.world.stuck or self.problems:
            return
        run, delay = self.tables.read_run(self.shape.run_id), 0.5 + self.rng.random() * 3.0
        if run is None:
            if not any(name.startswith("planner") for name in self.alive):
                self.start("planner", self.plan, after=delay)
            if kind == "worker":
                self.start("worker", self.work, after=delay + 1.0)
            return
        over = (DrainEnd.COMPLETED, DrainEnd.CANCELLED, DrainEnd.DRAINED_WITH_FAILURES)
        if kind == "resumer" or (kind == "worker" and end not in over):
            self.start("worker", self.work, after=delay)

    def _note(self, process: Process, what: str, fault: Fault | None) -> None:
        self.trace.append((self.world.now, process.name, what, fault or ""))

    def run(self, set_out: Callable[[], None] | None = None) -> Result:
        """Let it happen, and judge it."""
        with self._small(), ExitStack() as stack:
            stack.enter_context(patch.object(drain, "open_maker", self.open_maker))
            with virtual_time(self.world, self.rng):
                (set_out or self.set_out)()
                self.world.run()
            end = self._judge()
        return Result(
            self.profile.name,
            self.seed,
            self.shape,
            end,
            (*self.problems, *self.referee.broken, *self.world.errors),
            self.world.turns,
            self.faults.happened,
            self.trace,
        )

    @contextmanager
    def _small(self) -> Iterator[None]:
        """Segments and pages of a few units, so that small runs have several; shards made once."""
        with ExitStack() as stack:
            for module in _modules_with_segments():
                stack.enter_context(patch.object(module, "SEGMENT_UNITS", self.shape.segment_units))
            for module, name in ((store_module, "_PAGE_UNITS"), (finalise, "PAGE_UNITS"), (drain, "PAGE_UNITS")):
                stack.enter_context(patch.object(module, name, self.shape.page_units))
            stack.enter_context(patch.object(keeper, "QUIET_SECONDS", QUIET_SECONDS))
            stack.enter_context(patch.object(unit, "encode_shard", encode_once))
            stack.enter_context(patch.object(contents, "decode_shard", decode_once))
            stack.enter_context(patch.object(catalogue_view, "decode_shard", decode_once))
            yield

    # The verdict --------------------------------------------------------------------------------

    def _judge(self) -> str:
        run = self.tables.read_run(self.shape.run_id)
        if self.world.stuck or run is None:
            self.problems.append(f"stuck after {self.world.turns} turns: the run is {run and run.state}")
            return "stuck"
        if self.shape.cap:
            self.problems += self.bill.problems(self.tables, run.run_id)
        units = self.tables.list_units(run.run_id, None, -1, self.shape.units)
        states = Counter(row.state for row in units)
        if run.state is RunState.COMPLETED:
            self._judge_completed()
            return "COMPLETED"
        if self.referee.roots:
            self.problems.append(f"a root manifest, and the run is {run.state}")
        if run.state is RunState.CANCELLED:
            return "CANCELLED"
        if not states[UnitState.FAILED] or states[UnitState.DONE] + states[UnitState.FAILED] < self.shape.units:
            self.problems.append(f"nobody works any more: the run is {run.state}, its units {dict(states)}")
            return "stuck"
        for row in units:
            blameless = row.state is UnitState.FAILED and row.attempts < run.max_attempts
            if blameless and "reconcile" not in (row.error or ""):
                self.problems.append(f"unit {row.index} FAILED with attempts left: {row.error}")
        return "FAILED"

    def _judge_completed(self) -> None:
        run = self.tables.read_run(self.shape.run_id)
        assert run is not None
        plain = SegmentStore(self.tables, Settings(), uri="plain")
        verified = verify_run(run.run_id, blobs=self.blobs, state=plain, deep=True)
        for finding in verified.findings:
            if finding.kind is not FindingKind.LEFTOVER or self.shape.reproducible:
                self.problems.append(f"verify: {finding.kind} {finding.key}: {finding.detail}")
        if set(self.referee.done) != set(range(self.shape.units)):
            self.problems.append(f"units were DONE: {sorted(self.referee.done)} of {self.shape.units}")
        if self.referee.roots != 1:
            self.problems.append(f"{self.referee.roots} roots")
        if self.digests - {run.root_digest}:
            self.problems.append(f"workers reported roots {self.digests}, the store holds {run.root_digest}")
        if not verified.ok:
            return
        if self.shape.reproducible:
            self._compare_with_clean()
        else:
            self._judge_authors(run.marker.prefix)

    def _compare_with_clean(self) -> None:
        clean = clean_blobs(self.shape.units, self.shape.unit_size)
        here = contents_of(self.blobs)
        if here != clean:
            other = sorted(key for key in here.keys() | clean.keys() if here.get(key) != clean.get(key))
            self.problems.append(f"other blobs than a clean run's: {', '.join(other[:4])}")

    def _judge_authors(self, prefix: str) -> None:
        """I3: what a part lists was written by one attempt, the one that the store calls DONE."""
        rows = {row.index: row for row in self.tables.list_units(CATALOGUE, None, -1, self.shape.units)}
        for part in iter_parts(self.blobs, read_root(self.blobs, prefix)):
            said = {
                text for e in part.blobs for text in decode_once(e.key, read_blob(self.blobs, e))["depot"].to_pylist()
            }
            row = rows[part.unit]
            if said != {f"{row.owner} g{row.generation}"}:
                self.problems.append(f"I3: unit {part.unit} of {row.owner} g{row.generation} holds {sorted(said)}")


@cache
def _modules_with_segments() -> list[Any]:
    return [m for name, m in sys.modules.items() if name.startswith("docgen_core.") and hasattr(m, "SEGMENT_UNITS")]


@cache
def _sealed_source() -> MemoryBlobStore:
    """The blobs of a sealed catalogue `v1`, built once, by the real maker."""
    blobs = MemoryBlobStore()
    state = SegmentStore(MemoryPrimitives(), Settings(), uri="source")
    build_catalogue_run(state, blobs, "v1", SOURCE)
    assert work_run("catalogue-v1", state=state, blobs=blobs, worker="source").kind is DrainEnd.COMPLETED
    return blobs


@cache
def clean_blobs(units: int, unit_size: int) -> dict[str, bytes]:
    """Every blob there is after one worker has made a run of documents and nothing went wrong."""
    shape = Shape(True, units, unit_size, 1000, 1000, 1, 5, 0.0, 0.0, 0, 0.0, 0.0, 0.0)
    schedule = Schedule(PROFILES["sqlite"], 0, shape)

    def set_out() -> None:
        schedule.start("planner", schedule.plan, after=0.0)
        schedule.start("worker", schedule.work, after=1.0)

    with patch.object(Schedule, "_compare_with_clean", lambda _: None):
        result = schedule.run(set_out)
    assert result.end == "COMPLETED" and not result.problems, result
    return contents_of(schedule.blobs)


DEATHS = (Fault.DEATH_BEFORE, Fault.DEATH_AFTER)


def at_what(name: str, what: str) -> str:
    """What a process was at when it made this call."""
    if name.startswith("planner"):
        return "planning"
    sealing = ("FINALIZING", "/manifest.json", "put sealed/")
    return "sealing" if any(mark in what for mark in sealing) else "working"


@dataclass(slots=True)
class Tally:
    """How many schedules ended, and how."""

    ends: Counter[str] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    """By what the dead were at: planning, working, sealing."""
    turns: int = 0
    cpu_seconds: float = 0.0

    def add(self, result: Result, cpu_seconds: float) -> None:
        self.ends[result.end] += 1
        self.faults += result.faults
        self.deaths.update(at_what(name, what) for _, name, what, fault in result.calls if fault in DEATHS)
        self.turns += result.turns
        self.cpu_seconds += cpu_seconds

    def __str__(self) -> str:
        schedules = self.ends.total()
        return (
            f"{schedules} schedules, {self.turns} calls, {self.faults.total()} faults, "
            f"{schedules / max(self.cpu_seconds, 1e-9):.0f} schedules a second of one core; "
            + ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        )


def simulate_many(
    profile: str, seeds: Iterable[int], *, tally: Tally | None = None, broken: Breakage = nullcontext
) -> Iterator[Result]:
    """The schedules of these seeds, one by one, counted in `tally`."""
    for seed in seeds:
        started = time.process_time()
        result = simulate(profile, seed, broken)
        if tally is not None:
            tally.add(result, time.process_time() - started)
        yield result


def simulate(profile: str, seed: int, broken: Breakage = nullcontext) -> Result:
    """The schedule of a seed; `broken` patches production code meanwhile."""
    schedule = Schedule(PROFILES[profile], seed)
    if schedule.shape.reproducible:
        clean_blobs(schedule.shape.units, schedule.shape.unit_size)
    with broken():
        return schedule.run()
