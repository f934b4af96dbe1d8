"""Collecting what nobody names: temporary files, superseded attempts, blobs of withdrawn runs.

Nothing that a sealed manifest names is ever touched, and a dry run says what would go. What does
not belong here: deciding that a run is unwanted (withdraw.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RunIncomplete, RunWithdrawn
from docgen_core.runs.keys import CATALOGUES, SEALED, WITHDRAWN, default_prefix, is_attempt, is_name
from docgen_core.runs.manifest import iter_parts, read_root

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Garbage:
    """One thing that goes, and why."""

    key: str
    bytes: int
    reason: str
    """`temporary`, `leftover` or `withdrawn`."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was removed, or what a dry run would remove."""

    garbage: tuple[Garbage, ...]
    dry_run: bool

    @property
    def removed(self) -> int:
        """How many blobs and temporary files."""
        return len(self.garbage)

    @property
    def bytes(self) -> int:
        """Their bytes in all."""
        return sum(item.bytes for item in self.garbage)

    @property
    def keys(self) -> tuple[str, ...]:
        """Their keys."""
        return tuple(item.key for item in self.garbage)


def collect(
    blobs: BlobStore,
    *,
    older_than_seconds: float = DAY_SECONDS,
    withdrawn: bool = False,
    dry_run: bool = False,
    now: Callable[[], float] = time.time,
) -> Collected:
    """Remove temporary files of at least this age, and leftovers of sealed runs.

    With `withdrawn`, also every blob under the prefix of a withdrawn run; its tombstone stays.
    Raises `Damage` when a sealed run's manifest cannot be read: then nothing of it is judged.
    """
    garbage = [*_old_temporaries(blobs, now() - older_than_seconds), *_leftovers(blobs)]
    if withdrawn:
        garbage += _withdrawn_blobs(blobs)
    if not dry_run:
        for item in garbage:
            if item.reason == "temporary":
                blobs.delete_temporary(item.key)
            else:
                blobs.delete(item.key)
    return Collected(tuple(garbage), dry_run)


def _old_temporaries(blobs: BlobStore, before: float) -> Iterator[Garbage]:
    for temporary in blobs.iter_temporary():
        if temporary.modified_at <= before:
            yield Garbage(temporary.name, temporary.size, "temporary")


def _marked(blobs: BlobStore, markers: str) -> Iterator[str]:
    """Prefixes of the runs that have such a marker; what a desktop or a browser of buckets left there names none."""
    names = (info.key.removeprefix(markers) for info in blobs.iter_keys(markers))
    yield from (default_prefix(name) for name in names if is_name(name))


def _leftovers(blobs: BlobStore) -> Iterator[Garbage]:
    for prefix in _marked(blobs, SEALED):
        # Only catalogues have attempts: listing ten thousand runs of documents would find none.
        if not prefix.startswith(f"{CATALOGUES}/"):
            continue
        attempts = [info for info in blobs.iter_keys(f"{prefix}/") if is_attempt(prefix, info.key)]
        if not attempts:
            continue
        try:
            root = read_root(blobs, prefix)
        except (RunWithdrawn, RunIncomplete):
            continue
        named = {entry.key for entry in root.parts}
        for part in iter_parts(blobs, root):
            named.update(entry.key for entry in part.blobs)
        yield from (Garbage(info.key, info.size, "leftover") for info in attempts if info.key not in named)


def _withdrawn_blobs(blobs: BlobStore) -> Iterator[Garbage]:
    for prefix in _marked(blobs, WITHDRAWN):
        for info in blobs.iter_keys(f"{prefix}/"):
            yield Garbage(info.key, info.size, "withdrawn")
