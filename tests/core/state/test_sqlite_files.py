"""What a state file may be, and the one line a user gets when it is something else."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docgen_core.errors import DocgenError, StateUnusable, StorageFailed
from docgen_core.state import open_state
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.sqlite_connections import APPLICATION_ID

MARKER = RunMarker("r", RunKind.DOCUMENTS, "runs/r", {"a": [1]}, "digest", 5000, 1, 5000)


def refused(path):
    with pytest.raises(DocgenError) as error:
        open_state(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return error.value


def test_the_folder_is_made_and_the_file_opens_again(tmp_path):
    path = tmp_path / "not" / "there" / "state.db"
    with open_state(path) as store:
        run, _ = store.create_run(MARKER)
    with open_state(store.uri) as again:
        assert again.run("r") == run


def test_a_commit_waits_for_the_disk_and_readers_do_not_wait_for_writers(tmp_path):
    with open_state(tmp_path / "state.db") as store:
        connection = store.primitives._connections._connection()
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_the_claim_path_and_reports_walk_indexes_only(tmp_path):
    with open_state(tmp_path / "state.db") as store:
        statements = []
        connection = store.primitives._connections._connection()
        connection.set_trace_callback(statements.append)
        store.create_run(MARKER)
        store.mark_planned("r", "digest")
        lease = store.claim_next_unit("r", "w", limit=5).leases[0]
        store.renew(lease)
        store.fail_unit(lease, "no")
        store.reset_failed_units("r")
        store.reclaim_expired_units("r")
        store.progress("r")
        store.list_runs({store.run("r").state})
        store.list_runs()
        store.set_budget("r", 100)
        store.open_grant("r", "w", 10, "g")
        store.close_grant("r", "g")
        store.spend("r")
        connection.set_trace_callback(None)
        reads = [text for text in statements if text.lstrip().startswith(("SELECT", "UPDATE"))]
        assert len(reads) > 10
        for statement in reads:
            for *_, plan in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                assert "SCAN" not in plan, statement
                assert "entries" not in plan or "kind=?" in plan, statement
        walks = [text for text in reads if "ORDER BY idx" in text]
        assert any("'FAILED'" in text for text in walks)
        assert any("'RUNNING'" in text for text in walks)
        for walk in walks:
            assert "USING INDEX units_not_done" in str(connection.execute(f"EXPLAIN QUERY PLAN {walk}").fetchall())


def test_a_file_that_is_not_a_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 500)
    assert isinstance(refused(path), StateUnusable)
    assert path.read_text() == "dear diary\n" * 500


def test_another_programs_database_is_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE runs (mine TEXT)")
    before = path.read_bytes()
    assert isinstance(refused(path), StateUnusable)
    assert path.read_bytes() == before


def test_another_format_is_refused_and_never_misread(tmp_path):
    path = tmp_path / "state.db"
    open_state(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        connection.execute("PRAGMA user_version = 3")
    error = refused(path)
    assert isinstance(error, StateUnusable)
    assert "format 3, this docgen reads format 2" in str(error)


def test_a_file_from_before_budgets_is_brought_up_and_keeps_its_runs(tmp_path):
    path = tmp_path / "state.db"
    with open_state(path) as store:
        run, _ = store.create_run(MARKER)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE entries")
        connection.execute("PRAGMA user_version = 1")
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_state(path), range(8)))
    for number, store in enumerate(stores):
        assert store.run("r") == run
        assert store.set_budget("r", 10 + number).cap == 10 + number
        store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_damaged_file(tmp_path):
    path = tmp_path / "state.db"
    with open_state(path) as store:
        store.create_run(MARKER)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StateUnusable, match="damaged"), open_state(path) as store:
        store.run("r")


def test_a_folder_or_a_path_through_a_file(tmp_path):
    assert isinstance(refused(tmp_path), StateUnusable)
    (tmp_path / "file").write_text("")
    assert isinstance(refused(tmp_path / "file" / "state.db"), StateUnusable)


AS_ORDINARY_USER = """
import os, sys
from docgen_core.errors import DocgenError
from docgen_core.state import open_state
import docgen_core.state.sqlite
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    open_state(sys.argv[1]).pause("r")
except DocgenError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("where", ["folder", "file"])
def test_a_read_only_place_as_an_ordinary_user(tmp_path_factory, where):
    folder = tmp_path_factory.mktemp("readonly")
    path = folder / "state.db"
    if where == "file":
        with open_state(path) as store:
            store.create_run(MARKER)
        path.chmod(0o444)
    for parent in [folder, *folder.parents[:2]]:
        parent.chmod(0o755)
    folder.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", AS_ORDINARY_USER, str(path)], capture_output=True, text=True, check=True
        )
    finally:
        folder.chmod(0o755)
    kind, _, message = done.stdout.partition(" ")
    assert kind in ("StateUnusable", "StorageFailed"), done.stdout + done.stderr
    assert str(path) in message
    assert message.count("\n") == 1


def test_a_file_that_may_not_grow_says_that_the_disk_is_full_and_goes_on_after(tmp_path):
    with open_state(tmp_path / "state.db") as store:
        store.create_run(MARKER)
        store.mark_planned("r", "digest")
        connection = store.primitives._connections._connection()
        connection.execute("PRAGMA max_page_count = 40")
        with pytest.raises(StorageFailed, match="the disk is full"):
            while store.claim_next_unit("r", "w", limit=50).leases:
                pass
        claimed = store.progress("r").running
        assert claimed > 0
        connection.execute("PRAGMA max_page_count = 100000")
        while store.claim_next_unit("r", "w", limit=1000).leases:
            pass
        assert store.progress("r").running == 5000


def test_a_lock_that_is_never_given_back_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("docgen_core.state.sqlite_connections.BUSY_TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr("docgen_core.state.sqlite_connections.PATIENCE_SECONDS", 0.05)
    path = tmp_path / "state.db"
    with open_state(path) as store:
        store.create_run(MARKER)
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="locked"):
            store.pause("r")
        assert not store.run("r").planned
        holder.execute("ROLLBACK")
        holder.close()
        store.pause("r")


def test_a_closed_store_says_so(tmp_path):
    store = open_state(tmp_path / "state.db")
    store.close()
    store.close()
    with pytest.raises(StateUnusable, match="closed"):
        store.run("r")


def test_a_threads_connection_ends_with_the_thread(tmp_path):
    with open_state(tmp_path / "state.db") as store:
        store.create_run(MARKER)
        for _ in range(20):
            thread = threading.Thread(target=lambda: store.run("r"))
            thread.start()
            thread.join()
        ours = [link for link in Path("/dev/fd").iterdir() if str(tmp_path) in str(link.resolve())]
        assert len(ours) < 10
