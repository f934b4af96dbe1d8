"""The bundled faces: which characters they draw, and how a page gets them.

A document is drawn with these faces only, on any machine; a text that they cannot draw is
refused before drawing, with the code points by name. `data/fonts/README.md` says what the faces
are made from. What does not belong here: which face a layout takes (its pack).
"""

from __future__ import annotations

import base64
import csv
import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from docgen_core.errors import GlyphMissing, UsageError

FONTS_DIRECTORY = Path(__file__).parent / "data" / "fonts"
FACE_TABLE = "faces.tsv"

DEFAULT_STACK = ("Docgen Sans", "Docgen JP")
"""What a page is set in where its style names no family. Every stack ends with a Japanese face."""

LINE_METRICS = "ascent-override:95%;descent-override:25%;line-gap-override:0%"
"""One ascent and descent for every face (of the em): a line does not grow where faces mix, and a
value's box has the same height in any of them."""

WHITE_SPACE = frozenset(map(ord, "\t\n\r"))
"""Code points that collapse to a space in print; no face needs to draw them."""


@dataclass(frozen=True, slots=True)
class Face:
    """One file: one weight of one family."""

    family: str
    weight: int
    path: Path
    package: str
    version: str
    licence: str
    sha256: str

    def css(self) -> str:
        """The `@font-face` rule with the file inside it. Raises `UsageError` for another file than the table's."""
        data = self.path.read_bytes()
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise UsageError(f"font file {self.path} is not the one {FACE_TABLE} lists: install docgen again")
        kind = self.path.suffix.removeprefix(".")
        source = f"data:font/{kind};base64,{base64.b64encode(data).decode()}"
        return (
            f"@font-face{{font-family:'{self.family}';font-weight:{self.weight};"
            f"src:url({source}) format('{'truetype' if kind == 'ttf' else kind}');{LINE_METRICS}}}"
        )


@cache
def _code_points(path: Path) -> frozenset[int]:
    from fontTools.ttLib import TTFont  # not at the top: `docgen --help` reads no font

    with TTFont(path, lazy=True) as font:
        return frozenset(font.getBestCmap())


@dataclass(frozen=True)
class FaceSet:
    """Faces that stand together; the bundled ones are `FACES`."""

    faces: tuple[Face, ...]
    _coverage: dict[str, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    @staticmethod
    def load(directory: Path) -> FaceSet:
        """The faces that a folder's table lists."""
        with (directory / FACE_TABLE).open(encoding="utf-8", newline="") as table:
            return FaceSet(
                tuple(
                    Face(
                        row["family"],
                        int(row["weight"]),
                        directory / row["file"],
                        row["package"],
                        row["version"],
                        row["licence"],
                        row["sha256"],
                    )
                    for row in csv.DictReader(table, delimiter="\t")
                )
            )

    @property
    def families(self) -> tuple[str, ...]:
        """Family names in the table's order."""
        return tuple(dict.fromkeys(face.family for face in self.faces))

    def of(self, family: str) -> tuple[Face, ...]:
        """The faces of a family. Raises `UsageError` naming the families there are."""
        found = tuple(face for face in self.faces if face.family == family)
        if not found:
            raise UsageError(f"no bundled family {family!r}; there are {', '.join(self.families)}")
        return found

    def coverage(self, family: str) -> frozenset[int]:
        """Code points that every weight of the family draws."""
        known = self._coverage.get(family)
        if known is None:
            known = frozenset.intersection(*(_code_points(face.path) for face in self.of(family)))
            self._coverage[family] = known
        return known

    def check(self, text: str, stack: Sequence[str] = DEFAULT_STACK) -> None:
        """Refuse a text that the stack's faces cannot draw.

        The text is taken in NFC, as it is printed.

        Raises:
            GlyphMissing: naming each code point that no face of the stack covers.
        """
        normal = unicodedata.normalize("NFC", text)
        missing = {char for char in normal if ord(char) not in WHITE_SPACE}
        for family in stack:
            if not missing:
                return
            covered = self.coverage(family)
            missing = {char for char in missing if ord(char) not in covered}
        if missing:
            raise GlyphMissing(normal, missing)

    def css(self, families: Iterable[str]) -> str:
        """The `@font-face` rules of these families."""
        return "".join(face.css() for family in families for face in self.of(family))

    def fingerprint(self) -> str:
        """SHA-256 over families, weights, files' digests and line metrics: whatever decides drawn bytes."""
        lines = [f"{face.family}\t{face.weight}\t{face.sha256}" for face in self.faces]
        return hashlib.sha256("\n".join([*sorted(lines), LINE_METRICS]).encode()).hexdigest()


FACES = FaceSet.load(FONTS_DIRECTORY)
"""The bundled faces. Families: Docgen Sans, Serif, Mono, Condensed, JP, JP Serif, KR; weights 400 and 700."""


def fingerprint() -> str:
    """SHA-256 naming the bundled faces; it stands in a run's plan."""
    return FACES.fingerprint()


def coverage(family: str) -> frozenset[int]:
    """Code points that a bundled family draws."""
    return FACES.coverage(family)


def check(text: str, stack: Sequence[str] = DEFAULT_STACK) -> None:
    """Refuse a text that the bundled faces of a stack cannot draw; see `FaceSet.check`."""
    FACES.check(text, stack)
