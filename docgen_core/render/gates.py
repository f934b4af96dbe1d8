"""What a printed sheet must be before it is published: legible, whole, and nothing on it lost.

Each gate raises `RenderFailed` with what is wrong, so that a bad document fails its unit instead
of reaching the golden set. They judge the print itself, not the page it was made from: the text
layer as a reader program sees it, and a small picture of the sheet.
What does not belong here: tying values to boxes (`boxes`), and which faces there are (`fonts`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from docgen_core.errors import RenderFailed

Floats = npt.NDArray[np.float32]
"""Rows of left, top, right, bottom in points from the sheet's lower left."""

Picture = npt.NDArray[np.uint8]
"""Grey, rows from the top."""

EDGE_POINTS = 0.75
"""So far a character's advance may reach over an edge; its ink is narrower."""
LEADING = 0.2
"""Part of a character's box, above and below, that holds no ink worth the name."""
INK_DPI = 50
"""A full stop of small print still darkens a pixel; finer pictures cost more and tell no more."""
INK_STEPS = 1.0
"""Standard deviation of grey, of 255, above which a character stands out from what is under it."""
READ_STEPS = 6.0
"""Above which a value's plainest character can be read. The palest that any layout prints has 18."""
LEAST_POINTS = 4.0
"""Height of a character's box below which nobody reads it. The lowest that any layout prints has 6.5."""
MOST_SQUARE_POINTS = 8_100_000
"""Of a sheet of A0. What is made of a sheet grows with its area, and the memory of all workers with it."""
_MILLIMETRES_A_POINT = 25.4 / 72
_PIXELS_A_POINT = INK_DPI / 72
_NARROW_PIXELS = 2
_WHITE = 255
_NO_GLYPH = "\x00\ufffd"
"""What the text layer gives for a character that its face does not have."""
_SHOWN = 20
"""Characters that a message quotes."""

_POINTS_A_PIXEL = 0.75
"""A pixel of CSS is a 96th of an inch."""
_FULL_SIZE = 0.9999

_NUMBER = rb"(-?\d*\.?\d+)"
_SCALE = re.compile(rb"^" + _NUMBER + rb" 0 0 -" + _NUMBER + rb" 0 " + _NUMBER + rb" cm")
_AREA = re.compile(rb"\nq\n" + _NUMBER + rb" 0 0 " + _NUMBER + rb" " + _NUMBER + rb" " + _NUMBER + rb" cm")
_CLIP = re.compile(rb"\n" + rb" ".join([_NUMBER] * 4) + rb" re\nW\*? n")


def picture_of(sheet: Any, size: tuple[float, float]) -> Picture:
    """A small grey picture of a sheet."""
    import pypdfium2.raw as raw

    width, height = (max(1, round(side * _PIXELS_A_POINT)) for side in size)
    picture = np.full((height, width), _WHITE, dtype=np.uint8)
    bitmap = raw.FPDFBitmap_CreateEx(width, height, raw.FPDFBitmap_Gray, picture.ctypes.data, width)
    raw.FPDF_RenderPageBitmap(bitmap, sheet.raw, 0, 0, width, height, 0, raw.FPDF_GRAYSCALE)
    raw.FPDFBitmap_Destroy(bitmap)
    return picture


def refuse_vast(number: int, size: tuple[float, float]) -> None:
    """Raise `RenderFailed` for a sheet that is larger than A0, before a picture is made of it."""
    if size[0] * size[1] > MOST_SQUARE_POINTS:
        wide, high = (round(side * _MILLIMETRES_A_POINT) for side in size)
        raise RenderFailed(f"page {number} has {wide} by {high} mm, more than a sheet of A0; give it a smaller size")


def refuse_blank(number: int, picture: Picture) -> None:
    """Raise `RenderFailed` when nothing is drawn on a sheet."""
    if picture.min() == _WHITE:
        raise RenderFailed(f"page {number} is blank: let the layout end where its content does")


def refuse_missing_glyphs(number: int, chars: str) -> None:
    """Raise `RenderFailed` when a character was drawn as the box that stands for no glyph."""
    lost = next((index for index, char in enumerate(chars) if char in _NO_GLYPH), None)
    if lost is not None:
        before = chars[max(0, lost - _SHOWN) : lost]
        raise RenderFailed(
            f"page {number}: the character after {before!r} is drawn by no glyph: "
            "every font-family stack of a layout ends with a face that covers its text"
        )


def refuse_outside(number: int, size: tuple[float, float], chars: str, boxes: Floats) -> None:
    """Raise `RenderFailed` when a character does not stand on the paper."""
    left, top, right, bottom = boxes.T
    up = (top + bottom) / 2
    lost = (left < -EDGE_POINTS) | (right > size[0] + EDGE_POINTS) | (up < 0) | (up > size[1])
    if lost.any():
        raise RenderFailed(
            f"page {number}: {_quoted(chars, lost)} is printed outside the page; give the layout more room"
        )


