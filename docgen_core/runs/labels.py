"""A document's labels as one file beside it: its golden values, where they stand, and every word.

For whoever trains on documents and wants no tables. The same values as the golden set's, in canonical
form; coordinates are whole thousandths of a PDF point from the page's lower left, so that the file
has one byte form. What does not belong here: anything that the golden set does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from docgen_core.canonical import canonical_json
from docgen_core.packs.contract import Record, Row, Rows
from docgen_core.runs.manifest import BlobEntry

if TYPE_CHECKING:
    from docgen_core.render.capture import Captured
    from docgen_core.render.html import Print

FORMAT = 1
UNITS_A_POINT = 1000


def labels_json(run_id: str, record: Record, rows: Rows, captured: Captured, files: Sequence[BlobEntry]) -> bytes:
    """The file of labels of a document; `files` are the published files of `captured`."""
    return canonical_json(
        {
            "format": FORMAT,
            "run_id": run_id,
            "document_id": record.document_id,
            "layout": record.layout,
            "locale": record.locale,
            "condition": record.condition,
            "units_a_point": UNITS_A_POINT,
            "pages": [
                {
                    "page": number,
                    "key": files[page.file].key,
                    "size": _whole(page.points),
                    "pixels": list(page.pixels) if page.pixels else None,
                }
                for number, page in enumerate(captured.pages, start=1)
            ],
            "values": {table: [_plain(row) for row in found] for table, found in rows.items()},
            "boxes": [
                {
                    **_name(box.print),
                    "part": box.part,
                    "page": box.page,
                    "text": box.text,
                    "value": box.print.value,
                    "quad": _whole(box.quad),
                }
                for box in captured.boxes
            ],
            "words": [
                {
                    "page": word.page,
                    "text": word.text,
                    "quad": _whole(word.quad),
                    "label": _name(word.print) if word.print else None,
                }
                for word in captured.words
            ],
        }
    )


def _name(entry: Print) -> dict[str, Any]:
    return {
        "table": entry.table,
        "row_key": entry.row_key,
        "column": entry.column,
        "occurrence": entry.occurrence,
    }


def _whole(coordinates: Sequence[float]) -> list[int]:
    return [round(coordinate * UNITS_A_POINT) for coordinate in coordinates]


def _plain(row: Row) -> Mapping[str, Any]:
    """A golden row as JSON: a decimal as text without needless zeros, a date in ISO form."""
    return {name: _value(value) for name, value in row.items() if name not in _TOLD_ONCE}


_TOLD_ONCE = frozenset(("run_id", "document_id"))


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value.normalize() if value else Decimal(0), "f")
    return value.isoformat() if isinstance(value, date) else value
