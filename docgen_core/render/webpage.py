"""A document as a web page: what was printed, standing alone, with the faces it is drawn with.

Its boxes and pages are those of the print. What does not belong here: pictures of pages (`capture`).
"""

from __future__ import annotations

import re
import unicodedata
from html import escape, unescape

from docgen_core.render.boxes import CREATOR, SPECIMEN_NOTE, Rendered
from docgen_core.render.capture import SUFFIXES, Captured, CapturedFile, CapturedPage
from docgen_core.render.fonts import DEFAULT_STACK, FACES
from docgen_core.render.html import Page

_MARK = re.compile(r'<a href="golden:[^"]*">')
"""How a golden value is marked; the mark would tell an extractor what it is asked for."""
_IDEOGRAPH, _SYLLABLE = ord("一"), ord("가")
"""A face with one of them is large, and is brought along only for a page that needs it."""


def web_page(page: Page, rendered: Rendered, *, document_id: str) -> Captured:
    """The page as one HTML file that needs nothing from outside. Styles that select `a` still find their elements."""
    body = _MARK.sub("<a>", unicodedata.normalize("NFC", page.body))
    width = rendered.page_sizes[0][0]
    stack = ",".join(repr(family) for family in DEFAULT_STACK)
    style = (
        f"{FACES.css(_families(page))}html{{-webkit-print-color-adjust:exact;print-color-adjust:exact;"
        f"font-family:{stack}}}@page{{font-family:{stack}}}body{{margin:0}}"
        f"@media screen{{html{{max-width:{width}pt;margin:24pt auto}}}}{page.style}"
    )
    head = (
        f'<meta charset="utf-8"><title>{escape(page.title)}</title><meta name="generator" content="{CREATOR}">'
        f'<meta name="description" content="{escape(SPECIMEN_NOTE)}; {escape(document_id)}">'
        f'<meta name="author" content="{escape(page.author)}">'
    )
    html = (
        f'<!doctype html>\n<html lang="{escape(page.lang)}"><head>{head}<style>{style}</style></head>'
        f"<body>{body}</body></html>\n"
    )
    file = CapturedFile(SUFFIXES["html"], html.encode())
    pages = tuple(CapturedPage(0, size) for size in rendered.page_sizes)
    return Captured((file,), pages, rendered.boxes, rendered.words)


def _families(page: Page) -> list[str]:
    """The faces that something on the page is drawn with: those it names, the large ones only where they are needed."""
    named = [name for name in FACES.families if name in page.style or name in page.body or name in DEFAULT_STACK]
    large = {name for name in named if {_IDEOGRAPH, _SYLLABLE} & FACES.coverage(name)}
    drawn = {ord(char) for text in (page.body, page.running_text, page.style) for char in unescape(text)}
    left = drawn.difference(*(FACES.coverage(name) for name in named if name not in large))
    return [name for name in named if name not in large or left & FACES.coverage(name)]
