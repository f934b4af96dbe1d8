"""A fax: black or white, coarser down than across, with lines that the telephone line lost.

What does not belong here: greys. A fax has none.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels
from docgen_core.render.capture.scan import lain
from docgen_core.render.capture.sensor import blurred
from docgen_core.render.capture.texture import grain, random_bytes

ACROSS_DPI = 204
STANDARD_DPI, FINE_DPI = 98, 196
"""Lines an inch, by ITU-T T.4."""
_FINE_PER_MILLE = 650
_MIDDLE = 188
"""Brightness at which grey becomes black, where the neighbourhood is as bright."""
_NEAR_PIXELS = 41
_HEADER_MILLIMETRES = 3.0


@dataclass(frozen=True, slots=True)
class Fax:
    """The two machines and the line between them, for one document."""

    dpi: tuple[int, int]
    job: int
    burn: int
    """How much brighter grey may be and still become black; less than 0 for a machine that prints thin."""
    colour: bool = False
    quality: int = 0
    bilevel: bool = True

    @staticmethod
    def drawn(dial: Dial) -> Fax:
        """The machines of one document."""
        draws = dial.draws
        down = FINE_DPI if draws.chance("fine", _FINE_PER_MILLE) else STANDARD_DPI
        thick = dial.amount("thick", 0, 16)
        thin = dial.amount("thin", 0, -20)
        return Fax((ACROSS_DPI, down), draws.integer("job", 100, 9999), thick if draws.chance("burns", 600) else thin)

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        size = (paper.frame.width, paper.frame.height)
        matrix = lain(paper, dial, milli_degrees=dial.amount("turn", 250, 1400), shift=60, stretch=90)
        seen = warped(paper.pixels, matrix, size, (255,))
        seen = blurred(seen, dial.amount("blur_hundredths", 40, 105) / 100)
        noise = grain(dial.draws, "noise", dial.amount("noise", 5, 24), size)
        seen = np.asarray(cv2.add(seen, noise, dtype=cv2.CV_8U), dtype=np.uint8)
        black = self._thresholded(seen)
        _dirt(black, dial)
        self._header(black, paper, dial)
        _lost_lines(black, dial)
        return Picture(black, paper.frame.points, matrix)

    def _thresholded(self, seen: Pixels) -> Pixels:
        """Black or white, by a limit that is darker where everything is: panels stay black, grey print is kept."""
        near = cv2.blur(seen, (_NEAR_PIXELS, _NEAR_PIXELS))
        limit = cv2.addWeighted(near, 0.45, near, 0.0, _MIDDLE - 0.45 * 255 + self.burn)
        return np.asarray(cv2.compare(seen, limit, cv2.CMP_GT), dtype=np.uint8)

    def _header(self, black: Pixels, paper: Paper, dial: Dial) -> None:
        """The line that the sending machine prints above everything, where there is room for it."""
        high = round(_HEADER_MILLIMETRES * 2 * self.dpi[1] / 25.4)
        if any(top < high for _, top, _, _ in paper.places) or int(paper.pixels[:high].min(initial=255)) < 200:
            return
        band = np.full((round(high * ACROSS_DPI / self.dpi[1]), black.shape[1]), 255, dtype=np.uint8)
        text = f"FAX {self.job:04d}   P. {paper.number:02d}/{paper.pages:02d}"
        left = round(black.shape[1] * (0.07 if dial.draws.chance("header_left", 500) else 0.62))
        cv2.putText(band, text, (left, round(band.shape[0] * 0.62)), cv2.FONT_HERSHEY_SIMPLEX, 0.72, (0,), 2)
        small = cv2.resize(band, (black.shape[1], high), interpolation=cv2.INTER_AREA)
        np.minimum(black[:high], np.where(small < 150, 0, 255).astype(np.uint8), out=black[:high])


def _dirt(black: Pixels, dial: Dial) -> None:
    """Thin lines down the page, broken here and there, from dirt on the sender's glass."""
    for number in range(dial.amount("dirt", -2, 3)):
        left = dial.draws.integer(f"dirt{number}", 8, black.shape[1] - 8)
        on = np.repeat(random_bytes(dial.draws, f"dirt_on{number}", black.shape[0] // 24 + 1) > 90, 24)[
            : black.shape[0]
        ]
        black[on, left : left + dial.draws.integer(f"dirt_width{number}", 1, 2)] = 0


def _lost_lines(black: Pixels, dial: Dial) -> None:
    """Lines that came over damaged: white from somewhere on, out of step, or bits of something else."""
    draws, (height, width) = dial.draws, black.shape
    for number in range(dial.amount("lost", 0, 11)):
        top = draws.integer(f"lost{number}", height // 40, height - 4)
        from_column = draws.integer(f"lost_from{number}", 0, width - 1)
        kind = draws.weighted(f"lost_kind{number}", {"white": 4, "out of step": 3, "bits": 2})
        if kind == "white":
            black[top, from_column:] = 255
        elif kind == "out of step":
            rows = black[top : top + draws.integer(f"lost_rows{number}", 1, 4)]
            rows[...] = np.roll(rows, draws.integer(f"lost_step{number}", 3, 60), axis=1)
        else:
            runs = random_bytes(draws, f"lost_bits{number}", width // 6 + 1) > 170
            black[top, from_column:] = np.where(np.repeat(runs, 6)[: width - from_column], 0, 255)
