"""A photograph by telephone: the sheet on a table, seen at a slant, in the light there was.

The picture is larger than the sheet, so its page is, too. What does not belong here: scanners.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import Matrix, warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels
from docgen_core.render.capture.scan import SCALE_DPI
from docgen_core.render.capture.sensor import blurred, noisy, off_white, shaded, toned
from docgen_core.render.capture.texture import hills

_DPI = {130: 2, 150: 3, 200: 3, 240: 1}
_COLOUR_PER_MILLE = 880
_COARSE = 16
"""Light is reckoned on a grid so many times coarser than the picture."""

# Darkest and palest colour (blue, green, red) of what the sheet lies on.
_TABLES = {
    "oak": ((52, 86, 128), (104, 150, 196)),
    "walnut": ((20, 32, 50), (58, 82, 112)),
    "laminate": ((196, 200, 202), (222, 226, 228)),
    "slate": ((48, 46, 44), (96, 92, 88)),
    "linoleum": ((118, 128, 124), (158, 166, 162)),
}
_WOODS = frozenset({"oak", "walnut"})


@dataclass(frozen=True, slots=True)
class Telephone:
    """How the pages of one document were photographed."""

    dpi: tuple[int, int]
    colour: bool
    table: str
    paper: tuple[int, ...]
    """Brightness of white, by channel."""
    ink: int
    quality: int
    bilevel: bool = False

    @staticmethod
    def drawn(dial: Dial) -> Telephone:
        """The telephone and the table of one document."""
        draws = dial.draws
        dpi = draws.weighted("dpi", _DPI)
        colour = draws.chance("colour", _COLOUR_PER_MILLE)
        white, warmth = dial.amount("white", 238, 196), draws.integer("warmth", -8, 26)
        return Telephone(
            dpi=(dpi, dpi),
            colour=colour,
            table=draws.choice("table", tuple(_TABLES)),
            paper=off_white(white, warmth, colour=colour),
            ink=dial.amount("ink", 26, 54),
            quality=dial.amount("quality", 88, 50),
        )

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        scale = self.dpi[0] / SCALE_DPI
        corners, size = _corners(paper, dial)
        sheet = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * [paper.frame.width, paper.frame.height]
        matrix = _homography(sheet.tolist(), corners)
        table = _table(self.table, dial, size, self.colour)
        table = shaded(table, _contact_shadow(corners, size, dial, scale))
        seen = warped(toned(paper.pixels, self.ink, self.paper), matrix, size, onto=table)
        seen = blurred(seen, dial.amount("blur_hundredths", 45, 130) / 100 * scale)
        seen = _shaken(seen, dial, scale)
        seen = shaded(seen, _light(dial, size))
        seen = noisy(seen, dial.amount("noise_tenths", 15, 85) / 10, dial.draws, falloff=10)
        points = (
            round(size[0] * paper.frame.points[0] / paper.frame.width, 3),
            round(size[1] * paper.frame.points[1] / paper.frame.height, 3),
        )
        return Picture(seen, points, matrix)


def _corners(paper: Paper, dial: Dial) -> tuple[list[tuple[float, float]], tuple[int, int]]:
    """Where the sheet's corners are in the picture, clockwise from the upper left, and the picture's size."""
    draws, width, height = dial.draws, paper.frame.width, paper.frame.height
    side = min(width, height)
    margin = round(side * draws.integer("margin", 50, 130) / 1000)
    size = (width + 2 * margin, height + 2 * margin)
    slant = side * dial.amount("slant", 8, 92) / 1000
    turn = np.deg2rad(draws.integer("milli_degrees", -1000, 1000) * dial.amount("turn", 6, 38) / 10 / 1000)
    cosine, sine = round(float(np.cos(turn)), 9), round(float(np.sin(turn)), 9)
    places = []
    for number, (x, y) in enumerate(((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))):
        inward = slant * draws.integer(f"corner_x{number}", 0, 1000) / 1000
        down = slant * draws.integer(f"corner_y{number}", 0, 1000) / 1000
        across, along = x * width - inward * np.sign(x), y * height - down * np.sign(y)
        places.append((across * cosine - along * sine, across * sine + along * cosine))
    # Turned corners are drawn in until the whole sheet is in the picture, with some table around it.
    reach = max(max(abs(x) / (size[0] / 2), abs(y) / (size[1] / 2)) for x, y in places)
    tamed = min(1.0, 0.985 / reach)
    return [(float(size[0] / 2 + x * tamed), float(size[1] / 2 + y * tamed)) for x, y in places], size


def _homography(source: list[list[float]], target: list[tuple[float, float]]) -> Matrix:
    """The transform of one plane to another that takes these four points to those."""
    matrix = cv2.getPerspectiveTransform(np.array(source, np.float32), np.array(target, np.float32))
    return np.asarray(matrix, dtype=np.float64)


def _table(name: str, dial: Dial, size: tuple[int, int], colour: bool) -> Pixels:
    """What the sheet lies on: grained wood, or a surface with specks."""
    width, height = size
    draws = dial.draws
    if name in _WOODS:
        fibres = hills(draws, "fibres", (height // 5, 5), size)
        waves = hills(draws, "waves", (height // 70, 3), size)
        surface = cv2.addWeighted(fibres, 0.4, waves, 0.6, 0)
        boards = draws.integer("board", 0, 400)
        every = max(height // 4, 1)
        for row in range(boards * every // 400, height, every):
            surface[row : row + 3] = surface[row : row + 3] // 3
    else:
        fine = hills(draws, "fine", (height // 3, width // 3), size)
        coarse = hills(draws, "coarse", (7, 5), size)
        surface = cv2.addWeighted(fine, 0.35 if name != "laminate" else 0.15, coarse, 0.5, 0)
    if draws.chance("upright", 400) and name in _WOODS:
        surface = cv2.resize(cv2.rotate(surface, cv2.ROTATE_90_CLOCKWISE), size, interpolation=cv2.INTER_LINEAR)
    dark, pale = _TABLES[name]
    levels = np.arange(256)
    tones = np.stack([low + levels * (high - low) // 255 for low, high in zip(dark, pale, strict=True)], axis=-1)
    if not colour:
        return np.asarray(cv2.LUT(surface, tones.mean(axis=1).astype(np.uint8)), dtype=np.uint8)
    table = tones.astype(np.uint8).reshape(256, 1, 3)
    return np.asarray(cv2.LUT(cv2.merge([surface, surface, surface]), table), dtype=np.uint8)


def _contact_shadow(corners: list[tuple[float, float]], size: tuple[int, int], dial: Dial, scale: float) -> Pixels:
    """The thin shadow that the sheet casts on the table, to one side of it."""
    away = (dial.draws.integer("shadow_x", -9, 9) * scale, dial.draws.integer("shadow_y", 3, 10) * scale)
    small = (size[0] // 4, size[1] // 4)
    shade = np.full((small[1], small[0]), 255, dtype=np.uint8)
    polygon = np.array([[(x + away[0]) / 4, (y + away[1]) / 4] for x, y in corners]).round().astype(np.int32)
    cv2.fillConvexPoly(shade, polygon, (110,))
    soft = blurred(shade, 1.6 * scale)
    return np.asarray(cv2.resize(soft, size, interpolation=cv2.INTER_LINEAR), dtype=np.uint8)


def _shaken(seen: Pixels, dial: Dial, scale: float) -> Pixels:
    """Smeared by a hand that moved: the mean of four places along a line, alike on both sides of the middle."""
    half = dial.amount("shake_tenths", -18, 52) / 20 * scale
    if half < 1:
        return seen
    turn = np.deg2rad(dial.draws.integer("shake_degrees", 0, 179))
    for share in (2 / 3, 1 / 3):
        across, down = round(float(np.cos(turn)) * half * share), round(float(np.sin(turn)) * half * share)
        if across or down:
            seen = _doubled(seen, across, down)
    return seen


def _doubled(seen: Pixels, across: int, down: int) -> Pixels:
    """The mean of the picture moved by so many pixels and moved back by as many."""
    height, width = seen.shape[:2]
    x, y = abs(across), abs(down)
    wide = np.asarray(cv2.copyMakeBorder(seen, y, y, x, x, cv2.BORDER_REPLICATE), dtype=np.uint8)
    there = wide[y + down : y + down + height, x + across : x + across + width]
    back = wide[y - down : y - down + height, x - across : x - across + width]
    return np.asarray(cv2.addWeighted(there, 0.5, back, 0.5, 0), dtype=np.uint8)


def _light(dial: Dial, size: tuple[int, int]) -> Pixels:
    """One map for all light: brighter to one side, darker to the corners, and somebody's shadow across it."""
    draws = dial.draws
    width, height = max(size[0] // _COARSE, 8), max(size[1] // _COARSE, 8)
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    x, y = columns * 2000 // width - 1000, rows * 2000 // height - 1000
    slope = dial.amount("slope", 10, 62)
    towards = (draws.integer("towards_x", -1000, 1000), draws.integer("towards_y", -1000, 1000))
    light = 255 - slope + (x * towards[0] + y * towards[1]) * slope // 2_000_000
    light = light - (x * x + y * y) * dial.amount("vignette", 6, 34) // 2_000_000
    shadow = np.full((height, width), 255, dtype=np.uint8)
    depth = dial.amount("shadow_depth", 0, 90)
    middle = (draws.integer("shade_x", 0, width), draws.integer("shade_y", height // 2, height))
    axes = (width * draws.integer("shade_wide", 30, 75) // 100, height * draws.integer("shade_high", 25, 70) // 100)
    cv2.ellipse(shadow, middle, axes, draws.integer("shade_turn", -40, 40), 0, 360, (255 - depth,), -1)
    shadow = blurred(shadow, draws.integer("shade_soft", 15, 70) / 10)
    whole = np.clip(light, 40, 255) * shadow // 255
    whole = whole * 255 // whole.max()  # the telephone exposes for the brightest of it
    return np.asarray(cv2.resize(whole.astype(np.uint8), size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
