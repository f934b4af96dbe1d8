"""How far this machine's clock is from the state store's, and how far it may be.

It decides nothing: a clock that is off costs work, never a unit, since the generation decides who
owns it. What does not belong here: which leases have run out (watch.py).
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakSet

from docgen_core.errors import DocgenError

if TYPE_CHECKING:
    from docgen_core.state.contract import StateStore

MEASURABLE_SECONDS = 2.0
"""No smaller offset is told: a service says its time in whole seconds, and from afar."""

_log = logging.getLogger(__name__)
_looked: WeakSet[StateStore] = WeakSet()


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far this machine's clock is ahead of the store's; below 0 it is behind."""

    seconds: float
    bound: float
    """Half of the allowed skew: two machines that far off the store, each its own way, are that skew apart."""

    @classmethod
    def seen(cls, asked: float, there: float, answered: float, *, skew_seconds: float) -> ClockOffset:
        """From the store's time, read at an unknown moment between two looks at our own: what is certain of it."""
        seconds = max(asked - there, 0.0) + min(answered - there, 0.0)
        return cls(seconds, max(skew_seconds / 2, MEASURABLE_SECONDS))

    @property
    def complaint(self) -> str | None:
        """One line for people when it is further off than it may be; else None."""
        if abs(self.seconds) <= self.bound:
            return None
        return (
            f"this machine's clock is {abs(self.seconds):.0f} s {'ahead of' if self.seconds > 0 else 'behind'} the "
            f"state store's, by more than {self.bound:.0f} s: set it by NTP; until then leases are taken over "
            "early or late, which costs work and loses none"
        )


def warn_of_clock(state: StateStore) -> None:
    """Log a line when this machine's clock is too far off. Looks once for each store that a process opens.

    A store that does not answer is met, and told, by whoever works with it next.
    """
    if state in _looked:
        return
    _looked.add(state)
    with suppress(DocgenError):
        offset = state.clock_offset()
        if offset is not None and offset.complaint:
            _log.warning("%s", offset.complaint)
