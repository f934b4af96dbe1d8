"""The golden set: the tables every document type shares, and how they are read.

One declared schema a table, the same in every shard, part and sink. Money, rates, prices and
quantities are `decimal(38, 9)` (BigQuery's NUMERIC: 29 digits before the point, 9 after).
"""

from __future__ import annotations

import pyarrow as pa

DECIMAL = pa.decimal128(38, 9)
"""Every amount, rate, price and quantity."""


def column(name: str, kind: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    """A declared column; the description travels with the schema to every sink."""
    return pa.field(name, kind, nullable=nullable, metadata={"description": description})


KEY_FIELDS: tuple[pa.Field, ...] = (
    column("run_id", pa.string(), "Run that made the document."),
    column("document_id", pa.string(), "Document, unique within its run and the same in every longer run."),
    column("catalogue_version", pa.string(), "Catalogue the content came from."),
    column("row_key", pa.string(), "Row within (document, table); field_boxes.row_key joins on it."),
)
"""First columns of every golden table."""

DOCUMENTS = pa.schema(
    [
        *KEY_FIELDS,
        column("key", pa.string(), "Blob key of the document file."),
        column("layout", pa.string(), "Layout the page was set in."),
        column("locale", pa.string(), "CLDR locale of the printed texts."),
        column("condition", pa.string(), "Capture condition: clean, light_scan, …"),
        column("pages", pa.int32(), "Pages in the file."),
        column("bytes", pa.int64(), "Size of the file in bytes."),
        column("sha256", pa.string(), "SHA-256 of the file, hexadecimal."),
    ]
)

FIELD_BOXES = pa.schema(
    [
        *KEY_FIELDS,
        column("table_name", pa.string(), "Table of the printed value."),
        column("column_name", pa.string(), "Column of the printed value."),
        column("occurrence", pa.int32(), "From 0, for a value printed in several places."),
        column("part", pa.int32(), "From 0, for a value that wraps over several lines."),
        column("page", pa.int32(), "Page, from 1."),
        column("text", pa.string(), "This fragment as printed."),
        column("value", pa.string(), "The whole golden value in canonical form."),
        *(
            column(f"{axis}{corner}", pa.float64(), f"{axis} of corner {corner}, PDF points from the lower left.")
            for corner in range(4)
            for axis in ("x", "y")
        ),
    ]
)
"""Corners run clockwise from the text's upper left."""

CORE_TABLES: dict[str, pa.Schema] = {"documents": DOCUMENTS, "field_boxes": FIELD_BOXES}
