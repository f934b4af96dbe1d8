"""An outside witness reads what was captured: tesseract, on fixed pages, from clean to worn.

In `make test` a few small pages; with DOCGEN_PROVE=1 documents of the invoice pack, by the hundred.

An amount is a golden value that is money, and is read where the words that tesseract finds inside its box have its
digits. A whole page is read once, clean or damaged, for scattered words: what counts is what stands where, and not
the order in which a page is read. Taken for one block of text, neighbouring columns merge (96.1 % read of twelve
clean pages, scattered words 98.7 %); told to find the layout itself, tesseract reads clean pages as well (98.6 %), but
takes a photographed sheet on a table for a picture and reads nothing of it. What it misses of clean pages is mostly
white print on a dark bar, which its way for scattered words passes over, and ₹ or ₩ before an amount, which its
English reads as a digit. Handwriting is no print, and is not read.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from planned_invoices import planned_invoices

from docgen_core.draws import Draws
from docgen_core.packs.invoice.declared import Digits
from docgen_core.packs.invoice.tables import INSTALMENT_COLUMNS, INVOICE_COLUMNS, LINE_COLUMNS, TAX_COLUMNS
from docgen_core.render.boxes import Box, Rendered
from docgen_core.render.capture import CLEAN, CONDITIONS, Captured, capture

PRINT_DPI = 300
READ_CLEAN = 0.97
READ_CROPS = 0.95
ITS_OWN = 0.5
"""How like its clean print a crop is at least. On 256 amounts in each condition the least was 0.60; with boxes that
are out of place by 0.7 of their height, the most was 0.35."""
SOFT_PIXELS = 3
"""Half a point, by which both are softened before they are compared."""
GRADES = (0, 50, 100)
SMALL_GRADED = ("heavy_scan", "phone_photo")
SMALL_PAGES, SMALL_DAMAGED = 2, 4
CLEAN_PAGES, GRADED_PAGES, DAMAGED_PAGES = 100, 4, 200
MOST_PAGES = 2
"""Of a document, whose first page is read."""
MARGIN_POINTS = 1.2
GAP_PIXELS = 60
"""White between two crops that are read together."""
COMPANIES = 120
PATIENCE_SECONDS = 5_400
"""For a test at its full figures: tesseract takes seconds a page."""
pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)
SCATTERED, BLOCK = "11", "6"
"""How tesseract may take a picture: as words here and there, or as one block of text."""
MONEY = {
    (table, declared.field.name)
    for table, columns in (
        ("invoices", INVOICE_COLUMNS),
        ("line_items", LINE_COLUMNS),
        ("tax_lines", TAX_COLUMNS),
        ("instalments", INSTALMENT_COLUMNS),
    )
    for declared in columns
    if declared.digits in (Digits.AMOUNT, Digits.PRICE)
} | {("rows", "price"), ("rows", "amount")}
HAND = "pad"
"""The layout that is filled in by hand."""
_GREY = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Read:
    """A word that tesseract saw, in pixels."""

    text: str
    x: float
    y: float


def tesseract(picture: _GREY, dpi: int, layout: str) -> list[Read]:
    """The words of a picture, which is taken for such a layout."""
    _, png = cv2.imencode(".png", picture)
    command = ["tesseract", "stdin", "stdout", "-l", "eng", "--dpi", str(dpi), "--psm", layout, "tsv"]
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


def amounts(boxes: Sequence[Box]) -> list[Box]:
    """Those on a document's first page."""
    money = (box for box in boxes if box.page == 1 and (box.print.table, box.print.column) in MONEY)
    return [box for box in money if figures(box.text)]


def read_in_place(captured: Captured, pictures: Any) -> tuple[int, int]:
    """Of the amounts on a document's first page: how many are read inside their boxes, and how many there are."""
    picture, page = next(pictures(captured)), captured.pages[0]
    assert page.pixels and page.dpi
    across, down = page.dpi
    if across != down:  # tesseract knows one resolution
        picture = cv2.resize(picture, (picture.shape[1], round(picture.shape[0] * across / down)))
    words = tesseract(picture, across, SCATTERED)
    scale = picture.shape[1] / page.points[0], picture.shape[0] / page.points[1]
    found = amounts(captured.boxes)
    read = 0
    for box in found:
        columns = [x * scale[0] for x in box.quad[::2]]
        rows = [(page.points[1] - y) * scale[1] for y in box.quad[1::2]]
        inside = (w.text for w in words if min(columns) < w.x < max(columns) and min(rows) < w.y < max(rows))
        read += figures("".join(inside)) == figures(box.text)
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


@dataclass(frozen=True)
class Sheet:
    """A document that was printed, or filled in by hand."""

    rendered: Rendered
    printed: bool = True


@pytest.fixture(scope="module")
def documents(full_figures: bool, renderer: Any, small_pages: list[Rendered]) -> Callable[[int], Sequence[Sheet]]:
    """`documents(n)`: the small pages; for the full figures invoices of a run, the first with n printed ones."""
    if not full_figures:
        return lambda count: [Sheet(page) for page in small_pages]
    source = planned_invoices(10_000, companies=COMPANIES, seed=3)

    def first(count: int) -> Sequence[Sheet]:
        sheets: list[Sheet] = []
        index = 0
        while sum(sheet.printed for sheet in sheets) < count:
            document = source.generate(index)
            index += 1
            rendered = renderer.render(document.page, document_id=f"d-{index}", subject="s")
            if rendered.pages <= MOST_PAGES and amounts(rendered.boxes):
                sheets.append(Sheet(rendered, document.record.layout != HAND))
        return sheets

    return first