def refuse_cut(number: int, content: bytes, chars: str, boxes: Floats) -> None:
    """Raise `RenderFailed` when the edge of the page's area cuts through a character.

    The browser cuts what is printed at the `@page` margins; nothing else does, for no element of a
    live page may hide what it holds.
    """
    scale, clip = _SCALE.match(content), _CLIP.search(content)
    if scale is None or clip is None:
        return
    across, down, height = map(float, scale.groups())
    x, y, wide, high = map(float, clip.groups())
    left, right = across * x - EDGE_POINTS, across * (x + wide) + EDGE_POINTS
    top, bottom = height - down * y, height - down * (y + high)
    leading = (boxes[:, 1] - boxes[:, 3]) * LEADING
    from_left, from_top, to_right, to_bottom = boxes[:, 0], boxes[:, 1] - leading, boxes[:, 2], boxes[:, 3] + leading
    within = (from_left >= left) & (to_right <= right) & (from_top <= top) & (to_bottom >= bottom)
    beside = (to_right <= left) | (from_left >= right) | (to_bottom >= top) | (from_top <= bottom)
    cut = ~(within | beside)
    if cut.any():
        raise RenderFailed(f"page {number}: {_quoted(chars, cut)} is cut at the margin; give the layout more room")


def refuse_shrunk(number: int, content: bytes) -> None:
    """Raise `RenderFailed` when the page was drawn smaller than the layout says.

    A browser does so with all pages of a print when something is wider than their area; what is placed
    by the sheet's height then stands over what flows.
    """
    scale, clip = _SCALE.match(content), _CLIP.search(content)
    if scale is None or clip is None:
        return
    area = next((each for each in _AREA.finditer(content, clip.end()) if each[3] == clip[1]), None)
    size = 1.0 if area is None else float(scale[1]) * float(area[1]) / _POINTS_A_PIXEL
    if size < _FULL_SIZE:
        raise RenderFailed(
            f"page {number} is drawn at {size:.1%} of its size, because something is wider than the page; "
            "let the layout wrap it"
        )


def refuse_tiny(number: int, targets: Sequence[str], link_of: npt.NDArray[np.intp], heights: Floats) -> None:
    """Raise `RenderFailed` when a character of a value is too small to be read; `link_of` says whose each is."""
    if len(heights) and heights.min() < LEAST_POINTS:
        tiniest = int(heights.argmin())
        raise RenderFailed(
            f"page {number}: {targets[link_of[tiniest]]!r} is printed {heights[tiniest]:.1f} points high, "
            "too small to be read"
        )


def contrasts(picture: Picture, height_points: float, boxes: Floats) -> Floats:
    """How far each character stands out: the standard deviation of grey in its box.

    White on white, transparent, or covered by something drawn later, it has none.
    """
    import cv2

    left, top, right, bottom = boxes.T * np.float32(_PIXELS_A_POINT)
    height, width = picture.shape
    foot = np.float32(height_points * _PIXELS_A_POINT)
    # A stem that fills its pixels has one shade: what stands beside it is the other.
    narrow = np.where(right - left < _NARROW_PIXELS, np.float32(1), np.float32(0))
    x0, x1 = _pixels(left - narrow, right + narrow, width)
    y0, y1 = _pixels(foot - top, foot - bottom, height)
    area = (x1 - x0) * (y1 - y0)
    mean, square = (
        (table[y1, x1] - table[y0, x1] - table[y1, x0] + table[y0, x0]) / area for table in cv2.integral2(picture)
    )
    found: Floats = np.sqrt(np.maximum(square - mean * mean, 0))
    return found


def _pixels(start: Any, end: Any, room: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """First pixel and the one after the last of each span, at least one of them, within the picture."""
    first = np.clip(np.floor(start), 0, room - 1).astype(np.intp)
    return first, np.clip(np.ceil(end), first + 1, room).astype(np.intp)


def overlapping(rects: Floats, owners: Sequence[str]) -> tuple[int, int] | None:
    """Two of the rectangles, of different owners, that share ink's room, or None."""
    if len(rects) < 2:
        return None
    order = np.argsort(-rects[:, 1], kind="stable")
    left, top, right, bottom = rects[order].T
    leading = (top - bottom) * LEADING
    top, bottom = top - leading, bottom + leading
    # Only as far down as the tallest reaches: a sheet has hundreds of values, a line of them a dozen.
    reach = np.searchsorted(-top, -bottom, side="left")
    count = np.maximum(reach - np.arange(1, len(order) + 1), 0)
    one = np.repeat(np.arange(len(order)), count)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    across = (left[one] < right[other]) & (left[other] < right[one])
    meet = across & (bottom[one] < top[other]) & (bottom[other] < top[one])
    pairs = ((int(order[one[index]]), int(order[other[index]])) for index in np.flatnonzero(meet))
    return next((pair for pair in pairs if owners[pair[0]] != owners[pair[1]]), None)


def _quoted(chars: str, chosen: npt.NDArray[np.bool_]) -> str:
    return repr("".join(chars[index] for index in np.flatnonzero(chosen)[:_SHOWN]))
