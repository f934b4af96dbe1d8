"""SQLite connections for many processes and threads on one file: opened, retried, errors said in one line.

What does not belong here: tables and statements other than those a connection needs to be sound.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from docgen_core.errors import DocgenError, StateUnusable, StorageFailed

T = TypeVar("T")

APPLICATION_ID = 0x646F6367
"""`docg`: marks a file as ours in SQLite's header."""

BUSY_TIMEOUT_SECONDS = 5.0
"""How long SQLite itself waits for another writer before a retry of ours."""

PATIENCE_SECONDS = 120.0
"""How long a call keeps retrying on a busy file before it fails."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}

_inherited: list[sqlite3.Connection] = []
"""Connections made before a fork, kept open: closing one here would disturb the parent's file."""


class _Slot:
    """One thread's connection, closed when the thread ends."""

    __slots__ = ("__weakref__", "connection", "pid")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.pid = os.getpid()

    def close(self) -> None:
        if self.pid == os.getpid():
            self.connection.close()
        else:
            _inherited.append(self.connection)

    def __del__(self) -> None:
        self.close()


class Connections:
    """One connection a thread and process, all with the same settings."""

    def __init__(
        self, path: Path, *, version: int, schema: tuple[str, ...], migrations: Mapping[int, tuple[str, ...]]
    ) -> None:
        """Open `path`, creating it and its folder where missing; `migrations` lead from a version to the next.

        Raises `StateUnusable` for a file that is not a state store of this `version` or one that can
        be brought up to it, `StorageFailed` when it cannot be read or written.
        """
        self._path, self._version, self._schema, self._migrations = path, version, schema, migrations
        self._local = threading.local()
        self._open: WeakSet[_Slot] = WeakSet()
        self._lock = threading.Lock()
        self._closed = False
        self._patiently = Retrying(
            retry=retry_if_exception(_is_busy),
            wait=wait_random_exponential(multiplier=0.005, max=0.25),
            stop=stop_after_delay(PATIENCE_SECONDS),
            reraise=True,
        )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateUnusable(f"cannot make the folder of state {path}: {error.strerror}") from None
        self.read(lambda _: None)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements that only read, each in its own snapshot."""
        return self._attempt(lambda: work(self._connection()))

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one immediate transaction; on a busy file it is run again from the start."""

        def transaction() -> T:
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                # A full disk may have rolled the transaction back already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        return self._attempt(transaction)

    def close(self) -> None:
        """Close every thread's connection; later use raises `StateUnusable`."""
        with self._lock:
            self._closed = True
            for slot in list(self._open):
                slot.close()
            self._open.clear()

    def _attempt(self, call: Callable[[], T]) -> T:
        try:
            return self._patiently(call)
        except sqlite3.Error as error:
            raise _explained(error, self._path) from error

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StateUnusable(f"state {self._path} is closed")
        slot: _Slot | None = getattr(self._local, "slot", None)
        if slot is None or slot.pid != os.getpid():
            slot = _Slot(self._connect())
            self._local.slot = slot
            with self._lock:
                self._open.add(slot)
        return slot.connection

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path,
            timeout=BUSY_TIMEOUT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if self._version_of(connection) != self._version:
                self._create(connection)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _version_of(self, connection: sqlite3.Connection) -> int:
        """Our version, an earlier one that can be migrated, or 0 for an empty file.

        Raises `StateUnusable` for anything else.
        """
        # In this order, since another process may make the file between two statements: what it made in
        # one transaction is met whole, with our mark on it, or not at all.
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if (application, objects) == (0, 0):
            return 0
        if application != APPLICATION_ID:
            raise StateUnusable(f"{self._path} is another program's SQLite database; name another file for the state")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != self._version and version not in self._migrations:
            raise StateUnusable(
                f"{self._path} is a state store of format {version}, this docgen reads format {self._version}; "
                "use the docgen that wrote it, or name another file"
            )
        return int(version)

    def _create(self, connection: sqlite3.Connection) -> None:
        """Make an empty file, or one of an earlier version, a state store of ours.

        In one transaction: no process ever meets half of it.
        """
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise StateUnusable(f"the file system of {self._path} cannot hold a shared state store (no WAL)")
        connection.execute("BEGIN IMMEDIATE")
        try:
            there = self._version_of(connection)
            statements = (
                self._schema
                if there == 0
                else [text for version in range(there, self._version) for text in self._migrations[version]]
            )
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and _primary_code(error) in _BUSY


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _explained(error: sqlite3.Error, path: Path) -> DocgenError:
    """The error in one line, with what to do."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return StateUnusable(f"{path} is not a state store (not an SQLite database); name another file for the state")
    if code == sqlite3.SQLITE_CORRUPT:
        return StateUnusable(f"the state store {path} is damaged ({error}); restore it, or begin with another file")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StateUnusable(f"cannot open the state store {path}: check that it is a file in a folder you can write")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StorageFailed(f"cannot write the state store {path}: the file or its folder is read-only")
    if code == sqlite3.SQLITE_FULL:
        return StorageFailed(f"cannot write the state store {path}: the disk is full; free some space and go on")
    if code == sqlite3.SQLITE_IOERR:
        return StorageFailed(f"the disk failed under the state store {path} (full, over quota or broken?): {error}")
    if code in _BUSY:
        return StorageFailed(f"the state store {path} stayed locked for {PATIENCE_SECONDS:.0f} s; stop what holds it")
    return StorageFailed(f"the state store {path} failed: {error}")
