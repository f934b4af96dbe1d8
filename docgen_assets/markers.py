"""Which markers are new, by a cursor of fixed size, however many there are and in whatever order they come.

Run ids have no order in time, so "behind the last one" says nothing. Markers are dealt into buckets
by a hash of their name, and the cursor keeps a fingerprint of each bucket: a bucket whose
fingerprint differs holds something new, and only its members are looked at. What does not belong
here: what to do about a new one, and whether it was asked for before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field

BUCKETS = 256
"""With ten thousand runs a new marker means looking at about forty."""

_FINGERPRINT = 6
"""Hex digits of a bucket's fingerprint: the whole cursor stays below 2 kB."""

_NOTHING = "-" * _FINGERPRINT
"""Fingerprint of a bucket that was never walked to its end."""


@dataclass
class Cursor:
    """What earlier ticks knew."""

    marks: list[str] = field(default_factory=lambda: [_NOTHING] * BUCKETS)
    """Fingerprint of each bucket when it was last walked to its end."""
    bucket: int = 0
    """Where the walk stands…"""
    after: str = ""
    """…within it, behind this run; empty between two buckets."""
    started: str = _NOTHING
    """Fingerprint of that bucket when its walk began; what came later is walked again."""
    again: bool = False
    """Whether something in that bucket has to be looked at once more."""
    unfinished_after: str = ""
    """Unfinished runs were looked at up to this one."""
    drained: list[str] = field(default_factory=list)
    """Runs that were seen drained and not sealed once: their workers may be about to."""

    @classmethod
    def load(cls, text: str | None) -> Cursor:
        """The cursor as it was dumped; a fresh one for none."""
        if not text:
            return cls()
        content = json.loads(text)
        return cls(**{**content, "marks": content["marks"].split(" ")})

    def dump(self) -> str:
        """The cursor as text; with spaces between the marks, so that the sensor's page can wrap it."""
        return json.dumps({**asdict(self), "marks": " ".join(self.marks)}, separators=(",", ":"))


def walk(cursor: Cursor, run_ids: Iterable[str]) -> Iterator[str]:
    """Runs of the buckets that changed, going round from where the last tick stopped.

    `run_ids` come in key order. Whoever consumes this may stop at any run: one that was yielded and
    not followed by a request for the next is yielded again in the next tick.
    """
    buckets: dict[int, list[str]] = {}
    for run_id in run_ids:
        buckets.setdefault(_bucket(run_id), []).append(run_id)
    first = cursor.bucket
    for bucket in (*range(first, BUCKETS), *range(first)):
        members = buckets.get(bucket, [])
        if not cursor.after:
            cursor.bucket, cursor.started, cursor.again = bucket, _fingerprint(members), False
            if cursor.started == cursor.marks[bucket]:
                continue
        for run_id in members:
            if run_id > cursor.after:
                yield run_id
                cursor.after = run_id
        cursor.marks[bucket] = _NOTHING if cursor.again else cursor.started
        cursor.after = ""


def _bucket(run_id: str) -> int:
    return int(hashlib.sha256(run_id.encode()).hexdigest()[:8], 16) % BUCKETS


def _fingerprint(members: list[str]) -> str:
    return hashlib.sha256("\n".join(members).encode()).hexdigest()[:_FINGERPRINT]
