"""What the Athena sink keeps in Glue, and the one step by which a run is replaced.

`docgen_exports` is a table over one small Parquet object, the books: a row per run and table that is held.
Books are never changed. A switch puts new ones under a name of their own and moves the table's location
to them by one `UpdateTable`, which carries the version it goes by: Glue refuses it when anybody was
faster, and then it is done again from what stands there now. So all tables of a run switch at once, and
two exports cannot lose each other's runs.

`<table>_files` is an external table over the files of all exports, held or not, with `export` as
projected partition column; its values are added before a switch and taken away long after.

What does not belong here: files of rows, and when old ones go (athena.py).
"""

from __future__ import annotations

import hashlib
import io
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import tenacity

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import BlobMissing, StorageFailed, UsageError
from docgen_core.export import athena_sql as sql
from docgen_core.export.athena_calls import CLIENT_ERRORS, Warehouse, is_absent, is_changed
from docgen_core.export.contract import odd_columns

TABLES = "tables"
"""Folder of the rows: `tables/<table>/export=<export>/unit-000123.parquet`."""
BOOKS = "exports"
"""Folder of the books: `exports/<name>/exports.parquet`."""
BOOKS_FILE = "exports.parquet"

VALUES_CHARACTERS = 400_000
"""Of the exports' names in one table; Glue takes 512,000 for one parameter."""
PEER_WAIT_SECONDS = 120.0
"""For a turn to change a table, where many exports do so at once."""

OURS = "docgen"
"""Glue parameter of the tables that this sink made, and may change."""
VIEW = "docgen.view"
"""Glue parameter of a files table: the statement's digest by which its view was last made."""
VALUES = f"projection.{sql.EXPORT}.values"
NONE = "none"
"""Their value where there is no export: a projection must have one, and there is no file under it."""

_INPUT_KEYS = ("Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType")
_INPUT_VIEW_KEYS = ("ViewOriginalText", "ViewExpandedText", "Parameters")

Table = dict[str, Any]
"""A table as Glue describes it."""


class Entry(NamedTuple):
    """One line of the books, as in `athena_sql.EXPORTS_SCHEMA`."""

    run_id: str
    export: str
    root_sha256: str
    table_name: str
    row_count: int


@dataclass(frozen=True, slots=True)
class Books:
    """What is held."""

    name: str
    """Of this edition; empty where nothing was ever held."""
    entries: tuple[Entry, ...] = ()

    @property
    def exports(self) -> set[str]:
        """Exports that readers see."""
        return {entry.export for entry in self.entries}

    def of(self, run_id: str) -> list[Entry]:
        """The run's lines."""
        return [entry for entry in self.entries if entry.run_id == run_id]


