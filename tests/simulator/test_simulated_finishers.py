"""Eight finishers at once, over a bucket that answers 412, 409, 429, 503, or not at all: one root, all exit 0.

The blob store's own retries are the production ones; so is everything that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from unittest.mock import patch

import pytest
from sim_cloud import SimulatedCloud
from sim_faults import Line
from sim_schedule import DOCUMENTS, Result, Schedule, Shape
from sim_stores import PROFILES, SimulatedBlobs
from sim_world import Died, Process

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import RootConflict
from docgen_core.runs import drain
from docgen_core.runs.finalise import finalize
from docgen_core.runs.keys import root_key, sealed_key
from docgen_core.state.contract import RunState, StateStore

FINISHERS = 8
DRAINED_AT = 60.0
"""Virtual seconds by which the one worker has drained the run, and died before it could seal it."""
SEEDS = range(12)
CALM = Shape(True, 3, 1, 1000, 1000, 1, 5, 0.1, 0.01, 0, 0.0, 0.0, 0.0)

STORIES = {
    "412": (),
    "409, then 412": (409,),
    "429, then 412": (429,),
    "a time-out although the write landed": (0,),
    "503 three times": (503, 503, 503),
    "503, a time-out, 409, 429": (503, 0, 409, 429),
}


class Finishing(Schedule):
    """A worker drains the run and dies; then eight finish it at once."""

    def __init__(self, profile: str, seed: int, story: tuple[int, ...]) -> None:
        super().__init__(PROFILES[profile], seed, CALM)
        self._story = story
        self.conflicts: list[str] = []

    def blobs_of(self, line: Line) -> BlobStore:
        if line.process.name.startswith("finisher"):
            return SimulatedCloud(self.server, line, lambda: iter(self._story))
        return SimulatedBlobs(self.server, line)

    def finalize(self, run_id: str, state: StateStore, blobs: BlobStore) -> str:
        """In place of the drain's: death for the one who comes first, the production one for the others."""
        if self.world.now < DRAINED_AT:
            self.world.current.process.kill()
            raise Died
        return finalize(run_id, state, blobs)

    def finish(self, process: Process) -> str:
        try:
            return self.work(process)
        except RootConflict as conflict:
            assert conflict.exit_code == 1
            self.conflicts.append(str(conflict))
            return "conflict"

    def after(self, kind: str, end: str) -> None:
        assert kind == "finisher" or end in ("planned", "died"), end

    def go(self) -> Result:
        def set_out() -> None:
            self.start("planner", self.plan, after=0.0)
            self.start("worker", self.work, after=5.0)
            for _ in range(FINISHERS):
                self.start("finisher", self.finish, after=DRAINED_AT)

        with patch.object(drain, "finalize", self.finalize):
            return self.run(set_out)

    def ends(self) -> list[str]:
        return [what for _, name, what, _ in self.trace if name.startswith("finisher") and what.startswith("ended")]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("story", STORIES)
def test_eight_finishers_at_once_make_one_root(profile: str, story: str) -> None:
    for seed in SEEDS:
        schedule = Finishing(profile, seed, STORIES[story])
        result = schedule.go()
        assert (result.end, result.problems) == ("COMPLETED", ()), seed
        assert schedule.ends() == ["ended: COMPLETED"] * FINISHERS
        assert schedule.referee.roots == 1 and len(schedule.digests) == 1


@pytest.mark.parametrize("key", [root_key(f"runs/{DOCUMENTS}"), sealed_key(DOCUMENTS)])
def test_another_content_there_is_told_by_everyone_with_both_digests(key: str) -> None:
    theirs = b"0" * 64 + b"\n"
    named = sha256_hex(theirs) if key.startswith("runs/") else "0" * 64
    for seed in SEEDS:
        schedule = Finishing("dynamodb", seed, STORIES["412"])
        schedule.blobs.put(key, theirs)
        schedule.go()
        assert len(schedule.conflicts) == FINISHERS
        ours = {text.partition("its units give (")[2][:64] for text in schedule.conflicts}
        assert len(ours) == 1 and all(named in text for text in schedule.conflicts)
        run = schedule.tables.read_run(DOCUMENTS)
        assert run is not None and run.state is RunState.FINALIZING
        assert schedule.blobs.get(key) == theirs


def test_a_bucket_that_never_answers_ends_finishers_in_one_line_and_the_next_one_seals() -> None:
    refusing: Callable[[], Iterator[int]] = lambda: repeat(503)  # noqa: E731

    class Refused(Finishing):
        def blobs_of(self, line: Line) -> BlobStore:
            if line.process.name.startswith("finisher"):
                return SimulatedCloud(self.server, line, refusing)
            return SimulatedBlobs(self.server, line)

        def after(self, kind: str, end: str) -> None:
            if kind == "finisher" and not self.alive:
                self.start("last", self.work, after=1.0)

    schedule = Refused("firestore", 0, ())
    result = schedule.go()
    assert schedule.ends() == ["ended: storage failed"] * FINISHERS
    assert (result.end, result.problems) == ("COMPLETED", ())
