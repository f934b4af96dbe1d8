"""Working on a run from the command line: signals, a fleet for several workers, and what is said.

One worker is this process; more are a fleet's. When a fleet's workers have ended, the *store* says
how the run stands. What does not belong here: the drain loop itself (`runs.drain`).
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from typing import TYPE_CHECKING, Protocol

from docgen_core.cli import console
from docgen_core.cli.options import Places
from docgen_core.errors import DocgenError

if TYPE_CHECKING:
    from docgen_core.runs.fleet import LocalFleet
    from docgen_core.runs.outcomes import UnitEvent
    from docgen_core.runs.status import RunStatus
    from docgen_core.runs.unit import RendererOnDemand

POLL_SECONDS = 0.2
BAR_SECONDS = 1.0
"""Between two looks at the store for the progress bar."""


class Stop:
    """A request to stop, and the exit code of who asked."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.code = 0

    def ask(self, code: int) -> None:
        """Stop; the first to ask decides the code."""
        self.code = self.code or code
        self.event.set()


@dataclass(frozen=True, slots=True)
class Voice:
    """How a command tells of its work."""

    as_json: bool = False
    """One JSON object a line on standard output: asked for, or nobody is at the terminal."""
    quiet: bool = False
    """Nothing but what goes wrong."""
    in_fleet: bool = False
    """One of several workers: the fleet has the bar and the summary."""

    @classmethod
    def of(cls, as_json: bool, *, quiet: bool = False, in_fleet: bool = False) -> Voice:
        """As asked for, for whoever is listening."""
        return cls(as_json or not console.at_terminal(), quiet, in_fleet)


@contextmanager
def stopping(until_stdin_closes: bool = False) -> Iterator[Stop]:
    """Turns SIGTERM, SIGINT (and the end of standard input) into a request that hands leases back."""
    from docgen_core.runs.fleet import stop_when_closed

    stop = Stop()
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130}
    before = {number: signal.signal(number, lambda n, _: stop.ask(codes[signal.Signals(n)])) for number in codes}
    if until_stdin_closes:
        # Unbuffered: a thread inside a buffered read holds a lock that the interpreter's end waits for.
        stop_when_closed(FileIO(sys.stdin.fileno(), closefd=False), stop.event)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def drain_each(
    here: Places,
    runs: Sequence[str],
    workers: int,
    stop: Stop,
    voice: Voice,
    *,
    wait: bool,
    within: frozenset[int] | None,
) -> int:
    """Work on several runs as one pool, and return the gravest exit code.

    A lone worker first takes what each run has to give, and only then waits for its peers; all runs
    share its browser. A run that cannot be worked on does not keep it from the others: the first
    such error is raised at the end.
    """
    from docgen_core.runs.unit import RendererOnDemand

    codes: list[int] = []
    errors: list[DocgenError] = []
    with RendererOnDemand() as browser:
        if wait and workers == 1 and len(runs) > 1:
            for run in runs:
                # What is wrong with a run is met, and told, when it is waited for.
                with suppress(DocgenError):
                    drain(here, run, 1, stop, voice, wait=False, within=within, summary=False, browser=browser)
        for run in runs:
            try:
                codes.append(drain(here, run, workers, stop, voice, wait=wait, within=within, browser=browser))
            except DocgenError as error:
                errors.append(error)
    if errors:
        raise errors[0]
    return max(codes)


def drain(
    here: Places,
    run: str,
    workers: int,
    stop: Stop,
    voice: Voice,
    *,
    wait: bool = True,
    within: frozenset[int] | None = None,
    summary: bool = True,
    browser: RendererOnDemand | None = None,
) -> int:
    """Work on a run with this many workers, tell how it goes, and return the exit code."""
    from docgen_core.runs.status import run_status

    before = run_status(here.state, here.blobs, run)
    began = time.monotonic()
    # What is over needs no fleet: this process alone sees that, and leaves.
    if workers == 1 or before.over:
        code = _work_here(here, before, stop, voice, wait=wait, within=within, browser=browser)
    else:
        code = _work_with_fleet(here, before, workers, stop, voice, wait=wait, within=within)
    if summary and not voice.quiet and not voice.in_fleet:
        after = run_status(here.state, here.blobs, run)
        _summarise(here, after, after.items_done - before.items_done, time.monotonic() - began, code, voice)
    return code


