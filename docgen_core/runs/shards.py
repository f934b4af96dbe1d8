"""Rows to Parquet bytes and back, by declared schemas: nothing is inferred, nothing is coerced.

The same rows give the same bytes: no clock, one compression level, one row-group size. The rows
of the core's own tables (`documents`, `pages`, `field_boxes`) are made here.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.canonical import sha256_hex
from docgen_core.errors import Damage, RecordRefused
from docgen_core.golden import CATALOGUE_KEY_FIELDS
from docgen_core.packs.contract import Pack, Record, Row
from docgen_core.runs.columns import column_array
from docgen_core.runs.manifest import BlobEntry

if TYPE_CHECKING:
    from docgen_core.render.capture import Captured

COMPRESSION_LEVEL = 3
ROW_GROUP_ROWS = 64 * 1024

_CORNERS = tuple(f"{axis}{corner}" for corner in range(4) for axis in ("x", "y"))

DOCUMENT_ROW_KEY = "1"
"""A document has one row in `documents`."""


def catalogue_schemas(pack: Pack) -> dict[str, pa.Schema]:
    """The pack's catalogue tables as they are published: with the core's columns first."""
    return {name: pa.schema([*CATALOGUE_KEY_FIELDS, *schema]) for name, schema in pack.catalogue_tables.items()}


def encode_shard(table: str, schema: pa.Schema, rows: Sequence[Row]) -> bytes:
    """The rows as Parquet. Raises `RecordRefused` naming the column of a value that is not declared so."""
    names = set(schema.names)
    for row in rows:
        if row.keys() != names:
            odd = ", ".join(sorted(row.keys() ^ names))
            raise RecordRefused(f"a row of {table!r} has unknown or missing columns: {odd}")
    arrays = [_column(table, field, [row[field.name] for row in rows]) for field in schema]
    buffer = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema),
        buffer,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
        row_group_size=ROW_GROUP_ROWS,
    )
    return buffer.getvalue()


def decode_shard(key: str, data: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """The rows of a shard. Raises `Damage` when it is no Parquet, or not of the declared schema."""
    try:
        # Not `read_table`, which imports pandas where there is one. In this thread: a shard is too small to
        # share, and a process that ends while Arrow still starts a thread of its own is aborted.
        found = pq.ParquetFile(io.BytesIO(data)).read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise Damage(f"shard {key!r} cannot be read: {str(error).splitlines()[0]}") from None
    if schema is not None and not found.schema.equals(schema, check_metadata=False):
        raise Damage(f"shard {key!r} does not have the declared schema: {_difference(schema, found.schema)}")
    return found


def documents_row(
    run_id: str, catalogue_version: str, record: Record, captured: Captured, files: Sequence[BlobEntry]
) -> Row:
    """A document's row in `documents`; `files` are the published files of `captured`."""
    return {
        **_keys(run_id, catalogue_version, record),
        "row_key": DOCUMENT_ROW_KEY,
        "key": files[0].key,
        "layout": record.layout,
        "locale": record.locale,
        "condition": record.condition,
        "pages": len(captured.pages),
        "bytes": sum(file.bytes for file in files),
        "sha256": files_digest([file.sha256 for file in files]),
    }


def files_digest(digests: Sequence[str]) -> str:
    """What names the content of a document's files: the one's own digest, or the digest of them all in page order."""
    return digests[0] if len(digests) == 1 else sha256_hex("".join(digests).encode())


def page_rows(
    run_id: str, catalogue_version: str, record: Record, captured: Captured, files: Sequence[BlobEntry]
) -> list[Row]:
    """A document's rows in `pages`."""
    rows: list[Row] = []
    for number, page in enumerate(captured.pages, start=1):
        (width, height), (across, down) = page.pixels or (None, None), page.dpi or (None, None)
        rows.append(
            {
                **_keys(run_id, catalogue_version, record),
                "row_key": str(number),
                "page": number,
                "key": files[page.file].key,
                "width": page.points[0],
                "height": page.points[1],
                "pixels_wide": width,
                "pixels_high": height,
                "dpi_across": across,
                "dpi_down": down,
                "sha256": files[page.file].sha256,
            }
        )
    return rows


def box_rows(run_id: str, catalogue_version: str, record: Record, captured: Captured) -> list[Row]:
    """A document's rows in `field_boxes`, one per printed fragment, in the order of the boxes."""
    return [
        {
            **_keys(run_id, catalogue_version, record),
            "row_key": box.print.row_key,
            "table_name": box.print.table,
            "column_name": box.print.column,
            "occurrence": box.print.occurrence,
            "part": box.part,
            "page": box.page,
            "text": box.text,
            "value": box.print.value,
            **dict(zip(_CORNERS, box.quad, strict=True)),
        }
        for box in captured.boxes
    ]


def word_rows(run_id: str, catalogue_version: str, record: Record, captured: Captured) -> list[Row]:
    """A document's rows in `words`."""
    keys = _keys(run_id, catalogue_version, record)
    return [
        {
            **keys,
            "row_key": str(number),
            "page": word.page,
            "text": word.text,
            "label_table": word.print and word.print.table,
            "label_row": word.print and word.print.row_key,
            "label_column": word.print and word.print.column,
            "label_occurrence": word.print and word.print.occurrence,
            **dict(zip(_CORNERS, word.quad, strict=True)),
        }
        for number, word in enumerate(captured.words, start=1)
    ]


def _keys(run_id: str, catalogue_version: str, record: Record) -> Row:
    """First columns of every row of a document."""
    return {"run_id": run_id, "document_id": record.document_id, "catalogue_version": catalogue_version}


def _column(table: str, field: pa.Field, values: list[Any]) -> pa.Array:
    try:
        return column_array(field.type, values, nullable=field.nullable)
    except (ValueError, OverflowError) as error:
        raise RecordRefused(f"{table}.{field.name} ({field.type}): {error}") from None


def _difference(declared: pa.Schema, found: pa.Schema) -> str:
    if declared.names != found.names:
        return f"columns {found.names}, declared {declared.names}"
    return "; ".join(
        f"{theirs}, declared {ours}" for ours, theirs in zip(declared, found, strict=True) if ours != theirs
    )
