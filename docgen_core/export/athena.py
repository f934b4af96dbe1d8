"""Golden tables in Athena: a run's shards in S3 as they are, tables in Glue, one switch for a whole run.

Files go under a name of this export alone, where nobody looks: `tables/<table>/export=<export>/`. People
query views of the tables' own names, which show the files of those exports that `docgen_exports` lists; the one
step that replaces a run is a change of that list (athena_tables.py). So a reader meets the run as it was
or as it is, whatever else exports, and whatever was killed.

What nobody reads any more is not deleted at once: a query that began before the switch still reads it. Each thing
that is not held, or not held yet, has a marker `pending/<seconds>/<kind>/<name>`, which is put before the thing is
made or let go. Exports and removals, of any run, take away what has been pending for a day.

What does not belong here: Glue's tables (athena_tables.py), SQL (athena_sql.py), requests (athena_calls.py).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import urlencode

import pyarrow as pa
from pyarrow import csv

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import DocgenError, StorageFailed, UsageError
from docgen_core.export import athena_sql as sql
from docgen_core.export.athena_calls import AthenaClients, Warehouse
from docgen_core.export.athena_tables import BOOKS, TABLES, Books, Catalogue, Entry
from docgen_core.export.contract import GoldenSink, Shard
from docgen_core.export.reader import read_ahead

__all__ = ["AthenaClients", "AthenaSink"]

PENDING = "pending"
KEEP_SECONDS = 24 * 3600.0
"""Before what is not held is taken away: far beyond Athena's longest query, and twice an export's longest time."""
LONGEST_SECONDS = 12 * 3600.0
"""For an export: afterwards it refuses to publish, since others may soon take its files for forgotten."""
COLLECTED_AT_ONCE = 20
CSV_BLOCK_BYTES = 4 << 20
"""Read at a time; no row is longer."""

_EXPORT_KIND, _BOOKS_KIND = "export", "books"


@dataclass(slots=True)
class _Replacement:
    run_id: str
    root_sha256: str
    export: str
    begun_at: float | None = None
    """When its first file was announced."""
    marker: str = ""
    keys: list[str] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    announced: bool = False
    """Whether tables know of it: from then on it goes the way of what is pending."""


class AthenaSink(GoldenSink):
    """Views of one database of the Glue catalogue, over files under one S3 prefix."""

    def __init__(
        self,
        database: str,
        *,
        output: str,
        workgroup: str = "",
        region: str = "",
        clients: AthenaClients | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        given = clients or AthenaClients()
        self._output, self._given, self._region, self._now = output, given, region, now
        self._blobs = self._opened(output)
        self._warehouse = Warehouse(database, output, self._blobs, workgroup=workgroup, region=region, clients=given)
        self._catalogue = Catalogue(self._warehouse, self._blobs, output)
        self._open: _Replacement | None = None
        parameters = {"output": output, "workgroup": workgroup, "region": region}
        named = {name: value for name, value in parameters.items() if value}
        self.uri = f"athena://{database}?{urlencode(named, safe=':/')}"

    def _opened(self, place: str) -> BlobStore:
        return open_blobs(place + (f"?region={self._region}" if self._region else ""), self._given.s3)

    def begin(self, run_id: str, root_sha256: str) -> None:
        """See that the database is there; nothing is written yet."""
        if self._open is not None:
            raise UsageError(f"{self.uri}: the export of run {self._open.run_id!r} has not ended")
        self._catalogue.check()
        self._open = _Replacement(run_id, root_sha256, f"{run_id}-{secrets.token_hex(6)}")

    def write(self, table: str, schema: pa.Schema, shards: Iterable[Shard]) -> int:
        """Put the table's files where nobody looks yet."""
        replacement = self._begun()
        self._catalogue.check_fits(table, schema, replacement.run_id)
        replacement.schemas[table], replacement.rows[table] = schema, 0
        folder = _folder(table, replacement.export)

        def put(shard: Shard) -> Shard:
            if shard.rows:
                self._blobs.put(f"{folder}unit-{shard.unit:06d}.parquet", shard.data)
            return shard

        def announced() -> Iterable[Shard]:
            for shard in shards:
                if shard.rows:
                    self._mark_begun(replacement)
                    replacement.keys.append(f"{folder}unit-{shard.unit:06d}.parquet")
                yield shard

        for shard in read_ahead(announced(), put, lambda shard: len(shard.data)):
            replacement.rows[table] += shard.rows
        return replacement.rows[table]

    def commit(self) -> None:
        """Make tables and views as declared, then switch the run in one step."""
        replacement = self._begun()
        self._mark_begun(replacement)
        replacement.announced = True
        if not self._catalogue.books().name:
            self._switch(replacement.run_id, [])
        for table, schema in replacement.schemas.items():
            self._catalogue.announce(table, schema, replacement.run_id, replacement.export)
        self._catalogue.announce_values()
        entries = [
            Entry(replacement.run_id, replacement.export, replacement.root_sha256, table, rows)
            for table, rows in replacement.rows.items()
        ]
        self._switch(replacement.run_id, entries, fit=lambda: self._refuse_unfit(replacement))
        self._open = None
        self._blobs.delete(replacement.marker)
        self._collect()

    def abort(self) -> None:
        """Take away what was put. Once tables know of it, that is left to a later export."""
        replacement, self._open = self._open, None
        if replacement is not None and replacement.marker and not replacement.announced:
            # What cannot be deleted now is pending, and goes later; the first error is the one to tell.
            with suppress(DocgenError):
                for key in (*replacement.keys, replacement.marker):
                    self._blobs.delete(key)

    def remove(self, run_id: str) -> None:
        """Take the run out of the list, for all tables at once; its files go when nobody can be reading them."""
        if self._catalogue.books().of(run_id):
            self._switch(run_id, [])
        self._collect()

    def counts(self, run_id: str) -> dict[str, int]:
        """Counted by Athena in the views."""
        tables = [entry.table_name for entry in self._catalogue.books().of(run_id)]
        if not tables:
            return {}
        found = self._warehouse.few_rows(sql.count_rows(sorted(tables), run_id))
        return dict(sorted((str(name), int(rows or 0)) for name, rows in found))

    def fetch(self, table: str, run_id: str, *, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows by a query of the view, read as it was declared from the object that Athena writes."""
        if table not in {entry.table_name for entry in self._catalogue.books().of(run_id)}:
            raise StorageFailed(f"{self.uri} holds no table {table!r} of run {run_id!r}; export it first")
        with self._warehouse.errors_told():
            files = self._catalogue.table(table + sql.FILES)
        if files is None:
            raise StorageFailed(f"{self.uri} has lost its table {table + sql.FILES!r}; export run {run_id!r} again")
        schema = sql.arrow_schema(files["StorageDescriptor"]["Columns"])
        result = self._warehouse.run(sql.rows(table, schema.names, run_id, limit))
        if not result.name:
            raise UsageError(f"{self.uri}: its workgroup keeps results to itself; name one that writes them to S3")
        try:
            yield pa.RecordBatch.from_pylist([], schema)
            with closing(self._opened(result.folder)) as results, results.open(result.name) as body:
                yield from _read_csv(body, schema)
        finally:
            self._warehouse.forget(result)

    def register(self) -> None:
        """Nothing: tables and views are made by each commit, before readers could miss them."""

    def close(self) -> None:
        """Drop a replacement under way, close the store."""
        self.abort()
        self._blobs.close()

    def _begun(self) -> _Replacement:
        if self._open is None:
            raise UsageError(f"{self.uri}: no export has begun")
        return self._open

    def _mark_begun(self, replacement: _Replacement) -> None:
        if not replacement.marker:
            replacement.begun_at = self._now()
            replacement.marker = self._mark(_EXPORT_KIND, replacement.export)

    def _refuse_unfit(self, replacement: _Replacement) -> None:
        self._catalogue.check_stands(replacement.schemas)
        if replacement.begun_at is not None and self._now() - replacement.begun_at > LONGEST_SECONDS:
            raise StorageFailed(
                f"{self.uri}: the export of run {replacement.run_id!r} took more than {LONGEST_SECONDS / 3600:.0f} "
                "hours, and others may take its files for forgotten; nothing was changed; export fewer units at a time"
            )

    def _switch(self, run_id: str, entries: list[Entry], fit: Callable[[], None] = lambda: None) -> None:
        markers: dict[str, str] = {}

        def before(old: Books, name: str) -> None:
            markers[name] = self._mark(_BOOKS_KIND, name)
            if old.name:
                self._mark(_BOOKS_KIND, old.name)
            for export in sorted({entry.export for entry in old.of(run_id)}):
                self._mark(_EXPORT_KIND, export)

        # The books of turns that were lost to others stay pending.
        if name := self._catalogue.switch(run_id, entries, before=before, fit=fit):
            self._blobs.delete(markers[name])

    def _mark(self, kind: str, name: str) -> str:
        key = f"{PENDING}/{int(self._now()):012d}/{kind}/{name}"
        self._blobs.put(key, b"")
        return key

    def _collect(self) -> None:
        """Take away what has been pending for long and is not held, some at a time."""
        markers: dict[tuple[str, str], list[str]] = {}
        for info in self._blobs.iter_keys(f"{PENDING}/"):
            _, _, kind, name = info.key.split("/", 3)
            markers.setdefault((kind, name), []).append(info.key)
        oldest_kept = f"{PENDING}/{int(self._now() - KEEP_SECONDS):012d}"
        due = [thing for thing, keys in markers.items() if keys[-1] < oldest_kept][:COLLECTED_AT_ONCE]
        if not due:
            return
        books = self._catalogue.books()
        gone = {name for kind, name in due if kind == _EXPORT_KIND} - books.exports
        if gone:
            tables = self._catalogue.tables()
            self._catalogue.forget(gone, tables)
            for export in sorted(gone):
                for table in tables:
                    self._delete_all(_folder(table, export))
        for kind, name in due:
            if kind == _BOOKS_KIND and name != books.name:
                self._delete_all(f"{BOOKS}/{name}/")
            for key in markers[kind, name]:
                self._blobs.delete(key)

    def _delete_all(self, folder: str) -> None:
        for info in list(self._blobs.iter_keys(folder)):
            self._blobs.delete(info.key)


def _folder(table: str, export: str) -> str:
    return f"{TABLES}/{table}/{sql.EXPORT}={export}/"


def _read_csv(body: BinaryIO, schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
    """Athena quotes each value that there is; what is empty and bare is NULL."""
    reader = csv.open_csv(
        pa.PythonFile(body, "r"),
        read_options=csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true"],
            false_values=["false"],
        ),
    )
    for batch in reader:
        yield batch.cast(schema)
