"""Golden tables in a BigQuery dataset, a run replaced in one transaction over all its tables.

A table's shards are staged in Cloud Storage as they are, loaded by one job into a staging table of
the declared columns, and then one multi-statement transaction takes the run's rows out of all
tables and puts the staged ones in. A reader of the tables' own names sees the run as it was or as it is
now. Two transactions at once conflict; BigQuery aborts one, which is run again.

A killed export leaves what nobody reads: staging tables, which expire after a day, and staged blobs,
which the next export of the run removes when they are a day old.

What does not belong here: columns and SQL (bigquery_tables.py), errors' wording (bigquery_errors.py).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pyarrow as pa
import tenacity
from google.api_core.exceptions import Conflict, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from google.cloud.bigquery.retry import DEFAULT_RETRY

from docgen_core.blobs import open_blobs
from docgen_core.errors import DocgenError, StorageFailed, UsageError
from docgen_core.export import bigquery_tables as tables
from docgen_core.export.bigquery_errors import CLIENT_ERRORS, is_absent, is_conflict, told
from docgen_core.export.bigquery_tables import EXPORTS, TURNS, VALUES_VIEW, Held, Incoming
from docgen_core.export.contract import BATCH_ROWS, GoldenSink, Shard, odd_columns
from docgen_core.export.reader import read_ahead

STAGED = "staging"
"""Folder under the staging URI: `staging/<run>/<export>/<table>/unit-000123.parquet`."""
STAGED_HOURS = 24
"""After which what an export staged is nobody's any more."""
URIS_PER_JOB = 10_000
"""BigQuery's own limit for one load job."""
PATIENCE_SECONDS = 120.0
"""For BigQuery to answer a request; its client tries again for so long."""
PEER_WAIT_SECONDS = 900.0
"""For other exports, whose transactions conflict with this one and end by themselves."""
LABELS = {"made_by": "docgen"}

EMULATOR = "BIGQUERY_EMULATOR_HOST"
"""The client's own variable for a stand-in's address. It asks for credentials all the same."""


class BigQueryClients(NamedTuple):
    """The caller's clients; each that is None is made from the environment when it is needed."""

    bigquery: Any = None
    """A `google.cloud.bigquery.Client`."""
    storage: Any = None
    """A `google.cloud.storage.Client`."""


@dataclass(slots=True)
class _Replacement:
    run_id: str
    root_sha256: str
    export: str
    tables: list[Incoming] = field(default_factory=list)

    @property
    def staged(self) -> str:
        return f"{STAGED}/{self.run_id}/{self.export}/"


