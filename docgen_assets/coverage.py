"""Whether every printed golden value has its box, in SQL over the exported tables.

What every layout prints is said here once more, apart from the layouts, so that a layout that
forgets a value is found. What does not belong here: whether a box lies on the ink; that is for the
tests' witnesses, which see the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from docgen_core.packs.invoice.tables import TABLES

if TYPE_CHECKING:
    import duckdb

ASKED = ("documents", "field_boxes", *TABLES)
"""Tables that the rules ask."""

PRINTED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "invoices": {
        "": ("number", "issue_date", "seller_name", "seller_address", "net_total", "gross_total", "payment_terms"),
        "kind = 'receipt'": ("issue_time",),
        "kind = 'invoice'": ("buyer_name", "buyer_address", "amount_due", "due_date"),
        "kind IN ('credit_note', 'corrective_invoice')": ("buyer_name", "original_number", "original_date"),
        "document_charge <> 0": ("document_charge", "document_charge_label"),
        "withholding <> 0": ("withholding", "withholding_label"),
        **{f"{name} <> 0": (name,) for name in ("document_discount", "shipping", "tip", "rounding", "credit_used")},
    },
    "line_items": {"": ("description", "quantity", "unit_price", "net_amount")},
    "tax_lines": {"": ("label", "tax")},
    "instalments": {"": ("due_date", "amount")},
}
"""Columns that every layout prints where they hold something: by table, and by which of its rows."""

Size = tuple[float, float]
"""Width and height of a page in points."""

_RULES = files("docgen_assets").joinpath("coverage.sql")


def broken_boxes(
    connection: duckdb.DuckDBPyConnection, run_id: str, pages: Mapping[str, Iterable[Size]]
) -> list[dict[str, Any]]:
    """Each rule that a box, or a value without one, of the run breaks; `connection` holds the tables of `ASKED`.

    `pages` are the sizes of some documents' pages, by document; boxes of others are held to be on a
    page of any size.
    """
    connection.execute("CREATE OR REPLACE TEMP TABLE page_sizes (document_id TEXT, page INTEGER, w DOUBLE, h DOUBLE)")
    sizes = [
        (document, number, *size) for document, found in pages.items() for number, size in enumerate(found, start=1)
    ]
    if sizes:
        connection.executemany("INSERT INTO page_sizes VALUES (?, ?, ?, ?)", sizes)
    cells, printed = " UNION ALL ".join(_cells()), " UNION ALL ".join(_printed())
    connection.execute(f"CREATE OR REPLACE TEMP VIEW cells AS {cells}")
    connection.execute(f"CREATE OR REPLACE TEMP VIEW printed AS {printed}")
    found = connection.execute(_RULES.read_text(encoding="utf-8"), {"run_id": run_id})
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _cells() -> Iterator[str]:
    """Every golden value as text, and as a decimal where it is one."""
    import pyarrow as pa

    for table, schema in TABLES.items():
        for field in schema:
            exact = field.name if pa.types.is_decimal(field.type) else "NULL::DECIMAL(38, 9)"
            yield (
                f"SELECT run_id, document_id, '{table}' AS table_name, row_key, '{field.name}' AS column_name, "
                f"CAST({field.name} AS VARCHAR) AS cell, {exact} AS amount FROM {table} WHERE {field.name} IS NOT NULL"
            )


def _printed() -> Iterator[str]:
    """Which rows and columns have to have a box."""
    for table, by_rows in PRINTED.items():
        for rows, columns in by_rows.items():
            for name in columns:
                yield (
                    f"SELECT run_id, document_id, '{table}' AS table_name, row_key, '{name}' AS column_name "
                    f"FROM {table} WHERE {name} IS NOT NULL AND CAST({name} AS VARCHAR) <> ''"
                    + (f" AND {rows}" if rows else "")
                )
