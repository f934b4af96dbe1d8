"""What a worker's drain of a run tells: each attempt at a unit, and how it ended.

Nothing of it is published. What does not belong here: the loop that comes to these ends (drain.py),
and how they are said to people (the command line).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DrainEnd(StrEnum):
    """Why a worker has ended."""

    COMPLETED = "COMPLETED"
    DRAINED_WITH_FAILURES = "DRAINED_WITH_FAILURES"
    PEERS_AT_WORK = "PEERS_AT_WORK"
    UNPLANNED = "UNPLANNED"
    """Left without waiting for the planner, which may be dead."""
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    STOPPED = "STOPPED"
    SCOPE_DONE = "SCOPE_DONE"
    """Every unit of `within` is DONE, and the run has others that are not."""


_EXIT_CODES = {
    DrainEnd.DRAINED_WITH_FAILURES: 3,
    DrainEnd.UNPLANNED: 3,
    DrainEnd.CANCELLED: 4,
    DrainEnd.STOPPED: 143,
}


@dataclass(frozen=True, slots=True)
class DrainOutcome:
    """How a worker's drain of a run ended."""

    run_id: str
    kind: DrainEnd
    units: int
    """Units that this worker made DONE."""
    root_digest: str | None = None
    failed: tuple[int, ...] = ()
    """Failed units in scope."""

    @property
    def exit_code(self) -> int:
        """0, or 3 failed or unplanned, 4 cancelled, 143 stopped (130 after an interrupt is the caller's to say)."""
        return _EXIT_CODES.get(self.kind, 0)


class UnitOutcome(StrEnum):
    """How an attempt at a unit ended."""

    DONE = "done"
    FAILED = "failed"
    RETRY = "retry"
    LOST = "lost"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class UnitEvent:
    """One attempt at a unit, for logs and progress bars. Nothing of it is published."""

    run_id: str
    unit: int
    generation: int
    attempt: int
    worker: str
    outcome: UnitOutcome
    seconds: float
    items: int
    """Documents (or companies) of the unit."""
    error: str | None = None
