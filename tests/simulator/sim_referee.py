"""Watches every change as it happens, and says which invariant it breaks (design: I1 to I8).

It sees the stores from within, knows who acts, and takes no part. What does not belong here: what
a run must look like when all is over (sim_schedule.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.runs.keys import root_key, sealed_key
from docgen_core.state.budget import GrantState, grant_of
from docgen_core.state.contract import Run, RunState, Unit, UnitState
from docgen_core.state.primitives import Entry, Posting, Primitives, segment_range

S, U = RunState, UnitState

_STEPS = {
    (S.RUNNING, S.PAUSED),
    (S.PAUSED, S.RUNNING),
    (S.RUNNING, S.CANCELLED),
    (S.PAUSED, S.CANCELLED),
    (S.RUNNING, S.FINALIZING),
    (S.FINALIZING, S.COMPLETED),
}


@dataclass(slots=True)
class Balance:
    """A run's budget, added up from each change of a row."""

    cap: int = 0
    overshoot: int = 0
    available: int = 0
    held: int = 0


class Referee:
    """Collects what must not happen."""

    def __init__(self, tables: Primitives, blobs: BlobStore, max_attempts: int) -> None:
        self.broken: list[str] = []
        self.done: Counter[int] = Counter()
        """How often each unit became DONE."""
        self.roots = 0
        """How many root manifests were created."""
        self.budgets: dict[str, Balance] = {}
        """By run."""
        self._tables, self._blobs, self._max_attempts = tables, blobs, max_attempts

    def unit_changed(self, actor: str, before: Unit | None, after: Unit) -> None:
        """A unit's row was written."""
        where = f"unit {after.index}, {before and before.state}→{after.state} by {actor}"
        was = before.state if before else U.PENDING
        generation = before.generation if before else 0
        self._must(after.attempts <= self._max_attempts, f"I7: {after.attempts} attempts: {where}")
        self._must(after.generation >= generation, f"I6: the generation went down: {where}")
        self._must(was is not U.DONE, f"I1: a DONE unit was written again: {where}")
        if after.state is U.DONE:
            self.done[after.index] += 1
            self._must(self.done[after.index] == 1, f"I1: DONE for the {self.done[after.index]}. time: {where}")
            self._must(after.part_sha256 is not None, f"I2: DONE without a part: {where}")
        raised = after.generation == generation + 1 and after.state is U.RUNNING and after.owner == actor
        held = before is not None and before.owner == actor and was is U.RUNNING and after.generation == generation
        given_back = was is U.RUNNING and after.state in (U.PENDING, U.FAILED) and after.generation == generation
        reset = was is U.FAILED and after.state is U.PENDING and after.attempts == 0
        self._must(raised or held or given_back or reset, f"I6: not the holder's to change: {where}")

    def run_changed(self, actor: str, before: Run | None, after: Run) -> None:
        """A run's row was written."""
        where = f"{before and before.state}→{after.state} by {actor}"
        if before is None or before.state is after.state:
            self._must(before is None or after.epoch >= before.epoch, f"the epoch went down: {where}")
            return
        self._must((before.state, after.state) in _STEPS, f"no step of a run: {where}")
        if after.state is S.FINALIZING:
            units = self._tables.list_units(after.run_id, {U.DONE}, -1, after.marker.total_units)
            self._must(len(units) == after.marker.total_units, f"FINALIZING with units that are not DONE: {where}")
        if after.state is S.COMPLETED:
            self._must(self._digest(root_key(after.marker.prefix)) == after.root_digest, f"I4: no root yet: {where}")
            self._must(self._blobs.exists(sealed_key(after.run_id)), f"COMPLETED before its marker: {where}")

    def sealed(self, run_id: str, segment: int) -> None:
        """A segment was marked as sealed."""
        run = self._tables.read_run(run_id)
        assert run is not None
        whole = len(segment_range(segment, run.marker.total_units))
        done = len(self._tables.read_segment(run_id, segment).done)
        self._must(done == whole, f"segment {segment} sealed with {done} of {whole} units DONE")

    def posted(self, actor: str, postings: Sequence[Posting]) -> None:
        """Ledger rows were written, all at once."""
        run_id = postings[0].after.run_id
        balance = self.budgets.setdefault(run_id, Balance())
        for before, after in postings:
            where = f"{after.kind} {after.id} {before and before.body}→{after.body} by {actor}"
            self._must(after.version == (before.version + 1 if before else 1), f"a version passed over: {where}")
            match after.kind:
                case "budget":
                    balance.cap += _rise(before, after, "cap")
                    balance.overshoot += _rise(before, after, "overshoot")
                case "available":
                    balance.available += _rise(before, after, "nano")
                    self._must(_whole(after, "nano") >= 0, f"I8: less than nothing is available: {where}")
                case "grant" | "spend":
                    balance.held += _rise(before, after, "held")
                    self._judge_grant(before, after, where)
        where = f"{balance} by {actor} with {[after.id for _, after in postings]}"
        adds_up = balance.cap + balance.overshoot == balance.available + balance.held
        self._must(adds_up, f"I8: the budget does not add up: {where}")
        self._must(not (balance.overshoot and balance.available), f"I8: overshoot with money to spare: {where}")

    def _judge_grant(self, before: Entry | None, after: Entry, where: str) -> None:
        grant = grant_of(after.run_id, after.id, after.body)
        was = grant_of(after.run_id, after.id, before.body) if before else None
        covered = after.kind == "spend" or grant.held >= grant.settled
        self._must(covered, f"I8: spent, and held by nobody: {where}")
        if was is not None:
            self._must(grant.sequence >= was.sequence, f"a settlement came undone: {where}")
            reopened = was.state is not GrantState.OPEN and grant.state is GrantState.OPEN
            self._must(not reopened, f"an ended grant is open again: {where}")

    def blob_written(self, actor: str, key: str, before: bytes | None, after: bytes) -> None:
        """A blob was put."""
        self._must(before in (None, after), f"published bytes overwritten with others: {key} by {actor}")
        if before is None and key.endswith("/manifest.json"):
            self.roots += 1
            run = self._run_at(key)
            closing = run is not None and run.state in (S.FINALIZING, S.COMPLETED)
            self._must(closing, f"I4: a root in a run that is {run and run.state}: by {actor}")

    def _run_at(self, key: str) -> Run | None:
        runs = self._tables.list_runs(None, "", 100)
        return next((run for run in runs if root_key(run.marker.prefix) == key), None)

    def _digest(self, key: str) -> str | None:
        return sha256_hex(self._blobs.get(key)) if self._blobs.exists(key) else None

    def _must(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.broken.append(otherwise)


def _whole(entry: Entry | None, name: str) -> int:
    number = entry.body[name] if entry else 0
    assert isinstance(number, int)
    return number


def _rise(before: Entry | None, after: Entry, name: str) -> int:
    return _whole(after, name) - _whole(before, name)
