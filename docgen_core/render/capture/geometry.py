"""Where the paper's points come to lie in the picture: 3 × 3 matrices over pixels, and boxes moved by them.

Pixels are measured from the picture's upper left corner, points from the page's lower left.
What does not belong here: anything that changes a colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from docgen_core.render.boxes import BOX_PLACES, Quad

if TYPE_CHECKING:
    from docgen_core.render.capture.paper import Pixels

Matrix = npt.NDArray[np.float64]
"""3 × 3, from pixels of the paper to pixels of the picture."""

POINTS_PER_INCH = 72
_TAMED = (1.0, 0.5, 0.25, 0.0)
"""How much of a transform is tried until every value stays on the page."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A page as a grid of pixels."""

    width: int
    """In pixels, as `height`."""
    height: int
    points: tuple[float, float]
    """Width and height."""


def corners(quad: Quad) -> list[tuple[float, float]]:
    """The four corners, in points."""
    return list(zip(quad[::2], quad[1::2], strict=True))


def affine(degrees: float, shift: tuple[float, float], stretch: float, frame: Frame, aspect: float = 1.0) -> Matrix:
    """Turn and stretch about the middle, then shift by so many pixels; `aspect` is a pixel's width over its height."""
    turn = math.radians(degrees)
    cosine, sine = stretch * math.cos(turn), stretch * math.sin(turn)
    middle_x, middle_y = frame.width / 2, frame.height / 2
    across, down = sine / aspect, sine * aspect
    return np.array(
        [
            [cosine, -across, middle_x - cosine * middle_x + across * middle_y + shift[0]],
            [down, cosine, middle_y - down * middle_x - cosine * middle_y + shift[1]],
            [0.0, 0.0, 1.0],
        ]
    )


def moved(quad: Quad, matrix: Matrix, paper: Frame, picture: Frame) -> Quad:
    """A quadrilateral on the paper, as it lies in the picture; both in points."""
    (xx, xy, x_shift), (yx, yy, y_shift), (wx, wy, w_shift) = matrix.tolist()
    across, up = paper.width / paper.points[0], paper.height / paper.points[1]
    picture_across, picture_up = picture.width / picture.points[0], picture.height / picture.points[1]
    places: list[float] = []
    for x, y in corners(quad):
        column, row = x * across, paper.height - y * up
        depth = wx * column + wy * row + w_shift
        places += (
            round((xx * column + xy * row + x_shift) / depth / picture_across, BOX_PLACES) + 0.0,
            round((picture.height - (yx * column + yy * row + y_shift) / depth) / picture_up, BOX_PLACES) + 0.0,
        )
    x0, y0, x1, y1, x2, y2, x3, y3 = places
    return x0, y0, x1, y1, x2, y2, x3, y3


def tamed(matrix_of: Callable[[float], Matrix], frame: Frame, quads: Sequence[Quad]) -> Matrix:
    """The transform, `matrix_of(1.0)`, or so much of it that every value stays on a page of the paper's size."""
    width, height = frame.points
    for share in _TAMED:
        matrix = matrix_of(share)
        places = [corner for quad in quads for corner in corners(moved(quad, matrix, frame, frame))]
        if all(0 <= x <= width and 0 <= y <= height for x, y in places):
            break
    return matrix


def warped(
    pixels: Pixels, matrix: Matrix, size: tuple[int, int], beside: Sequence[int] = (), *, onto: Pixels | None = None
) -> Pixels:
    """The paper as it lies in a picture of `size` (width, height).

    Args:
        pixels: the paper.
        matrix: where its pixels go.
        size: of the picture.
        beside: what is seen beside the paper, by channel.
        onto: a picture that the paper is laid on, and that is changed; instead of `beside`.
    """
    import cv2

    # OpenCV measures from the middle of the first pixel, we from its corner.
    to_corner = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]])
    to_middle = np.array([[1.0, 0.0, -0.5], [0.0, 1.0, -0.5], [0.0, 0.0, 1.0]])
    if matrix[2].tolist() == [0.0, 0.0, 1.0]:
        centred = matrix[:2].copy()
        centred[:, 2] += centred[:, :2] @ np.array([0.5, 0.5]) - 0.5
        seen = cv2.warpAffine(pixels, centred, size, flags=cv2.INTER_LINEAR, borderValue=tuple(beside))
    else:
        centred = to_middle @ matrix @ to_corner
        mode = cv2.BORDER_TRANSPARENT if onto is not None else cv2.BORDER_CONSTANT
        seen = cv2.warpPerspective(
            pixels, centred, size, dst=onto, flags=cv2.INTER_LINEAR, borderMode=mode, borderValue=tuple(beside)
        )
    return np.asarray(seen, dtype=np.uint8)
