"""A printed document under a capture condition, as the files that are published.

What does not belong here: printing, which condition a document gets (its pack), and any one
condition's damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docgen_core.draws import Draws
from docgen_core.errors import UsageError
from docgen_core.render.boxes import Box, Rendered, Word
from docgen_core.render.capture.dial import Dial
from docgen_core.render.capture.encode import Encoder, OneFileAPage, PdfOfPictures, Shot, Tiff, jpeg_file, png_file
from docgen_core.render.capture.geometry import moved

if TYPE_CHECKING:
    from docgen_core.render.capture.paper import Device

CLEAN = "clean"
CONDITIONS: tuple[str, ...] = (
    CLEAN,
    "light_scan",
    "heavy_scan",
    "fax",
    "phone_photo",
    "photocopy",
    "folded_stained",
    "highlighter_notes",
)
SUFFIXES: Mapping[str, str] = {"pdf": ".pdf", "png": ".png", "jpeg": ".jpg", "tiff": ".tiff", "html": ".html"}
"""By output. A PNG or JPEG is one page, the others hold a whole document."""
_OWN_WEAR: Mapping[str, tuple[int, int]] = {
    "heavy_scan": (10, 80),
    "fax": (5, 75),
    "phone_photo": (5, 80),
    "photocopy": (15, 80),
    "folded_stained": (10, 85),
    "highlighter_notes": (10, 85),
}
"""Between which a condition draws its wear where none is asked for; each amount of the others is drawn alone."""
_FILE_A_PAGE = frozenset({"png", "jpeg"})


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """One file of a published document."""

    ending: str
    """Of its name, after the document's id: ".pdf", or "-p0001.png" where each page is a file."""
    data: bytes


@dataclass(frozen=True, slots=True)
class CapturedPage:
    """One page of a published document."""

    file: int
    """Index of the file that it is in."""
    points: tuple[float, float]
    """Width and height; its boxes are measured in them."""
    pixels: tuple[int, int] | None = None
    """Width and height of the picture; None for a page without one, as printed."""
    dpi: tuple[int, int] | None = None
    """Dots an inch of paper, across and down."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A document as it is published."""

    files: tuple[CapturedFile, ...]
    """One; or one a page, in order."""
    pages: tuple[CapturedPage, ...]
    boxes: tuple[Box, ...]
    words: tuple[Word, ...] = ()


def capture(
    rendered: Rendered,
    condition: str,
    draws: Draws,
    *,
    document_id: str,
    wear: int | None = None,
    output: str = "pdf",
) -> Captured:
    """The document under a capture condition.

    Args:
        rendered: the printed document.
        condition: one of `CONDITIONS`.
        draws: the document's draws; equal draws give equal bytes.
        document_id: stands in the metadata of a file that is made anew.
        wear: 0 to 100, scales the damage; None leaves it to the condition's own draws.
        output: one of `SUFFIXES` but "html", which is no capture (`docgen_core.render.webpage`).

    Raises:
        UsageError: there is no such condition or output.
        RenderFailed: a picture could not be encoded.
    """
    if condition not in CONDITIONS:
        raise UsageError(f"no capture condition {condition!r}; there are {', '.join(CONDITIONS)}")
    if condition == CLEAN and output == "pdf":
        pages = tuple(CapturedPage(0, size) for size in rendered.page_sizes)
        return Captured((CapturedFile(SUFFIXES["pdf"], rendered.pdf),), pages, rendered.boxes, rendered.words)
    encoder = _encoder(output, document_id, lossless=condition == CLEAN)
    dial = Dial(draws.under(condition), wear)
    if condition in _OWN_WEAR:
        dial = dial.settled(*_OWN_WEAR[condition])
    return _taken(rendered, _device(condition, dial), dial, encoder, output)


def _encoder(output: str, document_id: str, *, lossless: bool) -> Encoder:
    encoders: dict[str, Callable[[], Encoder]] = {
        "pdf": lambda: PdfOfPictures(document_id),
        "png": lambda: OneFileAPage(png_file),
        "jpeg": lambda: OneFileAPage(jpeg_file),
        "tiff": lambda: Tiff(lossless=lossless),
    }
    if output not in encoders:
        raise UsageError(f"no picture format {output!r}; there are {', '.join(encoders)}")
    return encoders[output]()


def _device(condition: str, dial: Dial) -> Device:
    """What takes the pictures of a document; its modules, and OpenCV, are read when first wanted."""
    from docgen_core.render.capture import clean, fax, folded, notes, photo, photocopy, scan

    devices: dict[str, Callable[[Dial], Device]] = {
        CLEAN: clean.Rasteriser.drawn,
        "light_scan": scan.LightScanner.drawn,
        "heavy_scan": scan.HeavyScanner.drawn,
        "fax": fax.Fax.drawn,
        "phone_photo": photo.Telephone.drawn,
        "photocopy": photocopy.Photocopier.drawn,
        "folded_stained": folded.WornSheet.drawn,
        "highlighter_notes": notes.Desk.drawn,
    }
    return devices[condition](dial)


def _taken(rendered: Rendered, device: Device, dial: Dial, encoder: Encoder, output: str) -> Captured:
    """Each page taken and encoded before the next is looked at."""
    import cv2
    import pypdfium2

    from docgen_core.render.capture.paper import rastered

    cv2.setNumThreads(1)  # the order of a sum decides its last bit…
    cv2.ipp.setUseIPP(False)  # …and so does a library that only some processors have…
    cv2.setUseOptimized(False)  # …and so do the instructions that one machine has and another has not
    boxes = list(rendered.boxes)
    words: list[Word] = []
    pages: list[CapturedPage] = []
    document = pypdfium2.PdfDocument(rendered.pdf)
    try:
        for number, (sheet, size) in enumerate(zip(document, rendered.page_sizes, strict=True), start=1):
            here = [index for index, box in enumerate(boxes) if box.page == number]
            quads = [boxes[index].quad for index in here]
            paper = rastered(
                sheet, size, quads, dpi=device.dpi, colour=device.colour, number=number, pages=rendered.pages
            )
            sheet.close()
            picture = device.take(paper, dial.under("page", number))
            for index in here:
                quad = moved(boxes[index].quad, picture.matrix, paper.frame, picture.frame)
                boxes[index] = replace(boxes[index], quad=quad)
            words += (
                replace(word, quad=moved(word.quad, picture.matrix, paper.frame, picture.frame))
                for word in rendered.words
                if word.page == number
            )
            encoder.add(Shot(picture.pixels, picture.points, device.dpi, device.quality, device.bilevel))
            file = number - 1 if output in _FILE_A_PAGE else 0
            pages.append(CapturedPage(file, picture.points, (picture.frame.width, picture.frame.height), device.dpi))
    finally:
        document.close()
    return Captured(tuple(_named(encoder.files(), output)), tuple(pages), tuple(boxes), tuple(words))


def _named(files: list[bytes], output: str) -> Iterator[CapturedFile]:
    for number, data in enumerate(files, start=1):
        page = f"-p{number:04d}" if output in _FILE_A_PAGE else ""
        yield CapturedFile(page + SUFFIXES[output], data)
