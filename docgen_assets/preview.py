"""What people look at: a page of thumbnails, small enough to live in an event.

A preview never fails a run: it is made from what is published and verified already. What does
not belong here: anything that decides whether a range is done.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

THUMBNAILS = 6
"""First pages shown together."""

_CELL = (150, 212)
"""Width and height of a thumbnail in pixels: a sheet of A4 with 150 pixels across."""

_DPI = 55
"""At which a PDF is drawn before it is made as small as its thumbnail."""

_GAP = 8
"""Pixels between thumbnails."""

_MAX_BYTES = 120_000
"""Of the PNG. It is kept in the event log, which is read whole for every view of the asset."""

_SMALLER = 0.8
"""By how much the sheet shrinks while it is too large to keep."""


def contact_sheet(files: Iterable[bytes]) -> str:
    """Markdown with the first pages of up to `THUMBNAILS` documents, as one embedded PNG; empty for none."""
    cells = [_first_page(file) for file in islice(files, THUMBNAILS)]
    if not cells:
        return ""
    encoded = base64.b64encode(_png(_side_by_side(cells))).decode()
    return f"![first pages](data:image/png;base64,{encoded})"


def _first_page(file: bytes) -> Pixels:
    """The first page on a cell of paper grey; long receipts are cut below."""
    import cv2
    import numpy as np

    from docgen_core.render.pictures import sheets

    width, height = _CELL
    drawn = next(sheets(file, dpi=_DPI))
    tall = max(round(drawn.shape[0] * width / drawn.shape[1]), 1)
    small = cv2.resize(drawn, (width, tall), interpolation=cv2.INTER_AREA)[:height]
    cell = np.full((height, width, 3), 225, dtype=np.uint8)
    cell[: small.shape[0]] = small
    return cell


def _side_by_side(cells: list[Pixels]) -> Pixels:
    import numpy as np

    width, height = _CELL
    sheet = np.full((height + 2 * _GAP, _GAP + len(cells) * (width + _GAP), 3), 245, dtype=np.uint8)
    for position, cell in enumerate(cells):
        left = _GAP + position * (width + _GAP)
        sheet[_GAP : _GAP + height, left : left + width] = cell
    return sheet


def _png(sheet: Pixels) -> bytes:
    """The sheet as PNG, shrunk until it is within bounds."""
    import cv2

    while True:
        _, encoded = cv2.imencode(".png", sheet, [cv2.IMWRITE_PNG_COMPRESSION, 9])
        if encoded.nbytes <= _MAX_BYTES:
            return bytes(encoded)
        sheet = cv2.resize(sheet, None, fx=_SMALLER, fy=_SMALLER, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
