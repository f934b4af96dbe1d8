"""Company marks drawn as SVG from a seed: a logo, and the square seal of Japanese companies.

Every mark is invented. What does not belong here: where a layout puts it, and the company's name
beside it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from markupsafe import Markup, escape

from docgen_core.draws import Draws

SIZE = 100
"""Side of a mark's square, in SVG user units."""

_SEAL_INK = "#c3372f"
_SEAL_RIM = 8.0
_SEAL_FACE = SIZE - 2 * _SEAL_RIM
"""Side of the square inside the rim that the characters fill."""


def _svg(css: str, content: str) -> Markup:
    return Markup(f'<svg class="{css}" viewBox="0 0 {SIZE} {SIZE}" aria-hidden="true">{content}</svg>')


def _monogram(text: str, colour: str, size: float, x: float = 50, y: float = 50) -> str:
    wide = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1.3 for char in text)
    scaled = min(size, 150 / max(wide, 1))
    return (
        f'<text x="{x:g}" y="{y + 0.36 * scaled:g}" font-size="{scaled:g}" font-weight="700" '
        f'text-anchor="middle" fill="{colour}">{escape(text)}</text>'
    )


def _polygon(sides: int, radius: float, turn: float, paint: str) -> str:
    corners = (
        (50 + radius * math.cos(turn + 2 * math.pi * i / sides), 50 + radius * math.sin(turn + 2 * math.pi * i / sides))
        for i in range(sides)
    )
    return f'<polygon points="{" ".join(f"{x:.2f},{y:.2f}" for x, y in corners)}" {paint}/>'


def _disc(draws: Draws, accent: str, monogram: str) -> str:
    return f'<circle cx="50" cy="50" r="48" fill="{accent}"/>' + _monogram(monogram, "#fff", 44)


def _ring(draws: Draws, accent: str, monogram: str) -> str:
    gap = draws.integer("gap", 2, 6)
    return (
        f'<circle cx="50" cy="50" r="45" fill="none" stroke="{accent}" stroke-width="6"/>'
        f'<circle cx="50" cy="50" r="{39 - gap}" fill="none" stroke="{accent}" stroke-width="1.5"/>'
    ) + _monogram(monogram, accent, 36)


def _tile(draws: Draws, accent: str, monogram: str) -> str:
    corner = draws.choice("corner", (0, 10, 22))
    return f'<rect x="3" y="3" width="94" height="94" rx="{corner}" fill="{accent}"/>' + _monogram(monogram, "#fff", 46)


def _shield(draws: Draws, accent: str, monogram: str) -> str:
    sides = draws.choice("sides", (6, 8))
    return _polygon(sides, 48, -math.pi / 2, f'fill="{accent}"') + _monogram(monogram, "#fff", 38)


def _bars(draws: Draws, accent: str, monogram: str) -> str:
    count = draws.integer("bars", 3, 5)
    step = 92 / count
    heights = [draws.integer(f"height{i}", 25, 90) for i in range(count)]
    return "".join(
        f'<rect x="{4 + i * step:.2f}" y="{96 - height}" width="{step * 0.72:.2f}" height="{height}" '
        f'fill="{accent}" opacity="{0.45 + 0.55 * (i + 1) / count:.2f}"/>'
        for i, height in enumerate(heights)
    )


def _peaks(draws: Draws, accent: str, monogram: str) -> str:
    x, y = draws.integer("x", 32, 46), draws.integer("y", 12, 26)
    return (
        f'<polygon points="2,88 {x},{y} {x + 40},88" fill="{accent}"/>'
        f'<polygon points="{x + 4},88 {x + 30},{y + 28} 98,88" fill="{accent}" opacity="0.55"/>'
    )


def _links(draws: Draws, accent: str, monogram: str) -> str:
    spread = draws.integer("spread", 15, 21)
    return (
        f'<circle cx="{50 - spread}" cy="50" r="28" fill="{accent}"/>'
        f'<circle cx="{50 + spread}" cy="50" r="28" fill="{accent}" opacity="0.5"/>'
    )


