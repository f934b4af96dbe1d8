"""One browser for all rendering tests, pages to print, and two outside witnesses: poppler's text and raster."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from docgen_core.render.boxes import Box, Rendered
from docgen_core.render.capture import Captured, CapturedPage
from docgen_core.render.chromium import Renderer
from docgen_core.render.html import Page, PrintLog
from docgen_core.render.pictures import sheets

Draw = Callable[[Page], Rendered]
Grey = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Word:
    """A word as poppler sees it; points from the page's upper left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


class Paper:
    """Builds a page: `paper.show(column, text)` marks a value, `paper.page(body)` is what to print."""

    A4 = "@page{size:A4;margin:20mm}body{font:10pt/1.4 'Docgen Sans','Docgen JP'}"

    def __init__(self) -> None:
        self.log = PrintLog()

    def show(self, column: str, text: str, row: str = "1") -> str:
        return str(self.log.show("rows", row, column, text, text))

    def page(self, body: str, style: str = A4, lang: str = "en", running_text: str = "") -> Page:
        return Page(body, style, lang, "Title", "Sample Ltd", tuple(self.log.prints), running_text)


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    with Renderer() as shared:
        yield shared


@pytest.fixture
def draw(renderer: Renderer) -> Draw:
    return lambda page: renderer.render(page, document_id="doc-1", subject="Sample")


@pytest.fixture
def paper() -> Paper:
    return Paper()


@pytest.fixture(scope="session")
def new_paper() -> type[Paper]:
    return Paper


@pytest.fixture(scope="session")
def upright() -> Callable[..., Grey]:
    """`upright(box, page, pixels, margin)`: a box of a captured page, its text running to the right."""
    return _upright


def _upright(box: Box, page: CapturedPage, pixels: Grey, margin: float) -> Grey:
    """A box and so many points around it, its text running to the right, at six pixels a point."""
    corners = np.array(box.quad).reshape(4, 2)
    across, down = corners[1] - corners[0], corners[3] - corners[0]
    wide, high = float(np.linalg.norm(across)), float(np.linalg.norm(down))
    out_x, out_y = across / wide * margin, down / high * margin
    outer = corners + np.array([-out_x - out_y, out_x - out_y, out_x + out_y, -out_x + out_y])
    scale = np.array([pixels.shape[1] / page.points[0], pixels.shape[0] / page.points[1]])
    source = ((outer * [1, -1] + [0, page.points[1]]) * scale - 0.5).astype(np.float32)
    width, height = round((wide + 2 * margin) * 6), round((high + 2 * margin) * 6)
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32) - 0.5
    turn = cv2.getPerspectiveTransform(source, target)
    return np.asarray(cv2.warpPerspective(pixels, turn, (width, height), borderMode=cv2.BORDER_REPLICATE), np.uint8)


@pytest.fixture(scope="session")
def pictures() -> Callable[[Captured], Iterator[Grey]]:
    """`pictures(captured)`: each page of a document in grey."""
    return _pictures


def _pictures(captured: Captured) -> Iterator[Grey]:
    for file in captured.files:
        for sheet in sheets(file.data, dpi=150):
            yield np.asarray(cv2.cvtColor(sheet, cv2.COLOR_BGR2GRAY), np.uint8)


@pytest.fixture
def words(tmp_path: Path) -> Callable[[bytes], list[list[Word]]]:
    """The words of each page of a file, by `pdftotext -bbox`."""

    def read(pdf: bytes) -> list[list[Word]]:
        (tmp_path / "words.pdf").write_bytes(pdf)
        run = ["pdftotext", "-bbox", tmp_path / "words.pdf", "-"]
        marked = subprocess.run(run, capture_output=True, check=True).stdout.decode()
        line = re.compile(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">(.*?)</word>')
        return [
            [
                Word(unescape(text), *(float(side) for side in sides))
                for *sides, text in line.findall(page.split("</page>")[0])
            ]
            for page in marked.split("<page ")[1:]
        ]

    return read


@pytest.fixture
def witness(words: Callable[[bytes], list[list[Word]]]) -> Callable[[Rendered], None]:
    """Every box holds exactly its text, as poppler reads the file."""

    def look(rendered: Rendered) -> None:
        pages = words(rendered.pdf)
        for box in rendered.boxes:
            x0, y0, x1, _, _, y2, _, _ = box.quad
            height = rendered.page_sizes[box.page - 1][1]
            inside = [
                word.text
                for word in pages[box.page - 1]
                if x0 < (word.left + word.right) / 2 < x1 and y2 < height - (word.top + word.bottom) / 2 < y0
            ]
            assert "".join(inside) == "".join(box.text.split()), box

    return look


@pytest.fixture
def raster(tmp_path: Path) -> Callable[[bytes], list[npt.NDArray[np.uint8]]]:
    """Each page of a file as grey pixels, by `pdftoppm` at 100 dpi."""

    def read(pdf: bytes) -> list[npt.NDArray[np.uint8]]:
        (tmp_path / "raster.pdf").write_bytes(pdf)
        for old in tmp_path.glob("raster-*.pgm"):
            old.unlink()
        subprocess.run(["pdftoppm", "-r", "100", "-gray", tmp_path / "raster.pdf", tmp_path / "raster"], check=True)
        return [cv2.imread(str(page), cv2.IMREAD_GRAYSCALE) for page in sorted(tmp_path.glob("raster-*.pgm"))]

    return read


@pytest.fixture
def pdf_text() -> Callable[[bytes], str]:
    """Everything a file says outside its streams."""

    def read(pdf: bytes) -> str:
        outside = b"".join(part.split(b"endstream")[-1] for part in pdf.split(b"stream\n"))
        return outside.decode("latin-1")

    return read


@pytest.fixture
def darkest() -> Callable[[Box, npt.NDArray[np.uint8], tuple[float, float]], int]:
    """The darkest pixel inside a box's quadrilateral on its page."""

    def look(box: Box, pixels: npt.NDArray[np.uint8], size: tuple[float, float]) -> int:
        corners = np.array(box.quad).reshape(4, 2)
        scale = np.array([pixels.shape[1] / size[0], pixels.shape[0] / size[1]])
        points = np.array([0, size[1]]) + corners * np.array([1, -1])
        mask = np.zeros(pixels.shape, np.uint8)
        cv2.fillConvexPoly(mask, np.rint(points * scale).astype(np.int32), 1)
        return int(pixels[mask == 1].min())

    return look
