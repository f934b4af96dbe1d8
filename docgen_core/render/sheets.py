"""What pdfium tells of a printed sheet: its characters with their boxes, and its links.

A sheet has a thousand characters and a hundred links, so they are asked for by calls that take and
give numbers: pypdfium2's own make a Python object of every pointer on its way. What does not belong
here: what is made of the answers (`boxes`, `words`, `gates`). It reads pdfium when it is imported.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pypdfium2.raw as raw

from docgen_core.render.gates import Floats

_WHITE_SPACE = np.array([chr(code).isspace() for code in range(0x10000)])
_LINE_END_HYPHENS = "\x02\ufffe"
"""What pdfium gives for a hyphen at the end of a line."""
_LINK_BYTES = 4096
"""Room for a link's target; `PrintLog` makes targets far shorter."""
_BOX_BYTES = ctypes.sizeof(raw.FS_RECTF)

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int


def _called_with_numbers(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.cast(function, ctypes.PYFUNCTYPE(result, *arguments))


_char_box = _called_with_numbers(raw.FPDFText_GetLooseCharBox, _INT, _POINTER, _INT, _POINTER)
_next_link = _called_with_numbers(raw.FPDFLink_Enumerate, _INT, _POINTER, _POINTER, _POINTER)
_link_box = _called_with_numbers(raw.FPDFLink_GetAnnotRect, _INT, _POINTER, _POINTER)
_link_action = _called_with_numbers(raw.FPDFLink_GetAction, _POINTER, _POINTER)
_target = _called_with_numbers(raw.FPDFAction_GetURIPath, ctypes.c_ulong, _POINTER, _POINTER, _POINTER, ctypes.c_ulong)


def text_layer(sheet: Any) -> tuple[str, Floats, npt.NDArray[np.bool_]]:
    """A page's characters but white space, their boxes, and which of them stand after white space."""
    text_page = sheet.get_textpage()
    handle = text_page.raw
    count = max(0, raw.FPDFText_CountChars(handle))
    units = (ctypes.c_ushort * (count + 1))()
    written = raw.FPDFText_GetText(handle, 0, count, units)
    codes = np.frombuffer(units, dtype=np.uint16)[:count]
    if written != count + 1:  # a character that pdfium does not write out, or writes as two; ask one by one
        codes = np.array([raw.FPDFText_GetUnicode(handle, index) for index in range(count)], dtype=np.uint32)
    printed = np.flatnonzero(~_WHITE_SPACE[np.minimum(codes, len(_WHITE_SPACE) - 1)])
    boxes = np.empty((len(printed), 4), dtype=np.float32)
    places = range(boxes.ctypes.data, boxes.ctypes.data + boxes.nbytes, _BOX_BYTES)
    deque(map(_char_box, repeat(_address(handle)), printed.tolist(), places), maxlen=0)  # the loop is in C
    text_page.close()
    text = codes[printed].astype("<u4").tobytes().decode("utf-32-le", errors="surrogatepass")
    for hyphen in _LINE_END_HYPHENS:
        text = text.replace(hyphen, "-")
    return text, boxes, np.diff(printed, prepend=-2) > 1


def links(document: Any, sheet: Any) -> tuple[list[str], Floats]:
    """Targets of a page's links, and their rectangles: rows of left, top, right, bottom."""
    position, link, box = _INT(0), _POINTER(), (ctypes.c_float * 4)()
    buffer = ctypes.create_string_buffer(_LINK_BYTES)
    at_position, at_link, at_box, at_buffer = map(ctypes.addressof, (position, link, box, buffer))
    of_document, of_sheet = _address(document.raw), _address(sheet.raw)
    targets: list[str] = []
    sides: list[float] = []
    while _next_link(of_sheet, at_position, at_link):
        _link_box(link.value, at_box)
        length = _target(of_document, _link_action(link.value), at_buffer, _LINK_BYTES)
        targets.append(buffer.value.decode("utf-8", errors="replace") if 0 < length <= _LINK_BYTES else "")
        sides += box
    return targets, np.array(sides, dtype=np.float32).reshape(-1, 4)


def _address(handle: Any) -> int:
    return ctypes.addressof(handle.contents)
