"""Garbage is what nobody names; a withdrawn run is read by nobody and kept until it is collected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docgen_core.errors import RunUnknown, UsageError
from docgen_core.runs.gc import collect
from docgen_core.runs.verify import verify_run
from docgen_core.runs.withdraw import withdraw

LEFTOVER = "catalogue/v1/golden/goods/unit-000001.g2.parquet"


def temporary(stage: Any, name: str) -> Path:
    path = Path(stage.blobs.uri.removeprefix("file://")) / ".tmp" / name
    path.write_bytes(b"half")
    return path


def test_a_sound_store_has_no_garbage(sealed: Any) -> None:
    before = sealed.digests("")
    assert collect(sealed.blobs, older_than_seconds=0, withdrawn=True).garbage == ()
    assert sealed.digests("") == before


def test_temporary_files_go_once_they_are_old(sealed: Any) -> None:
    path = temporary(sealed, "1-a")
    made = path.stat().st_mtime
    assert collect(sealed.blobs, older_than_seconds=100, now=lambda: made + 99).removed == 0
    assert path.exists()
    gone = collect(sealed.blobs, older_than_seconds=100, now=lambda: made + 101)
    assert gone.keys == ("1-a",) and gone.bytes == 4
    assert not path.exists()


def test_superseded_attempts_of_sealed_runs_go_and_what_is_named_or_foreign_stays(sealed: Any) -> None:
    before = sealed.digests("")
    sealed.blobs.put(LEFTOVER, b"superseded")
    sealed.blobs.put("runs/r1/stray.txt", b"foreign: damage, not garbage")
    sealed.blobs.put("runs/r1/golden/parcels/unit-000001.g2.parquet", b"no run of documents writes such a key")
    sealed.blobs.put("catalogue/unsealed/golden/goods/unit-000000.g1.parquet", b"may still be named")
    looked = collect(sealed.blobs, dry_run=True)
    assert looked.keys == (LEFTOVER,) and looked.dry_run and sealed.blobs.exists(LEFTOVER)
    assert collect(sealed.blobs).keys == (LEFTOVER,)
    assert sealed.digests("").items() >= before.items()
    assert sealed.blobs.exists("runs/r1/stray.txt") and not sealed.blobs.exists(LEFTOVER)


def test_a_withdrawn_runs_blobs_go_on_request_and_its_tombstone_stays(sealed: Any) -> None:
    withdraw("r1", sealed.blobs)
    assert collect(sealed.blobs).removed == 0
    gone = collect(sealed.blobs, withdrawn=True)
    assert gone.removed > 20 and sealed.digests("runs/r1/") == {}
    assert sealed.blobs.exists("withdrawn/r1")
    assert verify_run("catalogue-v1", blobs=sealed.blobs, state=sealed.state, deep=True).ok


@pytest.mark.parametrize("markers", ["sealed", "withdrawn"])
def test_a_marker_that_names_no_run_is_passed_over(sealed: Any, markers: str) -> None:
    sealed.blobs.put(f"{markers}/.DS_Store", b"left by a desktop")
    sealed.blobs.put(LEFTOVER, b"superseded")
    assert collect(sealed.blobs, withdrawn=True).keys == (LEFTOVER,)


def test_what_was_never_there_cannot_be_withdrawn(sealed: Any) -> None:
    with pytest.raises(RunUnknown):
        withdraw("never", sealed.blobs)
    with pytest.raises(UsageError):
        withdraw("../r1", sealed.blobs)
