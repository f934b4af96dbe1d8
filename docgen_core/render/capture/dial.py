"""How worn a document is to look: one dial from 0 to 100 over all of a capture's own draws.

What does not belong here: what is drawn (each kind of damage).
"""

from __future__ import annotations

from dataclasses import dataclass

from docgen_core.draws import Draws

LEAST_WEAR, MOST_WEAR = 0, 100
_LEEWAY = 10
"""Per cent of a range by which two documents of equal wear may differ."""


@dataclass(frozen=True, slots=True)
class Dial:
    """Draws of one capture under a wear. Equal draws under more wear give no less damage."""

    draws: Draws
    wear: int | None = None
    """0 to 100; None: each amount has its whole range."""

    def amount(self, name: str, least: int, most: int) -> int:
        """An integer near `least` at wear 0 and near `most` at 100, which may be the smaller number."""
        low, high = min(least, most), max(least, most)
        if self.wear is not None:
            leeway = (high - low) * _LEEWAY // 100
            middle = least + (most - least) * self.wear // MOST_WEAR
            low, high = max(low, middle - leeway), min(high, middle + leeway)
        return self.draws.integer(name, low, high)

    def under(self, *path: object) -> Dial:
        """The same wear over the draws of a part, such as a page."""
        return Dial(self.draws.under(*path), self.wear)

    def settled(self, low: int, high: int) -> Dial:
        """With a wear from `low` to `high` where none was asked for."""
        return self if self.wear is not None else Dial(self.draws, self.draws.integer("wear", low, high))
