"""The sink as Dagster opens it, and what it asks of the tables in it.

What is asked goes through the sink's own means: rows are counted where they are, and the arithmetic
is recomputed on the rows that a reader of that place meets, in a DuckDB of its own, so that one text
of rules holds for every sink. What writes the tables is the core's sink.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import dagster as dg

from docgen_assets.clients import sink_client

if TYPE_CHECKING:
    import duckdb

    from docgen_core.export import GoldenSink

PREVIEW_ROWS = 5
"""Rows of a table that are kept with its materialisation."""

PREVIEW_CHARACTERS = 24
"""Of a value in them."""

_HIDDEN = ("run_id", "catalogue_version")
"""Columns that say the same in every row of a range."""

_SESSION_MB = 256
"""Memory of a session for questions; what does not fit goes to a temporary file."""

_ARITHMETIC = files("docgen_assets").joinpath("arithmetic.sql")

_MACROS = """
CREATE OR REPLACE TEMP MACRO power_of_ten(digits) AS CAST(10 ** digits AS HUGEINT);
CREATE OR REPLACE TEMP MACRO nano(amount) AS CAST(CAST(amount AS DECIMAL(38, 9)) * 1000000000 AS HUGEINT);
CREATE OR REPLACE TEMP MACRO whole(amount, places) AS
    CASE WHEN nano(amount) % power_of_ten(9 - places) = 0 THEN nano(amount) // power_of_ten(9 - places) END;
CREATE OR REPLACE TEMP MACRO half_up(number, digits) AS
    CAST(sign(number) AS HUGEINT) * ((2 * abs(number) + power_of_ten(digits)) // (2 * power_of_ten(digits)));
CREATE OR REPLACE TEMP MACRO hundredths(number) AS nano(number) // 10000000;
CREATE OR REPLACE TEMP MACRO ratio(number, digits, divisor) AS
    CAST(sign(number) AS HUGEINT) * ((2 * abs(number) + power_of_ten(digits) * divisor)
    // (2 * power_of_ten(digits) * divisor));
CREATE OR REPLACE TEMP MACRO percent_of(units, percent) AS half_up(units * nano(percent), 11);
CREATE OR REPLACE TEMP MACRO share_floor(amount, part, total) AS
    CASE WHEN total = 0 THEN CAST(0 AS HUGEINT) ELSE amount * part // total END;
CREATE OR REPLACE TEMP MACRO share_rest(amount, part, total) AS
    CASE WHEN total = 0 THEN CAST(0 AS HUGEINT) ELSE amount * part % total END;
"""
"""Exact integer arithmetic: DuckDB divides decimals as floats, so no decimal is ever divided."""


@contextmanager
def opened_sink(uri: str) -> Iterator[GoldenSink]:
    """The core's sink, with the clients of Dagster's resources."""
    from docgen_core.export import open_sink
    from docgen_core.settings import load_settings

    with closing(open_sink(load_settings(sink=uri).sink)) as known:
        place = known.uri
    with sink_client(place) as client, closing(open_sink(place, client)) as sink:
        yield sink


@contextmanager
def session(sink: GoldenSink, run_id: str, tables: Iterable[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session in which those tables hold the run's rows as the sink gives them.

    Raises `StorageFailed` when the sink has no such table.
    """
    import duckdb
    import pyarrow as pa

    with (
        TemporaryDirectory(prefix="docgen-questions-") as folder,
        closing(duckdb.connect(str(Path(folder) / "rows.duckdb"))) as connection,
    ):
        connection.execute(f"SET memory_limit = '{_SESSION_MB}MB'")
        for table in tables:
            with closing(sink.fetch(table, run_id)) as batches:
                connection.from_arrow(pa.Table.from_batches([next(batches)])).create(table)
                for batch in batches:
                    connection.from_arrow(pa.Table.from_batches([batch])).insert_into(table)
        yield connection


def broken_rules(connection: duckdb.DuckDBPyConnection, run_id: str) -> list[dict[str, Any]]:
    """Each rule of an invoice's arithmetic that the run's exported rows break, recomputed in SQL."""
    connection.execute(_MACROS)
    found = connection.execute(_ARITHMETIC.read_text(encoding="utf-8"), {"run_id": run_id})
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def preview(sink: GoldenSink, table: str, run_id: str) -> dg.TableMetadataValue:
    """The first exported rows of a run, as text, without the columns that are empty in all of them."""
    with closing(sink.fetch(table, run_id, limit=PREVIEW_ROWS)) as batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
    told = [name for name in (rows[0] if rows else ()) if name not in _HIDDEN]
    names = [name for name in told if any(row[name] is not None for row in rows)]
    records = [dg.TableRecord({name: _shown(row[name]) for name in names}) for row in rows]
    return dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name) for name in names]))


def _shown(value: object) -> str:
    """A value as people read it: amounts without the zeros of their nine places, on one line, not too long."""
    if value is None:
        return ""
    text = f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)
    return text.replace("\n", ", ")[:PREVIEW_CHARACTERS]