def _work_here(
    here: Places,
    before: RunStatus,
    stop: Stop,
    voice: Voice,
    *,
    wait: bool,
    within: frozenset[int] | None,
    browser: RendererOnDemand | None,
) -> int:
    from docgen_core.runs.drain import work_run
    from docgen_core.runs.outcomes import DrainEnd
    from docgen_core.runs.worker import worker_identity

    with _reporter(before, voice) as reporter:
        outcome = work_run(
            before.run.run_id,
            state=here.state,
            blobs=here.blobs,
            worker=worker_identity(),
            wait=wait,
            within=within,
            stop=stop.event,
            on_event=reporter.unit,
            renderer=browser,
            writing=here.writing,
        )
    if outcome.kind is DrainEnd.PAUSED:
        console.note(f"run {outcome.run_id!r} is paused; `docgen resume {outcome.run_id}` goes on")
    if outcome.kind is DrainEnd.UNPLANNED:
        advice = f"`docgen work {outcome.run_id}` waits for its planner, and takes the planning over when that is gone"
        console.note(f"run {outcome.run_id!r} is not planned yet; {advice}")
    return (stop.code or outcome.exit_code) if outcome.kind is DrainEnd.STOPPED else outcome.exit_code


def _work_with_fleet(
    here: Places,
    before: RunStatus,
    workers: int,
    stop: Stop,
    voice: Voice,
    *,
    wait: bool,
    within: frozenset[int] | None,
) -> int:
    from docgen_core.runs.fleet import LocalFleet
    from docgen_core.runs.status import run_status

    run = before.run.run_id
    command = _worker_command(here, run, voice, wait, within)
    with LocalFleet(command) as fleet, _reporter(before, voice) as reporter:
        fleet.start(workers)
        _watch(here, run, fleet, stop, reporter)
        # What the last workers did is shown too; else the bar would end before the run did.
        reporter.look(here)
        if stop.event.is_set():
            fleet.stop()
            return stop.code
        codes = fleet.exit_codes
    after = run_status(here.state, here.blobs, run)
    if after.over and within is None:
        return after.exit_code
    # The run is not over, or not all of it was asked for: what the workers met is the answer.
    code = max(3 if code < 0 else code for code in codes)
    if wait and within is None:
        console.note(f"the workers ended before run {run!r} was done; `docgen work {run}` goes on")
        return code or 3
    return code


def _worker_command(here: Places, run: str, voice: Voice, wait: bool, within: frozenset[int] | None) -> list[str]:
    command = [sys.executable, "-m", "docgen_core.cli", "work", run, "--until-stdin-closes"]
    command += ["--state", here.settings.state, "--blobs", here.settings.blobs]
    command += ["--concurrency", str(here.settings.concurrency)]
    command += ["--max-rejected-percent", str(here.settings.max_rejected_percent)]
    command += ["--json"] * voice.as_json + ["--quiet"] * voice.quiet
    if not wait:
        command.append("--no-wait")
    if within is not None:
        command += ["--units", ",".join(str(unit) for unit in sorted(within))]
    return command


def _watch(here: Places, run: str, fleet: LocalFleet, stop: Stop, reporter: Reporter) -> None:
    """Until no worker is alive or a stop is asked for; workers that a signal killed are replaced."""
    shown = 0.0
    while not stop.event.wait(POLL_SECONDS):
        if replaced := fleet.replace_killed():
            console.note(f"{replaced} of run {run!r}'s workers were killed; started as many")
        if not fleet.poll():
            return
        if time.monotonic() - shown >= BAR_SECONDS:
            reporter.look(here)
            shown = time.monotonic()


