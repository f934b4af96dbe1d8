"""From an invoice to its page: one template environment, compiled once, and the style per company.

Each layout is two templates, `NAME.html` and `NAME.css`, over the shared `base.css`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from docgen_core.packs.invoice.layouts import logo, marks, tape
from docgen_core.packs.invoice.layouts.codes import CodePlaces
from docgen_core.packs.invoice.layouts.hand import Hand
from docgen_core.packs.invoice.layouts.items import ItemTable
from docgen_core.packs.invoice.layouts.registry import A4, LAYOUTS, LETTER, RECEIPT
from docgen_core.packs.invoice.layouts.sheet import MINUS, NOTHING, Sheet
from docgen_core.packs.invoice.model import Invoice
from docgen_core.render.html import Page

PAGE_MM = {A4: (210.0, 297.0), LETTER: (215.9, 279.4)}
"""Width and height; a receipt's height follows from its content."""

LAST_RESORT_FACE = "Docgen JP"
"""Ends every font stack: it draws whatever the company's typeface lacks."""

_SIGNS_FACE = "Docgen Sans"
"""Has every currency's sign; some typefaces, and the Japanese ones, have not."""

_JAPANESE_FACE = {"Docgen Serif": "Docgen JP Serif"}
"""Face for Japanese text that goes with a Latin one, where it is not the last resort."""
_KOREAN_FACE = "Docgen KR"

WATERMARK_PER_MILLE = 140

_DIGITS = "0123456789"
_WHITE, _INK = "#ffffff", "#1b1b1b"
_DARK_LUMINANCE = 0.42
"""Accents below it carry white text."""


@cache
def _environment() -> Environment:
    loaded = Environment(
        loader=PackageLoader("docgen_core.packs.invoice.layouts"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    loaded.globals["MINUS"] = MINUS
    return loaded


def render_page(invoice: Invoice) -> Page:
    """The page of an invoice in the layout of its seller's identity, with its print log.

    Raises KeyError for a layout, paper or language that there is not.
    """
    strip = tape.Tape()
    sheet = Sheet(invoice, fold=strip.wrap if invoice.identity.paper == RECEIPT else None)
    body = _environment().get_template(f"{invoice.layout}.html").render(_body_names(sheet, strip))
    height = strip.height_mm if invoice.identity.paper == RECEIPT else None
    prefix, middle, suffix = _page_of(sheet)
    return Page(
        body=body,
        style=_style(sheet, height),
        lang=invoice.locale,
        title=f"{sheet.w[invoice.kind]} {invoice.number}",
        author=invoice.seller.name,
        prints=tuple(sheet.log.prints),
        running_text="" if height else f"{prefix}{middle}{suffix}{_DIGITS}",
    )


def _body_names(sheet: Sheet, strip: tape.Tape) -> dict[str, Any]:
    invoice = sheet.invoice
    identity = invoice.identity
    places = CodePlaces(sheet)
    return {
        "sheet": sheet,
        "invoice": invoice,
        "language": sheet.language,
        "inv": sheet.inv,
        "lines": sheet.lines,
        "taxes": sheet.taxes,
        "w": sheet.w,
        "title": sheet.w[invoice.kind],
        "habits": sheet.habits,
        "tape": strip,
        "items": None if identity.paper == RECEIPT else ItemTable(sheet, places.of_line),
        "codes": places.of_document,
        "table_style": identity.table_style,
        "logo": logo.logo(identity.logo_seed, identity.accent, identity.monogram),
        "seal": logo.seal(invoice.seller.name),
        "stamp": marks.stamp(identity.monogram, identity.accent, identity.logo_seed),
        "signature": marks.signature(identity.logo_seed),
        "usage_chart": lambda: _usage_chart(sheet),
        "jitter": Hand(sheet).jitter,
        "watermark": _watermark(sheet),
    }


def _watermark(sheet: Sheet) -> Markup:
    """A large faint mark behind everything, on the paper of a few companies."""
    identity = sheet.invoice.identity
    if not (LAYOUTS[identity.layout].watermarks and sheet.habits.chance("watermark", WATERMARK_PER_MILLE)):
        return NOTHING
    return logo.watermark(identity.logo_seed, identity.accent)


def _usage_chart(sheet: Sheet) -> Markup:
    """The chart of a year up to the end of what is billed; a customer's is the same on every bill."""
    invoice = sheet.invoice
    last = invoice.service_to or invoice.issue_date
    customer = invoice.customer_number or invoice.number
    return marks.usage_chart(invoice.locale, last, invoice.identity.accent, invoice.company_id, customer)


def _style(sheet: Sheet, receipt_height_mm: float | None) -> str:
    identity = sheet.invoice.identity
    width, height = PAGE_MM.get(identity.paper, (tape.WIDTH_MM, receipt_height_mm))
    names = {
        "language": sheet.language,
        "accent": identity.accent,
        "on_accent": _ink_on(identity.accent),
        "stack": _stack(identity.typeface, sheet),
        "width": width,
        "height": height,
        "counter": _counter(sheet),
        "tape": tape,
        "table_style": identity.table_style,
        **Hand(sheet).style(),
    }
    templates = ("base.css", f"{sheet.invoice.layout}.css")
    return "".join(_environment().get_template(name).render(names) for name in templates)


def _stack(typeface: str, sheet: Sheet) -> str:
    invoice, faces = sheet.invoice, [typeface]
    if sheet.language == "ja":
        faces.append(_JAPANESE_FACE.get(typeface, LAST_RESORT_FACE))
    if "KR" in {invoice.seller.country, invoice.buyer.country if invoice.buyer else ""}:
        faces.append(_KOREAN_FACE)
    return ", ".join(f'"{face}"' for face in dict.fromkeys((*faces, _SIGNS_FACE, LAST_RESORT_FACE)))


def _page_of(sheet: Sheet) -> tuple[str, str, str]:
    """The texts before, between and after the two numbers of "Page n of N"."""
    before, between, after = re.split(r"\{pages?\}", sheet.w["page_of"])
    return before, between, after


def _counter(sheet: Sheet) -> str:
    """The `content` of the margin box that counts pages."""
    before, between, after = (f'"{text}"' for text in _page_of(sheet))
    return f"{before} counter(page) {between} counter(pages) {after}"


def _ink_on(accent: str) -> str:
    """Black or white, whichever reads better on an accent given as `#rrggbb`; white on any other."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", accent):
        return _WHITE
    red, green, blue = (int(accent[i : i + 2], 16) / 255 for i in (1, 3, 5))
    luminance = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2
    return _WHITE if luminance < _DARK_LUMINANCE else _INK
