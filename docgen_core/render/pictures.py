"""Pictures of published files, for people: pages as pixels or PNG, with boxes outlined where wanted.

What does not belong here: damage that is part of a document (`capture`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from docgen_core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

POINTS_PER_INCH = 72
OUTLINE_BGR = (60, 20, 220)
FIRST_PAGE_ENDINGS = (".pdf", ".tiff", "-p0001.png", "-p0001.jpg")
"""Of the keys of files that begin with a document's first page, and can be drawn."""

_TIFF_MARKS = (b"II*\0", b"MM\0*")


def sheets(data: bytes, *, dpi: int) -> Iterator[Pixels]:
    """The pages of a published file (blue, green, red): a PDF's at so many dots an inch, a picture as it is.

    Raises:
        UsageError: for a web page, which only a browser draws.
    """
    import cv2
    import numpy as np

    if data.startswith(b"%PDF"):
        yield from _drawn(data, dpi / POINTS_PER_INCH)
    elif data.lstrip()[:9].lower() == b"<!doctype":
        raise UsageError("the document is a web page: open its file in a browser")
    else:
        kept = np.frombuffer(data, dtype=np.uint8)
        if data.startswith(_TIFF_MARKS):
            _, found = cv2.imdecodemulti(kept, cv2.IMREAD_COLOR)
        else:
            found = [np.asarray(cv2.imdecode(kept, cv2.IMREAD_COLOR))]
        yield from (np.asarray(page, dtype=np.uint8) for page in found)


def _drawn(pdf: bytes, scale: float) -> Iterator[Pixels]:
    import numpy as np
    import pypdfium2

    document = pypdfium2.PdfDocument(pdf)
    try:
        for page in document:
            pixels = page.render(scale=scale).to_numpy()
            yield np.ascontiguousarray(pixels[:, :, :3] if pixels.ndim == 3 else np.stack([pixels] * 3, axis=-1))
    finally:
        document.close()


def outlined_pages(
    files: Sequence[bytes],
    quads: Sequence[tuple[int, Sequence[float]]] = (),
    *,
    sizes: Sequence[tuple[float, float]],
    dpi: int = 100,
) -> Iterator[bytes]:
    """PNG of each page in order.

    Args:
        files: of the document: one, or one a page.
        quads: (page from 1, x0, y0 … x3, y3 in PDF points from the page's lower left).
        sizes: width and height of each page in points.
        dpi: of the PNGs.
    """
    import cv2
    import numpy as np

    pages = (sheet for file in files for sheet in sheets(file, dpi=dpi))
    for number, (sheet, (width, height)) in enumerate(zip(pages, sizes, strict=True), start=1):
        scale = dpi / POINTS_PER_INCH
        size = (round(width * scale), round(height * scale))
        picture = cv2.resize(sheet, size, interpolation=cv2.INTER_AREA)
        for page, quad in quads:
            if page == number:
                corners = np.array(quad, dtype=np.float64).reshape(4, 2) * scale
                corners[:, 1] = height * scale - corners[:, 1]
                cv2.polylines(picture, [corners.round().astype(np.int32)], True, OUTLINE_BGR, 1, cv2.LINE_AA)
        yield cv2.imencode(".png", picture)[1].tobytes()
