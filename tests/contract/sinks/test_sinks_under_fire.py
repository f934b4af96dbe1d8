"""Sinks with several real processes at once, and with processes that die in the middle."""

from __future__ import annotations

import signal
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from export_processes import EXPORT, end, start
from fabricated_run import orders_and_notes, seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.export import export_run

if TYPE_CHECKING:
    from conftest import Place

EXPORT_AND_DIE_BEFORE_PUBLISHING = """
import os, signal, sys
from docgen_core.blobs import open_blobs
from docgen_core.export import export_run, open_sink

def die(table, rows):
    if table == "orders":
        os.kill(os.getpid(), signal.SIGKILL)

blobs, sink, run_id = sys.argv[1:]
export_run(run_id, blobs=open_blobs(blobs), sink=open_sink(sink), on_table=die)
"""

PUBLISH_AND_DIE_AT_ONCE = """
import os, signal, sys
from docgen_core.blobs import open_blobs
from docgen_core.export import export_run, open_sink

blobs, uri, run_id = sys.argv[1:]
sink = open_sink(uri)
sink.register = lambda: os.kill(os.getpid(), signal.SIGKILL)
export_run(run_id, blobs=open_blobs(blobs), sink=sink)
"""


def test_three_processes_two_runs_many_times(place: Place, blobs: BlobStore) -> None:
    for run_id in ("r1", "r2"):
        seal(blobs, run_id, orders_and_notes(run_id, units=5))
    times = str(place.repeated)
    processes = [start(EXPORT, blobs.uri, place.uri, run_id, times) for run_id in ("r1", "r2", "r1")]
    ended = [end(process) for process in processes]
    assert ended == [(0, "")] * 3, "\n".join(errors for _, errors in ended)
    assert [row["run_id"] for row in place.rows("orders")] == ["r1"] * 5 + ["r2"] * 5


@pytest.mark.parametrize("exported_before", [False, True])
def test_killed_before_it_publishes(place: Place, blobs: BlobStore, exported_before: bool) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    if exported_before:
        with closing(place.open()) as sink:
            export_run("r1", blobs=blobs, sink=sink)
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    code, _ = end(start(EXPORT_AND_DIE_BEFORE_PUBLISHING, blobs.uri, place.uri, "r1"))
    assert code == -signal.SIGKILL
    assert len(place.rows("orders")) == 1 if exported_before else "orders" not in place.tables()
    with closing(place.open()) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert len(place.rows("orders")) == 3


def test_killed_when_it_has_published(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    code, _ = end(start(PUBLISH_AND_DIE_AT_ONCE, blobs.uri, place.uri, "r1"))
    assert code == -signal.SIGKILL
    assert len(place.rows("orders")) == 3
    with closing(place.open()) as sink:
        export_run("r1", blobs=blobs, sink=sink)
    assert len(place.rows("orders")) == 3


def test_a_place_that_cannot_be_written_is_one_line(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    named = place.block()
    code, errors = end(start(EXPORT, blobs.uri, place.uri, "r1", "1"))
    assert code == 1
    last = errors.strip().splitlines()[-1]
    assert last.startswith(("docgen_core.errors.StorageFailed: ", "docgen_core.errors.UsageError: "))
    assert named in last
