"""Which markers are new, by a small cursor, however many there are and in whatever order they come.

Run ids have no order in time, so "behind the last one" says nothing. Markers are dealt into buckets
by a hash of their name, and the cursor keeps a fingerprint of each bucket: a bucket whose
fingerprint differs holds something new, and only its members are looked at. A tick lists one window
of key order, wide enough for most places; where there are more markers, the next tick lists the
next window, which has fingerprints of its own. What does not belong here: what to do about a new
marker, and whether it was asked for before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

BUCKETS = 256
"""With ten thousand runs a new marker means looking at about forty."""

WINDOW = 20_000
"""Markers that a tick lists at most: twenty requests."""

_FINGERPRINT = 6
"""Hex digits of a bucket's fingerprint: a window takes less than 2 kB of the cursor."""

_NOTHING = "-" * _FINGERPRINT
"""Fingerprint of a bucket that was never walked to its end."""


@dataclass
class Walk:
    """What earlier ticks knew of one window."""

    marks: Annotated[list[str], Field(min_length=BUCKETS, max_length=BUCKETS)] = field(
        default_factory=lambda: [_NOTHING] * BUCKETS
    )
    """Fingerprint of each bucket when it was last walked to its end."""
    bucket: Annotated[int, Field(ge=0, lt=BUCKETS)] = 0
    """Where the walk stands…"""
    after: str = ""
    """…within it, behind this run; empty between two buckets."""
    started: str = _NOTHING
    """Fingerprint of that bucket when its walk began; what came later is walked again."""
    again: bool = False
    """Whether something in that bucket has to be looked at once more."""

    def new(self, run_ids: Iterable[str]) -> Iterator[str]:
        """Runs of the buckets that changed, going round from where the last tick stopped.

        `run_ids` come in key order. Whoever consumes this may stop at any run: one that was yielded
        and not followed by a request for the next is yielded again in the next tick.
        """
        buckets: dict[int, list[str]] = {}
        for run_id in run_ids:
            buckets.setdefault(_bucket(run_id), []).append(run_id)
        first = self.bucket
        for bucket in (*range(first, BUCKETS), *range(first)):
            members = buckets.get(bucket, [])
            if not self.after:
                self.bucket, self.started, self.again = bucket, _fingerprint(members), False
                if self.started == self.marks[bucket]:
                    continue
            for run_id in members:
                if run_id > self.after:
                    yield run_id
                    self.after = run_id
            self.marks[bucket] = _NOTHING if self.again else self.started
            self.after = ""


@dataclass
class Sweep:
    """All markers of a kind, one window of key order a tick."""

    windows: dict[str, Walk] = field(default_factory=lambda: {"": Walk()})
    """By the name behind which each begins; it ends where the next one begins."""
    at: str = ""
    """The window that is due."""

    def due(self, names: Callable[[str], Iterator[str]]) -> tuple[Walk, list[str]]:
        """The walk of the window that is due, and its run ids; the window behind it is due next.

        `names` gives the names of all markers behind one, in key order. A window that has grown too
        wide is cut, and its second part walked anew.
        """
        walk, found = self.windows[self.at], list[str]()
        end = min((start for start in self.windows if start > self.at), default=None)
        for name in names(self.at):
            if end is not None and name > end:
                break
            if len(found) == WINDOW:
                end = found[-1]
                self.windows[end] = Walk()
                break
            found.append(name)
        self.at = end or ""
        return walk, found

    def as_json(self) -> dict[str, Any]:
        """The sweep as plain JSON; with spaces between the marks, so that the sensor's page can wrap it."""
        windows = {start: {**asdict(walk), "marks": " ".join(walk.marks)} for start, walk in self.windows.items()}
        return {"windows": windows, "at": self.at}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Sweep:
        """The sweep as it was kept. Raises `LookupError`, `TypeError` or `ValueError` for anything else."""
        windows = {start: {**walk, "marks": walk["marks"].split(" ")} for start, walk in content["windows"].items()}
        sweep = TypeAdapter(cls).validate_python({**content, "windows": windows})
        if not {"", sweep.at} <= windows.keys():
            raise ValueError("no sweep")
        return sweep


def _bucket(run_id: str) -> int:
    return int(hashlib.sha256(run_id.encode()).hexdigest()[:8], 16) % BUCKETS


def _fingerprint(members: list[str]) -> str:
    return hashlib.sha256("\n".join(members).encode()).hexdigest()[:_FINGERPRINT]
