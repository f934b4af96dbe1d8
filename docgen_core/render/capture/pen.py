"""What a hand writes: strokes of a ball pen and of a marker, never twice the same.

Letters and figures are polylines in a box one unit high (y downwards), written with the unsteadiness
of named draws. What does not belong here: where something is written (`notes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cv2
import numpy as np

from docgen_core.draws import Draws

if TYPE_CHECKING:
    from docgen_core.render.capture.paper import Pixels

Stroke = Sequence[tuple[float, float]]

_FIXED = 3
"""Binary places of a pixel with which OpenCV draws."""
_BETWEEN = 6
"""Points of a curve between two of its corners."""

# Width, and strokes.
_FORMS: dict[str, tuple[float, tuple[Stroke, ...]]] = {
    "0": (0.6, (((0.3, 0), (0.05, 0.25), (0.05, 0.75), (0.3, 1), (0.55, 0.75), (0.55, 0.25), (0.32, 0.02)),)),
    "1": (0.4, (((0.05, 0.25), (0.25, 0), (0.25, 0.5), (0.24, 1)),)),
    "2": (0.6, (((0.05, 0.2), (0.3, 0), (0.52, 0.22), (0.3, 0.6), (0.04, 0.98), (0.3, 0.95), (0.58, 0.97)),)),
    "3": (0.6, (((0.08, 0.1), (0.35, 0), (0.5, 0.2), (0.28, 0.45), (0.54, 0.7), (0.3, 1), (0.04, 0.88)),)),
    "4": (0.6, (((0.35, 0), (0.05, 0.62), (0.3, 0.64), (0.58, 0.6)), ((0.42, 0.35), (0.4, 0.7), (0.4, 1.05)))),
    "5": (0.6, (((0.5, 0), (0.15, 0.03), (0.1, 0.42), (0.4, 0.4), (0.53, 0.7), (0.3, 1), (0.04, 0.9)),)),
    "6": (0.6, (((0.45, 0), (0.12, 0.4), (0.08, 0.8), (0.3, 1), (0.52, 0.75), (0.3, 0.55), (0.1, 0.75)),)),
    "7": (
        0.55,
        (((0.03, 0.05), (0.3, 0.03), (0.52, 0.03), (0.3, 0.5), (0.2, 1)), ((0.15, 0.5), (0.3, 0.48), (0.45, 0.5))),
    ),
    "8": (0.6, (((0.5, 0.15), (0.3, 0), (0.1, 0.2), (0.45, 0.6), (0.5, 0.85), (0.28, 1), (0.07, 0.8), (0.45, 0.3)),)),
    "9": (0.6, (((0.5, 0.25), (0.3, 0), (0.08, 0.25), (0.25, 0.48), (0.5, 0.2), (0.48, 0.6), (0.38, 1)),)),
    "/": (0.45, (((0.42, -0.05), (0.22, 0.5), (0.02, 1.05)),)),
    ".": (0.25, (((0.08, 0.95), (0.12, 1), (0.1, 1.02)),)),
    "-": (0.45, (((0.04, 0.55), (0.2, 0.53), (0.4, 0.55)),)),
    "O": (0.75, (((0.4, 0), (0.05, 0.3), (0.1, 0.85), (0.4, 1), (0.7, 0.7), (0.62, 0.2), (0.35, 0)),)),
    "K": (0.65, (((0.1, 0), (0.09, 0.5), (0.08, 1)), ((0.55, 0.02), (0.3, 0.35), (0.1, 0.55), (0.35, 0.75), (0.6, 1)))),
    "B": (
        0.6,
        (((0.1, 0), (0.08, 0.5), (0.08, 1)), ((0.08, 0.05), (0.45, 0.15), (0.1, 0.48), (0.52, 0.75), (0.08, 1))),
    ),
    "M": (0.85, (((0.05, 1), (0.15, 0.05), (0.4, 0.7), (0.65, 0.03), (0.78, 1)),)),
    "R": (0.6, (((0.1, 0), (0.08, 0.5), (0.08, 1)), ((0.08, 0.05), (0.5, 0.2), (0.1, 0.5), (0.35, 0.75), (0.58, 1)))),
    "T": (0.6, (((0.02, 0.03), (0.3, 0.02), (0.58, 0)), ((0.3, 0.02), (0.29, 0.5), (0.28, 1)))),
    "W": (0.9, (((0.02, 0), (0.2, 0.95), (0.42, 0.35), (0.62, 0.97), (0.85, 0)),)),
    "?": (
        0.55,
        (((0.05, 0.2), (0.28, 0), (0.5, 0.2), (0.28, 0.5), (0.26, 0.72)), ((0.26, 0.95), (0.29, 0.98), (0.26, 1))),
    ),
    "!": (0.3, (((0.15, 0), (0.14, 0.4), (0.12, 0.72)), ((0.12, 0.95), (0.15, 0.98), (0.12, 1)))),
    "✓": (0.9, (((0, 0.55), (0.25, 0.95), (0.5, 0.35), (0.95, -0.25)),)),
    "#": (
        0.7,
        (
            ((0.25, 0.05), (0.2, 0.5), (0.15, 1)),
            ((0.5, 0.02), (0.45, 0.5), (0.4, 0.98)),
            ((0.05, 0.35), (0.35, 0.33), (0.62, 0.3)),
            ((0.02, 0.7), (0.3, 0.68), (0.6, 0.65)),
        ),
    ),
    " ": (0.4, ()),
}
GAP = 0.14
"""Between two characters, in units."""


def width_of(text: str) -> float:
    """How wide a text is, for a height of 1. Raises KeyError for what the hand cannot write."""
    return sum(_FORMS[char][0] + GAP for char in text)


def write(
    pixels: Pixels, text: str, at: tuple[float, float], height: float, colour: tuple[int, ...], thick: int, draws: Draws
) -> None:
    """Write with a ball pen; `at` is the upper left corner in pixels, `height` a figure's in pixels."""
    x, lean = at[0], draws.integer("lean", -6, 24) / 100
    for number, char in enumerate(text):
        wide, strokes = _FORMS[char]
        rise = draws.integer(f"rise{number}", -7, 7) / 100
        size = height * draws.integer(f"size{number}", 92, 110) / 100
        for order, stroke in enumerate(strokes):
            points = [
                (
                    x + (px + lean * (1 - py) + draws.integer(f"{number}.{order}.{step}.x", -35, 35) / 1000) * size,
                    at[1] + (py + rise + draws.integer(f"{number}.{order}.{step}.y", -35, 35) / 1000) * size,
                )
                for step, (px, py) in enumerate(stroke)
            ]
            line(pixels, points, colour, thick)
        x += (wide + GAP) * size


