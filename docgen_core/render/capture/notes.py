"""A page that somebody worked on: marker over what matters, ticks, a ring of ink, notes where there was room.

Nothing that is written touches a golden value but the marker, which lets it show through, and a
line or ring around it. Notes are figures, initials and signs, so that they belong to any language.
What does not belong here: stains and folds (`folded`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from docgen_core.draws import Draws
from docgen_core.render.capture import pen
from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.geometry import warped
from docgen_core.render.capture.paper import Paper, Picture, Pixels, Place
from docgen_core.render.capture.scan import Scanner, lain
from docgen_core.render.capture.sensor import blurred, noisy, off_white, shaded, specked, toned

_DPI = {100: 1, 150: 5, 200: 3, 300: 1}
_COLOUR_PER_MILLE = 850

# What is left of blue, green and red light under a marker.
_MARKERS = {"yellow": (90, 250, 255), "green": (120, 250, 170), "pink": (215, 150, 255), "orange": (110, 195, 255)}
_INKS = {"blue": (150, 52, 28), "black": (48, 44, 42), "red": (42, 36, 188)}
_NOTES = (
    "OK",
    "OK {day}/{month}",
    "{initials} {day}/{month}",
    "#{account}",
    "{account}",
    "{initials}",
    "?",
    "!",
    "✓ {initials}",
)
_INITIALS = "BKMRTW"
_TRIES = 40
"""Places that are looked at for a note before it is left out."""


@dataclass(frozen=True, slots=True)
class Desk(Scanner):
    """The scanner at the end, and the pens on the desk of whoever worked on one document."""

    marker: tuple[int, int, int] = _MARKERS["yellow"]
    """What it leaves of blue, green and red light."""
    biro: tuple[int, int, int] = _INKS["blue"]
    """Blue, green and red of the ball pen."""

    @staticmethod
    def drawn(dial: Dial) -> Desk:
        """The desk of one document."""
        draws = dial.draws
        dpi = draws.weighted("dpi", _DPI)
        white, yellowed, lid = (
            dial.amount("paper", 250, 232),
            dial.amount("yellowed", 2, 14),
            draws.integer("lid", 120, 240),
        )
        colour = draws.chance("colour", _COLOUR_PER_MILLE)
        return Desk(
            dpi=(dpi, dpi),
            colour=colour,
            ink=dial.amount("ink", 20, 64),
            paper=off_white(white, yellowed, colour=colour),
            lid=(lid, lid, lid) if colour else (lid,),
            noise=dial.amount("noise_tenths", 18, 66) / 10,
            quality=dial.amount("quality", 86, 52),
            marker=_MARKERS[draws.weighted("marker", {"yellow": 6, "green": 2, "pink": 2, "orange": 1})],
            biro=_INKS[draws.weighted("pen", {"blue": 5, "black": 2, "red": 3})],
        )

    def take(self, paper: Paper, dial: Dial) -> Picture:
        """One page."""
        matrix = lain(paper, dial, milli_degrees=dial.amount("turn", 300, 1600), shift=60 * self.scale, stretch=40)
        seen = self._marked(paper, dial)
        self._written(seen, paper, dial)
        seen = toned(seen, self.ink, self.paper)
        seen = warped(seen, matrix, (paper.frame.width, paper.frame.height), self.lid)
        seen = blurred(seen, dial.amount("blur_hundredths", 44, 110) / 100 * self.scale)
        specked(seen, dial, 24, scale=self.scale)
        return Picture(noisy(seen, self.noise, dial.draws, falloff=11), paper.frame.points, matrix)

    def _marked(self, paper: Paper, dial: Dial) -> Pixels:
        """The page with marker over some of its values."""
        shade = np.full(paper.pixels.shape, 255, dtype=np.uint8)
        places = paper.places
        for number, place in enumerate(dial.draws.sample("marked", places, dial.amount("marks", 1, 12))):
            self._mark(shade, place, dial.draws.under("mark", number), paper.millimetre)
        return shaded(paper.pixels, blurred(shade, 0.8 * self.scale))

    def _mark(self, shade: Pixels, place: Place, draws: Draws, millimetre: float) -> None:
        """One stroke along a value, a little beyond it and not quite level; or two, one beside the other."""
        left, top, right, bottom = place
        colour = self._seen(self.marker)
        before, after = (draws.integer(name, 2, 22) / 10 * millimetre for name in ("before", "after"))
        tall = max(bottom - top, round(3.2 * millimetre))
        for stroke in range(1 + draws.chance("twice", 250)):
            layer = np.full(shade.shape, 255, dtype=np.uint8)
            height = (top + bottom) / 2 + stroke * draws.integer("beside", -9, 9) / 10 * millimetre
            start = height + draws.integer(f"start{stroke}", -6, 6) / 10 * millimetre
            end = height + draws.integer(f"end{stroke}", -6, 6) / 10 * millimetre
            middle = (left + right) / 2, (start + end) / 2 + draws.integer(f"bend{stroke}", -3, 3) / 10 * millimetre
            region = slice(max(round(min(start, end)) - tall, 0), round(max(start, end)) + tall)
            pen.line(layer, [(left - before, start), middle, (right + after, end)], colour, tall)
            shade[region] = (
                np.minimum(shade[region], layer[region]) if not stroke else shaded(shade[region], layer[region])
            )

    def _written(self, seen: Pixels, paper: Paper, dial: Dial) -> None:
        """What was written with a ball pen."""
        draws, ink = dial.draws, self._seen(self.biro)
        thick = max(1, round(draws.integer("thick", 35, 55) / 100 * paper.millimetre))
        places = sorted(paper.places, key=lambda place: (place[1], place[0]))
        alone = [place for place in places if _stands_alone(place, places, paper.millimetre)]
        if alone and draws.chance("ringed", 600):
            _ring(seen, draws.choice("ring", alone[len(alone) // 2 :]), ink, thick, draws, paper.millimetre)
        for number, place in enumerate(draws.sample("underlined", alone, dial.amount("lines", 0, 3))):
            _underline(seen, place, ink, thick, draws.under("line", number), paper.millimetre)
        for number, place in enumerate(draws.sample("ticked", places, dial.amount("ticks", 0, 9))):
            size = draws.integer(f"tick_size{number}", 30, 52) / 10 * paper.millimetre
            spot = (place[2] + round(1.2 * paper.millimetre), (place[1] + place[3]) // 2 - round(size * 0.7))
            if paper.is_free(spot[0], spot[1] - round(size * 0.3), spot[0] + round(size), spot[1] + round(size)):
                pen.write(seen, "✓", spot, size, ink, thick, draws.under("tick", number))
        for number in range(dial.amount("notes", 0, 4)):
            _note(
                seen, paper, ink, thick, draws.under("note", number), signed=not number and draws.chance("signed", 400)
            )

    def _seen(self, colour: tuple[int, int, int]) -> tuple[int, ...]:
        """A colour as this scanner's pictures have it."""
        blue, green, red = colour
        return colour if self.colour else ((29 * blue + 150 * green + 77 * red) // 256,)


def _stands_alone(place: Place, places: Sequence[Place], millimetre: float) -> bool:
    """Whether a line around or under a value meets no other."""
    left, top, right, bottom = place
    across, down = (right - left) * 0.1 + 3 * millimetre, (bottom - top) * 0.3 + 2 * millimetre
    return not any(
        other != place
        and left - across < other[2]
        and other[0] < right + across
        and top - down < other[3]
        and other[1] < bottom + down
        for other in places
    )


def _ring(seen: Pixels, place: Place, ink: tuple[int, ...], thick: int, draws: Draws, millimetre: float) -> None:
    """A line once around a value and a little further, that does not end where it began."""
    left, top, right, bottom = place
    middle = ((left + right) / 2, (top + bottom) / 2)
    across = (right - left) / 2 * 1.12 + draws.integer("ring_wide", 20, 40) / 10 * millimetre
    down = (bottom - top) / 2 * 1.3 + draws.integer("ring_high", 16, 28) / 10 * millimetre
    points = []
    for step in range(15):
        angle = np.deg2rad(-100 + step * 28)
        grown = 1 + step * draws.integer("ring_grown", 2, 9) / 1000 + draws.integer(f"ring{step}", 0, 40) / 1000
        x, y = round(float(np.cos(angle)), 6), round(float(np.sin(angle)), 6)
        points.append((middle[0] + x * across * grown, middle[1] + y * down * grown))
    pen.line(seen, points, ink, thick)


def _underline(seen: Pixels, place: Place, ink: tuple[int, ...], thick: int, draws: Draws, millimetre: float) -> None:
    left, _, right, bottom = place
    for stroke in range(1 + draws.chance("twice", 400)):
        y = bottom + (0.9 + 0.9 * stroke) * millimetre
        wobble = [draws.integer(f"{stroke}.{step}", -4, 4) / 10 * millimetre for step in range(4)]
        points = [(left + (right - left) * step / 3, y + wobble[step] / 2) for step in range(4)]
        pen.line(seen, points, ink, thick)


def _note(seen: Pixels, paper: Paper, ink: tuple[int, ...], thick: int, draws: Draws, *, signed: bool) -> None:
    """A signature, or something short, where nothing is printed, if such a place is found."""
    height = draws.integer("height", 42, 78) / 10 * paper.millimetre
    text = _text(draws)
    wide, tall = (
        (40 * paper.millimetre, 13 * paper.millimetre) if signed else (pen.width_of(text) * height * 1.2, height * 1.3)
    )
    for left, top in _spots(paper, draws):
        if not paper.is_free(left, top, left + round(wide), top + round(tall)):
            continue
        if int(seen[top : top + round(tall), left : left + round(wide)].min()) < 70:
            continue  # somebody has written there already
        if signed:
            pen.scribble(seen, (left + 2 * paper.millimetre, top + tall / 2), wide * 0.8, ink, thick, draws)
        else:
            pen.write(seen, text, (left + height * 0.1, top + height * 0.15), height, ink, thick, draws)
        return


def _spots(paper: Paper, draws: Draws) -> Iterator[tuple[int, int]]:
    for number in range(_TRIES):
        yield (
            draws.integer(f"x{number}", paper.frame.width // 30, paper.frame.width * 9 // 10),
            draws.integer(f"y{number}", paper.frame.height // 40, paper.frame.height * 95 // 100),
        )


def _text(draws: Draws) -> str:
    return draws.choice("text", _NOTES).format(
        day=draws.integer("day", 1, 28),
        month=draws.integer("month", 1, 12),
        account=draws.integer("account", 1000, 8999),
        initials="".join(draws.sample("initials", _INITIALS, 2)),
    )
