"""Scans: "light" is a good office scanner, "heavy" a worn one with a feeder that grips askew.

A picture of each page, without a text layer, on paper that is not quite white. What does not
belong here: copies of copies, and pictures taken by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import Matrix, affine, tamed, warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels
from docgen_core.render.capture.sensor import blurred, noisy, off_white, shaded, specked, toned
from docgen_core.render.capture.texture import hills

SCALE_DPI = 150
"""Blur and shift are given in pixels of this resolution."""
_LIGHT_DPI = {150: 6, 200: 3, 300: 1}
_HEAVY_DPI = {100: 2, 150: 4, 200: 3, 300: 1}
_LIGHT_COLOUR_PER_MILLE = 350
_HEAVY_COLOUR_PER_MILLE = 250


@dataclass(frozen=True, slots=True)
class Scanner:
    """How one document was scanned; the same for its every page."""

    dpi: tuple[int, int]
    colour: bool
    ink: int
    """Brightness of black, 0 to 255."""
    paper: tuple[int, ...]
    """Brightness of white by channel (blue, green, red)."""
    lid: tuple[int, ...]
    """What the scanner sees beside the sheet, by channel."""
    noise: float
    """Standard deviation in brightness."""
    quality: int
    bilevel: bool = False

    @property
    def scale(self) -> float:
        """Resolution over `SCALE_DPI`."""
        return self.dpi[0] / SCALE_DPI


@dataclass(frozen=True, slots=True)
class LightScanner(Scanner):
    """A good office scanner."""

    @staticmethod
    def drawn(dial: Dial) -> LightScanner:
        """The scanner of one document."""
        draws = dial.draws
        dpi = draws.weighted("dpi", _LIGHT_DPI)
        white = dial.amount("paper", 251, 240)
        yellowed = dial.amount("yellowed", 2, 9)
        lid = draws.integer("lid", 222, 240)
        colour = draws.chance("colour", _LIGHT_COLOUR_PER_MILLE)
        return LightScanner(
            dpi=(dpi, dpi),
            colour=colour,
            ink=dial.amount("ink", 18, 52),
            paper=off_white(white, yellowed, colour=colour),
            lid=(lid, lid, lid - 2) if colour else (lid,),
            noise=dial.amount("noise_tenths", 18, 42) / 10,
            quality=dial.amount("quality", 86, 68),
        )

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        matrix = lain(paper, dial, milli_degrees=900, shift=60 * self.scale, stretch=30)
        # Paper and ink first, so that what the lid shows beside the sheet keeps its own shade.
        seen = toned(paper.pixels, self.ink, self.paper)
        seen = warped(seen, matrix, (paper.frame.width, paper.frame.height), self.lid)
        seen = blurred(seen, dial.amount("blur_hundredths", 42, 75) / 100 * self.scale)
        specked(seen, dial, 9, scale=self.scale)
        return Picture(noisy(seen, self.noise, dial.draws), paper.frame.points, matrix)


def lain(paper: Paper, dial: Dial, *, milli_degrees: int, shift: float, stretch: int) -> Matrix:
    """How a sheet lay on the glass, tamed until every value stays on the page.

    Args:
        paper: the sheet.
        dial: the page's.
        milli_degrees: most that it is turned.
        shift: most that it is out of place, in tenths of pixels.
        stretch: most that the motor is wrong by, in ten-thousandths.
    """
    draws = dial.draws
    degrees = draws.integer("milli_degrees", -milli_degrees, milli_degrees) / 1000
    most = round(shift)
    out = (draws.integer("shift_x", -most, most) / 10, draws.integer("shift_y", -most, most) / 10)
    stretched = draws.integer("stretch", -stretch, stretch) / 10_000

    def matrix_of(share: float) -> Matrix:
        aspect = paper.dpi[1] / paper.dpi[0]
        return affine(degrees * share, (out[0] * share, out[1] * share), 1 + stretched * share, paper.frame, aspect)

    return tamed(matrix_of, paper.frame, paper.quads)


@dataclass(frozen=True, slots=True)
class HeavyScanner(Scanner):
    """A worn scanner with an automatic feeder."""

    @staticmethod
    def drawn(dial: Dial) -> HeavyScanner:
        """The scanner of one document."""
        draws = dial.draws
        dpi = draws.weighted("dpi", _HEAVY_DPI)
        white = dial.amount("paper", 244, 208)
        yellowed = dial.amount("yellowed", 4, 26)
        lid = draws.integer("lid", 40, 225)
        colour = draws.chance("colour", _HEAVY_COLOUR_PER_MILLE)
        return HeavyScanner(
            dpi=(dpi, dpi),
            colour=colour,
            ink=dial.amount("ink", 22, 96),
            paper=off_white(white, yellowed, colour=colour),
            lid=(lid, lid, lid) if colour else (lid,),
            noise=dial.amount("noise_tenths", 30, 120) / 10,
            quality=dial.amount("quality", 70, 18),
        )

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        turn = dial.amount("turn", 400, 3200)
        matrix = lain(paper, dial, milli_degrees=turn, shift=120 * self.scale, stretch=80)
        printed = _shining_through(paper.pixels, dial)
        seen = toned(printed, self.ink, self.paper)
        seen = warped(seen, matrix, (paper.frame.width, paper.frame.height), self.lid)
        seen = blurred(seen, dial.amount("blur_hundredths", 50, 165) / 100 * self.scale)
        seen = _uneven(seen, dial)
        _streaked(seen, dial, self.scale)
        specked(seen, dial, 60, scale=self.scale, shades=(70, 190))
        return Picture(noisy(seen, self.noise, dial.draws, falloff=22), paper.frame.points, matrix)


def _shining_through(pixels: Pixels, dial: Dial) -> Pixels:
    """With what stands on the other side of thin paper: print of about this page's shape, the wrong way round."""
    strength = dial.amount("shining_through", -20, 34)
    if strength <= 0:
        return pixels
    behind = blurred(np.asarray(cv2.flip(pixels, 1), dtype=np.uint8), 1.6)
    pale = (255 - (255 - np.arange(256)) * strength // 255).astype(np.uint8)
    return np.asarray(cv2.min(pixels, cv2.LUT(behind, pale)), dtype=np.uint8)


def _uneven(seen: Pixels, dial: Dial) -> Pixels:
    """Under a lamp that is old, and darker along the side where the sheet does not lie flat."""
    height, width = seen.shape[:2]
    depth = dial.amount("uneven", 6, 46)
    dimmed = (255 - np.arange(256) * depth // 255).astype(np.uint8)
    shade = np.asarray(cv2.LUT(hills(dial.draws, "lamp", (4, 3), (width, height)), dimmed), dtype=np.uint8)
    band = dial.draws.integer("band", width // 40, width // 9)
    dark = dial.amount("band_depth", 0, 90)
    profile = 255 - dark * (band - np.arange(band)) ** 2 // band**2
    edge = shade[:, :band] if dial.draws.chance("band_left", 500) else shade[:, : width - band - 1 : -1]
    edge[...] = edge * profile // 255
    return shaded(seen, shade)


def _streaked(seen: Pixels, dial: Dial, scale: float) -> None:
    """Lines down the page, from dirt on the glass that the sheet is drawn over. They leave dark ink dark."""
    for number in range(dial.amount("streaks", 0, 6)):
        left = dial.draws.integer(f"streak{number}", 0, seen.shape[1] - 4)
        wide = max(1, round(dial.draws.integer(f"streak_width{number}", 1, 2) * scale))
        line = seen[:, left : left + wide]
        np.minimum(line, dial.draws.integer(f"streak_shade{number}", 140, 225), out=line)
