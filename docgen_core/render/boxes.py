"""From the browser's print to the published file: exact boxes out, links and clock gone.

The print holds a link annotation on each fragment of each golden value. Here each is read, held
against the text that stands inside it in the file's own text layer, and turned into a box; then
the annotations are stripped and the metadata set, so that the bytes follow from the page alone.
A value that does not stand in its box as logged refuses the document.
What does not belong here: browsers, and what a capture does to the pixels.
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from docgen_core.errors import RenderFailed
from docgen_core.render import gates
from docgen_core.render.html import Page, Print

SPECIMEN_NOTE = "Specimen: synthetic document, not for payment"
CREATOR = "docgen"
BOX_PLACES = 3
"""Decimal places of a published coordinate: a thousandth of a point is a 3,000th of a pixel at 24 dpi."""

Quad = tuple[float, float, float, float, float, float, float, float]
"""x0, y0 … x3, y3 in PDF points from the page's lower left, clockwise from the text's upper left."""


@dataclass(frozen=True, slots=True)
class Box:
    """Where one fragment of one printed golden value stands."""

    print: Print
    part: int
    """From 0, in reading order, for a value that wraps over several lines."""
    page: int
    """From 1."""
    text: str
    """This fragment as printed."""
    quad: Quad


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a page's text layer, or the part of one that is a golden value."""

    page: int
    """From 1."""
    text: str
    quad: Quad
    print: Print | None
    """What it is printed for; None for a word of the layout."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A finished document and its boxes, in the order of the page's print log."""

    pdf: bytes
    pages: int
    page_sizes: tuple[tuple[float, float], ...]
    """Width and height of each page in points."""
    boxes: tuple[Box, ...]
    words: tuple[Word, ...] = ()
    """Where they were asked for (`render/words.py`)."""


class _Fragment(NamedTuple):
    """One link annotation, and the characters inside it (white space left out)."""

    href: str
    page: int
    left: float
    top: float
    right: float
    bottom: float
    text: str
    unseen: str
    """Characters of `text` without ink."""


def finish(raw: bytes, page: Page, *, faces: Iterable[str], document_id: str, subject: str) -> Rendered:
    """Read the boxes of a print and make the file to publish.

    Args:
        raw: the browser's PDF of the page.
        page: what was printed, with its log.
        faces: PostScript names of the faces that may be used.
        document_id: goes to the metadata.
        subject: goes to the metadata.

    Raises:
        RenderFailed: a logged value is not in the text layer inside its box, has no ink, stands over
            another, or is printed off the page; something else is marked as golden; a page is
            blank or drawn smaller than it is; or a character was drawn with another face, by no glyph, or cut.
    """
    sizes, texts, fragments = _read(raw)
    boxes = _tie(page.prints, fragments)
    pdf = _publish(raw, page, texts, frozenset(faces), document_id=document_id, subject=subject)
    return Rendered(pdf, len(sizes), sizes, boxes)


_PICTURE = "the picture"
_Text = tuple[str, gates.Floats]
"""A page's characters but white space, and their boxes: rows of left, top, right, bottom."""


def _read(raw: bytes) -> tuple[tuple[tuple[float, float], ...], list[_Text], list[_Fragment]]:
    """Sizes and texts of the pages, and every fragment of the file."""
    import pypdfium2

    from docgen_core.render.sheets import links, text_layer

    sizes: list[tuple[float, float]] = []
    texts: list[_Text] = []
    fragments: list[_Fragment] = []
    document = pypdfium2.PdfDocument(raw)
    try:
        for number, sheet in enumerate(document, start=1):
            size = tuple(round(side, BOX_PLACES) for side in sheet.get_size())
            sizes.append((size[0], size[1]))
            gates.refuse_vast(number, sizes[-1])
            chars, boxes, _ = text_layer(sheet)
            texts.append((chars, boxes))
            picture = gates.picture_of(sheet, sizes[-1])
            gates.refuse_blank(number, picture)
            gates.refuse_missing_glyphs(number, chars)
            gates.refuse_outside(number, sizes[-1], chars, boxes)
            marks = links(document, sheet)
            found = gates.contrasts(picture, sizes[-1][1], np.concatenate((boxes, marks[1])))
            fragments += _fragments(number, texts[-1], marks, found[: len(boxes)], found[len(boxes) :])
            sheet.close()
    finally:
        document.close()
    return tuple(sizes), texts, fragments


