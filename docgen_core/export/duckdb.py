"""Golden tables in one DuckDB file, a run replaced in one transaction.

DuckDB has one writing process. An export takes the lock file `<file>.lock`, so that exports wait for
one another instead of failing, then DuckDB's own lock, which anybody's open session may hold:
that one is waited for briefly and then named. The connection is open from `begin` to `commit`,
no longer, so that the file is free for readers between exports. A killed export leaves no row:
an uncommitted transaction is not in the file when it is next opened.

DuckDB parses the shards itself, which takes a fifth less time and a third less memory than Arrow's
batches: their checked bytes lie in the folder `<file>.spool` until they are inserted (spool.py).

`docgen_exports` says what is held: a row per run and table. Only tables named there are ever deleted
from; a table of the user's own in the same file is never touched, unless it has the name of a golden
table and no rows.

What does not belong here: a connection's configuration beyond the bounds on memory and threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

import duckdb
import filelock
import pyarrow as pa
import tenacity

from docgen_core.errors import StorageFailed, UsageError
from docgen_core.export.contract import BATCH_ROWS, GoldenSink, Shard, odd_columns
from docgen_core.export.spool import Spool

MEMORY_MB = 112
"""DuckDB's own bound; beyond it, it writes to disk. With Python and Arrow an export stays under 400 MB."""
THREADS = 1
"""Inserting threads. A second one gains nothing and tears row groups."""
WAIT_SECONDS = 10.0
"""For somebody's session that holds the file: it may never end, so it is soon named."""
PEER_WAIT_SECONDS = 900.0
"""For another export, which ends by itself."""

EXPORTS = "docgen_exports"
BOXES = "field_boxes"
VALUES_VIEW = "golden_values"

_NO_DATABASE = "not a valid DuckDB database file"
"""As DuckDB says it."""

Connect = Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]]

_EXPORTS_DDL = f"""
CREATE TABLE IF NOT EXISTS {EXPORTS} (
    run_id VARCHAR NOT NULL, root_sha256 VARCHAR NOT NULL, table_name VARCHAR NOT NULL, row_count BIGINT NOT NULL
)"""

_VALUES_DDL = f"""
CREATE OR REPLACE VIEW {VALUES_VIEW} AS
SELECT run_id, document_id, table_name, row_key, column_name, any_value(value) AS value,
       count(*) FILTER (WHERE part = 0) AS occurrences, min(page) AS first_page
FROM {BOXES} GROUP BY ALL"""


