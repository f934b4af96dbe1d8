"""Withdrawing a run: a tombstone that every reader honours. The blobs stay until `docgen gc`.

What does not belong here: removing anything (gc.py), and rows that a sink already holds (export).
"""

from __future__ import annotations

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RunUnknown
from docgen_core.runs.keys import withdrawn_key
from docgen_core.runs.manifest import is_published

TOMBSTONE = b"withdrawn\n"


def withdraw(run_id: str, blobs: BlobStore) -> None:
    """Put the run's tombstone. Withdrawing again is fine. Raises `RunUnknown` when nothing is there."""
    if not is_published(blobs, run_id):
        raise RunUnknown(run_id)
    blobs.put_same(withdrawn_key(run_id), TOMBSTONE)