_Indices = npt.NDArray[np.intp]


def _fragments(
    number: int,
    text: _Text,
    links: tuple[list[str], gates.Floats],
    of_chars: gates.Floats,
    of_links: gates.Floats,
) -> Iterator[_Fragment]:
    """The page's links, each with the characters whose middle is inside it.

    `of_chars` and `of_links` say how far each character, and what is in each link, stands out.
    """
    chars, boxes = text
    targets, rects = links
    link_of, char_of = within(boxes, rects)
    inside = "".join(map(chars.__getitem__, char_of.tolist()))
    gates.refuse_tiny(number, targets, link_of, boxes[char_of, 1] - boxes[char_of, 3])
    ends = np.searchsorted(link_of, np.arange(len(targets) + 1))
    # The rectangle stands on whole pixels; the glyphs say where the text really begins and ends.
    filled = np.flatnonzero(np.diff(ends))
    rects[filled, 0] = np.minimum.reduceat(boxes[char_of, 0], ends[filled])
    rects[filled, 2] = np.maximum.reduceat(boxes[char_of, 2], ends[filled])
    _refuse_overlap(number, targets, rects)
    plainest = of_links.copy()
    plainest[filled] = np.maximum.reduceat(of_chars[char_of], ends[filled])
    faint = plainest <= gates.READ_STEPS
    unseen = (of_chars[char_of] <= gates.INK_STEPS) | faint[link_of]
    sides = (np.round(rects.astype(np.float64), BOX_PLACES) + 0.0).tolist()
    all_seen = not unseen.any()
    spans = zip(targets, sides, pairwise(ends.tolist()), strict=True)
    for place, (target, (left, top, right, bottom), (start, end)) in enumerate(spans):
        hidden = "" if all_seen else "".join(np.array(list(inside[start:end]))[unseen[start:end]])
        if start == end and faint[place]:
            hidden = _PICTURE
        yield _Fragment(target, number, left, top, right, bottom, inside[start:end], hidden)


def _refuse_overlap(number: int, targets: Sequence[str], rects: gates.Floats) -> None:
    """Raise `RenderFailed` when one value stands over another."""
    pair = gates.overlapping(rects, targets)
    if pair:
        one, other = (targets[index] for index in pair)
        raise RenderFailed(f"page {number}: {one!r} and {other!r} are printed over each other")


def within(boxes: gates.Floats, rects: gates.Floats) -> tuple[_Indices, _Indices]:
    """Links and the characters whose middle is inside them, by link, then from left to right."""
    across, up = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    left, top, right, bottom = rects.T
    # Only the characters at a link's height are looked at, not a page's thousand for each of its hundred links.
    by_height = np.argsort(up)
    heights = up[by_height]
    first = np.searchsorted(heights, bottom, side="right")
    count = np.maximum(np.searchsorted(heights, top, side="left") - first, 0)
    link_of = np.repeat(np.arange(len(rects)), count)
    skipped = np.repeat(first + count - np.cumsum(count), count)
    char_of = by_height[np.arange(len(link_of)) + skipped]
    within = (across[char_of] > left[link_of]) & (across[char_of] < right[link_of])
    link_of, char_of = link_of[within], char_of[within]
    order = np.lexsort((across[char_of], link_of))
    return link_of[order], char_of[order]