def line(pixels: Pixels, points: Sequence[tuple[float, float]], colour: tuple[int, ...], thick: int) -> None:
    """One smooth stroke through all points."""
    curve = _smooth(np.array(points, dtype=np.float64))
    fixed = np.rint(curve * (1 << _FIXED)).astype(np.int32)
    cv2.polylines(pixels, [fixed], False, colour, thick, cv2.LINE_AA, _FIXED)


def scribble(
    pixels: Pixels, at: tuple[float, float], width: float, colour: tuple[int, ...], thick: int, draws: Draws
) -> None:
    """A signature that nobody can read: loops that get smaller, from left to right."""
    loops = draws.integer("loops", 5, 9)
    points, height = [], width * 0.22
    for loop in range(loops):
        share = loop / loops
        for corner, (dx, dy) in enumerate(((0.0, 0.5), (0.3, -0.6), (0.1, -0.2), (0.4, 0.45))):
            wild = draws.integer(f"wild{loop}.{corner}", 30, 130) / 100
            points.append((at[0] + (share + dx / loops) * width, at[1] + dy * wild * height * (1.15 - share)))
    points.append((at[0] + width * 1.1, at[1] + height * draws.integer("end", -60, 30) / 100))
    line(pixels, points, colour, thick)


def _smooth(
    points: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A Catmull-Rom curve through the points."""
    padded = np.concatenate([points[:1], points, points[-1:]])
    before, start, end, after = padded[:-3], padded[1:-2], padded[2:-1], padded[3:]
    t = (np.arange(_BETWEEN) / _BETWEEN)[:, np.newaxis, np.newaxis]
    curve = 0.5 * (
        2 * start
        + (end - before) * t
        + (2 * before - 5 * start + 4 * end - after) * t**2
        + (3 * start - before - 3 * end + after) * t**3
    )
    return np.concatenate([curve.transpose(1, 0, 2).reshape(-1, 2), points[-1:]])
