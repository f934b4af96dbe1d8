"""An outside witness reads what was captured: tesseract, on fixed pages, from clean to worn.

In `make test` a few small pages; with DOCGEN_PROVE=1 documents of the invoice pack, by the hundred.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from docgen_core.blobs import open_blobs
from docgen_core.draws import Draws
from docgen_core.render.boxes import Box, Rendered
from docgen_core.render.capture import CONDITIONS, Captured, CapturedPage, capture
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.manifest import read_plan
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.source import DocumentSource
from docgen_core.state import open_state

PRINT_DPI = 300
READ_CLEAN = 0.97
READ_CROPS = 0.95
CONTRAST = 22
"""Of 255: what stands out that much from its ground is ink."""
GRADES = (0, 50, 100)
SMALL_GRADED = ("heavy_scan", "phone_photo")
SMALL_PAGES, SMALL_CROPS = 2, 24
CLEAN_PAGES, GRADED_PAGES, DAMAGED_PAGES = 100, 12, 200
CROPS_A_PAGE = 12
COMPANIES = 120
PATIENCE_SECONDS = 5_400
"""For a test at its full figures: tesseract takes seconds a page."""
pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)
BLOCK, SPARSE = "6", "11"
"""How tesseract may take a page: as one block of text, or as words here and there."""
_AMOUNT = re.compile(r"\d[.,]\d{2}\b")
_GREY = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Read:
    """A word that tesseract saw, in pixels."""

    text: str
    x: float
    y: float


def tesseract(picture: _GREY, dpi: int, *more: str, layout: str = BLOCK) -> list[Read]:
    """The words of a picture, which is taken for such a layout."""
    _, png = cv2.imencode(".png", picture)
    command = ["tesseract", "stdin", "stdout", "-l", "eng", "--dpi", str(dpi), "--psm", layout, *more, "tsv"]
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = subprocess.run(command, input=png.tobytes(), capture_output=True, check=True, env=environment)
    words = []
    for line in done.stdout.decode().splitlines()[1:]:
        level, *_, left, top, width, height, _, text = line.split("\t")
        if level == "5" and text.strip():
            words.append(Read(text, int(left) + int(width) / 2, int(top) + int(height) / 2))
    return words


def figures(text: str) -> str:
    return re.sub(r"\D", "", text)


def amounts(captured: Captured, page: int) -> list[Box]:
    return [box for box in captured.boxes if box.page == page and _AMOUNT.search(box.text)]


def read_in_place(captured: Captured, pictures: Any, *layouts: str) -> tuple[int, int]:
    """Of the amounts on a document's first page: how many are read inside their boxes, and how many there are.

    One is read where tesseract reads it in one of the ways it may take a page's layout.
    """
    picture, page = next(pictures(captured)), captured.pages[0]
    assert page.pixels and page.dpi
    across, down = page.dpi
    if across != down:  # tesseract knows one resolution
        picture = cv2.resize(picture, (picture.shape[1], round(picture.shape[0] * across / down)))
    seen = [tesseract(picture, across, layout=layout) for layout in layouts or (BLOCK,)]
    scale = picture.shape[1] / page.points[0], picture.shape[0] / page.points[1]
    found = amounts(captured, 1)
    read = 0
    for box in found:
        columns = [x * scale[0] for x in box.quad[::2]]
        rows = [(page.points[1] - y) * scale[1] for y in box.quad[1::2]]
        said = {
            figures("".join(w.text for w in words if min(columns) < w.x < max(columns) and min(rows) < w.y < max(rows)))
            for words in seen
        }
        read += figures(box.text) in said
    return read, len(found)


@pytest.fixture(scope="module")
def small_pages(renderer: Any, new_paper: Any) -> list[Rendered]:
    """Fixed pages of amounts, quick to read."""
    printed = []
    for number, face in enumerate(("Docgen Sans", "Docgen Serif")[:SMALL_PAGES]):
        paper, draws = new_paper(), Draws("ocr", number)

        def cell(column: str, row: int, most: int, paper: Any = paper, draws: Draws = draws) -> str:
            cents = draws.integer(f"{column} {row}", 110, most)
            return f"<td>{paper.show(column, f'{cents // 100}.{cents % 100:02d}', str(row))}"

        cells = (f"{cell('price', row, 9_999)}{cell('amount', row, 99_999)}" for row in range(1, 11))
        rows = "".join(f"<tr><td>Item{both}" for both in cells)
        style = f"@page{{size:100mm 90mm;margin:6mm}}body{{font:10pt/1.5 '{face}','Docgen JP'}}table{{width:100%}}"
        page = paper.page(f"<table>{rows}</table>", style)
        printed.append(renderer.render(page, document_id=f"d-{number}", subject="s"))
    return printed


@pytest.fixture(scope="module")
def documents(full_figures: bool, renderer: Any, small_pages: list[Rendered]) -> Callable[[int], Sequence[Rendered]]:
    """`documents(n)`: the small pages; for the full figures the first n documents of a run of the invoice pack."""
    if not full_figures:
        return lambda count: small_pages
    store = "memory://ocr-witness"
    blobs = open_blobs(store)
    with open_state(store) as state:
        spec = CatalogueSpec(companies=COMPANIES, products=24, range_width=COMPANIES, seed=3)
        catalogue = build_catalogue_run(state, blobs, "ocr", spec)
        work_run(catalogue.run.run_id, state=state, blobs=blobs, worker="ocr")
        planned = create_run(state, blobs, RunRequest("ocr", 10_000, seed=3, selection=Selection(), catalogue="ocr"))
    source = DocumentSource.open(read_plan(blobs, planned.run.marker.prefix), blobs)
    printed: list[Rendered] = []

    def first(count: int) -> Sequence[Rendered]:
        index = len(printed)
        while len(printed) < count:
            page = source.generate(index).page
            index += 1
            drawn = renderer.render(page, document_id=f"d-{index}", subject="s")
            if drawn.pages <= 2 and any(_AMOUNT.search(box.text) for box in drawn.boxes if box.page == 1):
                printed.append(drawn)
        return printed[:count]

    return first


def at_print_dpi(rendered: Rendered) -> Captured:
    """The clean page at 300 dpi, which is one of those that are drawn."""
    for seed in range(100):
        captured = capture(rendered, "clean", Draws("clean", seed), document_id="d", output="png")
        if captured.pages[0].dpi == (PRINT_DPI, PRINT_DPI):
            return captured
    raise AssertionError("no draw of 300 dpi")


def test_amounts_of_clean_pages_are_read(documents: Any, pictures: Any, say: Callable[[str], None]) -> None:
    counts = [read_in_place(at_print_dpi(page), pictures, BLOCK, SPARSE) for page in documents(CLEAN_PAGES)]
    read, there = (sum(column) for column in zip(*counts, strict=True))
    say(f"clean, {PRINT_DPI} dpi, {len(counts)} pages: {read} of {there} amounts read")
    assert there >= 10 * len(counts) / 2
    assert read >= READ_CLEAN * there


def test_each_grade_of_wear_is_read_worse(
    documents: Any, pictures: Any, full_figures: bool, say: Callable[[str], None]
) -> None:
    conditions = CONDITIONS[2:] if full_figures else SMALL_GRADED
    whole = dict.fromkeys(GRADES, 0.0)
    for condition in conditions:
        shares = []
        for grade in GRADES:
            counts = [
                read_in_place(
                    capture(page, condition, Draws("grade", number), document_id="d", wear=grade, output="png"),
                    pictures,
                )
                for number, page in enumerate(documents(GRADED_PAGES))
            ]
            read, there = (sum(column) for column in zip(*counts, strict=True))
            shares.append(read / there)
            whole[grade] += read / there
        say(f"{condition}: " + ", ".join(f"wear {g}: {share:.3f}" for g, share in zip(GRADES, shares, strict=True)))
        assert shares[0] > shares[-1]
    assert whole[0] > whole[50] > whole[100]


def crops(captured: Captured, pictures: Any, upright: Any, most: int) -> Iterator[tuple[Box, CapturedPage, _GREY]]:
    picture, page = next(pictures(captured)), captured.pages[0]
    for box in amounts(captured, 1)[:most]:
        yield box, page, upright(box, page, picture, 1.2)


def read_crops(found: Sequence[tuple[Box, CapturedPage, _GREY]]) -> int:
    """How many crops are read, all laid under one another: tesseract is started once."""
    gap, wide = 24, max(crop.shape[1] for _, _, crop in found) + 48
    rows, at = [], []
    for _, _, crop in found:
        ground = int(np.median(crop))
        level = crop if ground > 127 else 255 - crop
        row = np.full((crop.shape[0] + gap, wide), int(np.median(level)), dtype=np.uint8)
        row[gap // 2 : gap // 2 + crop.shape[0], 24 : 24 + crop.shape[1]] = level
        at.append(sum(each.shape[0] for each in rows))
        rows.append(row)
    words = tesseract(np.vstack(rows), 432, "-c", "tessedit_char_whitelist=0123456789.,-")
    read = 0
    for (box, _, _), top, row in zip(found, at, rows, strict=True):
        said = figures("".join(word.text for word in words if top < word.y < top + row.shape[0]))
        read += said == figures(box.text)
    return read


def test_crops_of_light_scans_are_read(documents: Any, pictures: Any, upright: Any, say: Callable[[str], None]) -> None:
    read = there = 0
    for number, page in enumerate(documents(DAMAGED_PAGES // 4)):
        scan = capture(page, "light_scan", Draws("crops", number), document_id="d", output="png")
        found = list(crops(scan, pictures, upright, CROPS_A_PAGE))
        read, there = read + read_crops(found), there + len(found)
    say(f"light scans: {read} of {there} crops read")
    assert there >= SMALL_CROPS and read >= READ_CROPS * there


def test_amounts_of_damaged_pages_have_ink(documents: Any, pictures: Any, upright: Any) -> None:
    damaged = [name for name in CONDITIONS if name != "clean"]
    blank = []
    for number, page in enumerate(documents(DAMAGED_PAGES)):
        condition = damaged[number % len(damaged)]
        taken = capture(page, condition, Draws("damaged", number), document_id="d", output="png")
        for box, _, crop in crops(taken, pictures, upright, 1000):
            soft = cv2.GaussianBlur(crop, (5, 5), 2).astype(int)
            if np.abs(soft - np.median(soft)).max() < CONTRAST:
                blank.append((number, condition, box.text))
    assert not blank
