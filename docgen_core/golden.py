"""The golden set: the tables every document type shares, and how they are read.

One declared schema a table, the same in every shard, part and sink. Money, rates, prices and
quantities are `decimal(38, 9)` (BigQuery's NUMERIC: 29 digits before the point, 9 after).

`open(run_id).table("invoices")` reads a sealed run, every shard checked against its manifest.
What does not belong here: a pack's own tables, and where else the rows may go (export/).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from docgen_core.errors import MissingExtra

if TYPE_CHECKING:
    import pandas as pd

    from docgen_core.blobs.contract import BlobStore
    from docgen_core.export.reader import RunReader

DECIMAL = pa.decimal128(38, 9)
"""Every amount, rate, price and quantity."""


IDENTIFIER = "identifier"
"""What a column holds whose values are compared by their letters and digits alone: numbers of documents,
accounts, registrations."""


def column(name: str, kind: pa.DataType, description: str, *, nullable: bool = False, holds: str = "") -> pa.Field:
    """A declared column; the description, and what it `holds` where that matters, travel with the schema."""
    metadata = {"description": description, **({"holds": holds} if holds else {})}
    return pa.field(name, kind, nullable=nullable, metadata=metadata)


def held_by(declared: pa.Field) -> str:
    """What a column was declared to hold; nothing in particular for most."""
    return str((declared.metadata or {}).get(b"holds", b"").decode())


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
        column("key", pa.string(), "Blob key of the document file; where each page is a file, of the first."),
        column("layout", pa.string(), "Layout the page was set in."),
        column("locale", pa.string(), "CLDR locale of the printed texts."),
        column("condition", pa.string(), "Capture condition: clean, light_scan, …"),
        column("pages", pa.int32(), "Pages in the file."),
        column("bytes", pa.int64(), "Size of the file in bytes; where each page is a file, of all of them."),
        column(
            "sha256",
            pa.string(),
            "SHA-256 of the file, hexadecimal; where each page is a file, of the hexadecimal SHA-256s in page order.",
        ),
    ]
)

PAGES = pa.schema(
    [
        *KEY_FIELDS,
        column("page", pa.int32(), "Page, from 1."),
        column("key", pa.string(), "Blob key of the file that the page is in, or is."),
        column("width", pa.float64(), "Width in PDF points; boxes are measured in them."),
        column("height", pa.float64(), "Height in PDF points."),
        column("pixels_wide", pa.int32(), "Width of the page's picture in pixels.", nullable=True),
        column("pixels_high", pa.int32(), "Height of the page's picture in pixels.", nullable=True),
        column("dpi_across", pa.int32(), "Dots of the picture to an inch of paper, across.", nullable=True),
        column("dpi_down", pa.int32(), "Dots of the picture to an inch of paper, down.", nullable=True),
        column("sha256", pa.string(), "SHA-256 of that file, hexadecimal."),
    ]
)
"""A page that is no picture, as printed, has no pixels. Box to pixel: x * pixels_wide / width from
the left, (height - y) * pixels_high / height from the top."""

_CORNERS = tuple(
    column(f"{axis}{corner}", pa.float64(), f"{axis} of corner {corner}, PDF points from the lower left.")
    for corner in range(4)
    for axis in ("x", "y")
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
        *_CORNERS,
    ]
)
"""Corners run clockwise from the text's upper left."""

WORDS = pa.schema(
    [
        *KEY_FIELDS,
        column("page", pa.int32(), "Page, from 1."),
        column("text", pa.string(), "The word as printed."),
        column("label_table", pa.string(), "Table of the golden value that it is (part of).", nullable=True),
        column("label_row", pa.string(), "row_key of that value.", nullable=True),
        column("label_column", pa.string(), "Column of that value.", nullable=True),
        column("label_occurrence", pa.int32(), "Which printing of that value, from 0.", nullable=True),
        *_CORNERS,
    ]
)
"""Every word of each page, in the order of the text layer; row_key counts them. Empty where a run was
not asked for words."""

CORE_TABLES: dict[str, pa.Schema] = {
    "documents": DOCUMENTS,
    "pages": PAGES,
    "field_boxes": FIELD_BOXES,
    "words": WORDS,
}

CATALOGUE_KEY_FIELDS: tuple[pa.Field, ...] = (
    column("run_id", pa.string(), "Run that built the catalogue."),
    column("catalogue_version", pa.string(), "Version of the catalogue."),
)
"""First columns of every catalogue table."""


class GoldenTable:
    """One table of a sealed run. Reads when asked, so a table larger than memory can be walked."""

    def __init__(self, reader: RunReader, name: str) -> None:
        self.name = name
        self.num_rows = reader.rows(name)
        self._reader = reader

    @property
    def schema(self) -> pa.Schema:
        """Declared columns, with their descriptions."""
        return self._reader.schema(self.name)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the documents, a bounded number at a time.

        Raises `Damage` naming the shard that is missing or changed.
        """
        for shard in self._reader.stream(self.name).shards:
            yield from shard.batches()

    def to_arrow(self) -> pa.Table:
        """The whole table."""
        return pa.Table.from_batches(list(self.batches()), self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The whole table as a frame: `Decimal`, `date`, `int` and `None` as they are, nothing rounded.

        Raises `MissingExtra` where pandas is not installed.
        """
        try:
            import pandas  # noqa: F401  Arrow's own message would not say what to install
        except ModuleNotFoundError:
            raise MissingExtra("a frame of the golden set", "pandas") from None
        frame: pd.DataFrame = self.to_arrow().to_pandas(integer_object_nulls=True, date_as_object=True)
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Hand the rows to anything that speaks Arrow: `pa.table(t)`, DuckDB, polars."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches()).__arrow_c_stream__(requested_schema)


class GoldenRun:
    """The golden set of one sealed run."""

    def __init__(self, reader: RunReader) -> None:
        self.run_id = reader.root.run_id
        self.tables = reader.tables
        """Names of the tables, in order."""
        self._reader = reader

    def table(self, name: str) -> GoldenTable:
        """One table. Raises `UsageError` naming the tables there are."""
        return GoldenTable(self._reader, name)


def open(run_id: str, blobs: BlobStore | str | None = None) -> GoldenRun:
    """The golden set of a run, or of catalogue VERSION under the id `catalogue-VERSION`.

    `blobs` is a store or its URI; by default the one that `DOCGEN_BLOBS` names. Raises
    `RunWithdrawn`, `RunIncomplete` (no root manifest), `Damage` (naming the blob that is missing or changed).
    """
    from docgen_core.export.reader import open_run

    if blobs is None or isinstance(blobs, str):
        from docgen_core.blobs import open_blobs
        from docgen_core.settings import load_settings

        blobs = open_blobs(load_settings(blobs=blobs).blobs)
    return GoldenRun(open_run(run_id, blobs))
