"""What keeps a run from its end although nobody works at it, and what to do about it.

A look at a run says what would be wrong if nothing moved; a run is stuck when looks over some time
say the same. What does not belong here: doing anything about it. That is for a person to decide, but
for a drained run, which the sensor of root manifests has resumed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from docgen_core.state.contract import RunKind, RunState, UnitState

if TYPE_CHECKING:
    from docgen_core.state.contract import Progress, Run, StateStore

UNFINISHED = (RunState.RUNNING, RunState.PAUSED, RunState.FINALIZING)

STILL_SECONDS = 15 * 60.0
"""How long nothing has to move: workers that start, or wait for a peer's lease to end, take less."""

PAUSED_SECONDS = 24 * 3600.0
"""A pause is somebody's wish, and is forgotten after a day."""

FOLLOWED = 50
"""Runs with something wrong that are followed at once, so that the cursor stays below 30 kB; others come up in turn."""

_ERROR_CHARACTERS = 150
"""Of a failed unit's error; `docgen failures` has the rest."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a run if nothing moves."""

    run_id: str
    what: str
    do: str
    patience_seconds: float = STILL_SECONDS

    def as_row(self) -> dict[str, object]:
        """For a table that people read."""
        return {"run": self.run_id, "what": self.what, "what to do": self.do}


def look(state: StateStore, run: Run) -> Trouble | None:
    """What is wrong with an unfinished run; None where somebody works at it, or nobody has begun.

    Costs a count of the run's units, and one failed unit's row.
    """
    run_id = run.run_id
    resume = f"launch the job resume_run with run_id {run_id}, or `docgen resume {run_id}`"
    if run.state is RunState.PAUSED:
        return Trouble(run_id, "it is paused", f"{resume}; or end it by cancel_run", PAUSED_SECONDS)
    if not run.planned:
        return Trouble(run_id, "its planner died before the plan was whole", "plan it again, as it was planned")
    counts = state.progress(run_id)
    if run.state is RunState.FINALIZING or counts.done == counts.total:
        return Trouble(run_id, "every unit is done, and nobody sealed it", resume)
    if counts.running > counts.expired:
        return None
    what = _left_behind(state, run, counts)
    return Trouble(run_id, what, f"{resume}; or end it by cancel_run") if what else None


def _left_behind(state: StateStore, run: Run, counts: Progress) -> str:
    """How a run stands that no worker holds a unit of; empty for one that nobody has begun.

    A catalogue is made range by range, as documents are wanted of them: that some are missing is no trouble.
    """
    said = []
    if counts.failed:
        first = next(iter(state.units(run.run_id, {UnitState.FAILED}, limit=1)), None)
        example = f" (unit {first.index}: {(first.error or '')[:_ERROR_CHARACTERS]})" if first else ""
        said.append(f"{counts.failed} units failed{example}")
    if counts.expired:
        said.append(f"{counts.expired} units are held by workers that are gone")
    if counts.pending and (said or counts.done) and run.marker.kind is RunKind.DOCUMENTS:
        said.append(f"{counts.pending} units wait for a worker")
    return ", ".join(said)


@dataclass
class Watch:
    """The cursor: runs with something wrong, how each stood, and since when."""

    after: str = ""
    """Unfinished runs were looked at up to this one."""
    seen: dict[str, tuple[Trouble, float]] = field(default_factory=dict)
    """By run id; the time it was first seen to stand so, in seconds since 1970."""
    told: list[str] = field(default_factory=list)
    """Runs that were reported as stuck last."""

    @classmethod
    def load(cls, text: str | None) -> Watch:
        """The watch as it was dumped; a fresh one for none, or for that of another version."""
        try:
            return TypeAdapter(cls).validate_json(text or "{}")
        except ValidationError:
            # What stands still will be seen to stand still once more.
            return cls()

    def dump(self) -> str:
        """The watch as text."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def note(self, found: Sequence[Trouble], until: str, now: float) -> None:
        """Take down a look at all unfinished runs behind `after` up to `until`; empty when it was at the last ones."""
        there = {trouble.run_id: trouble for trouble in found}
        looked_at = [name for name in self.seen if name > self.after and (not until or name <= until)]
        for name in set(looked_at) - set(there):
            del self.seen[name]
        for name, trouble in there.items():
            known = self.seen.get(name)
            if known is None and len(self.seen) == FOLLOWED:
                continue
            if known is None or known[0] != trouble:
                self.seen[name] = (trouble, now)
        self.after = until

    def stuck(self, now: float) -> list[Trouble]:
        """Runs that have stood so for longer than can be well, in order."""
        return [trouble for _, (trouble, since) in sorted(self.seen.items()) if now - since >= trouble.patience_seconds]