# What is said ---------------------------------------------------------------------------------


class Reporter(Protocol):
    """Tells how the work goes."""

    def unit(self, event: UnitEvent) -> None:
        """An attempt at a unit has ended."""

    def look(self, here: Places) -> None:
        """Read the run's progress from the store."""


class _Events:
    """One JSON object a unit, for a pipe; a fleet's workers write theirs to the same one."""

    def unit(self, event: UnitEvent) -> None:
        console.emit(
            "unit",
            run=event.run_id,
            unit=event.unit,
            generation=event.generation,
            attempt=event.attempt,
            outcome=event.outcome.value,
            seconds=round(event.seconds, 3),
            documents=event.items,
            worker=event.worker,
            **({"error": event.error} if event.error else {}),
        )

    def look(self, here: Places) -> None:
        pass


class _Lines:
    """One line a unit, for people; with `quiet` of failures only."""

    def __init__(self, noun: str, quiet: bool) -> None:
        self._noun, self._quiet = noun, quiet

    def unit(self, event: UnitEvent) -> None:
        if event.error or not self._quiet:
            console.note(_told(event, self._noun))

    def look(self, here: Places) -> None:
        pass


def _told(event: UnitEvent, noun: str) -> str:
    outcome = event.outcome.value
    about = f"{event.items} {noun} in {event.seconds:.1f} s"
    who = f"generation {event.generation}, attempt {event.attempt}, {event.worker}"
    return f"{event.run_id} unit {event.unit} {outcome}: {event.error or about} ({who})"


class _Bar(_Lines):
    """A progress bar over the run's items, below the lines."""

    def __init__(self, before: RunStatus, noun: str) -> None:
        super().__init__(noun, quiet=False)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._run = before.run
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console.err,
        )
        self._task = self.progress.add_task(
            before.run.run_id, total=before.run.marker.total_items, completed=before.items_done
        )

    def unit(self, event: UnitEvent) -> None:
        super().unit(event)
        if event.outcome.value == "done":
            self.progress.advance(self._task, event.items)

    def look(self, here: Places) -> None:
        from docgen_core.runs.status import run_status

        self.progress.update(self._task, completed=run_status(here.state, here.blobs, self._run.run_id).items_done)


@contextmanager
def _reporter(before: RunStatus, voice: Voice) -> Iterator[Reporter]:
    noun = _noun(before)
    if voice.as_json and not voice.quiet:
        yield _Events()
    elif voice.quiet or voice.in_fleet:
        yield _Lines(noun, voice.quiet)
    else:
        bar = _Bar(before, noun)
        with bar.progress:
            yield bar


def _noun(status: RunStatus) -> str:
    return "companies" if status.run.marker.kind.value == "catalogue" else "documents"


def _summarise(here: Places, after: RunStatus, items: int, seconds: float, code: int, voice: Voice) -> None:
    marker = after.run.marker
    rate = items / seconds if seconds > 0 else 0.0
    place = f"{here.settings.blobs}/{marker.prefix}"
    if voice.as_json:
        console.emit(
            "summary",
            **{key: value for key, value in after.as_json().items() if key != "spec"},
            made=items,
            seconds=round(seconds, 3),
            per_second=round(rate, 2),
            place=place,
            exit_code=code,
        )
        return
    done = f"{after.items_done} of {marker.total_items} {_noun(after)}"
    made = f", {items} now in {seconds:.0f} s ({rate:.1f} a second)" if items else ""
    console.out.print(f"run {marker.run_id!r} {after.run.state.value}: {done}{made}", markup=False, soft_wrap=True)
    console.out.print(f"  in {place}", markup=False, soft_wrap=True)
    if failed := after.progress.failed:
        run = marker.run_id
        console.note(f"{failed} units failed: `docgen failures {run}` says why, `docgen resume {run}` tries them again")
