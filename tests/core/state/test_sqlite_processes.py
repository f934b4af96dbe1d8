"""Real processes on one SQLite file: started cold, hammering, killed, forked, out of disk."""

from __future__ import annotations

import json
import multiprocessing
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from docgen_core.state import open_state
from docgen_core.state.contract import Outlook, Part, RunKind, RunMarker, UnitState

WORKER = Path(__file__).with_name("state_worker.py")
PROCESSES = 32


@pytest.fixture
def start():
    """Start a worker process; all are dead at the end."""
    processes = []

    def start(mode, uri, worker):
        command = [sys.executable, str(WORKER), mode, uri, "r", worker]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def _release(processes):
    """Let processes go at once, when all are ready."""
    for process in processes:
        assert json.loads(process.stdout.readline()) == "ready"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()


def _answer(process):
    out, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(out)


def _planned(path, units, **settings):
    query = "&".join(f"{name}={value}" for name, value in settings.items())
    store = open_state(f"sqlite://{path}?{query}" if query else path)
    store.create_run(RunMarker("r", RunKind.DOCUMENTS, "runs/r", {}, "digest", units, 1, units))
    store.mark_planned("r", "digest")
    return store


def _drain(store, worker="last"):
    while (claim := store.claim_next_unit("r", worker, limit=10)).outlook is not Outlook.DRAINED:
        for lease in claim.leases:
            store.complete_unit(lease, Part("part", "sha", 1))
        time.sleep(claim.retry_seconds)


def test_32_processes_start_cold_on_one_file_and_none_dies_and_no_unit_is_done_twice(tmp_path, start):
    uri = f"sqlite://{tmp_path}/new/folder/state.db"
    processes = [start("drain", uri, f"worker-{number}") for number in range(PROCESSES)]
    _release(processes)
    done = Counter(index for process in processes for index in _answer(process))
    assert done == Counter(range(320))
    with open_state(uri) as store:
        assert store.progress("r").done == 320
        assert {unit.generation for unit in store.units("r")} == {1}


def test_leases_of_killed_processes_come_back(tmp_path, start):
    with _planned(tmp_path / "state.db", 12, lease_seconds=1, max_attempts=2) as store:
        holders = [start("hold", store.uri, f"holder-{number}") for number in range(3)]
        _release(holders)
        held = [json.loads(holder.stdout.readline()) for holder in holders]
        for holder in holders:
            holder.kill()
        _drain(store)
        units = {unit.index: unit for unit in store.units("r")}
        assert {unit.state for unit in units.values()} == {UnitState.DONE}
        taken_over = {index for pair in held for index in pair}
        assert {index for index, unit in units.items() if unit.generation == 2} == taken_over
        # Of each pair the first was in hand, and only it has paid with an attempt.
        assert {index for index, unit in units.items() if unit.attempts == 2} == {pair[0] for pair in held}


def test_a_process_killed_at_any_moment_leaves_a_sound_file(tmp_path, start):
    with _planned(tmp_path / "state.db", 320, lease_seconds=1, max_attempts=50) as store:
        for round_number in range(4):
            workers = [start("drain", store.uri, f"worker-{round_number}-{number}") for number in range(3)]
            _release(workers)
            wanted = store.progress("r").done + 20
            while store.progress("r").done < min(wanted, 320):
                time.sleep(0.01)
            for worker in workers:
                worker.kill()
        _drain(store)
        assert store.progress("r").done == 320
        digests = {unit.index: unit.part_sha256 for unit in store.units("r")}
        assert len(digests) == 320
    with sqlite3.connect(tmp_path / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, start):
    with _planned(tmp_path / "state.db", 20_000) as store:
        process = start("fill", store.uri, "worker")
        _release([process])
        kind, message = _answer(process)
        assert kind == "StorageFailed"
        assert str(tmp_path / "state.db") in message
        assert "\n" not in message
        before = store.progress("r")
        assert 0 < before.running < 20_000
        assert len(store.claim_next_unit("r", "after", limit=500).leases) > 0
    with sqlite3.connect(tmp_path / "state.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _use_in_child(store):
    (lease,) = store.claim_next_unit("r", "child").leases
    store.complete_unit(lease, Part("part", "by child", 1))
    store.close()


def test_a_forked_child_gets_a_connection_of_its_own(tmp_path):
    with _planned(tmp_path / "state.db", 3) as store:
        (mine,) = store.claim_next_unit("r", "parent").leases
        child = multiprocessing.get_context("fork").Process(target=_use_in_child, args=(store,))
        child.start()
        child.join()
        assert child.exitcode == 0
        store.complete_unit(mine, Part("part", "by parent", 1))
        assert store.progress("r").done == 2
