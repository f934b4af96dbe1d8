"""A sheet that was folded, carried and spilt on, and then scanned.

What does not belong here: marks that somebody made on purpose (`notes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docgen_core.draws import Draws
from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels
from docgen_core.render.capture.scan import SCALE_DPI, Scanner, lain
from docgen_core.render.capture.sensor import blurred, noisy, off_white, shaded, specked, toned
from docgen_core.render.capture.texture import hills, random_bytes

_DPI = {100: 1, 150: 5, 200: 3, 300: 1}
_COLOUR_PER_MILLE = 800
_COARSE = 4
"""Stains are reckoned on a grid so many times coarser than the page."""
_BUMP_MILLIMETRES, _RIPPLE_MILLIMETRES = 27.0, 8.6
"""From one bump of crumpled paper to the next, whatever the size of the sheet."""
_COFFEE = (92, 150, 196)
"""What is left of blue, green and red light under the darkest of a coffee stain."""
_TIDE = (168, 206, 226)
_MUG_MILLIMETRES = (33, 44)
"""Radius of a mug's foot."""


@dataclass(frozen=True, slots=True)
class WornSheet(Scanner):
    """The scanner at the end, and how the sheets of one document were folded."""

    folds: str = "thirds"

    @staticmethod
    def drawn(dial: Dial) -> WornSheet:
        """How one document was treated."""
        draws = dial.draws
        dpi = draws.weighted("dpi", _DPI)
        white, yellowed = dial.amount("paper", 246, 222), dial.amount("yellowed", 3, 24)
        lid = draws.integer("lid", 60, 235)
        colour = draws.chance("colour", _COLOUR_PER_MILLE)
        return WornSheet(
            dpi=(dpi, dpi),
            colour=colour,
            ink=dial.amount("ink", 22, 66),
            paper=off_white(white, yellowed, colour=colour),
            lid=(lid, lid, lid) if colour else (lid,),
            noise=dial.amount("noise_tenths", 18, 60) / 10,
            quality=dial.amount("quality", 86, 55),
            folds=draws.weighted("folds", {"thirds": 5, "half": 2, "cross": 3}),
        )

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        matrix = lain(paper, dial, milli_degrees=dial.amount("turn", 300, 1800), shift=60 * self.scale, stretch=40)
        seen = toned(paper.pixels, self.ink, self.paper)
        seen = self._folded(seen, paper, dial)
        seen = _stained(seen, paper, dial)
        seen = warped(seen, matrix, (paper.frame.width, paper.frame.height), self.lid)
        seen = blurred(seen, dial.amount("blur_hundredths", 45, 115) / 100 * self.scale)
        specked(seen, dial, 40, scale=self.scale)
        return Picture(noisy(seen, self.noise, dial.draws, falloff=14), paper.frame.points, matrix)

    def _folded(self, seen: Pixels, paper: Paper, dial: Dial) -> Pixels:
        """Crumpled a little all over, shaded from fold to fold, and cracked along the folds."""
        width, height = paper.frame.width, paper.frame.height
        shade = _crumple(dial, paper)
        down = {"thirds": (333, 667), "half": (500,), "cross": (500,)}[self.folds]
        across = (500,) if self.folds == "cross" else ()
        for number, place in enumerate(down):
            _crease(seen, shade, height * (place + dial.draws.integer(f"down{number}", -15, 15)) // 1000, number, dial)
        if across:
            turned = np.ascontiguousarray(seen.swapaxes(0, 1))
            turned_shade = np.ascontiguousarray(shade.T)
            at = width * (500 + dial.draws.integer("across", -15, 15)) // 1000
            _crease(turned, turned_shade, at, len(down), dial)
            seen, shade = np.ascontiguousarray(turned.swapaxes(0, 1)), np.ascontiguousarray(turned_shade.T)
        return shaded(seen, shade)


def _crumple(dial: Dial, paper: Paper) -> Pixels:
    """Light from the upper left on a surface that is not quite flat."""
    size = (paper.frame.width, paper.frame.height)
    small = (size[0] // _COARSE, size[1] // _COARSE)

    def bent(name: str, millimetres: float) -> Pixels:
        cells = [max(round(side / (millimetres * paper.millimetre)), 2) for side in size]
        return hills(dial.draws, name, (cells[1], cells[0]), small)

    bumps = cv2.addWeighted(bent("bumps", _BUMP_MILLIMETRES), 0.6, bent("ripples", _RIPPLE_MILLIMETRES), 0.4, 0).astype(
        np.int16
    )
    slope = np.zeros_like(bumps)
    slope[1:, 1:] = bumps[1:, 1:] - bumps[:-1, :-1]
    # From one pixel to the next a surface rises less where there are more of them.
    depth = dial.amount("crumple", 1, 5) * paper.dpi[0]
    shade = np.clip(244 + slope.astype(np.int32) * depth // SCALE_DPI, 150, 255).astype(np.uint8)
    return np.asarray(cv2.resize(blurred(shade, 1.2), size, interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _crease(seen: Pixels, shade: Pixels, at: int, number: int, dial: Dial) -> None:
    """One fold across the page: a shadow on one side, light on the other, and ink that has flaked off along it."""
    draws, (height, width) = dial.draws, shade.shape
    reach = max(height // 14, 4)
    depth = dial.amount(f"crease_depth{number}", 14, 78)
    rows = np.arange(-reach, reach)
    # Steep just below the ridge, and gone at the end of its reach.
    profile = 255 - depth * (reach - np.abs(rows)) ** 3 // reach**3 * np.where(rows >= 0, 3, 1) // 3
    top, bottom = max(at - reach, 0), min(at + reach, height)
    band = shade[top:bottom].astype(np.int64) * profile[top - at + reach : bottom - at + reach, np.newaxis] // 255
    shade[top:bottom] = band.astype(np.uint8)
    steps = random_bytes(draws, f"crease_steps{number}", width // 12 + 2).astype(np.int64)
    wander = np.clip(np.cumsum(steps // 86 - 1), -3, 3)
    line = np.stack([np.arange(len(wander)) * 12, at + wander], axis=-1).astype(np.int32)
    cv2.polylines(shade, [line], False, (max(255 - depth * 2, 70),), 1, cv2.LINE_AA)
    flaked = steps > 255 - dial.amount(f"flaked{number}", 30, 190)
    paper = tuple(int(tone) for tone in np.atleast_1d(np.percentile(seen[top:bottom:4, ::8], 90, axis=(0, 1))))
    for start in np.flatnonzero(flaked[:-1]).tolist():
        cv2.line(seen, line[start].tolist(), line[start + 1].tolist(), paper, 1, cv2.LINE_AA)


def _stained(seen: Pixels, paper: Paper, dial: Dial) -> Pixels:
    """Rings of a mug, drops, and the tide mark of something spilt; print shows through all of them."""
    small = (paper.frame.width // _COARSE, paper.frame.height // _COARSE)
    millimetre = paper.millimetre / _COARSE
    coffee = np.zeros((small[1], small[0]), dtype=np.uint8)
    for number in range(max(dial.amount("rings", -1, 3), 0)):
        _ring(coffee, dial.under("ring", number), millimetre)
    for number in range(dial.amount("drops", 0, 9)):
        _drop(coffee, dial.draws, number, millimetre)
    seen = _tinted(seen, blurred(coffee, 0.9), _COFFEE)
    if dial.amount("spilt", -40, 60) > 0:
        seen = _tinted(seen, _tide(dial, small), _TIDE)
    return seen


def _ring(coffee: Pixels, dial: Dial, millimetre: float) -> None:
    """What a mug's foot leaves: a thin rim of uneven strength, faint inside, open somewhere."""
    draws, (height, width) = dial.draws, coffee.shape
    radius = draws.integer("radius", *_MUG_MILLIMETRES) * millimetre
    middle = (draws.integer("x", 0, width), draws.integer("y", 0, height))
    strength = dial.amount("strength", 70, 190)
    axes = (round(radius), round(radius * draws.integer("oval", 96, 104) / 100))
    cv2.ellipse(coffee, middle, axes, 0, 0, 360, (strength // 14,), -1)
    uneven = random_bytes(draws, "uneven", 12).astype(np.int64)
    opening, start = draws.integer("opening", 0, 130), draws.integer("start", 0, 359)
    for degree in range(0, 360 - opening, 3):
        part, between = divmod(degree, 30)
        level = (uneven[part] * (30 - between) + uneven[(part + 1) % 12] * between) // 30
        wide = max(1, round(millimetre * (6 + int(level) // 25) / 10))
        shade = (int(strength * (70 + level * 185 // 255) // 255),)
        cv2.ellipse(coffee, middle, axes, start, degree, degree + 3, shade, wide, cv2.LINE_AA)


def _drop(coffee: Pixels, draws: Draws, number: int, millimetre: float) -> None:
    """A drop, darkest at its rim."""
    middle = (
        draws.integer(f"drop_x{number}", 0, coffee.shape[1]),
        draws.integer(f"drop_y{number}", 0, coffee.shape[0]),
    )
    radius = max(1, round(draws.integer(f"drop_size{number}", 6, 38) / 10 * millimetre))
    strength = draws.integer(f"drop_strength{number}", 50, 130)
    cv2.circle(coffee, middle, radius, (strength // 2,), -1, cv2.LINE_AA)
    cv2.circle(coffee, middle, radius, (strength,), 1, cv2.LINE_AA)


def _tide(dial: Dial, small: tuple[int, int]) -> Pixels:
    """Something clear that dried: a pale patch with a darker line around it."""
    wide, narrow = hills(dial.draws, "tide", (5, 4), small), hills(dial.draws, "tide_edge", (13, 10), small)
    ground = cv2.addWeighted(wide, 0.8, narrow, 0.2, 0)
    level = dial.amount("tide_level", 222, 150)
    heights = np.arange(256)
    strength = np.where(heights > level, 60, 0) + np.where(np.abs(heights - level) < 5, 150, 0)
    return blurred(np.asarray(cv2.LUT(ground, strength.astype(np.uint8)), dtype=np.uint8), 1.1)


def _tinted(seen: Pixels, amount: Pixels, left: tuple[int, int, int]) -> Pixels:
    """Coloured by a map on the coarse grid, 0 (not at all) to 255 (`left` of each channel's light)."""
    size = (seen.shape[1], seen.shape[0])
    levels = np.arange(256)
    channels = left if seen.ndim == 3 else (sum(left) // 3,)
    shades = []
    for light in channels:
        table = (255 - levels * (255 - light) // 255).astype(np.uint8)
        shades.append(cv2.resize(cv2.LUT(amount, table), size, interpolation=cv2.INTER_LINEAR))
    shade = cv2.merge(shades) if len(shades) > 1 else shades[0]
    return shaded(seen, np.asarray(shade, dtype=np.uint8))
