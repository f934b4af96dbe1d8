"""Outside witnesses of the boxes: poppler's text and poppler's raster of the published files, and nothing of ours.

A printed golden value stands in the file's text inside its box, and its ink does, too. Of a scan there is no
text: there the ink that is inside the boxes is compared with the ink just outside.
"""

from __future__ import annotations

import io
import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import cv2
import duckdb
import numpy as np
import numpy.typing as npt
import pytest

DPI = 150
POINT = DPI / 72
"""Pixels."""
CONTRAST = 40
"""Of 255: print that an eye sees."""
FAINTEST = {
    "clean": 50, "light_scan": 50, "fax": 128, "photocopy": 80,
    "highlighter_notes": 32, "folded_stained": 32, "heavy_scan": 22, "phone_photo": 22,
}  # fmt: skip
"""Of 255, by condition: what is left of the palest value's ink. The least seen among 40 documents of each was 63 of a
light scan, then 161, 102, 38, 38, 24 and 26 (docs/proof.md): a number in small grey print, blurred, in a shadow."""
INK_PIXELS = 4
"""The least that a printed value leaves in a raster; a full stop leaves as many."""
NEAR_POINTS, FAR_POINTS = 2.5, 6.0
"""A box is isolated when nothing is printed between so far and so far outside of it: what is nearer is its own ink."""
SLACK_POINTS = 0.5
"""So far a smoothed or slanted edge may reach over its box."""
INSIDE, STRAY_PIXELS = 0.98, 2
"""Part of an isolated box's ink that is inside, but for a grain of dust."""
ACROSS_POINTS, DOWN_POINTS = 1.0, 1.5
"""So far the middle of the ink is from the middle of the box, as the median of a document's texts."""
FEW = 5
"""A median of fewer says nothing."""
INSET_POINTS = 0.5
"""A cut of the text is taken so far inside the box: it keeps every character that it touches."""
CUT_DPI = 720

LOOKED_AT, FULL_LOOKED_AT = {"clean": 48, "light_scan": 24}, {"clean": 200, "light_scan": 100}
OTHERS_LOOKED_AT = 10
"""Documents of a condition that are drawn for the witness, first come; so many of each other one."""

Grey = npt.NDArray[np.uint8]
Points = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Box:
    """One row of field_boxes. The quadrilateral is in points from the page's lower left."""

    name: str
    page: int
    text: str
    quad: tuple[float, ...]

    @property
    def corners(self) -> Points:
        return np.array(self.quad).reshape(4, 2)

    def moved(self, across: float, up: float) -> Box:
        return replace(self, quad=tuple((self.corners + np.array([across, up])).ravel().tolist()))


@dataclass(frozen=True)
class Document:
    """A published file and its boxes."""

    id: str
    file: Path
    layout: str
    locale: str
    condition: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Sheet:
    """A page as poppler sees it: its size in points, its words with their middles from the lower left, its pixels."""

    width: float
    height: float
    words: tuple[tuple[str, float, float], ...]
    pixels: Grey

    def upright(self, box: Box, margin: float) -> npt.NDArray[np.int16]:
        """The pixels of a box and so many points around it, its text running to the right."""
        corners = box.corners
        across, down = corners[1] - corners[0], corners[3] - corners[0]
        wide, high = np.linalg.norm(across), np.linalg.norm(down)
        across, down = across / wide * margin, down / high * margin
        outer = corners + np.array([-across - down, across - down, across + down, -across + down])
        scale = [self.pixels.shape[1] / self.width, self.pixels.shape[0] / self.height]
        source = ((outer * [1, -1] + [0, self.height]) * scale).astype(np.float32)
        size = round((wide + 2 * margin) * POINT), round((high + 2 * margin) * POINT)
        target = np.array([[0, 0], [size[0], 0], size, [0, size[1]]], np.float32)
        turn = cv2.getPerspectiveTransform(source, target)
        return cv2.warpPerspective(self.pixels, turn, size, borderMode=cv2.BORDER_REPLICATE).astype(np.int16)


@pytest.fixture(scope="session")
def published(corpus: Any, exported: Path) -> list[Document]:
    """Every document of the corpus, as the exported golden set describes it."""
    quad = ", ".join(f"{axis}{corner}" for corner in range(4) for axis in "xy")
    with duckdb.connect(str(exported), read_only=True) as golden:
        boxes: dict[str, list[Box]] = {}
        for document, name, page, text, *corners in golden.execute(
            f"""select document_id, table_name || '/' || row_key || '/' || column_name, page, text, {quad}
                from field_boxes"""
        ).fetchall():
            boxes.setdefault(document, []).append(Box(name, page, text, tuple(corners)))
        found = golden.execute("select document_id, key, layout, locale, condition from documents").fetchall()
    folder = corpus.folder / ".docgen/blobs"
    return [Document(row[0], folder / row[1], *row[2:], tuple(boxes[row[0]])) for row in sorted(found)]


