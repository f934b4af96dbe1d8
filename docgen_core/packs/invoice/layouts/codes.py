"""Bar codes and matrix codes as SVG, and their places on a sheet.

The encoders are libraries (python-barcode, segno); here their modules become paths of whole
units, with the quiet zone that readers need. What a code says stands in the record (../codes.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from markupsafe import Markup

from docgen_core.packs.invoice import codes
from docgen_core.packs.invoice.layouts.sheet import NOTHING, Cells, Sheet

_MODULE_MM = {codes.CODE_128: 0.25, codes.EAN_13: 0.264, codes.QR: 0.52}
"""Width of a module; EAN-13 is printed at 80 per cent of its nominal size, the least that is allowed."""
_QUIET = {codes.CODE_128: 10, codes.EAN_13: 11, codes.QR: 4}
"""Modules of blank around it."""
_BAR_MODULES = {codes.CODE_128: 34, codes.EAN_13: 24}
"""Height of the bars."""
_BARCODE_NAMES = {codes.CODE_128: "code128", codes.EAN_13: "ean13"}

_PAGE = Markup('<section class="codes">{}</section>')
_ONE = Markup('<div class="code">{}{}</div>')
_CAPTION = Markup("<small>{}</small>")


class CodePlaces:
    """The codes of one sheet: those of lines beside them, the document's own in one place."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet = sheet
        self._of_lines = {row["line_number"]: row for row in sheet.codes if row["line_number"] is not None}
        self._others = [row for row in sheet.codes if row["line_number"] is None]

    def of_line(self, line: Cells) -> Markup:
        """The code of a line's article, if it has one."""
        row = self._of_lines.get(line["line_number"])
        return self._drawn(row) if row else NOTHING

    def of_document(self) -> Markup:
        """The document's own codes; nothing where it has none."""
        if not self._others:
            return NOTHING
        caption = _CAPTION.format(self._sheet.w["scan"])
        drawn = (
            _ONE.format(self._drawn(row), caption if row["purpose"] == codes.CREDIT_TRANSFER else NOTHING)
            for row in self._others
        )
        return _PAGE.format(NOTHING.join(drawn))

    def _drawn(self, row: Cells) -> Markup:
        return row.drawn("text", picture(row["symbology"], row["text"]))


@lru_cache(maxsize=512)
def picture(symbology: str, text: str) -> Markup:
    """A code as an `svg` of its own size. Raises the encoder's error for a text that it has no code for."""
    rows = _matrix(text) if symbology == codes.QR else [_bars(symbology, text)]
    quiet, module = _QUIET[symbology], _MODULE_MM[symbology]
    wide = len(rows[0]) + 2 * quiet
    tall = wide if symbology == codes.QR else _BAR_MODULES[symbology]
    height = 1 if symbology == codes.QR else tall
    top = quiet if symbology == codes.QR else 0
    path = "".join(
        f"M{quiet + start} {top + y}h{length}v{height}h-{length}z"
        for y, row in enumerate(rows)
        for start, length in _runs(row)
    )
    return Markup(
        f'<svg style="width:{wide * module:.2f}mm;height:{tall * module:.2f}mm" viewBox="0 0 {wide} {tall}" '
        f'shape-rendering="crispEdges"><path d="{path}"/></svg>'
    )


def _runs(row: Iterable[bool]) -> Iterable[tuple[int, int]]:
    """Start and length of each run of dark modules."""
    at = 0
    for dark, run in groupby(row):
        length = len(list(run))
        if dark:
            yield at, length
        at += length


def _bars(symbology: str, text: str) -> list[bool]:
    import barcode

    (modules,) = barcode.get(_BARCODE_NAMES[symbology], text).build()
    return [module in "1G" for module in modules]


def _matrix(text: str) -> list[list[bool]]:
    import segno

    code = segno.make_qr(text, error="m", encoding="utf-8", boost_error=False)
    return [[bool(module) for module in row] for row in code.matrix]
