"""Random surfaces from named draws: no library's random stream decides a byte.

What does not belong here: what a surface is good for.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from docgen_core.draws import Draws

if TYPE_CHECKING:
    from docgen_core.render.capture.paper import Pixels

_NOISE_SIDE = 512
"""Pixels; the noise of a page is one square of this side, laid out again and again."""
_NOISE_SUMMANDS = 4
"""A sum of so many uniform bytes is near enough to a normal distribution, and is integers only."""
_NOISE_DEVIATION = math.sqrt(_NOISE_SUMMANDS * (256**2 - 1) / 12)


def random_bytes(draws: Draws, name: str, count: int) -> Pixels:
    """So many uniform bytes."""
    stream = hashlib.shake_256(draws.bits(name).to_bytes(8, "big")).digest(count)
    return np.frombuffer(stream, dtype=np.uint8)


def grain(draws: Draws, name: str, deviation: float, size: tuple[int, int]) -> npt.NDArray[np.int16]:
    """Noise with a standard deviation in brightness, for a picture of `size` (width, height)."""
    side = _NOISE_SIDE
    stream = random_bytes(draws, name, _NOISE_SUMMANDS * side * side).reshape(_NOISE_SUMMANDS, side, side)
    sums = np.arange(_NOISE_SUMMANDS * 255 + 1)
    steps = np.rint((sums - _NOISE_SUMMANDS * 127.5) * (deviation / _NOISE_DEVIATION)).astype(np.int16)
    noise = steps[stream.sum(axis=0, dtype=np.int16)]
    width, height = size
    down, across = -(-height // side), -(-width // side)
    tiled = np.empty((down, side, across, side), dtype=np.int16)
    tiled[...] = noise[:, np.newaxis]  # several times faster than `np.tile`
    return tiled.reshape(down * side, across * side)[:height, :width]


def hills(draws: Draws, name: str, cells: tuple[int, int], size: tuple[int, int]) -> Pixels:
    """A smooth surface of random heights from 0 to 255.

    Args:
        draws: the draws.
        name: of the draw.
        cells: rows and columns of independent heights.
        size: width and height of the surface.
    """
    import cv2

    heights = random_bytes(draws, name, cells[0] * cells[1]).reshape(cells)
    return np.asarray(cv2.resize(heights, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