class Catalogue:
    """The sink's tables in one Glue database, with their objects under one output."""

    def __init__(self, warehouse: Warehouse, blobs: BlobStore, output: str) -> None:
        self._warehouse, self._blobs, self._output = warehouse, blobs, output
        self._turns = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, Exception) and is_changed(error)),
            wait=tenacity.wait_random_exponential(multiplier=0.02, max=1.0),
            stop=tenacity.stop_after_delay(PEER_WAIT_SECONDS),
            reraise=True,
        )

    def check(self) -> None:
        """See that there is such a database. Raises `UsageError` where there is none."""
        with self._warehouse.errors_told():
            self._warehouse.glue.get_database(Name=self._warehouse.database)

    def table(self, name: str) -> Table | None:
        """The table, if there is one."""
        try:
            found: Table = self._warehouse.glue.get_table(DatabaseName=self._warehouse.database, Name=name)["Table"]
        except CLIENT_ERRORS as error:
            if is_absent(error):
                return None
            raise
        return found

    def books(self) -> Books:
        """What is held now."""
        with self._warehouse.errors_told():
            return self._books(self.table(sql.EXPORTS))

    def _books(self, table: Table | None) -> Books:
        if table is None:
            return Books("")
        location = str(table.get("StorageDescriptor", {}).get("Location", "")).rstrip("/")
        folder, _, name = location.rpartition("/")
        if OURS not in table.get("Parameters", {}) or folder != f"{self._output}/{BOOKS}":
            raise UsageError(
                f"{self._warehouse.place}: its table {sql.EXPORTS} belongs to another output ({location}); "
                "use that one, or another database"
            )
        try:
            data = self._blobs.get(f"{BOOKS}/{name}/{BOOKS_FILE}")
        except BlobMissing:
            raise StorageFailed(
                f"{location} is gone, where {self._warehouse.place} keeps its table {sql.EXPORTS}; restore it, "
                f"or drop {sql.EXPORTS} and export every run again"
            ) from None
        rows = pq.read_table(io.BytesIO(data)).to_pylist()
        return Books(name, tuple(Entry(**row) for row in rows))

    def switch(
        self, run_id: str, entries: Sequence[Entry], *, before: Callable[[Books, str], None], fit: Callable[[], None]
    ) -> str:
        """Put the lines in the place of the run's, in one step. Returns the new books' name, if anything changed.

        `before` is told the books that stand there and the name of the new ones, before anything is put;
        `fit` is asked last of all and may refuse.
        """

        def turn() -> str:
            table = self.table(sql.EXPORTS)
            old = self._books(table)
            if table is not None and not entries and not old.of(run_id):
                return ""
            name = secrets.token_hex(8)
            before(old, name)
            kept = [entry for entry in old.entries if entry.run_id != run_id]
            self._blobs.put(f"{BOOKS}/{name}/{BOOKS_FILE}", _encoded([*kept, *entries]))
            wanted = self._external(
                sql.EXPORTS, sql.described(sql.EXPORTS, sql.EXPORTS_SCHEMA), f"{self._output}/{BOOKS}/{name}"
            )
            fit()
            try:
                self._put(wanted, table)
            except CLIENT_ERRORS as error:
                # The client may have asked twice, and met its own change.
                if not is_changed(error) or self._books(self.table(sql.EXPORTS)).name != name:
                    raise
            return name

        with self._warehouse.errors_told():
            return self._turns(turn)

    def tables(self) -> list[str]:
        """Names of the tables that files were ever exported to."""
        with self._warehouse.errors_told():
            found = self._own_tables()
        return sorted(table["Name"].removesuffix(sql.FILES) for table in found if table["Name"].endswith(sql.FILES))

    def _own_tables(self) -> list[Table]:
        pages = self._warehouse.glue.get_paginator("get_tables").paginate(DatabaseName=self._warehouse.database)
        return [table for page in pages for table in page["TableList"] if OURS in table.get("Parameters", {})]

    def check_fits(self, table: str, schema: pa.Schema, run_id: str) -> None:
        """Refuse a name that is taken, and columns that rows of other runs do not have. Raises `UsageError`."""
        declared = sql.columns(table, schema)
        with self._warehouse.errors_told():
            files, named = self.table(table + sql.FILES), self.table(table)
            for found, name in ((files, table + sql.FILES), (named if files is None else None, table)):
                if found is not None and OURS not in found.get("Parameters", {}):
                    raise UsageError(
                        f"{self._warehouse.place}: {name!r} is there and is not docgen's; drop or rename it"
                    )
            if named is not None and named.get("TableType") != "VIRTUAL_VIEW":
                raise UsageError(f"{self._warehouse.place}: {table!r} is there and is no view; drop or rename it")
            if files is not None:
                self._refuse_mixing(table, files, declared, run_id)

    def check_stands(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Refuse to publish rows whose columns another export has taken away since. Raises `StorageFailed`."""
        stand = {table["Name"]: _kinds(table["StorageDescriptor"]["Columns"]) for table in self._own_tables()}
        odd = [
            name for name, schema in schemas.items() if stand.get(name + sql.FILES) != _kinds(sql.columns(name, schema))
        ]
        if odd:
            raise StorageFailed(
                f"{self._warehouse.place}: meanwhile another export declared other columns of {', '.join(odd)}; "
                "nothing was changed; export again, into another database if that one is to stay"
            )

    def _refuse_mixing(self, table: str, files: Table, declared: Sequence[Table], run_id: str) -> None:
        there, wanted = _kinds(files["StorageDescriptor"]["Columns"]), _kinds(declared)
        if there == wanted:
            return
        books = self._books(self.table(sql.EXPORTS))
        others = {entry.run_id for entry in books.entries if entry.table_name == table and entry.row_count}
        if others - {run_id}:
            odd = {name for name, _ in set(there) ^ set(wanted)}
            raise UsageError(
                f"{self._warehouse.place}: table {table!r} holds rows of other columns "
                f"({odd_columns(odd)}); export into another database, or withdraw the runs there"
            )

    def announce(self, table: str, schema: pa.Schema, run_id: str, export: str) -> None:
        """Make the table of the files as declared, with the export among its partitions, and its view.

        Raises `UsageError` where rows of other columns were published since `check_fits`.
        """
        statement, declared = sql.view(table, schema.names), sql.columns(table, schema)
        digest = _digest(f"{statement} {declared}")
        name = table + sql.FILES

        def turn() -> Table:
            found = self.table(name)
            if found is not None:
                self._refuse_mixing(table, found, declared, run_id)
            known = _values(found) if found else []
            wanted = self._files(table, schema, sorted({*known, export}))
            notes = found["Parameters"].items() if found else ()
            wanted["Parameters"] |= {key: text for key, text in notes if key.startswith(VIEW)}
            self._put(wanted, found)
            return wanted

        with self._warehouse.errors_told():
            made = self._turns(turn)
            viewed = made["Parameters"].get(VIEW) == digest and self.table(table) is not None
        if not viewed:
            self._warehouse.define(statement)
            self._describe(table, declared)
            self._note(name, digest)

    def _describe(self, view: str, declared: Sequence[Table]) -> None:
        """Give a view its columns' descriptions, for which Athena's SQL has no words."""

        def turn() -> None:
            found = self.table(view)
            if found is not None:
                storage = {**found.get("StorageDescriptor", {}), "Columns": list(declared)}
                self._put({**_input(found), "StorageDescriptor": storage}, found)

        with self._warehouse.errors_told():
            self._turns(turn)

    def announce_values(self) -> None:
        """Make the view `golden_values`, where there are boxes."""
        name, digest = sql.BOXES + sql.FILES, _digest(sql.VALUES_SQL)
        key = f"{VIEW}.{sql.VALUES_VIEW}"
        with self._warehouse.errors_told():
            boxes = self.table(name)
            done = boxes is None or (boxes["Parameters"].get(key) == digest and self.table(sql.VALUES_VIEW) is not None)
        if not done:
            self._warehouse.define(sql.VALUES_SQL)
            self._note(name, digest, key)

    def forget(self, exports: Collection[str], tables: Collection[str]) -> None:
        """Take exports, which nobody can read any more, out of the tables' partitions."""

        def turn(name: str) -> None:
            found = self.table(name)
            if found is not None and OURS in found["Parameters"] and set(_values(found)) & set(exports):
                kept = [value for value in _values(found) if value not in exports]
                self._put(_input(found, **{VALUES: _listed(kept)}), found)

        with self._warehouse.errors_told():
            for table in tables:
                self._turns(turn, table + sql.FILES)

    def _note(self, name: str, digest: str, key: str = VIEW) -> None:
        def turn() -> None:
            found = self.table(name)
            if found is not None:
                self._put(_input(found, **{key: digest}), found)

        with self._warehouse.errors_told():
            self._turns(turn)

    def _put(self, wanted: Table, found: Table | None) -> None:
        """Make the table, or change it from what was found; refused when somebody else did so meanwhile."""
        glue, database = self._warehouse.glue, self._warehouse.database
        if found is None:
            glue.create_table(DatabaseName=database, TableInput=wanted)
        elif _input(found) != wanted:
            glue.update_table(DatabaseName=database, TableInput=wanted, VersionId=found["VersionId"], SkipArchive=True)

    def _external(self, name: str, described: Sequence[Table], location: str) -> Table:
        return {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "PartitionKeys": [],
            "Parameters": {"EXTERNAL": "TRUE", "classification": "parquet", OURS: "1"},
            "StorageDescriptor": {
                "Columns": list(described),
                "Location": f"{location}/",
                "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
                "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                "SerdeInfo": {
                    "SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
                    "Parameters": {"serialization.format": "1"},
                },
            },
        }

    def _files(self, table: str, schema: pa.Schema, exports: Sequence[str]) -> Table:
        location = f"{self._output}/{TABLES}/{table}"
        made = self._external(table + sql.FILES, sql.columns(table, schema), location)
        comment = f"Export that the rows came by; {sql.EXPORTS} says which are held."
        made["PartitionKeys"] = [{"Name": sql.EXPORT, "Type": "string", "Comment": comment}]
        made["Parameters"] |= {
            "projection.enabled": "true",
            f"projection.{sql.EXPORT}.type": "enum",
            VALUES: _listed(exports),
            "storage.location.template": f"{location}/{sql.EXPORT}=${{{sql.EXPORT}}}/",
        }
        return made


def _listed(exports: Sequence[str]) -> str:
    text = ",".join(exports) or NONE
    if len(text) > VALUES_CHARACTERS:
        raise UsageError(
            f"{len(exports)} exports are more than Glue can name in one table; "
            "withdraw runs, or export into another database"
        )
    return text


def _values(table: Table) -> list[str]:
    return [value for value in table["Parameters"].get(VALUES, "").split(",") if value not in ("", NONE)]


def _kinds(glue_columns: Sequence[Table]) -> list[tuple[str, str]]:
    return [(column["Name"], column["Type"]) for column in glue_columns]


def _input(table: Table, **parameters: str) -> Table:
    """The table as Glue takes it back, with these parameters changed."""
    given = {key: table[key] for key in (*_INPUT_KEYS, *_INPUT_VIEW_KEYS) if table.get(key) not in (None, "")}
    return {**given, "Parameters": {**table.get("Parameters", {}), **parameters}}


def _encoded(entries: Sequence[Entry]) -> bytes:
    rows = [entry._asdict() for entry in sorted(entries)]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, sql.EXPORTS_SCHEMA), out)
    return out.getvalue()


def _digest(statement: str) -> str:
    return hashlib.sha256(statement.encode()).hexdigest()
