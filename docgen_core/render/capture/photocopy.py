"""A copy of a copy, scanned: toner has gathered where ink was, and dirt where there was none.

What does not belong here: colours. The copiers have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import Frame, Matrix, moved, warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels
from docgen_core.render.capture.scan import SCALE_DPI, lain
from docgen_core.render.capture.sensor import blurred, curve, noisy
from docgen_core.render.capture.texture import hills, random_bytes

_DPI = {100: 1, 150: 4, 200: 4, 300: 1}
_NEAR_PIXELS = 31
_LEFT_BARE = 0.2
"""Part of a dark neighbourhood's darkness by which a copy of it is brighter."""
_DRUM_MILLIMETRES = 94
"""Girth of a copier's drum: its scratches come again and again so far below."""


@dataclass(frozen=True, slots=True)
class Photocopier:
    """The copier that one document went through again and again, and the scanner at the end."""

    dpi: tuple[int, int]
    copies: int
    quality: int
    colour: bool = False
    bilevel: bool = False

    @staticmethod
    def drawn(dial: Dial) -> Photocopier:
        """The copier of one document."""
        dpi = dial.draws.weighted("dpi", _DPI)
        return Photocopier((dpi, dpi), dial.amount("copies", 2, 4), dial.amount("quality", 80, 45))

    @property
    def scale(self) -> float:
        """Resolution over `SCALE_DPI`."""
        return self.dpi[0] / SCALE_DPI

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        matrix = lain(paper, dial, milli_degrees=dial.amount("turn", 500, 2600), shift=150 * self.scale, stretch=170)
        seen = warped(paper.pixels, matrix, (paper.frame.width, paper.frame.height), (252,))
        seen = _faded(seen, dial)
        for copy in range(self.copies):
            seen = self._copied(seen, dial.under("copy", copy))
        _drum(seen, dial, paper)
        _lid_open(seen, dial, paper, matrix)
        return Picture(noisy(seen, 3.0, dial.draws, falloff=8), paper.frame.points, matrix)

    def _copied(self, seen: Pixels, dial: Dial) -> Pixels:
        """One generation more: softer, then harder, and with specks of its own."""
        seen = blurred(seen, dial.amount("blur_hundredths", 32, 98) / 100 * self.scale)
        _toner_specks(seen, dial, self.scale)
        seen = _thin_in_the_dark(seen)
        gain = dial.amount("gain", 0, 34)
        return curve(seen, [(0, 14), (70, 22), (150, 122 - gain), (205, 200 - gain // 2), (236, 236), (255, 253)])


def _thin_in_the_dark(seen: Pixels) -> Pixels:
    """Wide dark areas take less toner than lines do, so that pale print on them stays open."""
    near = cv2.blur(seen, (_NEAR_PIXELS, _NEAR_PIXELS))
    return np.asarray(cv2.addWeighted(seen, 1.0, cv2.bitwise_not(near), _LEFT_BARE, 0), dtype=np.uint8)


def _faded(seen: Pixels, dial: Dial) -> Pixels:
    """Paler where the toner runs out: along stripes down the page."""
    depth = dial.amount("fading", -25, 95)
    if depth <= 0:
        return seen
    size = (seen.shape[1], seen.shape[0])
    stripes = hills(dial.draws, "stripes", (2, 7), size)
    kept = np.asarray(cv2.LUT(stripes, (255 - np.maximum(np.arange(256) - 96, 0) * depth // 159).astype(np.uint8)))
    ink = cv2.bitwise_not(seen)
    return np.asarray(cv2.bitwise_not(cv2.multiply(ink, kept, scale=1 / 255)), dtype=np.uint8)


def _toner_specks(seen: Pixels, dial: Dial, scale: float) -> None:
    """Loose toner: single dark pixels, many of them, and a few grains."""
    height, width = seen.shape
    count = round(dial.amount("dust", 30, 700) * scale * scale)
    places = random_bytes(dial.draws, "dust_places", 4 * count).view(np.dtype("<u2")).astype(np.int64)
    rows, columns = places[:count] * height // 65536, places[count:] * width // 65536
    seen[rows, columns] = np.minimum(seen[rows, columns], 70)
    for number in range(dial.amount("grains", 0, 14)):
        middle = (
            dial.draws.integer(f"grain_x{number}", 0, width - 1),
            dial.draws.integer(f"grain_y{number}", 0, height - 1),
        )
        cv2.circle(seen, middle, round(dial.draws.integer(f"grain_size{number}", 6, 13) / 10 * scale), (25,), -1)


def _drum(seen: Pixels, dial: Dial, paper: Paper) -> None:
    """Marks of one scratch on the drum, once in each of its turns, where nothing is printed."""
    every = round(_DRUM_MILLIMETRES * paper.millimetre)
    for number in range(dial.amount("scratches", -1, 3)):
        left = dial.draws.integer(f"scratch_x{number}", 0, seen.shape[1] - 1)
        long = max(2, round(dial.draws.integer(f"scratch_long{number}", 4, 22) / 10 * paper.millimetre))
        for top in range(dial.draws.integer(f"scratch_y{number}", 0, every), seen.shape[0] - long, every):
            lean = dial.draws.integer(f"scratch_lean{number}", -2, 2)
            if paper.is_free(left - 3, top, left + 4, top + long):
                cv2.line(seen, (left, top), (left + lean, top + long), (60,), 1, cv2.LINE_AA)


def _lid_open(seen: Pixels, dial: Dial, paper: Paper, matrix: Matrix) -> None:
    """Black along the edges that the sheet did not cover, up to the printed values at most."""
    height, width = seen.shape
    frame = Frame(width, height, paper.frame.points)
    quads = [moved(quad, matrix, paper.frame, frame) for quad in paper.quads]
    across, down = width / frame.points[0], height / frame.points[1]
    room = {
        "left": min((min(quad[::2]) for quad in quads), default=60) * across,
        "right": (frame.points[0] - max((max(quad[::2]) for quad in quads), default=500)) * across,
        "bottom": min((min(quad[1::2]) for quad in quads), default=60) * down,
    }
    for side, free in room.items():
        wide = round(min(dial.amount(f"lid_{side}", -14, 70) / 10 * paper.millimetre, free * 0.6))
        if wide < 3:
            continue
        soft = max(2, wide // 3)
        profile = np.concatenate([np.full(wide - soft, 24), 24 + np.arange(1, soft + 1) * 228 // soft]).astype(np.uint8)
        if side == "left":
            np.minimum(seen[:, :wide], profile, out=seen[:, :wide])
        elif side == "right":
            np.minimum(seen[:, -wide:], profile[::-1], out=seen[:, -wide:])
        else:
            np.minimum(seen[-wide:], profile[::-1, np.newaxis], out=seen[-wide:])
