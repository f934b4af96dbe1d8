"""Every word of a printed document with its box, and the golden value it is printed for.

Read from the text layer of the clean print, so that the words of a page that is scanned later are
known as exactly; a capture then moves their boxes as it moves those of the values. It is a second
look at each page, and so made on request only. What does not belong here: damage.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from docgen_core.render import gates
from docgen_core.render.boxes import BOX_PLACES, Box, Rendered, Word, within


def words_of(rendered: Rendered) -> tuple[Word, ...]:
    """The words of a document, page by page, in the order of its text layer.

    A word ends at white space, at the end of a line, and where a golden value begins or ends.
    """
    import pypdfium2

    from docgen_core.render.sheets import text_layer

    words: list[Word] = []
    document = pypdfium2.PdfDocument(rendered.pdf)
    try:
        for number, sheet in enumerate(document, start=1):
            words += _words(number, text_layer(sheet), [box for box in rendered.boxes if box.page == number])
            sheet.close()
    finally:
        document.close()
    return tuple(words)


def _words(number: int, layer: tuple[str, gates.Floats, np.ndarray], values: Sequence[Box]) -> Iterator[Word]:
    text, boxes, after_space = layer
    if not text:
        return
    value_of = _values(boxes, values)
    first = np.flatnonzero(after_space | _new_line(boxes) | (np.diff(value_of, prepend=-2) != 0))
    sides = np.stack(
        [
            np.minimum.reduceat(boxes[:, 0], first),
            np.maximum.reduceat(boxes[:, 1], first),
            np.maximum.reduceat(boxes[:, 2], first),
            np.minimum.reduceat(boxes[:, 3], first),
        ],
        axis=1,
    )
    sides = np.round(sides.astype(np.float64), BOX_PLACES) + 0.0
    named = value_of[first].tolist()
    for (start, end), value, (left, top, right, bottom) in zip(
        pairwise([*first.tolist(), len(text)]), named, sides.tolist(), strict=True
    ):
        quad = left, top, right, top, right, bottom, left, bottom
        yield Word(number, text[start:end], quad, values[value].print if value >= 0 else None)


def _values(boxes: gates.Floats, values: Sequence[Box]) -> np.ndarray:
    """For each character the index of the value that it is part of; -1 for none."""
    rects = np.array([(box.quad[0], box.quad[1], box.quad[4], box.quad[5]) for box in values], dtype=np.float32)
    value_of = np.full(len(boxes), -1)
    link_of, char_of = within(boxes, rects.reshape(-1, 4))
    value_of[char_of] = link_of
    return value_of


def _new_line(boxes: gates.Floats) -> np.ndarray:
    """Whether a character stands higher or lower than the one before it, by more than half its height."""
    middle, height = (boxes[:, 1] + boxes[:, 3]) / 2, boxes[:, 1] - boxes[:, 3]
    return np.abs(np.diff(middle, prepend=middle[:1])) > height / 2