def sheets(file: Path) -> list[Sheet]:
    """The pages of a file, by pdftotext and pdftoppm."""
    marked = subprocess.run(["pdftotext", "-bbox", file, "-"], capture_output=True, check=True).stdout.decode()
    drawn = subprocess.run(["pdftoppm", "-r", str(DPI), "-gray", file], capture_output=True, check=True).stdout
    return [
        Sheet(width, height, tuple(words_of(page, height)), pixels)
        for (width, height, page), pixels in zip(pages_of(marked), pictures_of(drawn), strict=True)
    ]


def pages_of(marked: str) -> Iterator[tuple[float, float, str]]:
    for width, height, page in re.findall(r'<page width="(.*?)" height="(.*?)">(.*?)</page>', marked, re.DOTALL):
        yield float(width), float(height), page


def words_of(page: str, height: float) -> Iterator[tuple[str, float, float]]:
    word = r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>'
    for *sides, text in re.findall(word, page, re.DOTALL):
        left, top, right, bottom = map(float, sides)
        yield unescape(text), (left + right) / 2, height - (top + bottom) / 2


def pictures_of(drawn: bytes) -> Iterator[Grey]:
    """Portable graymaps, one after the other."""
    stream = io.BytesIO(drawn)
    while stream.readline() == b"P5\n":
        width, height = map(int, stream.readline().split())
        stream.readline()
        yield np.frombuffer(stream.read(width * height), np.uint8).reshape(height, width)


def plain(text: str) -> str:
    """Compatibility forms folded, white space aside."""
    return "".join(unicodedata.normalize("NFKC", text).split())


def text_inside(document: Document, sheet: Sheet, box: Box) -> str:
    """The words whose middle is inside the box; where those say something else, a cut that parts words."""
    (left, top), _, (right, bottom), _ = box.corners
    inside = [text for text, x, y in sheet.words if left < x < right and bottom < y < top]
    if plain("".join(inside)) == plain(box.text):
        return box.text
    left, right = left + INSET_POINTS, right - INSET_POINTS
    upper, lower = sheet.height - top + INSET_POINTS, sheet.height - bottom - INSET_POINTS
    x, y, width, height = (str(round(side * CUT_DPI / 72)) for side in (left, upper, right - left, lower - upper))
    page = ["-f", str(box.page), "-l", str(box.page)]
    cut = ["pdftotext", "-r", str(CUT_DPI), *page, "-x", x, "-y", y, "-W", width, "-H", height, document.file, "-"]
    return subprocess.run(cut, capture_output=True, check=True).stdout.decode()


def has_ink(sheet: Sheet, box: Box, contrast: int) -> bool:
    inside = sheet.upright(box, 0.0)
    return bool((np.abs(inside - ground_of(sheet.upright(box, NEAR_POINTS))) >= contrast).sum() >= INK_PIXELS)


def ground_of(pixels: npt.NDArray[np.int16]) -> int:
    """What is printed on: paper, or the dark of a panel with light print."""
    return int(np.median(pixels))


@dataclass(frozen=True)
class Ink:
    """The ink of an isolated box."""

    inside: float
    """Part of it that is inside the box."""
    outside: int
    """Pixels of it that are not."""
    across: float
    down: float
    """From the middle of the box to the middle of the ink, in points."""


def isolated_ink(sheet: Sheet, box: Box) -> Ink | None:
    """None where other print is too near to tell whose ink is whose."""
    around = sheet.upright(box, FAR_POINTS)
    contrast = np.abs(around - ground_of(around))
    near = inner(contrast, FAR_POINTS - NEAR_POINTS)
    own = np.zeros(contrast.shape, bool)
    own[near] = contrast[near] > max(contrast[inner(contrast, FAR_POINTS)].max(initial=0), CONTRAST) / 2
    contrast[near] = 0
    if contrast.max() >= CONTRAST or not own.any():
        return None
    rows, columns = np.nonzero(own)
    across, down = (
        (found.min() + found.max() + 1 - side) / 2 / POINT
        for found, side in ((columns, own.shape[1]), (rows, own.shape[0]))
    )
    inside = int(own[inner(own, FAR_POINTS - SLACK_POINTS)].sum())
    return Ink(inside / int(own.sum()), int(own.sum()) - inside, across, down)


