"""Golden tables as BigQuery declares them: names, columns, and the script that replaces a run.

Nothing here talks to BigQuery. Types are declared from the Arrow schema, never inferred; what
BigQuery could only hold rounded or widened to something else is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from google.cloud.bigquery import SchemaField

from docgen_core.errors import UsageError

EXPORTS = "docgen_exports"
"""A row for each run and table that are held. Only tables named there are ever deleted from."""
TURNS = "docgen_turns"
"""One row, updated by each first export of a run. Inserts alone never conflict, so two at once would both go through.

Where a run is held already, deleting its rows from `EXPORTS` does as much."""
STAGING = "docgen_staging_"
"""Prefix of the tables that a replacement is loaded into; they expire by themselves."""
BOXES, VALUES_VIEW = "field_boxes", "golden_values"

EXPORTS_SCHEMA = (
    SchemaField("run_id", "STRING", "REQUIRED", description="Run that is held."),
    SchemaField("root_sha256", "STRING", "REQUIRED", description="SHA-256 of the root manifest it was exported from."),
    SchemaField("table_name", "STRING", "REQUIRED", description="Table that holds rows of the run, perhaps none."),
    SchemaField("row_count", "INTEGER", "REQUIRED", description="Rows of the run in that table."),
    SchemaField("exported_at", "TIMESTAMP", "REQUIRED", description="When it was published."),
    SchemaField(
        "arrow_schema", "STRING", "REQUIRED", description="The declared columns: Arrow's schema message, base64."
    ),
)

MAX_DESCRIPTION = 1_024
"""Characters of a column's description that BigQuery takes."""
NUMERIC_DIGITS, NUMERIC_SCALE = 29, 9
"""What NUMERIC holds before and after the point; BIGNUMERIC holds 38 and 38."""
BIGNUMERIC_DIGITS = BIGNUMERIC_SCALE = 38
LEADING_COLUMNS = 4
"""Those a limited fetch is ordered by: the key of a golden table."""

CHANGED_MEANWHILE = "docgen: another export of this run was published first"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_RESERVED = ("docgen_", "_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier", "_change_")
"""Beginnings of names that are BigQuery's or the sink's own."""

_TYPES = {
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INTEGER",
    pa.int64(): "INTEGER",
    pa.float64(): "FLOAT",
    pa.date32(): "DATE",
}


@dataclass(slots=True)
class Incoming:
    """A table of a replacement, on its way in."""

    name: str
    schema: pa.Schema
    columns: tuple[SchemaField, ...]
    staging: str
    """Name of the table it is loaded into first."""
    found: Any = None
    """The table that is there already, as the client gives it."""
    uris: list[str] = field(default_factory=list)
    rows: int = 0


class Held(NamedTuple):
    """A table that holds a run: how many rows, of which declared columns."""

    rows: int
    schema: pa.Schema


def columns(table: str, schema: pa.Schema) -> tuple[SchemaField, ...]:
    """The declared columns, with modes and descriptions. Raises `UsageError` for what has no place in BigQuery."""
    for name in (table, *schema.names):
        if not _NAME.fullmatch(name) or name.lower().startswith(_RESERVED):
            raise UsageError(f"{table}: BigQuery takes no table or column of the name {name!r}; rename it in the pack")
    return tuple(_column(table, declared) for declared in schema)


def _column(table: str, declared: pa.Field) -> SchemaField:
    text = (declared.metadata or {}).get(b"description", b"").decode()[:MAX_DESCRIPTION]
    mode = "NULLABLE" if declared.nullable else "REQUIRED"
    return SchemaField(declared.name, _type(table, declared), mode, description=text)


def _type(table: str, declared: pa.Field) -> str:
    kind = declared.type
    if pa.types.is_decimal(kind):
        digits, scale = kind.precision - kind.scale, kind.scale
        if 0 <= scale <= NUMERIC_SCALE and digits <= NUMERIC_DIGITS:
            return "NUMERIC"
        if 0 <= scale <= BIGNUMERIC_SCALE and digits <= BIGNUMERIC_DIGITS:
            return "BIGNUMERIC"
        raise UsageError(
            f"{table}.{declared.name}: {kind} fits neither NUMERIC ({NUMERIC_DIGITS} digits before the point, "
            f"{NUMERIC_SCALE} after) nor BIGNUMERIC ({BIGNUMERIC_DIGITS} and {BIGNUMERIC_SCALE}); declare it smaller"
        )
    if kind not in _TYPES:
        raise UsageError(f"{table}.{declared.name}: a golden column of type {kind} has no place in BigQuery")
    return _TYPES[kind]


