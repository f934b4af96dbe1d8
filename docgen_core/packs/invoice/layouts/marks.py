"""What is drawn on a document besides its text: a chart of usage, a signature, a company's stamp.

All of it follows from seeds. The stamp says that it is a specimen, for a stamp could be mistaken;
a signature is a line of no name. What does not belong here: logos and seals (logo.py), codes (codes.py).
"""

from __future__ import annotations

import math
from datetime import date
from functools import lru_cache

from babel.dates import get_month_names
from markupsafe import Markup, escape

from docgen_core import locales
from docgen_core.draws import Draws

_MONTHS = 12
_BAR, _STEP, _HEIGHT, _FOOT = 22.0, 33.0, 96.0, 16.0
"""Of the chart, in SVG user units."""
_SEASON_PER_CENT, _CHANCE_PER_CENT = 28, 14
"""So far usage swings with the season, and by chance."""

_SIGNATURE_WIDTH, _SIGNATURE_HEIGHT = 160, 50
_STROKES = (5, 9)
SPECIMEN = "SPECIMEN"


def usage_chart(locale: str, last: date, accent: str, *seed: object) -> Markup:
    """Twelve months' bars up to the month of `last`, which is the last and darkest: an `svg.usage`."""
    draws = Draws("usage", *seed)
    names = get_month_names("abbreviated", locale=locales.locale_of(locale))
    cold = draws.chance("cold season", 700)
    bars = []
    for place in range(_MONTHS):
        month = (last.month - _MONTHS + place) % 12 + 1
        season = math.cos((month - 1) / 6 * math.pi) * (1 if cold else -1) * _SEASON_PER_CENT
        share = 66 + round(season) + draws.integer(f"month {place}", -_CHANCE_PER_CENT // 2, _CHANCE_PER_CENT // 2)
        high, x = _HEIGHT * share / 100, 4 + place * _STEP
        opacity = 1 if place == _MONTHS - 1 else 0.38
        bars.append(
            f'<rect x="{x:g}" y="{_HEIGHT - high:.1f}" width="{_BAR:g}" height="{high:.1f}" fill="{escape(accent)}" '
            f'opacity="{opacity}"/><text x="{x + _BAR / 2:g}" y="{_HEIGHT + 12:g}" text-anchor="middle" '
            f'font-size="8.5">{escape(names[month].rstrip("."))}</text>'
        )
    wide = _MONTHS * _STEP
    rule = f'<path d="M0 {_HEIGHT} H{wide}" stroke="#555" stroke-width="0.8"/>'
    return Markup(f'<svg class="usage" viewBox="0 0 {wide:g} {_HEIGHT + _FOOT:g}">{"".join(bars)}{rule}</svg>')


@lru_cache(maxsize=256)
def signature(*seed: object) -> Markup:
    """A hurried line of loops that spells nothing: an `svg.signature`."""
    draws = Draws("signature", *seed)
    x, y = 8.0, 32.0
    path = [f"M{x:g} {y:g}"]
    count = draws.integer("strokes", *_STROKES)
    for stroke in range(count):
        here = draws.under(stroke)
        wide = (_SIGNATURE_WIDTH - 30) / count
        up, down = here.integer("up", 8, 30 if stroke == 0 else 20), here.integer("down", 2, 12)
        path.append(f"c{wide * 0.1:.1f} {-up} {wide * 0.7:.1f} {-up} {wide * 0.5:.1f} {here.integer('mid', -6, 4)}")
        path.append(f"s{-wide * 0.3:.1f} {down} {wide * 0.5:.1f} {here.integer('end', -3, 3)}")
    path.append(f"q20 {draws.integer('flourish', -12, 10)} 26 {draws.integer('flourish end', -8, 4)}")
    ink = draws.choice("ink", ("#1c2f6b", "#222222", "#1a3a8f"))
    line = f'<path d="{" ".join(path)}" fill="none" stroke="{ink}" stroke-width="1.5" stroke-linecap="round"/>'
    return Markup(f'<svg class="signature" viewBox="0 0 {_SIGNATURE_WIDTH} {_SIGNATURE_HEIGHT}">{line}</svg>')


@lru_cache(maxsize=256)
def stamp(monogram: str, ink: str, *seed: object) -> Markup:
    """A company's round rubber stamp, marked as a specimen: an `svg.stamp`."""
    draws = Draws("stamp", *seed)
    turn = draws.integer("turn", -14, 14)
    rings = f'<circle cx="50" cy="50" r="46" fill="none" stroke="{escape(ink)}" stroke-width="2.4"/>'
    if draws.chance("two rings", 500):
        rings += f'<circle cx="50" cy="50" r="41" fill="none" stroke="{escape(ink)}" stroke-width="0.9"/>'
    return Markup(
        f'<svg class="stamp" viewBox="0 0 100 100"><g transform="rotate({turn} 50 50)" opacity="0.75">{rings}'
        f'<text x="50" y="50" font-size="26" font-weight="700" text-anchor="middle" fill="{escape(ink)}">'
        f'{escape(monogram)}</text><text x="50" y="67" font-size="10.5" text-anchor="middle" fill="{escape(ink)}">'
        f"{SPECIMEN}</text></g></svg>"
    )