def inner(pixels: npt.NDArray[Any], margin: float) -> tuple[slice, slice]:
    """Without a margin of so many points."""
    edge = round(margin * POINT)
    return slice(edge, pixels.shape[0] - edge), slice(edge, pixels.shape[1] - edge)


@pytest.fixture(scope="session")
def seen(published: list[Document], full_figures: bool) -> list[tuple[Document, list[Sheet]]]:
    """Documents of each condition with their pages as poppler sees them."""
    taken: Counter[str] = Counter()
    found = []
    for document in published:
        taken[document.condition] += 1
        most = (FULL_LOOKED_AT if full_figures else LOOKED_AT).get(document.condition, OTHERS_LOOKED_AT)
        if taken[document.condition] <= most:
            found.append((document, sheets(document.file)))
    return found


@pytest.fixture(scope="session")
def clean(seen: list[Any]) -> list[tuple[Document, list[Sheet]]]:
    return [(document, pages) for document, pages in seen if document.condition == "clean"]


@pytest.fixture(scope="session")
def scans(seen: list[Any]) -> list[tuple[Document, list[Sheet]]]:
    return [(document, pages) for document, pages in seen if document.condition == "light_scan"]


def test_there_is_enough_to_look_at(clean: list[Any], scans: list[Any], full_figures: bool) -> None:
    assert len(clean) >= (200 if full_figures else 24)
    assert len(scans) >= (50 if full_figures else 5)
    for looked_at in (clean, scans):
        assert sum(len(document.boxes) for document, _ in looked_at) > 30 * len(looked_at)


def test_every_value_of_a_clean_document_stands_in_its_text_inside_its_box(clean: list[Any]) -> None:
    wrong = [
        (document.id, document.layout, box.name, box.text, said)
        for document, pages in clean
        for box in document.boxes
        if plain(said := text_inside(document, pages[box.page - 1], box)) != plain(box.text)
    ]
    assert not wrong, f"{len(wrong)}: {wrong[:10]}"


def test_a_scan_has_no_text(scans: list[Any]) -> None:
    assert not [document.id for document, pages in scans if any(page.words for page in pages)]


def test_every_value_has_visible_ink_inside_its_box(seen: list[Any]) -> None:
    blank = [
        (document.id, document.condition, document.layout, box.name, box.text)
        for document, pages in seen
        for box in document.boxes
        if not has_ink(pages[box.page - 1], box, FAINTEST[document.condition])
    ]
    assert not blank, f"{len(blank)}: {blank[:10]}"


def complaints(document: Document, pages: list[Sheet], across: float = 0.0, up: float = 0.0) -> list[str] | None:
    """What is wrong with the places of a document's isolated boxes, were all moved so far; None for too few."""
    alone = [box for box in document.boxes if isolated_ink(pages[box.page - 1], box)]
    found = [(box, isolated_ink(pages[box.page - 1], box.moved(across, up))) for box in alone]
    # A word's middle is where its letters have it, so a word said in each line counts once.
    inks = list({box.text: ink for box, ink in found if ink is not None}.values())
    if len(inks) < FEW:
        return None
    wrong = [
        f"{document.id} {box}: {ink}"
        for box, ink in found
        if ink is not None and ink.inside < INSIDE and ink.outside > STRAY_PIXELS
    ]
    beside = float(np.median([ink.across for ink in inks])), float(np.median([ink.down for ink in inks]))
    if abs(beside[0]) > ACROSS_POINTS or abs(beside[1]) > DOWN_POINTS:
        wrong.append(f"{document.id}: the ink is {beside} points from the middles of its boxes")
    return wrong


@pytest.mark.parametrize("condition", ["clean", "scans"])
def test_ink_that_can_be_no_others_is_inside_its_box_and_in_its_middle(
    request: pytest.FixtureRequest, condition: str
) -> None:
    found = [complaints(document, pages) for document, pages in request.getfixturevalue(condition)]
    judged = [wrong for wrong in found if wrong is not None]
    assert len(judged) >= len(found) / 4, "a dense form has few that stand alone"
    assert not [complaint for wrong in judged for complaint in wrong]


@pytest.mark.parametrize(("across", "up"), [(2.0, 0.0), (-2.0, 0.0), (0.0, 3.0), (0.0, -3.0)])
def test_the_witness_sees_boxes_that_do_not_lie_on_their_ink(scans: list[Any], across: float, up: float) -> None:
    judged = [wrong for document, pages in scans if (wrong := complaints(document, pages, across, up)) is not None]
    assert judged and all(judged)
