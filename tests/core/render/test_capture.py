"""A scan is a picture without text, its boxes move with the pixels, and it follows from its draws."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pikepdf
import pypdfium2
import pytest
from PIL import Image

from docgen_core.draws import Draws
from docgen_core.errors import UsageError
from docgen_core.render.boxes import Rendered
from docgen_core.render.capture import Captured, CapturedFile, CapturedPage, capture
from docgen_core.render.capture.encode import Shot, Tiff

SCANS = 6
RECEIPT = "@page receipt{size:80mm 180mm;margin:4mm}body{page:receipt;font:9pt/1.4 'Docgen Mono','Docgen JP'}"


@pytest.fixture(scope="module")
def invoice(renderer: Any, new_paper: Any) -> Rendered:
    paper = new_paper()
    rows = "".join(
        f"<tr><td>{paper.show('item', f'Item {n} 軸受', row=n)}<td>{paper.show('amount', f'{n}.50', row=n)}"
        for n in map(str, range(1, 61))
    )
    return renderer.render(paper.page(f"<table style='width:100%'>{rows}</table>"), document_id="d-1", subject="s")


@pytest.fixture(scope="module")
def receipt(renderer: Any, new_paper: Any) -> Rendered:
    paper = new_paper()
    body = "".join(f"<div>{paper.show('item', f'ARTICLE {n}   {n}.49', row=str(n))}</div>" for n in range(1, 20))
    return renderer.render(paper.page(body, RECEIPT), document_id="d-2", subject="s")


def _scan(rendered: Rendered, seed: int) -> Captured:
    return capture(rendered, "light_scan", Draws("scan", seed), document_id="d-1")


def _pdf(captured: Captured) -> bytes:
    (file,) = captured.files
    return file.data


def _images(data: bytes) -> list[tuple[str, int, int, bytes]]:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        found = []
        for page in pdf.pages:
            assert set(page.Resources.keys()) == {"/XObject"}
            (image,) = page.Resources.XObject.values()
            assert image.Filter == "/DCTDecode"
            found.append((str(image.ColorSpace), int(image.Width), int(image.Height), image.read_raw_bytes()))
        return found


def test_clean_is_the_file_as_printed(invoice: Rendered) -> None:
    captured = capture(invoice, "clean", Draws(1), document_id="d-1")
    assert captured.files == (CapturedFile(".pdf", invoice.pdf),) and captured.boxes == invoice.boxes
    assert captured.pages == tuple(CapturedPage(0, size) for size in invoice.page_sizes)


def test_an_unknown_condition_names_those_there_are(invoice: Rendered) -> None:
    with pytest.raises(UsageError, match="no capture condition 'soup'; there are clean, light_scan, heavy_scan, "):
        capture(invoice, "soup", Draws(1), document_id="d-1")
    with pytest.raises(UsageError, match="no picture format 'gif'; there are pdf, png, jpeg, tiff"):
        capture(invoice, "clean", Draws(1), document_id="d-1", output="gif")


def test_a_scan_is_one_picture_a_page_without_text(invoice: Rendered, words: Callable) -> None:
    scanned = _scan(invoice, 1)
    assert len(scanned.pages) == invoice.pages > 1
    assert words(_pdf(scanned)) == [[]] * invoice.pages
    for (_, width, height, _), page in zip(_images(_pdf(scanned)), scanned.pages, strict=True):
        assert page.dpi and (width, height) == page.pixels
        assert abs(width / page.points[0] * 72 - page.dpi[0]) < 1
        assert abs(height / page.points[1] * 72 - page.dpi[1]) < 1
    sizes = [page.get_size() for page in pypdfium2.PdfDocument(_pdf(scanned))]
    assert np.allclose(sizes, invoice.page_sizes, atol=0.01)


@pytest.mark.parametrize("seed", range(SCANS))
@pytest.mark.parametrize("document", ["invoice", "receipt"])
def test_boxes_move_with_the_pixels(
    request: pytest.FixtureRequest, document: str, seed: int, raster: Callable, darkest: Callable
) -> None:
    rendered: Rendered = request.getfixturevalue(document)
    scanned = _scan(rendered, seed)
    pages = raster(_pdf(scanned))
    assert [box.print for box in scanned.boxes] == [box.print for box in rendered.boxes]
    assert [box.quad for box in scanned.boxes] != [box.quad for box in rendered.boxes]
    for box in scanned.boxes:
        width, height = rendered.page_sizes[box.page - 1]
        assert all(0 <= x <= width for x in box.quad[::2]) and all(0 <= y <= height for y in box.quad[1::2])
        assert darkest(box, pages[box.page - 1], (width, height)) < 140, box
        assert all(side == round(side, 3) for side in box.quad)


def test_a_moved_box_is_right_to_half_a_pixel(renderer: Any, new_paper: Any) -> None:
    """Where one letter stands alone, the middle of its ink lies in its moved box as it lay in the printed one."""
    paper = new_paper()
    body = f"<p style='margin:150mm 0 0 120mm;font:30pt \"Docgen Sans\"'>{paper.show('letter', 'H')}</p>"
    rendered = renderer.render(paper.page(body), document_id="d", subject="s")
    (sheet,) = pypdfium2.PdfDocument(rendered.pdf)
    printed = sheet.render(scale=600 / 72, grayscale=True).to_numpy()
    offset = _ink_middle(printed, rendered) - _middle(rendered)
    for seed in range(SCANS):
        scanned = _scan(rendered, seed)
        ((_, _, _, jpeg),) = _images(_pdf(scanned))
        pixels = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
        assert np.abs(_middle(scanned) - _middle(rendered)).max() > 0.24
        assert np.abs(_ink_middle(pixels, rendered) - _middle(scanned) - offset).max() < 0.24


def _middle(document: Rendered | Captured) -> Any:
    return np.array(document.boxes[0].quad).reshape(4, 2).mean(axis=0)


def _ink_middle(pixels: Any, rendered: Rendered) -> Any:
    """Middle of the ink around the first box, weighted by darkness, in points from the lower left."""
    width, height = rendered.page_sizes[0]
    quad = rendered.boxes[0].quad
    scale = pixels.shape[1] / width
    left, right = int((min(quad[::2]) - 12) * scale), int((max(quad[::2]) + 12) * scale)
    top, bottom = int((height - max(quad[1::2]) - 12) * scale), int((height - min(quad[1::2]) + 12) * scale)
    ink = np.clip(150.0 - pixels[top:bottom, left:right], 0, None)
    rows, columns = np.indices(ink.shape)
    across = (columns * ink).sum() / ink.sum() + left + 0.5
    down = (rows * ink).sum() / ink.sum() + top + 0.5
    return np.array([across / scale, height - down / scale])


def test_pages_lie_differently_and_documents_look_different(invoice: Rendered) -> None:
    scanned = _scan(invoice, 3)
    turned = {
        box.page: round(np.degrees(np.arctan2(box.quad[3] - box.quad[1], box.quad[2] - box.quad[0])), 1)
        for box in scanned.boxes
    }
    assert len(set(turned.values())) == invoice.pages
    assert all(abs(angle) <= 1 for angle in turned.values())
    kinds = {kind for seed in range(12) for kind, *_ in _images(_pdf(_scan(invoice, seed)))[:1]}
    assert kinds == {"/DeviceGray", "/DeviceRGB"}


def test_paper_is_not_white_and_noise_is_on_it(invoice: Rendered) -> None:
    (_, _, _, jpeg), *_ = _images(_pdf(_scan(invoice, 2)))
    grey = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    empty = grey[-200:-60, 60:-60]
    assert 205 < empty.mean() < 250
    assert empty.std() > 1


def test_equal_draws_give_equal_bytes_and_others_do_not(receipt: Rendered) -> None:
    assert _scan(receipt, 5) == _scan(receipt, 5)
    assert _pdf(_scan(receipt, 5)) != _pdf(_scan(receipt, 6))


def test_a_value_at_the_papers_edge_stays_on_it(renderer: Any, new_paper: Any) -> None:
    paper = new_paper()
    body = f"<p style='margin:0'>{paper.show('item', 'corner')}</p>"
    style = "@page{size:A4;margin:.2mm}body{font:9pt/1.2 'Docgen Sans'}"
    rendered = renderer.render(paper.page(body, style), document_id="d", subject="s")
    for seed in range(SCANS):
        (box,) = _scan(rendered, seed).boxes
        assert all(side >= 0 for side in box.quad) and max(box.quad[1::2]) <= rendered.page_sizes[0][1]


def test_a_tiff_of_the_poorest_quality_says_nothing_and_is_a_baseline_jpeg(capfd: pytest.CaptureFixture[str]) -> None:
    tiff = Tiff(lossless=False)
    tiff.add(Shot(np.full((64, 64), 200, np.uint8), (595.0, 842.0), (100, 100), quality=1, bilevel=False))
    tables = Image.open(io.BytesIO(tiff.files()[0])).tag_v2[347]  # JPEGTables
    at = tables.index(b"\xff\xdb") + 4
    assert tables[at] >> 4 == 0, "a table of 16 bits"
    assert capfd.readouterr() == ("", "")