def _tie(prints: Sequence[Print], fragments: Sequence[_Fragment]) -> tuple[Box, ...]:
    """Boxes of every print, in the log's order."""
    by_href: dict[str, list[_Fragment]] = {}
    for fragment in fragments:
        by_href.setdefault(fragment.href, []).append(fragment)
    boxes: list[Box] = []
    for entry in prints:
        parts = by_href.pop(entry.href, None)
        if parts is None:
            raise RenderFailed(f"{_name(entry)} is logged as printed and is not on the page")
        parts.sort(key=lambda part: (part.page, -part.top, part.left))
        unseen = "".join(part.unseen for part in parts if part.text or not entry.text)
        if unseen:
            raise RenderFailed(f"{_name(entry)} is printed so that {unseen!r} cannot be seen")
        texts = _split(entry, [part.text for part in parts])
        boxes += (
            Box(entry, order, part.page, text, _quad(part))
            for order, (part, text) in enumerate(zip(parts, texts, strict=True))
        )
    if by_href:
        raise RenderFailed(f"the page marks {next(iter(by_href))!r}, which its print log does not hold")
    return tuple(boxes)


def _split(entry: Print, found: Sequence[str]) -> list[str]:
    """The logged text, cut where the found fragments end. They must add up to it, white space aside."""
    text = entry.text
    if "".join(found) != "".join(text.split()):
        raise RenderFailed(f"{_name(entry)} is printed as {' | '.join(found)!r}")
    if len(found) == 1:
        return [text.strip()]
    cuts: list[str] = []
    at = 0
    for fragment in found:
        start, left = at, len(fragment)
        while left:
            left -= not text[at].isspace()
            at += 1
        cuts.append(text[start:at].strip())
    return cuts


def _name(entry: Print) -> str:
    return f"{entry.table}.{entry.column} of row {entry.row_key!r} ({entry.text!r})"


def _quad(part: _Fragment) -> Quad:
    return part.left, part.top, part.right, part.top, part.right, part.bottom, part.left, part.bottom


def metadata(page: Page, *, document_id: str, subject: str) -> Mapping[str, str]:
    """The document information of a published file. It holds no clock and no version of a program."""
    return {
        "/Title": page.title,
        "/Author": page.author,
        "/Subject": subject,
        "/Keywords": f"{SPECIMEN_NOTE}; {document_id}",
        "/Creator": CREATOR,
        "/Producer": CREATOR,
    }


def _publish(
    raw: bytes, page: Page, texts: Sequence[_Text], faces: frozenset[str], *, document_id: str, subject: str
) -> bytes:
    """The file without links, with its metadata.

    Raises `RenderFailed` for a face that is not `faces`', for a character that is cut, and for
    another number of pages than was read.
    """
    import pikepdf

    with pikepdf.open(io.BytesIO(raw)) as printed, pikepdf.new() as pdf:
        if len(printed.pages) != len(texts):
            raise RenderFailed(f"the print has {len(printed.pages)} pages to one reader and {len(texts)} to another")
        for number, (sheet, text) in enumerate(zip(printed.pages, texts, strict=True), start=1):
            content = sheet.obj["/Contents"].read_bytes()
            gates.refuse_shrunk(number, content)
            gates.refuse_cut(number, content, *text)
            foreign = set(_font_names(sheet.obj.get("/Resources"))) - faces
            if foreign:
                raise RenderFailed(
                    f"page {number} is drawn with {', '.join(sorted(foreign))}, which is not bundled: "
                    "every font-family stack of a layout ends with a face that covers its text"
                )
            if "/Annots" in sheet.obj:
                del sheet.obj["/Annots"]
        # A new file takes over what the pages need and nothing else; it is also the cheaper way, for
        # qpdf reads every object of a file that it saves, the annotations' too.
        pdf.pages.extend(printed.pages)
        for key, value in metadata(page, document_id=document_id, subject=subject).items():
            pdf.docinfo[key] = pikepdf.String(unicodedata.normalize("NFC", value))
        pdf.Root["/Lang"] = pikepdf.String(page.lang)
        published = io.BytesIO()
        pdf.save(published, deterministic_id=True)
    return published.getvalue()


def _font_names(resources: Any) -> Iterator[str]:
    """PostScript names of the fonts in a page's resources and the forms it draws, without subset tags."""
    if resources is None:
        return
    for font in dict(resources.get("/Font", {})).values():
        yield str(font.get("/BaseFont", "a face without a name")).lstrip("/").split("+", 1)[-1]
    for form in dict(resources.get("/XObject", {})).values():
        if form.get("/Subtype") == "/Form":
            yield from _font_names(form.get("/Resources"))
