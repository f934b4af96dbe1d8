"""A reader decodes every code of a page, in its box, to the golden value; and finds no other code."""

from __future__ import annotations

import dataclasses

import pypdfium2
import pytest
import zxingcpp

from docgen_core.packs.invoice import codes
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.tables import rows

DPI = 300
FORMATS = {"EAN13": codes.EAN_13, "Code128": codes.CODE_128, "QRCode": codes.QR}


def seed_with(sample, locale, layout, wanted):
    """The first company whose documents have codes of just the wanted symbologies and no others."""
    for seed in range(200):
        invoice = sample(locale, layout, seed=seed)
        if {code.symbology for code in codes.codes_of(invoice)} == set(wanted):
            return seed
    raise AssertionError(f"no company prints {wanted} in layout {layout}")


def decoded(document):
    """(page, symbology, text, middle in points from the lower left) of every code that a reader finds."""
    pdf = pypdfium2.PdfDocument(document.rendered.pdf)
    for number, page in enumerate(pdf, start=1):
        picture = page.render(scale=DPI / 72).to_pil().convert("L")
        for found in zxingcpp.read_barcodes(picture):
            corners = found.position
            xs, ys = zip(
                *((c.x, c.y) for c in (corners.top_left, corners.top_right, corners.bottom_right, corners.bottom_left)),
                strict=True,
            )
            middle = sum(xs) / 4 * 72 / DPI, page.get_height() - sum(ys) / 4 * 72 / DPI
            yield number, FORMATS[found.format.name], found.text, middle


def golden(document):
    """(page, symbology, text) of every code that is marked as printed."""
    told = {row["row_key"]: row for row in rows(document.invoice)["codes"]}
    boxes = [box for box in document.rendered.boxes if box.print.table == "codes"]
    assert {box.print.row_key for box in boxes} == set(told)
    return [(box.page, told[box.print.row_key]["symbology"], told[box.print.row_key]["text"], box) for box in boxes]


CASES = [
    *((layout, locale, (codes.EAN_13, codes.CODE_128, codes.QR)) for layout in ("letter", "boxed", "medical")
      for locale in ("de-DE", "ja-JP")),
    *((layout, "de-DE", (codes.CODE_128, codes.QR)) for layout in ("sidebar", "bleed", "utility", "telecom")),
    ("progress", "en-US", (codes.CODE_128, codes.QR)),
    ("receipt", "en-US", (codes.CODE_128,)),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "locale", "wanted"), CASES)
def test_a_reader_decodes_each_code_in_its_box(sample, printed, layout, locale, wanted):
    document = printed(locale=locale, layout=layout, seed=seed_with(sample, locale, layout, wanted))
    expected = golden(document)
    found = list(decoded(document))
    assert sorted(entry[:3] for entry in found) == sorted(entry[:3] for entry in expected)
    for page, _, text, (x, y) in found:
        inside = [
            entry
            for entry in expected
            if entry[0] == page
            and entry[3].quad[0] <= x <= entry[3].quad[2]
            and entry[3].quad[5] <= y <= entry[3].quad[1]
        ]
        assert [entry[2] for entry in inside] == [text]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_golden_code_is_on_the_page(sample, printed, layout):
    seed = next((seed for seed in range(60) if codes.codes_of(sample("de-DE", layout, seed=seed))), None)
    if layout == "pad":
        assert seed is None  # nobody writes a bar code by hand
    else:
        golden(printed(locale="de-DE", layout=layout, seed=seed))


def test_a_credit_transfer_says_what_is_printed(sample):
    invoice = sample("de-DE", seed=seed_with(sample, "de-DE", "letter", (codes.CODE_128, codes.QR)))
    told = next(code.text for code in codes.codes_of(invoice) if code.purpose == codes.CREDIT_TRANSFER)
    lines = told.split("\n")
    iban = dict(zip(invoice.payment.account_columns, (value for _, value in invoice.payment.account), strict=True))[
        "iban"
    ]
    assert lines[:4] == ["BCD", "002", "1", "SCT"]
    assert lines[6] == iban.replace(" ", "")
    assert lines[7] == f"EUR{invoice.totals.amount_due}"
    assert lines[10] == invoice.number


def test_there_is_nothing_to_transfer_for_a_credit_note_or_where_nothing_is_due(sample):
    invoice = sample("de-DE", seed=seed_with(sample, "de-DE", "letter", (codes.CODE_128, codes.QR)))
    nothing = dataclasses.replace(
        invoice, totals=dataclasses.replace(invoice.totals, amount_due=invoice.totals.prepaid)
    )
    for other in (dataclasses.replace(invoice, kind="credit_note"), nothing):
        assert codes.CREDIT_TRANSFER not in {code.purpose for code in codes.codes_of(other)}
