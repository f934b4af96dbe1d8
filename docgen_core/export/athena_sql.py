"""Columns and statements of the Athena sink: Hive types for Glue, and SQL as Trino reads it.

A name is quoted in double quotes here, since views and queries are Trino's; Glue takes names bare.

What does not belong here: requests, and what is in a table (athena_tables.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from docgen_core.errors import UsageError

EXPORTS = "docgen_exports"
"""Table of what is held, a row per run and table; each view joins it."""
FILES = "_files"
"""After a table's name: the external table over its files, of all exports. The view has the plain name."""
EXPORT = "export"
"""The projected partition column."""
VALUES_VIEW = "golden_values"
BOXES = "field_boxes"

COMMENT_CHARACTERS = 255
"""The most that Glue takes for a column's comment."""
LEADING_COLUMNS = 4
"""What a limited fetch is ordered by: the keys of a golden table."""
MOST_DIGITS = 38

_NAME = re.compile(r"[a-z][a-z0-9_]{0,120}")

_HIVE_TYPES = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
}
_ARROW_TYPES = {text: kind for kind, text in _HIVE_TYPES.items()}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

EXPORTS_SCHEMA = pa.schema(
    [
        pa.field("run_id", pa.string(), metadata={"description": "Run that is held."}),
        pa.field("export", pa.string(), metadata={"description": "Export that its rows came by."}),
        pa.field("root_sha256", pa.string(), metadata={"description": "Digest of the run's root manifest."}),
        pa.field("table_name", pa.string(), metadata={"description": "Table of the run."}),
        pa.field("row_count", pa.int64(), metadata={"description": "Rows of the run in that table."}),
    ]
)


def columns(table: str, schema: pa.Schema) -> list[dict[str, str]]:
    """The declared columns as Glue writes them, with their descriptions. Raises `UsageError` where one has no place."""
    if not _NAME.fullmatch(table) or table in (EXPORTS, VALUES_VIEW) or table.endswith(FILES):
        raise UsageError(f"a golden table called {table!r} has no place in Athena")
    for field in schema:
        if not _NAME.fullmatch(field.name) or field.name == EXPORT:
            raise UsageError(f"{table}.{field.name}: a golden column of this name has no place in Athena")
    return described(table, schema)


def described(table: str, schema: pa.Schema) -> list[dict[str, str]]:
    """Columns of any of the sink's tables."""
    return [_column(table, field) for field in schema]


def _column(table: str, field: pa.Field) -> dict[str, str]:
    column = {"Name": field.name, "Type": _hive_type(table, field)}
    text = " ".join((field.metadata or {}).get(b"description", b"").decode().split())
    if len(text) > COMMENT_CHARACTERS:
        text = text[: COMMENT_CHARACTERS - 1].rstrip() + "…"
    return {**column, "Comment": text} if text else column


def _hive_type(table: str, field: pa.Field) -> str:
    if pa.types.is_decimal(field.type) and field.type.precision <= MOST_DIGITS and field.type.scale >= 0:
        return f"decimal({field.type.precision},{field.type.scale})"
    try:
        return _HIVE_TYPES[field.type]
    except KeyError:
        raise UsageError(f"{table}.{field.name}: a golden column of type {field.type} has no place in Athena") from None


def arrow_schema(glue_columns: Sequence[Mapping[str, Any]]) -> pa.Schema:
    """The declared columns back from Glue's."""
    return pa.schema(
        [
            pa.field(column["Name"], _arrow_type(column["Type"]), metadata={"description": column.get("Comment", "")})
            for column in glue_columns
        ]
    )


def _arrow_type(text: str) -> pa.DataType:
    if found := _DECIMAL.fullmatch(text):
        return pa.decimal128(int(found[1]), int(found[2]))
    return _ARROW_TYPES[text]


def view(table: str, names: Iterable[str]) -> str:
    """The view of the table's own name: the rows of the exports that are held, and of no other.

    `docgen_exports` comes first, so that an engine that looks tables up one by one meets the files of every export
    it was told of. The run is joined too: a filter on `run_id` reaches both sides.
    """
    listed = ", ".join(f"f.{quoted(name)}" for name in names)
    return (
        f"CREATE OR REPLACE VIEW {quoted(table)} AS SELECT {listed} "
        f"FROM {quoted(EXPORTS)} e JOIN {quoted(table + FILES)} f "
        f'ON f.{quoted(EXPORT)} = e.{quoted(EXPORT)} AND f."run_id" = e."run_id" '
        f'WHERE e."table_name" = {literal(table)}'
    )


VALUES_SQL = f"""\
CREATE OR REPLACE VIEW "{VALUES_VIEW}" AS SELECT "run_id", "document_id", "table_name", "row_key", "column_name", \
max("value") AS "value", count(CASE WHEN "part" = 0 THEN 1 END) AS "occurrences", min("page") AS "first_page" \
FROM "{BOXES}" GROUP BY "run_id", "document_id", "table_name", "row_key", "column_name\""""
"""Each printed value once, however often and on however many lines."""


def count_rows(tables: Iterable[str], run_id: str) -> str:
    """One query for the rows of every table."""
    return " UNION ALL ".join(
        f"SELECT {literal(table)} AS table_name, count(*) AS row_count "
        f'FROM {quoted(table)} WHERE "run_id" = {literal(run_id)}'
        for table in tables
    )


def rows(table: str, names: Sequence[str], run_id: str, limit: int | None) -> str:
    """The run's rows, the first by the leading columns where there is a limit."""
    listed = ", ".join(quoted(name) for name in names)
    some = ""
    if limit is not None:
        order = ", ".join(quoted(name) for name in names[:LEADING_COLUMNS])
        some = f" ORDER BY {order} LIMIT {limit:d}"
    return f'SELECT {listed} FROM {quoted(table)} WHERE "run_id" = {literal(run_id)}{some}'


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
