"""The receipt's paper: text set in lines of one height, so that its length is known beforehand.

A till prints lines, not boxes. Texts are wrapped here by the advance of the mono face, each line
is counted as it is laid, and the page is made exactly that long: nothing is cut, and no blank
tail follows.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from html import unescape

WIDTH_MM = 80.0
MARGIN_MM = 5.0
"""At every side; 70 mm of text is what an 80 mm print head gives."""
TEXT_MM = 3.1
"""Font size: 36 Latin or 22 Japanese characters a line."""
LINE_MM = 4.4
"""Height of every line; larger print takes whole lines too."""

_TAG = re.compile(r"<[^>]*>")

_NARROW_EM = 0.6
_WIDE_EM = 1.0
_GAP_EM = 1.0
"""Between what stands left and right; also room for a mark after a text."""
LARGE = 1.3
"""Size of large print, in times the usual."""
LINE_EM = (WIDTH_MM - 2 * MARGIN_MM) / TEXT_MM - _GAP_EM
"""Width of a line of text."""


@lru_cache(maxsize=8192)
def _em(char: str) -> float:
    return _WIDE_EM if unicodedata.east_asian_width(char) in "WFA" else _NARROW_EM


def width_em(text: str) -> float:
    """Width of the text in the mono face, in em."""
    return len(text) * _NARROW_EM if text.isascii() else sum(map(_em, text))


def _printed_em(markup: str) -> float:
    """Width in em of the widest line that a piece of markup prints."""
    return max(map(width_em, unescape(_TAG.sub("", markup)).split("\n")))


def wrapped(text: str, width: float) -> str:
    """`text` with line breaks so that no line is wider than `width` em.

    Latin words stay whole unless one alone is too wide; Japanese breaks anywhere.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_wrap_paragraph(paragraph, width))
    return "\n".join(lines)


def _wrap_paragraph(text: str, width: float) -> list[str]:
    lines: list[str] = []
    rest = text
    while width_em(rest) > width:
        cut = _cut(rest, width)
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*lines, rest]


def _cut(text: str, width: float) -> int:
    """Where to break: the last place before `width` that keeps words whole, else at the width."""
    used, fits = 0.0, 0
    for char in text:
        used += _em(char)
        if used > width:
            break
        fits += 1
    whole = next((place for place in range(fits, 0, -1) if _may_break(text, place)), 0)
    return whole or max(fits, 1)


_NO_LINE_START = "、。」』）】ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ"


def _may_break(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if before in " -" or after == " ":
        return True
    return (_em(before) > _NARROW_EM or _em(after) > _NARROW_EM) and after not in _NO_LINE_START


class Tape:
    """Counts the lines a receipt takes while its template lays them."""

    def __init__(self) -> None:
        self._lines = 0.0

    def feed(self, text: str = "", *, lines: float = 1.0) -> str:
        """Count the lines of `text` (`lines` each, for larger print); gives nothing to print."""
        self._lines += lines * (1 + text.count("\n"))
        return ""

    @staticmethod
    def wrap(text: str) -> str:
        """`text` with line breaks where the usual print needs them."""
        return wrapped(text, LINE_EM)

    @staticmethod
    def wrap_large(text: str) -> str:
        """`text` with line breaks where large print needs them."""
        return wrapped(text, LINE_EM / LARGE)

    @staticmethod
    def fits(left: str, right: str) -> bool:
        """Whether two texts (markup counts as what it prints) stand on one line."""
        return _printed_em(left) + _printed_em(right) + _GAP_EM <= LINE_EM

    @property
    def height_mm(self) -> float:
        """Length of the paper."""
        return round(self._lines * LINE_MM + 2 * MARGIN_MM, 2)