def differing(found: Sequence[SchemaField], declared: Sequence[SchemaField]) -> list[str]:
    """Columns that keep declared rows out of the table found; one that takes NULL takes a required value too."""
    if [column.name for column in found] != [column.name for column in declared]:
        odd = {column.name for column in found} ^ {column.name for column in declared}
        return sorted(odd) or ["in another order"]
    return [
        ours.name
        for theirs, ours in zip(found, declared, strict=True)
        if theirs.field_type != ours.field_type or (theirs.mode == "REQUIRED" and ours.mode != "REQUIRED")
    ]


def packed(schema: pa.Schema) -> str:
    """The schema as text, for `EXPORTS`."""
    return base64.b64encode(schema.serialize()).decode()


def unpacked(text: str) -> pa.Schema:
    """The schema that `packed` gave."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def listed(held: Mapping[str, Held]) -> str:
    """What is held, as the script compares it."""
    return ",".join(f"{table}={held[table].rows}" for table in sorted(held))


def replacing_script(dataset: str, held: Mapping[str, Held], incoming: Sequence[Incoming]) -> str:
    """One transaction: the run's rows out of the tables held, those of the staging tables in.

    Parameters: `run`, `root`, `held` (of `listed`), and for the nth table `schema_n`. It fails with
    `CHANGED_MEANWHILE` where the run is no longer held as `held` says. Without tables it only removes.
    A table that a run is new to sees no DELETE: that would be billed as a read of all of it.
    """
    path = f"`{dataset}.{{}}`".format
    out = [*(table for table in sorted(held) if held[table].rows), EXPORTS] if held else []
    statements = [
        "BEGIN TRANSACTION",
        *([] if held else [f"UPDATE {path(TURNS)} SET turn = turn + 1 WHERE TRUE"]),
        "IF IFNULL((SELECT STRING_AGG(CONCAT(table_name, '=', CAST(row_count AS STRING)), ',' ORDER BY table_name) "
        f"FROM {path(EXPORTS)} WHERE run_id = @run), '') != @held "
        f"THEN RAISE USING MESSAGE = '{CHANGED_MEANWHILE}'; END IF",
        *(f"DELETE FROM {path(table)} WHERE run_id = @run" for table in out),
        *(_insertion(path, table) for table in incoming if table.rows),
    ]
    if incoming:
        rows = ", ".join(
            f"(@run, @root, '{table.name}', {table.rows}, CURRENT_TIMESTAMP(), @schema_{place})"
            for place, table in enumerate(incoming)
        )
        names = ", ".join(column.name for column in EXPORTS_SCHEMA)
        statements.append(f"INSERT INTO {path(EXPORTS)} ({names}) VALUES {rows}")
    return ";\n".join([*statements, "COMMIT TRANSACTION"]) + ";"


def _insertion(path: Callable[[str], str], table: Incoming) -> str:
    names = ", ".join(f"`{column.name}`" for column in table.columns)
    return f"INSERT INTO {path(table.name)} ({names}) SELECT {names} FROM {path(table.staging)}"


def held_query(dataset: str) -> str:
    """What is held of the run; parameter `run`."""
    return f"SELECT table_name, row_count, arrow_schema FROM `{dataset}.{EXPORTS}` WHERE run_id = @run"


def counting_query(dataset: str, held: Iterable[str]) -> str:
    """Rows of the run by table; parameter `run`."""
    return " UNION ALL ".join(
        f"SELECT '{table}' AS table_name, COUNT(*) AS row_count FROM `{dataset}.{table}` WHERE run_id = @run"
        for table in sorted(held)
    )


def rows_query(dataset: str, table: str, schema: pa.Schema, limit: int | None) -> str:
    """The run's rows, the first ones by the key where there is a limit; parameter `run`."""
    names = ", ".join(f"`{name}`" for name in schema.names)
    some = "" if limit is None else f" ORDER BY {_leading(schema)} LIMIT {limit:d}"
    return f"SELECT {names} FROM `{dataset}.{table}` WHERE run_id = @run{some}"


def _leading(schema: pa.Schema) -> str:
    return ", ".join(f"`{name}`" for name in schema.names[:LEADING_COLUMNS])


def values_query(dataset: str) -> str:
    """Each printed value once, however often and on however many lines."""
    return (
        "SELECT run_id, document_id, table_name, row_key, column_name, ANY_VALUE(value) AS value, "
        "COUNTIF(part = 0) AS occurrences, MIN(page) AS first_page "
        f"FROM `{dataset}.{BOXES}` GROUP BY run_id, document_id, table_name, row_key, column_name"
    )
