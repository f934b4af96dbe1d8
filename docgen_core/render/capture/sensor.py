"""What paper, ink, glass and sensor do to a picture's brightness; every function takes and gives pixels.

What does not belong here: geometry, and which condition does how much of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from docgen_core.draws import Draws
from docgen_core.render.capture.texture import grain

if TYPE_CHECKING:
    from docgen_core.render.capture.dial import Dial
    from docgen_core.render.capture.paper import Pixels

_SMALL_BLUR = 0.8
"""A blur of up to this deviation fits into three pixels."""


def off_white(white: int, yellowed: int, *, colour: bool) -> tuple[int, ...]:
    """Brightness of paper by channel (blue, green, red): less of blue, and a little less of green, than of `white`."""
    return (white - yellowed, white - yellowed // 3, white) if colour else (white,)


def toned(pixels: Pixels, ink: int, paper: Sequence[int]) -> Pixels:
    """Black seen as `ink`, white as `paper` (one brightness a channel)."""
    import cv2

    levels = np.arange(256)
    tones = np.stack([ink + levels * (white - ink) // 255 for white in paper], axis=-1).astype(np.uint8)
    table = tones.reshape((256, 1, 3) if len(paper) == 3 else (256,))
    return np.asarray(cv2.LUT(pixels, table), dtype=np.uint8)


def curve(pixels: Pixels, points: Sequence[tuple[int, int]]) -> Pixels:
    """Brightness by a polyline through (seen, shown), from 0 to 255."""
    import cv2

    levels = np.arange(256)
    shown = np.zeros(256, dtype=np.int64)
    for (left, low), (right, high) in pairwise(points):
        here = (levels >= left) & (levels <= right)
        shown[here] = low + (levels[here] - left) * (high - low) // max(right - left, 1)
    return np.asarray(cv2.LUT(pixels, np.clip(shown, 0, 255).astype(np.uint8)), dtype=np.uint8)


def blurred(pixels: Pixels, deviation: float) -> Pixels:
    """Softened by a bell of so many pixels."""
    import cv2

    side = 3 if deviation <= _SMALL_BLUR else 2 * math.ceil(2 * deviation) + 1
    # Of bytes it is computed in whole numbers, which OpenCV's own tests hold to the bit on any machine.
    cv2.setUseOptimized(True)
    try:
        return np.asarray(cv2.GaussianBlur(pixels, (side, side), deviation), dtype=np.uint8)
    finally:
        cv2.setUseOptimized(False)


def shaded(pixels: Pixels, shade: Pixels) -> Pixels:
    """Darkened by a map of 0 (black) to 255 (as it was); the map has one channel, or the picture's."""
    import cv2

    if pixels.ndim == 3 and shade.ndim == 2:
        shade = np.asarray(cv2.merge([shade, shade, shade]), dtype=np.uint8)
    return np.asarray(cv2.multiply(pixels, shade, scale=1 / 255), dtype=np.uint8)


def specked(pixels: Pixels, dial: Dial, most: int, *, scale: float = 1.0, shades: tuple[int, int] = (120, 200)) -> None:
    """Grains of dust, at most so many, laid onto the picture; `scale` is its resolution over 150 dpi."""
    import cv2

    draws, (darkest, palest) = dial.draws, shades
    for number in range(dial.amount("specks", 0, most)):
        place = (
            draws.integer(f"speck_x{number}", 0, pixels.shape[1] - 1),
            draws.integer(f"speck_y{number}", 0, pixels.shape[0] - 1),
        )
        shade = draws.integer(f"speck_shade{number}", darkest, palest)
        radius = round(draws.integer(f"speck_size{number}", 0, 1) * scale)
        cv2.circle(pixels, place, radius, (shade, shade, shade), -1, cv2.LINE_AA)


def noisy(pixels: Pixels, deviation: float, draws: Draws, *, falloff: int = 9) -> Pixels:
    """With the sensor's noise, and light that falls off by up to `falloff` towards the corners of the glass."""
    import cv2

    height, width = pixels.shape[:2]
    corners = np.array([draws.integer(f"falloff{corner}", -falloff, 0) for corner in range(4)], dtype=np.float32)
    light = cv2.resize(corners.reshape(2, 2), (width, height), interpolation=cv2.INTER_LINEAR)
    change = cv2.add(grain(draws, "noise", deviation, (width, height)), light, dtype=cv2.CV_16S)
    if pixels.ndim == 3:
        change = cv2.merge([change, change, change])
    return np.asarray(cv2.add(pixels, change, dtype=cv2.CV_8U), dtype=np.uint8)