class BigQuerySink(GoldenSink):
    """Tables of one dataset. Jobs run in the project of the URI, in the dataset's location."""

    def __init__(
        self,
        project: str,
        dataset: str,
        *,
        staging: str,
        location: str | None = None,
        clients: BigQueryClients | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        patience_seconds: float = PATIENCE_SECONDS,
        peer_wait_seconds: float = PEER_WAIT_SECONDS,
    ) -> None:
        given = clients or BigQueryClients()
        self._project, self._dataset = project, f"{project}.{dataset}"
        self._place = f"{project}:{dataset}"
        self._wanted_location = location
        self._given, self._client = given.bigquery, given.bigquery
        self._blobs = open_blobs(staging, given.storage)
        self._now = now
        self._retry = DEFAULT_RETRY.with_timeout(patience_seconds)
        self._peer_wait_seconds = peer_wait_seconds
        self._location: str | None = None
        self._registered = False
        self._open: _Replacement | None = None
        parameters = {"staging": staging, **({"location": location} if location else {})}
        self.uri = f"bigquery://{project}/{dataset}?{urlencode(parameters, safe=':/')}"

    def begin(self, run_id: str, root_sha256: str) -> None:
        """See that the dataset is there; nothing is written yet."""
        if self._open is not None:
            raise UsageError(f"{self.uri}: the export of run {self._open.run_id!r} has not ended")
        self._connected()
        export = f"{self._now():%Y%m%dT%H%M%S}_{secrets.token_hex(4)}"
        self._open = _Replacement(run_id, root_sha256, export)

    def write(self, table: str, schema: pa.Schema, shards: Iterable[Shard]) -> int:
        """Stage the table's shards in Cloud Storage."""
        replacement = self._begun()
        declared = tables.columns(table, schema)
        incoming = Incoming(table, schema, declared, f"{tables.STAGING}{replacement.export}_{table}")
        incoming.found = self._fitting(incoming)
        replacement.tables.append(incoming)

        def put(shard: Shard) -> Shard:
            if shard.rows:
                self._blobs.put(f"{replacement.staged}{table}/unit-{shard.unit:06d}.parquet", shard.data)
            return shard

        for shard in read_ahead(shards, put, lambda shard: len(shard.data)):
            if shard.rows:
                incoming.uris.append(f"{self._blobs.uri}/{replacement.staged}{table}/unit-{shard.unit:06d}.parquet")
            incoming.rows += shard.rows
        return incoming.rows

    def commit(self) -> None:
        """Load what was staged, then publish it in one transaction."""
        replacement = self._begun()
        with self._errors_told():
            jobs = [(table, self._loading(replacement, table)) for table in replacement.tables if table.rows]
            for table, started in jobs:
                loaded = sum(int(job.result(retry=self._retry).output_rows or 0) for job in started)
                if loaded != table.rows:
                    raise StorageFailed(
                        f"{self._place}: BigQuery loaded {loaded} rows of {table.name!r}, and {table.rows} were "
                        "staged; nothing was changed; export again"
                    )
            for table in replacement.tables:
                self._make(table)
            self._replace(replacement.run_id, replacement.root_sha256, replacement.tables)
        self.abort()

    def abort(self) -> None:
        """Drop what was staged, and what earlier exports of the run that were killed have left."""
        replacement, self._open = self._open, None
        if replacement is None:
            return
        # What cannot be dropped now expires; whether the export failed or succeeded is known already.
        with suppress(DocgenError, *CLIENT_ERRORS):
            for table in replacement.tables:
                if table.rows:
                    self._bigquery.delete_table(self._name(table.staging), retry=self._retry, not_found_ok=True)
            self._sweep(replacement)

    def remove(self, run_id: str) -> None:
        """Take the run's rows out of all tables in one transaction."""
        with self._errors_told():
            if self._held(run_id):
                self._replace(run_id, "", ())

    def counts(self, run_id: str) -> dict[str, int]:
        """Counted by one query over the tables."""
        with self._errors_told():
            held = self._held(run_id)
            if not held:
                return {}
            counted = self._query(tables.counting_query(self._dataset, held), run=run_id)
            return {row.table_name: row.row_count for row in counted}

    def fetch(self, table: str, run_id: str, *, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows page by page, of a limited fetch the first by the key; else in no order."""
        with self._errors_told():
            held = (self._held(run_id) or {}).get(table)
            if held is None:
                raise StorageFailed(f"{self._place} holds no table {table!r} of run {run_id!r}; export it first")
            schema = held.schema
            yield pa.RecordBatch.from_pylist([], schema)
            found = self._query(tables.rows_query(self._dataset, table, schema, limit), run=run_id)
            # Without its own client for the Storage API, the rows come by pages of the ordinary one.
            for batch in found.to_arrow_iterable(bqstorage_client=None):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()

    def register(self) -> None:
        """Make the view `golden_values`: each printed value once, however often and on however many lines."""
        if self._registered:
            return
        with self._errors_told():
            if self._found(tables.BOXES) is None:
                return
            view = bigquery.Table(self._name(VALUES_VIEW))
            view.view_query = tables.values_query(self._dataset)
            view.description, view.labels = "Each printed value once, for scoring by one join.", LABELS
            found = self._found(VALUES_VIEW)
            if found is None:
                self._create(view)
            elif found.table_type != "VIEW":
                raise UsageError(f"{self._place}: there is a table {VALUES_VIEW!r}, where a view belongs; rename it")
            elif found.view_query != view.view_query:
                self._bigquery.update_table(view, ["view_query", "description", "labels"], retry=self._retry)
        self._registered = True

    def close(self) -> None:
        """Drop a replacement under way; a client of the caller's stays open."""
        self.abort()
        self._blobs.close()
        if self._given is None and self._client is not None:
            self._client.close()
            self._client = None

    def _begun(self) -> _Replacement:
        if self._open is None:
            raise UsageError(f"{self.uri}: no export has begun")
        return self._open

    @property
    def _bigquery(self) -> Any:
        if self._client is None:
            credentials = AnonymousCredentials() if os.environ.get(EMULATOR) else None  # type: ignore[no-untyped-call]
            self._client = bigquery.Client(project=self._project, credentials=credentials)
        return self._client

    def _name(self, table: str) -> str:
        return f"{self._dataset}.{table}"

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        try:
            yield
        except CLIENT_ERRORS as error:
            raise told(error, self._place, self._wanted_location) from error

    def _connected(self) -> None:
        """Learn the dataset's location, once; that is also where its absence shows."""
        if self._location is not None:
            return
        with self._errors_told():
            found = self._bigquery.get_dataset(self._dataset, retry=self._retry)
        if self._wanted_location and found.location.lower() != self._wanted_location.lower():
            raise UsageError(
                f"{self._place}: the dataset is in {found.location}, not in {self._wanted_location}; "
                "correct the URI's location, or leave it out"
            )
        self._location = found.location

    def _query(self, sql: str, **parameters: str) -> Any:
        self._connected()
        given = [bigquery.ScalarQueryParameter(name, "STRING", value) for name, value in parameters.items()]
        config = bigquery.QueryJobConfig(query_parameters=given, labels=LABELS, use_query_cache=False)
        job = self._bigquery.query(
            sql, job_config=config, project=self._project, location=self._location, retry=self._retry
        )
        return job.result(page_size=BATCH_ROWS, retry=self._retry)

    def _held(self, run_id: str) -> Mapping[str, Held] | None:
        """Tables that hold the run; None where nothing was ever exported to the dataset."""
        try:
            found = self._query(tables.held_query(self._dataset), run=run_id)
        except NotFound as error:
            if is_absent(error, "table"):
                return None
            raise
        return {row.table_name: Held(row.row_count, tables.unpacked(row.arrow_schema)) for row in found}

    def _replace(self, run_id: str, root_sha256: str, incoming: Sequence[Incoming]) -> None:
        """Run the transaction until no other one is in its way."""
        schemas = {f"schema_{place}": tables.packed(table.schema) for place, table in enumerate(incoming)}

        def once() -> None:
            held = self._held(run_id)
            if held is None:
                held = self._make_books()
            script = tables.replacing_script(self._dataset, held, incoming)
            self._query(script, run=run_id, root=root_sha256, held=tables.listed(held), **schemas)

        self._patiently(once)

    def _create(self, table: Any) -> None:
        """Make a table or a view, unless another export has made it."""
        self._patiently(lambda: self._bigquery.create_table(table, exists_ok=True, retry=self._retry))

    def _patiently(self, act: Callable[[], object]) -> None:
        """Do it until no other export's change is in its way."""
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_conflict),
            stop=tenacity.stop_after_delay(self._peer_wait_seconds),
            wait=tenacity.wait_random_exponential(multiplier=0.5, max=20),
            reraise=True,
        )
        attempts(act)

    def _loading(self, replacement: _Replacement, table: Incoming) -> list[Any]:
        """The jobs that load a table, under way: one for each `URIS_PER_JOB` shards."""
        staging = bigquery.Table(self._name(table.staging), schema=table.columns)
        staging.expires = self._now() + timedelta(hours=STAGED_HOURS)
        staging.description, staging.labels = f"Rows of run {replacement.run_id} on their way.", LABELS
        self._create(staging)
        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            schema=table.columns,
            create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
            write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
            labels=LABELS,
        )
        jobs = []
        for start in range(0, len(table.uris), URIS_PER_JOB):
            uris, job_id = table.uris[start : start + URIS_PER_JOB], f"{table.staging}_{start}"
            place = {"location": self._location, "project": self._project, "retry": self._retry}
            try:
                jobs.append(
                    self._bigquery.load_table_from_uri(
                        uris, staging.reference, job_id=job_id, job_config=config, **place
                    )
                )
            except Conflict:
                # The answer to the first request was lost, and the client has asked again.
                jobs.append(self._bigquery.get_job(job_id, **place))
        return jobs

    def _found(self, table: str) -> Any:
        self._connected()
        try:
            return self._bigquery.get_table(self._name(table), retry=self._retry)
        except NotFound:
            return None

    def _fitting(self, table: Incoming) -> Any:
        """The table there is, if rows of these columns can go into it; None where it has to be made."""
        with self._errors_told():
            found = self._found(table.name)
            if found is None:
                return None
            odd = tables.differing(found.schema, table.columns) if found.table_type == "TABLE" else ["it is a view"]
            if not odd:
                return found
            some = list(self._query(f"SELECT 1 FROM `{self._name(table.name)}` LIMIT 1"))
        if some or found.labels.get("made_by") != LABELS["made_by"]:
            raise UsageError(
                f"{self._place}: table {table.name!r} holds rows of other columns ({odd_columns(odd)}); "
                "export into a new dataset, or withdraw the runs in this one"
            )
        self._bigquery.delete_table(found, retry=self._retry, not_found_ok=True)
        return None

    def _make(self, table: Incoming) -> None:
        """Make the table as declared, or find it so, each column with its description."""
        found = table.found
        if found is None:
            made = bigquery.Table(self._name(table.name), schema=table.columns)
            made.clustering_fields = ["run_id"]
            made.description, made.labels = (
                f"Golden table of docgen's runs: {table.name}. A run is replaced whole.",
                LABELS,
            )
            self._create(made)
        elif [column.description for column in found.schema] != [column.description for column in table.columns]:
            texts = {column.name: column.description for column in table.columns}
            found.schema = [
                bigquery.SchemaField(column.name, column.field_type, column.mode, description=texts[column.name])
                for column in found.schema
            ]
            self._bigquery.update_table(found, ["schema"], retry=self._retry)

    def _make_books(self) -> Mapping[str, Held]:
        """The tables that say what is held, which is nothing."""
        self._query(f"CREATE TABLE IF NOT EXISTS `{self._name(TURNS)}` AS SELECT 0 AS turn")
        books = bigquery.Table(self._name(EXPORTS), schema=tables.EXPORTS_SCHEMA)
        books.description, books.labels = "Runs that are held, a row for each of their tables.", LABELS
        self._create(books)
        return {}

    def _sweep(self, replacement: _Replacement) -> None:
        """Delete the blobs of this export, and those of the run that are older than `STAGED_HOURS`."""
        oldest = f"{self._now() - timedelta(hours=STAGED_HOURS):%Y%m%dT%H%M%S}"
        run = f"{STAGED}/{replacement.run_id}/"
        keys = [info.key for info in self._blobs.iter_keys(run)]
        doomed = [key for key in keys if key.startswith(replacement.staged) or key.removeprefix(run) < oldest]
        for _ in read_ahead(doomed, self._blobs.delete, lambda key: len(key)):
            pass
