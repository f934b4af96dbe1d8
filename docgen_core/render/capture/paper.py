"""A printed page on its way into a picture, and what every way of taking the picture offers.

What does not belong here: any one way (`scan`, `fax`, `photo`, …), and files (`encode`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from docgen_core.render.boxes import Quad
from docgen_core.render.capture.geometry import POINTS_PER_INCH, Frame, Matrix, corners

if TYPE_CHECKING:
    from docgen_core.render.capture.dial import Dial

Pixels = npt.NDArray[np.uint8]
"""Brightness: height × width, or height × width × (blue, green, red)."""

Place = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels."""

MILLIMETRES_PER_INCH = 25.4
_BLANK = 215
"""Of 255: what is brighter everywhere has nothing printed on it."""


@dataclass(frozen=True, slots=True)
class Paper:
    """One printed page as pixels."""

    pixels: Pixels
    frame: Frame
    dpi: tuple[int, int]
    """Across and down."""
    quads: tuple[Quad, ...]
    """Of the golden values on it, in points."""
    places: tuple[Place, ...]
    """The same as left, top, right and bottom, in pixels."""
    number: int
    """From 1."""
    pages: int
    """Of the document."""

    @property
    def millimetre(self) -> float:
        """Pixels, across."""
        return self.dpi[0] / MILLIMETRES_PER_INCH

    def is_free(self, left: int, top: int, right: int, bottom: int) -> bool:
        """Whether a rectangle of pixels lies on the page, with nothing printed in it and no golden value."""
        if left < 0 or top < 0 or right > self.frame.width or bottom > self.frame.height:
            return False
        if any(left < x1 and x0 < right and top < y1 and y0 < bottom for x0, y0, x1, y1 in self.places):
            return False
        return int(self.pixels[top:bottom, left:right].min(initial=255)) >= _BLANK


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as it was taken."""

    pixels: Pixels
    points: tuple[float, float]
    """Width and height of the page that the picture is."""
    matrix: Matrix
    """From pixels of the paper to pixels of the picture."""

    @property
    def frame(self) -> Frame:
        """The picture as a grid."""
        return Frame(self.pixels.shape[1], self.pixels.shape[0], self.points)


class Device(Protocol):
    """What took the pictures of one document; all its pages are taken alike."""

    @property
    def dpi(self) -> tuple[int, int]:
        """Dots an inch of the paper, across and down."""

    @property
    def colour(self) -> bool:
        """Whether its pictures have colours."""

    @property
    def quality(self) -> int:
        """Of its JPEGs, 0 to 100."""

    @property
    def bilevel(self) -> bool:
        """Whether its pictures are black and white, without any grey."""

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """The picture of a page; `dial` holds the page's own draws. The paper's pixels may be changed."""


def rastered(
    sheet: Any,
    points: tuple[float, float],
    quads: Sequence[Quad],
    *,
    dpi: tuple[int, int],
    colour: bool,
    number: int,
    pages: int,
) -> Paper:
    """A page of a PDF as pixels of its own."""
    import cv2

    across, down = dpi
    bitmap = sheet.render(scale=max(dpi) / POINTS_PER_INCH, grayscale=not colour)
    seen = bitmap.to_numpy()
    pixels = seen[:, :, :3].copy() if colour else seen.reshape(seen.shape[:2]).copy()
    bitmap.close()
    if across != down:
        height = round(pixels.shape[0] * down / across)
        pixels = cv2.resize(pixels, (pixels.shape[1], height), interpolation=cv2.INTER_AREA)
    frame = Frame(pixels.shape[1], pixels.shape[0], points)
    places = tuple(_place(quad, frame) for quad in quads)
    return Paper(np.asarray(pixels, dtype=np.uint8), frame, dpi, tuple(quads), places, number, pages)


def _place(quad: Quad, frame: Frame) -> Place:
    across, up = frame.width / frame.points[0], frame.height / frame.points[1]
    columns = [x * across for x, _ in corners(quad)]
    rows = [frame.height - y * up for _, y in corners(quad)]
    return int(min(columns)), int(min(rows)), int(max(columns)) + 1, int(max(rows)) + 1