@pytest.fixture(scope="module")
def at_print_dpi(small_pages: list[Rendered]) -> Callable[[Rendered], Captured]:
    """A clean page at 300 dpi, which is what one draw of four gives, whatever the page."""

    def clean(rendered: Rendered, seed: int) -> Captured:
        return capture(rendered, CLEAN, Draws("clean", seed), document_id="d", output="png")

    seed = next(n for n in range(100) if clean(small_pages[0], n).pages[0].dpi == (PRINT_DPI, PRINT_DPI))
    return lambda rendered: clean(rendered, seed)


def test_amounts_of_clean_pages_are_read(
    documents: Any, at_print_dpi: Any, pictures: Any, say: Callable[[str], None]
) -> None:
    printed = [sheet.rendered for sheet in documents(CLEAN_PAGES) if sheet.printed]
    counts = [read_in_place(at_print_dpi(rendered), pictures) for rendered in printed]
    read, there = (sum(column) for column in zip(*counts, strict=True))
    say(f"clean, {PRINT_DPI} dpi, {len(counts)} pages: {read} of {there} amounts read")
    assert there >= 10 * len(counts)
    assert read >= READ_CLEAN * there


def test_each_grade_of_wear_is_read_worse(
    documents: Any, pictures: Any, full_figures: bool, say: Callable[[str], None]
) -> None:
    conditions = CONDITIONS[2:] if full_figures else SMALL_GRADED
    printed = [sheet.rendered for sheet in documents(GRADED_PAGES) if sheet.printed]
    whole = dict.fromkeys(GRADES, 0.0)
    for condition in conditions:
        shares = []
        for grade in GRADES:
            counts = [
                read_in_place(
                    capture(page, condition, Draws("grade", number), document_id="d", wear=grade, output="png"),
                    pictures,
                )
                for number, page in enumerate(printed)
            ]
            read, there = (sum(column) for column in zip(*counts, strict=True))
            shares.append(read / there)
            whole[grade] += read / there
        say(f"{condition}: " + ", ".join(f"wear {g}: {share:.3f}" for g, share in zip(GRADES, shares, strict=True)))
        assert shares[0] > shares[-1]
    assert whole[0] > whole[50] > whole[100]


def crops(captured: Captured, pictures: Any, upright: Any, margin: float) -> list[tuple[Box, _GREY]]:
    picture, page = next(pictures(captured)), captured.pages[0]
    return [(box, upright(box, page, picture, margin)) for box in amounts(captured.boxes)]


def likeness(crop: _GREY, clean: _GREY) -> float:
    """How like a crop is to a somewhat larger one of the clean page, from -1 to 1."""
    high, wide = (min(sides) for sides in zip(crop.shape, clean.shape, strict=True))
    soft, pattern = (cv2.GaussianBlur(each, (0, 0), SOFT_PIXELS) for each in (clean, crop[:high, :wide]))
    return float(cv2.matchTemplate(soft, pattern, cv2.TM_CCOEFF_NORMED).max())


def read_crops(found: Sequence[tuple[Box, _GREY]]) -> int:
    """How many crops are read, all laid under one another: tesseract is started once.

    Each is made dark on white first: crops of several shades side by side are a picture to tesseract, and no text.
    """
    gap, wide = GAP_PIXELS, max(crop.shape[1] for _, crop in found) + GAP_PIXELS
    rows, at = [], []
    for _, crop in found:
        level = (crop if np.median(crop) > 127 else 255 - crop).astype(int)
        row = np.full((crop.shape[0] + gap, wide), 255, dtype=np.uint8)
        row[gap // 2 : gap // 2 + crop.shape[0], gap // 2 : gap // 2 + crop.shape[1]] = np.clip(
            level + 255 - int(np.median(level)), 0, 255
        )
        at.append(sum(each.shape[0] for each in rows))
        rows.append(row)
    words = tesseract(np.vstack(rows), 432, BLOCK)
    read = 0
    for (box, _), top, row in zip(found, at, rows, strict=True):
        said = figures("".join(word.text for word in words if top < word.y < top + row.shape[0]))
        read += said == figures(box.text)
    return read


def test_amounts_of_damaged_pages_have_their_ink_and_those_of_light_scans_are_read(
    documents: Any, at_print_dpi: Any, pictures: Any, upright: Any, full_figures: bool, say: Callable[[str], None]
) -> None:
    """Every fourth page is a light scan; the others go through the other conditions in turn."""
    sheets = documents(DAMAGED_PAGES)[:DAMAGED_PAGES] if full_figures else documents(SMALL_PAGES) * SMALL_DAMAGED
    likest: list[tuple[float, str, str]] = []
    read = there = 0
    for number, sheet in enumerate(sheets):
        light = number % 4 == 0
        condition = "light_scan" if light else CONDITIONS[2:][(number - number // 4 - 1) % len(CONDITIONS[2:])]
        taken = capture(sheet.rendered, condition, Draws("damaged", number), document_id="d", output="png")
        found = crops(taken, pictures, upright, MARGIN_POINTS)
        clean = crops(at_print_dpi(sheet.rendered), pictures, upright, 2 * MARGIN_POINTS)
        likest += (
            (round(likeness(crop, whole), 3), condition, box.text)
            for (box, crop), (_, whole) in zip(found, clean, strict=True)
        )
        if light and sheet.printed:
            read, there = read + read_crops(found), there + len(found)
    least = sorted(likest)[:3]
    say(f"{len(sheets)} damaged pages: {len(likest)} amounts, the least like its clean print: {least[0]}")
    say(f"light scans among them: {read} of {there} crops read")
    assert least[0][0] > ITS_OWN
    assert there >= len(sheets) and read >= READ_CROPS * there
