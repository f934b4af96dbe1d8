"""A page as a picture to which nothing has happened, as a program exports it.

What does not belong here: damage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.paper import Paper, Picture

_DPI = (150, 200, 240, 300)
_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Rasteriser:
    """How one document is made into pictures."""

    dpi: tuple[int, int]
    colour: bool = True
    quality: int = _QUALITY
    bilevel: bool = False

    @staticmethod
    def drawn(dial: Dial) -> Rasteriser:
        """The resolution of one document."""
        dpi = dial.draws.choice("dpi", _DPI)
        return Rasteriser((dpi, dpi))

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """The page as it is."""
        return Picture(paper.pixels, paper.frame.points, np.eye(3))
