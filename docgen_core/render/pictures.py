"""Pictures of finished files, for people: pages as PNG, with boxes outlined where wanted.

What does not belong here: damage that is part of a document (`capture`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

POINTS_PER_INCH = 72
OUTLINE_BGR = (60, 20, 220)


def outlined_pages(
    pdf: bytes, quads: Sequence[tuple[int, Sequence[float]]] = (), *, dpi: int = 100, pages: int | None = None
) -> Iterator[bytes]:
    """PNG of each page in order, of the first `pages` only where it is given.

    A quad is (page from 1, x0, y0 … x3, y3 in PDF points from the page's lower left).
    """
    import cv2
    import numpy as np
    import pypdfium2

    scale = dpi / POINTS_PER_INCH
    document = pypdfium2.PdfDocument(pdf)
    try:
        for number in range(1, min(len(document), pages or len(document)) + 1):
            picture = np.ascontiguousarray(document[number - 1].render(scale=scale).to_numpy())
            for page, quad in quads:
                if page == number:
                    corners = np.array(quad, dtype=np.float64).reshape(4, 2) * scale
                    corners[:, 1] = picture.shape[0] - corners[:, 1]
                    cv2.polylines(picture, [corners.round().astype(np.int32)], True, OUTLINE_BGR, 1, cv2.LINE_AA)
            yield cv2.imencode(".png", picture)[1].tobytes()
    finally:
        document.close()
