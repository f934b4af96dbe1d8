"""Withdrawing a run: a tombstone that every reader honours. The blobs stay until `docgen gc`.

What does not belong here: removing anything (gc.py), and rows that a sink already holds (export).
"""

from __future__ import annotations

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RunUnknown
from docgen_core.runs.keys import default_prefix, plan_key, sealed_key, withdrawn_key

TOMBSTONE = b"withdrawn\n"


def withdraw(run_id: str, blobs: BlobStore) -> None:
    """Put the run's tombstone. Withdrawing again is fine. Raises `RunUnknown` when nothing is there."""
    known = (sealed_key(run_id), withdrawn_key(run_id), plan_key(default_prefix(run_id)))
    if not any(blobs.exists(key) for key in known):
        raise RunUnknown(run_id)
    blobs.put_same(withdrawn_key(run_id), TOMBSTONE)
