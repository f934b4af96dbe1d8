"""Where drain workers run. A fleet has `start(n)`, `poll()` and `stop()`, and decides nothing else.

Whether a run is drained is the state store's to say; a fleet only knows which of its workers are
alive. What does not belong here: claims, leases, retries.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from typing import ClassVar, Protocol

from pydantic import Field

from docgen_assets.failures import Bounded


class FleetKind(Enum):
    """The fleets there are."""

    local = "local"


class Fleet(Protocol):
    """Workers of `docgen work`, somewhere."""

    def start(self, n: int) -> None:
        """Start `n` workers more."""

    def poll(self) -> int:
        """How many are alive."""

    def replace_killed(self) -> int:
        """Start as many as signals have killed since the last call, within a bound. Returns how many."""

    def stop(self) -> None:
        """Ask all to hand their leases back, wait a grace, then kill. Safe to call again."""


class Workers(Bounded):
    """How the documents are made; never which bytes they have."""

    bounds: ClassVar[dict[str, tuple[int, int]]] = {"workers": (1, 512)}

    workers: int = Field(
        default=4,
        description="Worker processes to start. They pull units of work from the state store; two or three units "
        "a worker is right. On this machine one a core is plenty.",
    )
    fleet: FleetKind = Field(default=FleetKind.local, description="Where they run: local (processes of this machine).")


def work_command(
    run_ids: Sequence[str],
    *,
    state: str,
    blobs: str,
    units: Sequence[int] | None = None,
    concurrency: int | None = None,
    max_rejected_percent: int | None = None,
) -> list[str]:
    """The command of one worker: drain these runs, and stop when standard input ends."""
    scope = [] if units is None else ["--units", ",".join(str(unit) for unit in units)]
    limits = {"--concurrency": concurrency, "--max-rejected-percent": max_rejected_percent}
    return [
        *(sys.executable, "-m", "docgen_core.cli", "work", *run_ids),
        *("--until-stdin-closes", "--state", state, "--blobs", blobs, *scope),
        *(word for name, value in limits.items() if value is not None for word in (name, str(value))),
    ]


def open_fleet(kind: FleetKind, command: Sequence[str]) -> Fleet:
    """A fleet whose workers run the command."""
    from docgen_core.runs.fleet import LocalFleet

    match kind:
        case FleetKind.local:
            return LocalFleet(command)
