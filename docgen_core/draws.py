"""Seeded draws with a name each, so that adding a draw never shifts the others.

A draw is a pure function of its path (seed, purpose, index, …) and its name. No third
party's random stream stands on the truth path: libraries change theirs between versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

_SPAN = 1 << 64


class Draws:
    """Named draws under one path. Equal paths and names give equal draws, anywhere."""

    __slots__ = ("_path",)

    def __init__(self, *path: object) -> None:
        self._path = "\x1f".join(str(step) for step in path)

    def under(self, *path: object) -> Draws:
        """Draws for a part of what this path names, independent of every other part."""
        return Draws(self._path, *path)

    def bits(self, name: str) -> int:
        """64 uniform bits."""
        digest = hashlib.sha256(f"{self._path}\x1e{name}".encode()).digest()
        return int.from_bytes(digest[:8], "big")

    def integer(self, name: str, low: int, high: int) -> int:
        """A uniform integer, both ends included (bias below 2^-40 for spans in use)."""
        if high < low:
            raise ValueError(f"empty range {low}..{high} for draw {name!r}")
        return low + self.bits(name) * (high - low + 1) // _SPAN

    def chance(self, name: str, per_mille: int) -> bool:
        """True in `per_mille` of 1,000 cases."""
        return self.integer(name, 0, 999) < per_mille

    def choice(self, name: str, options: Sequence[T]) -> T:
        """One of the options, each alike."""
        return options[self.integer(name, 0, len(options) - 1)]

    def weighted(self, name: str, weights: Mapping[T, int]) -> T:
        """One of the keys, by integer weight, in the mapping's order."""
        ticket = self.integer(name, 1, sum(weights.values()))
        for option, weight in weights.items():
            ticket -= weight
            if ticket <= 0:
                return option
        raise ValueError(f"no weight for draw {name!r}")

    def sample(self, name: str, options: Sequence[T], count: int) -> list[T]:
        """`count` different options (all of them where there are fewer), in drawn order."""
        ranked = sorted(range(len(options)), key=lambda i: (self.bits(f"{name}#{i}"), i))
        return [options[i] for i in ranked[:count]]