class DuckDBSink(GoldenSink):
    """Tables of one file. `client` gives the connection to it; without one the file is opened here."""

    def __init__(
        self,
        path: Path,
        *,
        client: Connect | None = None,
        memory_mb: int = MEMORY_MB,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._path = path
        self._client = client
        self._memory_mb = memory_mb
        self._wait_seconds = wait_seconds
        self.uri = _uri(path, memory_mb, wait_seconds)
        self._spool = Spool(path)
        self._session = ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._run_id = self._root_sha256 = ""
        self._registered = False

    def begin(self, run_id: str, root_sha256: str) -> None:
        """Lock and open the file, start the transaction, take the run's rows out."""
        if self._connection is not None:
            raise UsageError(f"{self.uri}: the export of run {self._run_id!r} has not ended")
        with ExitStack() as opening:
            connection = opening.enter_context(self._locked())
            with self._errors_told():
                opening.enter_context(self._spool.opened())
                connection.begin()
                connection.execute(_EXPORTS_DDL)
                _delete_run(connection, run_id)
            self._session = opening.pop_all()
        self._connection, self._run_id, self._root_sha256 = connection, run_id, root_sha256

    def write(self, table: str, schema: pa.Schema, shards: Iterable[Shard]) -> int:
        """Insert the table's rows, which nobody sees before the commit."""
        connection = self._begun()
        with self._errors_told():
            _make_table(connection, self._path, table, schema)
        insert = f"INSERT INTO {_quoted(table)} SELECT * FROM read_parquet(?, hive_partitioning = false)"
        rows = 0
        for files in self._spool.gathered(shards):
            with self._errors_told():
                connection.execute(insert, [[str(file.path) for file in files]])
            rows += sum(file.rows for file in files)
        with self._errors_told():
            connection.execute(
                f"INSERT INTO {EXPORTS} VALUES (?, ?, ?, ?)", [self._run_id, self._root_sha256, table, rows]
            )
        return rows

    def commit(self) -> None:
        """Publish in one step, the view with it, then let go of the file."""
        connection = self._begun()
        with self._errors_told():
            _make_view(connection)
            connection.commit()
        self._connection, self._registered = None, True
        self._session.close()

    def abort(self) -> None:
        """Roll back by closing, and let go of the file."""
        self._connection = None
        self._session.close()

    def remove(self, run_id: str) -> None:
        """Take the run's rows out in one transaction."""
        if self._path.exists():
            with self._locked() as connection:
                connection.begin()
                _delete_run(connection, run_id)
                connection.commit()

    def counts(self, run_id: str) -> dict[str, int]:
        """Counted in the tables, in a session that only reads."""
        if not self._path.exists():
            return {}
        with self._reading() as connection:
            counted = {}
            for table in sorted(_held(connection, run_id)):
                where = f"FROM {_quoted(table)} WHERE run_id = ?"
                counted[table] = connection.execute(f"SELECT count(*) {where}", [run_id]).fetchall()[0][0]
            return counted

    def fetch(self, table: str, run_id: str, *, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows in the order of their insertion, which is key order, in a session that only reads."""
        if not self._path.exists():
            raise StorageFailed(f"{self._path}: nothing was exported to it yet; export run {run_id!r} first")
        with self._reading() as connection:
            if table not in _held(connection, run_id):
                raise StorageFailed(f"{self._path} holds no table {table!r} of run {run_id!r}; export it first")
            some = "" if limit is None else f" LIMIT {limit:d}"
            wanted = f"SELECT * FROM {_quoted(table)} WHERE run_id = ?{some}"
            reader: pa.RecordBatchReader = connection.sql(wanted, params=[run_id]).to_arrow_reader(BATCH_ROWS)
            yield pa.RecordBatch.from_pylist([], reader.schema)
            yield from reader

    def register(self) -> None:
        """Make the view `golden_values`: each printed value once, however often and on however many lines."""
        # A commit made it: opening the file once more could meet a reader for nothing.
        if not self._registered and self._path.exists():
            with self._locked() as connection:
                _make_view(connection)
            self._registered = True

    def close(self) -> None:
        """Drop a replacement under way."""
        self.abort()

    def _begun(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            raise UsageError(f"{self.uri}: no export has begun")
        return self._connection

    @contextmanager
    def _locked(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that no other export shares, with memory and threads bounded."""
        with self._errors_told(), ExitStack() as held:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(self._peers_kept_out())
            if not self._path.exists():
                held.callback(self._unmake)
            yield self._bounded(held.enter_context(_given(self._client) if self._client else self._opened()))

    def _unmake(self) -> None:
        """Remove a file that was made for an export, and to which nothing was committed."""
        if not self._registered:
            for file in (self._path, self._path.with_name(f"{self._path.name}.wal")):
                file.unlink(missing_ok=True)

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that only reads, beside other readers; an export under way is waited for."""
        with self._errors_told(), ExitStack() as held:
            with self._peers_kept_out():
                connection = held.enter_context(self._opened(read_only=True))
            yield self._bounded(connection)

    def _peers_kept_out(self) -> filelock.BaseFileLock:
        # Released by the system when the process dies; its file stays and means nothing.
        return filelock.FileLock(f"{self._path}.lock", timeout=PEER_WAIT_SECONDS, thread_local=False)

    def _bounded(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        connection.execute(f"SET memory_limit = '{self._memory_mb}MB'")
        connection.execute(f"SET threads = {THREADS}")
        # Pages are faulted in once instead of for each block: 7 % of an export.
        with suppress(duckdb.InvalidInputException):  # a session of this process has more of it already
            connection.execute(f"SET block_allocator_memory = '{self._memory_mb}MB'")
        return connection

    def _opened(self, *, read_only: bool = False) -> duckdb.DuckDBPyConnection:
        if self._path.is_dir():
            raise UsageError(f"{self._path} is a folder; name a file, or a folder of Parquet files by parquet://")
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_held_elsewhere),
            stop=tenacity.stop_after_delay(self._wait_seconds),
            wait=tenacity.wait_random(0.05, 0.25),
            reraise=True,
        )
        return attempts(duckdb.connect, str(self._path), read_only=read_only)

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except filelock.Timeout:
            raise StorageFailed(
                f"{self._path}: another export has held it for {PEER_WAIT_SECONDS / 60:.0f} minutes; "
                "let it end or stop it, then export again"
            ) from None
        except (duckdb.CatalogException, duckdb.BinderException) as error:
            raise UsageError(
                f"{self._path}: something that is no golden table has its name there ({_said(error)}); "
                "rename it, or export into a new file"
            ) from error
        except (duckdb.Error, OSError) as error:
            if _NO_DATABASE in str(error):
                raise UsageError(f"{self._path} is no DuckDB database; name another file") from error
            place = getattr(error, "filename", None) or self._path
            raise StorageFailed(f"{place}: {_advice(error)}") from error


@contextmanager
def _given(client: Connect) -> Iterator[duckdb.DuckDBPyConnection]:
    """The caller's connection, closed whatever happens: a resource's own context may close only on success."""
    context = client()
    connection = context.__enter__()
    try:
        yield connection
    finally:
        connection.close()
        context.__exit__(None, None, None)


def _uri(path: Path, memory_mb: int, wait_seconds: float) -> str:
    unusual = {}
    if memory_mb != MEMORY_MB:
        unusual["memory_mb"] = f"{memory_mb}"
    if wait_seconds != WAIT_SECONDS:
        unusual["wait_seconds"] = f"{wait_seconds:g}"
    return path.as_uri().replace("file://", "duckdb://", 1) + (f"?{urlencode(unusual)}" if unusual else "")


def _held(connection: duckdb.DuckDBPyConnection, run_id: str) -> list[str]:
    """Tables that the run was exported to."""
    if not _columns(connection, EXPORTS):
        return []
    found = connection.execute(f"SELECT table_name FROM {EXPORTS} WHERE run_id = ?", [run_id]).fetchall()
    return [name for (name,) in found]


def _delete_run(connection: duckdb.DuckDBPyConnection, run_id: str) -> None:
    held = _held(connection, run_id)
    for table in [*held, EXPORTS] if held else []:
        connection.execute(f"DELETE FROM {_quoted(table)} WHERE run_id = ?", [run_id])


def _make_view(connection: duckdb.DuckDBPyConnection) -> None:
    if _columns(connection, EXPORTS) and _columns(connection, BOXES):
        connection.execute(_VALUES_DDL)


def _make_table(connection: duckdb.DuckDBPyConnection, path: Path, table: str, schema: pa.Schema) -> None:
    """Make the table as declared, or find it so; an empty one of ours that has other columns is made anew."""
    declared = {field.name: (_sql_type(table, field), field.nullable) for field in schema}
    found = {name: (kind, nullable) for name, kind, nullable, _ in _columns(connection, table)}
    if found and list(found.items()) != list(declared.items()):
        if "run_id" not in found:
            raise UsageError(
                f"{path}: table {table!r} is there and is not docgen's: rename it, or export into a new file"
            )
        if connection.execute(f"SELECT 1 FROM {_quoted(table)} LIMIT 1").fetchone():
            odd = [name for name in found.keys() | declared.keys() if found.get(name) != declared.get(name)]
            raise UsageError(
                f"{path}: table {table!r} holds rows of other columns ({odd_columns(odd)}); "
                "export into a new file, or withdraw the runs in this one"
            )
        connection.execute(f"DROP TABLE {_quoted(table)}")
        found = {}
    if not found:
        columns = ", ".join(
            f"{_quoted(name)} {kind}{'' if nullable else ' NOT NULL'}" for name, (kind, nullable) in declared.items()
        )
        connection.execute(f"CREATE TABLE {_quoted(table)} ({columns})")
    _describe(connection, table, schema)


def _describe(connection: duckdb.DuckDBPyConnection, table: str, schema: pa.Schema) -> None:
    """Give each column its declared description."""
    present = {name: comment for name, _, _, comment in _columns(connection, table)}
    for field in schema:
        text = (field.metadata or {}).get(b"description", b"").decode()
        if text != (present[field.name] or ""):
            literal = text.replace("'", "''")
            connection.execute(f"COMMENT ON COLUMN {_quoted(table)}.{_quoted(field.name)} IS '{literal}'")


def _columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, bool, str | None]]:
    """Name, type, nullability and comment of each column; none when there is no such table."""
    return connection.execute(
        "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE database_name = current_database() AND schema_name = 'main' AND table_name = ? ORDER BY column_index",
        [table],
    ).fetchall()


_SQL_TYPES = {
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
}


def _sql_type(table: str, field: pa.Field) -> str:
    if pa.types.is_decimal128(field.type):
        return f"DECIMAL({field.type.precision},{field.type.scale})"
    try:
        return _SQL_TYPES[field.type]
    except KeyError:
        raise UsageError(f"{table}.{field.name}: a golden column of type {field.type} has no place in DuckDB") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_held_elsewhere(error: BaseException) -> bool:
    return isinstance(error, duckdb.IOException) and "lock" in str(error)


def _advice(error: Exception) -> str:
    """What happened and what to do about it, in one line."""
    if _is_held_elsewhere(error):
        holder = re.search(r"PID \d+", str(error))
        who = f"another process ({holder[0]})" if holder else "another process"
        return f"{who} has it open; close it there, then export again"
    if isinstance(error, duckdb.ConnectionException):
        return "this process has it open with other settings; close it there, then export again"
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"DuckDB's memory is used up; give the sink more, such as ?memory_mb={4 * MEMORY_MB}"
    if isinstance(error, OSError):
        return f"{error.strerror or error}; give this user the right to it, free some space, or name another file"
    return f"{_said(error)}; nothing was changed"


def _said(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".!")
