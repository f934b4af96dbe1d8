"""Boxes hold what is printed, in the text layer and in ink; a page that prints otherwise is refused."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import pikepdf
import pytest
from markupsafe import Markup

from docgen_core.errors import GlyphMissing, RenderFailed
from docgen_core.render import gates
from docgen_core.render.boxes import Rendered
from docgen_core.render.fonts import FACES

RECEIPT = (
    "@page receipt{size:80mm 200mm;margin:4mm}"
    "body{page:receipt;font:9pt/1.35 'Docgen Mono','Docgen JP'}td{padding:0}.n{text-align:right}"
)


def _is_inked(rendered: Rendered, raster: Callable, darkest: Callable) -> None:
    pages = raster(rendered.pdf)
    assert len(pages) == rendered.pages
    for box in rendered.boxes:
        assert darkest(box, pages[box.page - 1], rendered.page_sizes[box.page - 1]) < 128, box


def test_boxes_hold_text_and_ink_in_every_face(
    draw: Callable, paper: Any, witness: Callable, raster: Callable, darkest: Callable
) -> None:
    texts = ["Ölfilter 5 µm – 12 €", "1.234,56", "−0.5", "Straße 3", "e-mail@sample.example"]
    body = "".join(
        f"<p style=\"font-family:'{family}','Docgen JP';font-weight:{weight}\">"
        + " ".join(paper.show(f"{family} {weight} {index}", text) for index, text in enumerate(texts))
        for family in FACES.families
        for weight in (400, 700)
    )
    rendered = draw(paper.page(body))
    assert [box.text for box in rendered.boxes] == texts * 2 * len(FACES.families)
    witness(rendered)
    _is_inked(rendered, raster, darkest)


def test_japanese_is_given_back_as_it_was_printed(
    draw: Callable, paper: Any, witness: Callable, raster: Callable, darkest: Callable
) -> None:
    texts = [
        "株式会社見本商事　御中",
        "登録番号：T1234567890123",
        "軸受 6204（２個）",
        "￥1,234－",
        "〒100-0001",
        "ｶﾌﾞｼｷ㈱",
    ]
    body = "".join(f"<p>{paper.show(str(index), text)}</p>" for index, text in enumerate(texts))
    rendered = draw(paper.page(body, paper.A4.replace("Docgen Sans", "Docgen JP Serif"), lang="ja"))
    assert [box.text for box in rendered.boxes] == texts
    witness(rendered)
    _is_inked(rendered, raster, darkest)


LEANING = "a{padding:0 .2em 0 .1em}"
"""Slanted characters of a hand reach over their advance; a layout gives its values room."""
UNPRINTED = {0xAD}
"""The soft hyphen is printed only where a word breaks."""


@pytest.mark.parametrize("family", FACES.families)
def test_the_text_layer_gives_back_every_character_of_a_face(draw: Callable, paper: Any, family: str) -> None:
    printable = (chr(code) for code in FACES.coverage(family) - UNPRINTED if not chr(code).isspace())
    codes = sorted(ord(char) for char in printable if unicodedata.is_normalized("NFC", char))
    cells = [f"<td>{paper.show('glyph', chr(code), row=f'{code:04X}')}" for code in codes]
    rows = "".join("<tr>" + "".join(cells[start : start + 16]) for start in range(0, len(cells), 16))
    style = f"@page{{size:A4;margin:10mm}}body{{font:9pt/1.4 '{family}'}}td{{padding:1pt 5pt}}" + LEANING
    rendered = draw(paper.page(f"<table>{rows}</table>", style))
    assert len(rendered.boxes) == len(codes)


def test_a_value_that_wraps_has_a_part_for_each_line(draw: Callable, paper: Any, witness: Callable) -> None:
    text = "Hex bolts, zinc-plated,  M8 x 120 with washers and self-locking nuts"
    rendered = draw(paper.page(f'<p style="width:36mm">{paper.show("description", text)}</p>'))
    parts = rendered.boxes
    assert len(parts) > 2
    assert [box.part for box in parts] == list(range(len(parts)))
    assert "".join("".join(box.text.split()) for box in parts) == "".join(text.split())
    assert all(text.count(box.text) == 1 for box in parts)
    tops = [box.quad[1] for box in parts]
    assert tops == sorted(tops, reverse=True)
    witness(rendered)


def test_a_japanese_value_wraps_without_a_space(draw: Callable, paper: Any, witness: Callable) -> None:
    text = "六角ボルト（亜鉛めっき）全ねじ強度区分十点九"
    rendered = draw(paper.page(f'<p style="width:30mm">{paper.show("description", text)}</p>', lang="ja"))
    assert len(rendered.boxes) > 1
    assert "".join(box.text for box in rendered.boxes) == text
    witness(rendered)


def test_a_value_may_continue_on_the_next_page(draw: Callable, paper: Any, witness: Callable) -> None:
    text = " ".join(f"word{number}" for number in range(400))
    filler = "<p>filler</p>" * 24
    rendered = draw(paper.page(f"{filler}<p>{paper.show('terms', text)}</p>"))
    assert {box.page for box in rendered.boxes} == {1, 2}
    assert " ".join(box.text for box in rendered.boxes) == text
    witness(rendered)


def test_table_heads_repeat_and_pages_are_counted_in_the_language(
    draw: Callable, paper: Any, witness: Callable, words: Callable
) -> None:
    style = paper.A4.replace(
        "margin:20mm", "margin:20mm;@bottom-center{content:'Seite ' counter(page) ' von ' counter(pages)}"
    )
    rows = "".join(
        f"<tr><td>{paper.show('number', line, row=line)}<td>{paper.show('item', f'Teil {line}', row=line)}"
        for line in map(str, range(1, 151))
    )
    rendered = draw(paper.page(f"<table><thead><tr><th>Pos<th>Bezeichnung</thead>{rows}</table>", style, lang="de"))
    assert rendered.pages > 2
    assert {box.page for box in rendered.boxes} == set(range(1, rendered.pages + 1))
    for number, page in enumerate(words(rendered.pdf), start=1):
        printed = " ".join(word.text for word in page)
        assert "Pos Bezeichnung" in printed
        assert f"Seite {number} von {rendered.pages}" in printed
    witness(rendered)


def test_a_receipt_has_its_own_paper(
    draw: Callable, paper: Any, witness: Callable, raster: Callable, darkest: Callable
) -> None:
    rows = "".join(
        f"<tr><td>{paper.show('item', f'ARTICLE {line}', row=str(line))}"
        f"<td class=n>{paper.show('amount', f'{line * 3}.49', row=str(line))}"
        for line in range(1, 12)
    )
    rendered = draw(paper.page(f"<table style='width:100%'>{rows}</table>", RECEIPT))
    assert rendered.pages == 1
    width, height = rendered.page_sizes[0]
    assert abs(width - 226.77) < 1 and abs(height - 566.93) < 1
    witness(rendered)
    _is_inked(rendered, raster, darkest)


def test_the_same_value_in_two_places_has_two_boxes(draw: Callable, paper: Any) -> None:
    rendered = draw(paper.page(f"<p>{paper.show('total', '12.00')}</p><p>{paper.show('total', '12.00')}</p>"))
    assert [box.print.occurrence for box in rendered.boxes] == [0, 1]
    assert rendered.boxes[0].quad != rendered.boxes[1].quad


def test_a_box_is_its_values_width(draw: Callable, paper: Any, words: Callable) -> None:
    rendered = draw(paper.page(f"<p>Total {paper.show('total', '1,234.56')} EUR</p>"))
    word = next(word for word in words(rendered.pdf)[0] if word.text == "1,234.56")
    x0, y0, x1, y1, x2, y2, x3, y3 = rendered.boxes[0].quad
    assert abs(x0 - word.left) < 0.05 and abs(x1 - word.right) < 0.05
    assert (x3, y3, x2) == (x0, y2, x1) and y0 == y1 and y0 > y2


def test_the_published_file_has_no_links_and_says_it_is_a_specimen(draw: Callable, paper: Any) -> None:
    rendered = draw(paper.page(f"<p>{paper.show('total', '12.00')}</p>", lang="de-DE"))
    with pikepdf.open(io.BytesIO(rendered.pdf)) as pdf:
        assert all("/Annots" not in page for page in pdf.pages)
        information = {key: str(value) for key, value in pdf.docinfo.items()}
        assert str(pdf.Root.Lang) == "de-DE"
    assert information == {
        "/Title": "Title",
        "/Author": "Sample Ltd",
        "/Subject": "Sample",
        "/Keywords": "Specimen: synthetic document, not for payment; doc-1",
        "/Creator": "docgen",
        "/Producer": "docgen",
    }
    assert b"golden:" not in rendered.pdf


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<p>nothing</p>", "not on the page"),
        ("<p style='display:none'>{value}</p>x", "not on the page"),
        ("<p style='text-transform:uppercase'>{value}</p>", "is printed as 'NETTOTAL'"),
        ("<p>{value}</p><a href='golden:rows/2/total/0'>x</a>", "print log does not hold"),
        ("<p>{value}</p><a href='https://sample.example/'>x</a>", "print log does not hold"),
        ("<p style='margin-left:260mm;white-space:nowrap'>{value}</p>x", "not on the page"),
        ("<style>@page{{margin:0}}</style><p style='margin-left:-1mm'>{value}</p>", "outside the page"),
        ("<p style='margin-left:-10mm'>{value}</p>", "is printed as 'tal'"),
        ("<p>{value}</p><p style=\"font-family:'Liberation Sans','DejaVu Sans'\">other face</p>", "not bundled"),
        ("<p>{value}<span style='margin-left:-3em'>overprint</span></p>", "is printed as"),
        ("<p style='color:#fff'>{value}</p>x", "'Nettotal' cannot be seen"),
        ("<p style='background:#123;color:#123'>{value}</p>", "cannot be seen"),
        ("<p style='opacity:0'>{value}</p>x", "not on the page|cannot be seen"),
        ("<p style='opacity:.05'>{value}</p>x", "'Nettotal' cannot be seen"),
        ("<p style='color:#f0f0f0'>{value}</p>x", "'Nettotal' cannot be seen"),
        ("<p style='transform:scale(.1)'>{value}</p>x", r"rows/1/total/0' is printed \d\.\d points high, too small"),
        ("<p style='font-size:2pt'>{value}</p>x", "too small to be read"),
        ("<style>@page{{size:3000mm 5000mm}}</style>{value}", "page 1 has 3000 by 5000 mm, more than a sheet of A0"),
        ("<p>{value}</p><div style='position:absolute;inset:0;background:#eee'></div>x", "cannot be seen"),
        (
            "<p>{value}</p><div style='position:absolute;inset:0 auto 0 5mm;width:9mm;background:#fff'></div>",
            "be seen",
        ),
        ("<p>{value}</p><p style='margin-left:-1mm'>A label in the margin</p>", "'A' is cut at the margin"),
        ("<p>{value}</p><p style='text-align:right;margin-right:-1mm'>Sum</p>", r"drawn at 99\.\d% of its size"),
        ("<p>{value}</p><p style='width:150%'>A wide table</p>", r"page 1 is drawn at \d\d\.\d% of its size"),
        ("<p>{value}</p><div style='break-before:page'><br></div>", "page 2 is blank"),
    ],
)
def test_a_page_that_prints_otherwise_than_it_logs_is_refused(
    draw: Callable, paper: Any, body: str, message: str
) -> None:
    value = paper.show("total", "Net total")
    with pytest.raises(RenderFailed, match=message) as refused:
        draw(paper.page(body.format(value=value)))
    assert "\n" not in str(refused.value)


def test_a_character_without_a_glyph_is_refused() -> None:
    gates.refuse_missing_glyphs(1, "Total")
    with pytest.raises(RenderFailed, match="page 3: the character after 'Net' is drawn by no glyph"):
        gates.refuse_missing_glyphs(3, "Net\x00total")


def test_values_over_each_other_are_refused(draw: Callable, paper: Any) -> None:
    one, other = paper.show("total", "12.00"), paper.show("net", "34.00")
    with pytest.raises(RenderFailed, match="golden:rows/1/total/0' and 'golden:rows/1/net/0' are printed over"):
        draw(paper.page(f"<p style='margin:0'>{one}</p><p style='margin:-.8em 0 0'>{other}</p>"))


def test_what_does_not_fit_is_seen_and_not_hidden(draw: Callable, paper: Any) -> None:
    name = paper.show("name", "A long name that has no room where it stands")
    rendered = draw(paper.page(f"<p style='width:2em;height:1em;overflow:hidden;white-space:nowrap'>{name}</p>"))
    assert [box.text for box in rendered.boxes] == ["A long name that has no room where it stands"]


def test_a_shadow_says_nothing_once_more(draw: Callable, paper: Any, words: Callable) -> None:
    rendered = draw(paper.page(f"<p style='text-shadow:0 9mm 0 #000'>{paper.show('total', '12.00')}</p><br>x"))
    assert [word.text for word in words(rendered.pdf)[0]] == ["12.00", "x"]


BARS = '<svg style="width:20mm;height:8mm" viewBox="0 0 20 8"><path fill="{ink}" d="M2 0h3v8h-3zM9 0h2v8h-2z"/></svg>'


def test_a_value_that_a_picture_says_has_its_box_and_no_text(draw: Callable, paper: Any) -> None:
    bars = paper.log.draw("rows", "1", "code", Markup(BARS.format(ink="#000")), "4711")
    rendered = draw(paper.page(f"<p>{paper.show('total', '12.00')}</p><div>{bars}</div>"))
    box = next(box for box in rendered.boxes if box.print.column == "code")
    assert (box.text, box.print.value) == ("", "4711")
    assert box.quad[1] - box.quad[5] >= 20


def test_a_picture_that_cannot_be_seen_is_refused(draw: Callable, paper: Any) -> None:
    bars = paper.log.draw("rows", "1", "code", Markup(BARS.format(ink="#fff")), "4711")
    with pytest.raises(RenderFailed, match=r"rows\.code of row '1' .* cannot be seen"):
        draw(paper.page(f"<p>x</p><div>{bars}</div>"))


def test_a_value_in_a_repeated_table_head_is_refused(draw: Callable, paper: Any) -> None:
    rows = "<tr><td>row" * 150
    head = f"<thead><tr><th>{paper.show('number', 'R-1')}</thead>"
    with pytest.raises(RenderFailed, match=r"R-1 \| R-1"):
        draw(paper.page(f"<table>{head}{rows}</table>"))


def test_a_value_no_face_draws_is_refused_by_name_before_drawing(draw: Callable, paper: Any) -> None:
    with pytest.raises(GlyphMissing, match="document doc-1: no bundled face draws U\\+1F527 in 'Schlüssel"):
        draw(paper.page(f"<p>{paper.show('item', 'Schlüssel 🔧')}</p>"))


@pytest.mark.parametrize("where", ["body", "running"])
def test_a_label_no_face_draws_is_refused(draw: Callable, paper: Any, where: str) -> None:
    page = paper.page(
        "<p>&#x627;</p>" if where == "body" else "<p>x</p>", running_text="ا" if where == "running" else ""
    )
    with pytest.raises(GlyphMissing, match="U\\+0627"):
        draw(page)


def test_decomposed_text_is_printed_and_given_back_composed(draw: Callable, paper: Any, witness: Callable) -> None:
    decomposed = paper.show("item", "O\u0308lfilter")
    rendered = draw(paper.page(f"<p>{decomposed}</p>"))
    assert [box.text for box in rendered.boxes] == ["Ölfilter"]
    witness(rendered)


def test_pictures_inside_the_document_are_printed(draw: Callable, paper: Any, raster: Callable) -> None:
    black = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNg"
        "AAAAAgABSK+kcQAAAABJRU5ErkJggg=="
    )
    body = (
        f'<img src="{black}" style="display:block;width:40mm;height:40mm">'
        f'<div style="width:40mm;height:40mm;margin-top:40mm;background:url({black})"></div>'
    )
    pixels = raster(draw(paper.page(body)).pdf)[0]
    millimetre = pixels.shape[1] / 210
    for top in (20, 100):
        square = pixels[int((top + 5) * millimetre) : int((top + 35) * millimetre), int(25 * millimetre) :][:, :100]
        assert int(np.max(square)) < 32


def test_pdfium_is_told_apart_from_its_line_end_hyphen(draw: Callable, paper: Any) -> None:
    rendered = draw(paper.page(f'<p style="width:22mm">{paper.show("item", "counter-clockwise turning")}</p>'))
    assert [box.text for box in rendered.boxes] == ["counter-", "clockwise", "turning"]
