"""The sink as Dagster opens it: to write through its resource, and to ask about what was exported.

A session for questions is DuckDB's, whichever sink the tables went to. What writes the tables is
the core's sink; what is asked of them is the checks'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import dagster as dg
from dagster_duckdb import DuckDBResource
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random

from docgen_core.errors import StorageFailed

if TYPE_CHECKING:
    import duckdb

    from docgen_core.export import GoldenSink

PREVIEW_ROWS = 5
"""Rows of a table that are kept with its materialisation."""

PREVIEW_CHARACTERS = 24
"""Of a value in them."""

BUSY_SECONDS = 30.0
"""How long a question waits for an export of somebody else to let go of the file."""

_ARITHMETIC = files("docgen_assets").joinpath("arithmetic.sql")

_MACROS = """
CREATE OR REPLACE TEMP MACRO power_of_ten(digits) AS CAST(10 ** digits AS HUGEINT);
CREATE OR REPLACE TEMP MACRO nano(amount) AS CAST(CAST(amount AS DECIMAL(38, 9)) * 1000000000 AS HUGEINT);
CREATE OR REPLACE TEMP MACRO whole(amount, places) AS
    CASE WHEN nano(amount) % power_of_ten(9 - places) = 0 THEN nano(amount) // power_of_ten(9 - places) END;
CREATE OR REPLACE TEMP MACRO half_up(number, digits) AS
    CAST(sign(number) AS HUGEINT) * ((2 * abs(number) + power_of_ten(digits)) // (2 * power_of_ten(digits)));
CREATE OR REPLACE TEMP MACRO percent_of(units, percent) AS half_up(units * nano(percent), 11);
CREATE OR REPLACE TEMP MACRO share_floor(amount, part, total) AS
    CASE WHEN total = 0 THEN CAST(0 AS HUGEINT) ELSE amount * part // total END;
CREATE OR REPLACE TEMP MACRO share_rest(amount, part, total) AS
    CASE WHEN total = 0 THEN CAST(0 AS HUGEINT) ELSE amount * part % total END;
"""
"""Exact integer arithmetic: DuckDB divides decimals as floats, so no decimal is ever divided."""


@contextmanager
def sink_for_writing(uri: str) -> Iterator[GoldenSink]:
    """The core's sink; a DuckDB file is opened by `DuckDBResource`."""
    from docgen_core.export import open_sink

    path = _duckdb_file(uri)
    client = None if path is None else DuckDBResource(database=str(path)).get_connection
    with closing(open_sink(uri, client)) as sink:
        yield sink


@contextmanager
def session(uri: str, tables: Iterable[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only session in which the golden tables can be queried by name.

    Raises `StorageFailed` when nothing was exported yet, or somebody keeps the file to himself.
    """
    path = _duckdb_file(uri)
    with closing(_parquet_session(uri, tables) if path is None else _file_session(path)) as connection:
        yield connection


def broken_rules(connection: duckdb.DuckDBPyConnection, run_id: str) -> list[dict[str, Any]]:
    """Each rule of an invoice's arithmetic that the run's exported rows break, recomputed in SQL."""
    connection.execute(_MACROS)
    found = connection.execute(_ARITHMETIC.read_text(encoding="utf-8"), {"run_id": run_id})
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def row_counts(connection: duckdb.DuckDBPyConnection, tables: Iterable[str], run_id: str) -> dict[str, int]:
    """Exported rows of a run, by table."""
    return {
        table: connection.execute(f'SELECT count(*) FROM "{table}" WHERE run_id = ?', [run_id]).fetchall()[0][0]
        for table in tables
    }


def preview(
    connection: duckdb.DuckDBPyConnection, table: str, run_id: str, *, order: str = "document_id, row_key"
) -> dg.TableMetadataValue:
    """The first exported rows of a run, as text, without the columns that are empty in all of them."""
    frame = connection.execute(
        f'SELECT * EXCLUDE (run_id, catalogue_version) FROM "{table}" WHERE run_id = ? '
        f"ORDER BY {order} LIMIT {PREVIEW_ROWS}",
        [run_id],
    ).df()
    frame = frame.dropna(axis="columns", how="all").astype("string").fillna("")
    frame = frame.apply(lambda column: column.str.replace("\n", ", ").str.slice(0, PREVIEW_CHARACTERS))
    names = [str(name) for name in frame.columns]
    records = [dg.TableRecord(dict(zip(names, row, strict=True))) for row in frame.itertuples(index=False, name=None)]
    return dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name) for name in names]))


def _duckdb_file(uri: str) -> Path | None:
    """The file of a DuckDB sink; None for another sink."""
    from docgen_core.export import open_sink

    with closing(open_sink(uri)) as sink:
        parts = urlsplit(sink.uri)
    return Path(unquote(parts.path)) if parts.scheme == "duckdb" else None


def _file_session(path: Path) -> duckdb.DuckDBPyConnection:
    import duckdb

    if not path.exists():
        raise StorageFailed(f"nothing was exported to {path} yet; materialise the tables first")

    @retry(
        retry=retry_if_exception_type(duckdb.IOException),
        stop=stop_after_delay(BUSY_SECONDS),
        wait=wait_random(0.05, 0.5),
        reraise=True,
    )
    def connect() -> duckdb.DuckDBPyConnection:
        return duckdb.connect(str(path), read_only=True)

    try:
        return connect()
    except duckdb.Error as error:
        raise StorageFailed(f"{path} cannot be read: {str(error).splitlines()[0]}") from None


def _parquet_session(uri: str, tables: Iterable[str]) -> duckdb.DuckDBPyConnection:
    import duckdb

    from docgen_core.export import open_sink

    with closing(open_sink(uri)) as sink:
        folder = unquote(urlsplit(sink.uri).path)
    connection = duckdb.connect()
    for table in tables:
        shards = f"{folder}/{table}/*/*.parquet".replace("'", "''")
        try:
            connection.execute(f"""CREATE VIEW "{table}" AS FROM read_parquet('{shards}', hive_partitioning = false)""")
        except duckdb.IOException:
            connection.close()
            raise StorageFailed(f"nothing was exported to {folder} yet; materialise the tables first") from None
    return connection