def _waves(draws: Draws, accent: str, monogram: str) -> str:
    swing = draws.integer("swing", 10, 22)
    return "".join(
        f'<path d="M4 {y} q 23 -{swing} 46 0 t 46 0" fill="none" stroke="{accent}" stroke-width="9" '
        f'stroke-linecap="round" opacity="{opacity}"/>'
        for y, opacity in ((30, 1), (52, 0.75), (74, 0.5))
    )


def _dots(draws: Draws, accent: str, monogram: str) -> str:
    cells = [(x, y) for y in range(4) for x in range(4)]
    kept = draws.sample("dots", cells, draws.integer("count", 8, 12))
    return "".join(
        f'<circle cx="{14 + 24 * x}" cy="{14 + 24 * y}" r="9.5" fill="{accent}" opacity="{1 if (x + y) % 2 else 0.6}"/>'
        for x, y in sorted(kept)
    )


def _leaf(draws: Draws, accent: str, monogram: str) -> str:
    return (
        f'<path d="M12 88 C8 30 40 8 92 10 C94 62 70 94 12 88 Z" fill="{accent}"/>'
        '<path d="M18 84 C34 60 52 42 76 26" fill="none" stroke="#fff" stroke-width="4" stroke-linecap="round"/>'
    )


_MARKS: tuple[Callable[[Draws, str, str], str], ...] = (
    _disc,
    _ring,
    _tile,
    _shield,
    _bars,
    _peaks,
    _links,
    _waves,
    _dots,
    _leaf,
)


_WORDLESS = (_bars, _peaks, _links, _waves, _dots, _leaf)
"""Marks without letters, which may lie under text."""


@lru_cache(maxsize=256)
def watermark(seed: int, accent: str) -> Markup:
    """A large mark to lie under a page's text: an `svg.watermark`. It holds no letters, so it reads as no text."""
    draws = Draws("watermark", seed)
    return _svg("watermark", draws.choice("mark", _WORDLESS)(draws, str(escape(accent)), ""))


@lru_cache(maxsize=256)
def logo(seed: int, accent: str, monogram: str) -> Markup:
    """A company's logo: an `svg.logo` in the accent colour, the same for the same seed."""
    draws = Draws("logo", seed)
    return _svg("logo", draws.choice("mark", _MARKS)(draws, str(escape(accent)), monogram))


@lru_cache(maxsize=256)
def seal(name: str) -> Markup:
    """The square seal (角印) a Japanese company prints beside its name: an `svg.seal`.

    The name and 之印 run in columns from right to left, stretched to fill the square as such
    seals are cut. A name without Japanese characters gives none.
    """
    signs = [char for char in name if unicodedata.east_asian_width(char) == "W"]
    if not signs:
        return Markup("")
    signs = [*signs, *"之印"]
    columns = math.ceil(math.sqrt(len(signs) * 0.8))
    width = _SEAL_FACE / columns
    text = "".join(
        _column(
            signs[len(signs) * i // columns : len(signs) * (i + 1) // columns],
            SIZE - _SEAL_RIM - width * (i + 1),
            width,
        )
        for i in range(columns)
    )
    return _svg(
        "seal",
        f'<rect x="3" y="3" width="94" height="94" rx="5" fill="none" stroke="{_SEAL_INK}" stroke-width="4.5"/>'
        f'<g fill="{_SEAL_INK}" font-weight="700" font-size="10">{text}</g>',
    )


def _column(signs: list[str], left: float, width: float) -> str:
    height = _SEAL_FACE / len(signs)
    return "".join(
        f'<text transform="translate({left:.2f} {_SEAL_RIM + height * (i + 0.87):.2f}) '
        f'scale({width / 10:.3f} {height / 10:.3f})">{escape(sign)}</text>'
        for i, sign in enumerate(signs)
    )
