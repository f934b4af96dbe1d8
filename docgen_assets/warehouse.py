"""The exported tables as a DuckDB session, whichever sink they went to: what checks and previews query.

Only reads. What writes the tables is the core's sink; what is asked of them is the checks'.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

ARITHMETIC = files("docgen_assets").joinpath("arithmetic.sql")

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


def broken_rules(connection: duckdb.DuckDBPyConnection, run_id: str) -> list[dict[str, Any]]:
    """Each rule of an invoice's arithmetic that the run's exported rows break, recomputed in SQL."""
    connection.execute(_MACROS)
    found = connection.execute(ARITHMETIC.read_text(encoding="utf-8"), {"run_id": run_id})
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
