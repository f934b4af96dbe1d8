"""Each capture condition: boxes hold their ink and stay on the page, at any wear."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pypdfium2
import pytest

from docgen_core.draws import Draws
from docgen_core.render.boxes import Rendered
from docgen_core.render.capture import CONDITIONS, Captured, capture
from docgen_core.render.capture.dial import Dial

DAMAGED = tuple(name for name in CONDITIONS if name != "clean")
CONTRAST = 22
"""Of 255, between the darkest of a value and what it stands on; the worst pages are pale, and noisy below it."""
MIDDLE_POINTS = 0.8
"""So far the middle of a letter's ink may be from where its box has it: a fax has 98 lines an inch."""

Grey = npt.NDArray[np.uint8]


@pytest.fixture(scope="module")
def order(renderer: Any, new_paper: Any) -> Rendered:
    """A page with values up to its edges, on white, on a tint and on a dark panel."""
    paper = new_paper()
    rows = "".join(
        f"<tr><td>{paper.show('item', f'Bolt {n} 軸受', row=n)}"
        f"<td style='color:#666'>{paper.show('price', f'{n}.05', row=n)}"
        f"<td>{paper.show('amount', f'{n}1.50', row=n)}"
        for n in map(str, range(1, 9))
    )
    total = f"<p style='background:#243;color:#fff;padding:2mm'>{paper.show('total', '396.40')}</p>"
    style = "@page{size:105mm 148mm;margin:3mm}body{font:9pt/1.5 'Docgen Sans','Docgen JP'}table{width:100%}"
    page = paper.page(f"<table>{rows}</table>{total}<p>{paper.show('note', '-')}</p>", style)
    return renderer.render(page, document_id="d-1", subject="s")


def taken(rendered: Rendered, condition: str, seed: int, wear: int | None = None, **how: Any) -> Captured:
    return capture(rendered, condition, Draws("taken", seed), document_id="d-1", wear=wear, **how)


@pytest.mark.parametrize("wear", [None, 0, 60, 100])
@pytest.mark.parametrize("condition", DAMAGED)
def test_boxes_hold_their_ink_and_stay_on_the_page(
    order: Rendered, condition: str, wear: int | None, upright: Any, pictures: Any
) -> None:
    captured = taken(order, condition, 3, wear, output="png")
    assert [box.print for box in captured.boxes] == [box.print for box in order.boxes]
    (page,), (picture,) = captured.pages, list(pictures(captured))
    assert picture.shape == (page.pixels[1], page.pixels[0])
    for box in captured.boxes:
        assert all(0 <= x <= page.points[0] for x in box.quad[::2])
        assert all(0 <= y <= page.points[1] for y in box.quad[1::2])
        around = cv2.GaussianBlur(upright(box, page, picture, 1.0), (5, 5), 2).astype(int)
        assert np.abs(around - np.median(around)).max() >= CONTRAST, (box.text, wear)


@pytest.mark.parametrize("condition", DAMAGED)
def test_a_box_lies_where_its_ink_lies(
    renderer: Any, new_paper: Any, condition: str, upright: Any, pictures: Any
) -> None:
    paper = new_paper()
    body = f"<p style='margin:60mm 0 0 50mm;font:30pt \"Docgen Sans\"'>{paper.show('letter', 'H')}</p>"
    page = paper.page(body, "@page{size:105mm 148mm;margin:4mm}body{font:9pt 'Docgen Sans'}")
    rendered = renderer.render(page, document_id="d", subject="s")
    clean = taken(rendered, "clean", 0, output="png")
    expected = ink_middle(clean, upright, pictures)
    for seed in range(3):
        found = ink_middle(taken(rendered, condition, seed, 40, output="png"), upright, pictures)
        assert np.abs(found - expected).max() < MIDDLE_POINTS


def ink_middle(captured: Captured, upright: Any, pictures: Any) -> npt.NDArray[np.float64]:
    """Middle of the ink, in points from the upper left corner of a margin around the one box."""
    (box,) = captured.boxes
    (picture,) = pictures(captured)
    around = upright(box, captured.pages[0], picture, 1.5).astype(int)
    ink = np.clip(np.median(around) - 50 - around, 0, None)
    rows, columns = np.indices(ink.shape)
    return np.array([(columns * ink).sum(), (rows * ink).sum()]) / ink.sum() / 6


@pytest.mark.parametrize("condition", DAMAGED)
def test_more_wear_is_more_damage_and_grades_share_their_draws(order: Rendered, condition: str) -> None:
    grades = [taken(order, condition, 8, wear) for wear in (0, 50, 100)]
    assert len({grade.files[0].data for grade in grades}) == 3
    assert len({grade.pages[0].dpi for grade in grades}) == 1


def test_an_amount_rises_with_the_dial_whichever_end_is_larger() -> None:
    for least, most in ((0, 40), (90, 20), (-30, 60)):
        for seed in range(20):
            given = [Dial(Draws(seed), wear).amount("x", least, most) for wear in range(0, 101, 10)]
            assert given == sorted(given, reverse=most < least)
            assert min(least, most) <= min(given) <= max(given) <= max(least, most)
            assert abs(given[0] - least) <= abs(most - least) / 10 and abs(given[-1] - most) <= abs(most - least) / 10


def test_documents_differ_in_resolution_and_colour(order: Rendered) -> None:
    dpi = {taken(order, "heavy_scan", seed).pages[0].dpi for seed in range(16)}
    assert {(100, 100), (150, 150), (200, 200)} <= dpi <= {(100, 100), (150, 150), (200, 200), (300, 300)}
    fax = {taken(order, "fax", seed).pages[0].dpi for seed in range(6)}
    assert fax == {(204, 98), (204, 196)}
    depths = {
        cv2.imdecode(
            np.frombuffer(taken(order, "light_scan", seed, output="jpeg").files[0].data, np.uint8), cv2.IMREAD_UNCHANGED
        ).ndim
        for seed in range(8)
    }
    assert depths == {2, 3}


def test_a_fax_has_no_grey(order: Rendered, pictures: Any) -> None:
    (picture,) = pictures(taken(order, "fax", 1, output="tiff"))
    assert set(np.unique(picture)) == {0, 255}
    drawn = pypdfium2.PdfDocument(taken(order, "fax", 1).files[0].data)[0]
    (image,) = drawn.get_objects()
    assert image.get_metadata().bits_per_pixel == 1


def test_a_photograph_is_larger_than_its_sheet(order: Rendered) -> None:
    (page,) = taken(order, "phone_photo", 2).pages
    assert all(photo > sheet for photo, sheet in zip(page.points, order.page_sizes[0], strict=True))


def test_what_is_written_on_a_page_hides_no_value(order: Rendered, upright: Any, pictures: Any) -> None:
    """Under marker, ticks and notes the values' own pixels are as dark as on the page without them, or nearly."""
    for seed in range(4):
        captured = taken(order, "highlighter_notes", seed, 100, output="png")
        (page,), (picture,) = captured.pages, list(pictures(captured))
        for box in captured.boxes:
            inside = upright(box, page, picture, 0.0).astype(int)
            assert (
                np.percentile(inside, 2) < np.median(inside) - 20 or np.percentile(inside, 98) > np.median(inside) + 20
            )
