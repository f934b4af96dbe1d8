"""From pictures to files: PDF, PNG, JPEG and TIFF, each picture encoded once.

A file says that it is a specimen, names its resolution, and holds no clock. What does not belong
here: what the pictures show.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from docgen_core.errors import RenderFailed
from docgen_core.render.boxes import CREATOR, SPECIMEN_NOTE

if TYPE_CHECKING:
    from docgen_core.render.capture.paper import Pixels

_INCHES_PER_METRE = 39.3701
_JFIF_HEAD = 20
"""Bytes of a JPEG up to the end of its first segment, which names the resolution."""
_LEAST_TIFF_QUALITY = 25
"""Below it libtiff writes tables of 16 bits, which are no baseline JPEG and which not every reader takes."""
_PNG_HEAD = 33
"""Bytes of a PNG up to the end of its first chunk, which names the size."""


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture, and how it is to be kept."""

    pixels: Pixels
    points: tuple[float, float]
    """Width and height of the page."""
    dpi: tuple[int, int]
    quality: int
    """Where it is kept as a JPEG."""
    bilevel: bool
    """Black and white without any grey."""

    @property
    def colour(self) -> bool:
        """Whether it has three channels."""
        return self.pixels.ndim == 3


class Encoder(Protocol):
    """Takes a document's pictures one by one, so that no more than one is held as pixels."""

    def add(self, shot: Shot) -> None:
        """The next page. Raises `RenderFailed` when it cannot be encoded."""

    def files(self) -> list[bytes]:
        """The document's files in page order: one, or one a page."""


class PdfOfPictures:
    """One PDF; each JPEG as it is, a picture without greys without loss."""

    def __init__(self, document_id: str) -> None:
        import pikepdf

        self._pdf = pikepdf.new()
        self._pdf.docinfo["/Title"] = pikepdf.String(document_id)
        self._pdf.docinfo["/Keywords"] = pikepdf.String(SPECIMEN_NOTE)
        for program in ("/Creator", "/Producer"):
            self._pdf.docinfo[program] = pikepdf.String(CREATOR)

    def add(self, shot: Shot) -> None:
        """The next page."""
        import pikepdf

        width, height = shot.points
        page = self._pdf.add_blank_page(page_size=shot.points)
        data, how = _stream(shot)
        image = self._pdf.make_stream(
            data,
            Type=pikepdf.Name.XObject,
            Subtype=pikepdf.Name.Image,
            Width=shot.pixels.shape[1],
            Height=shot.pixels.shape[0],
            ColorSpace=pikepdf.Name.DeviceRGB if shot.colour else pikepdf.Name.DeviceGray,
            BitsPerComponent=1 if shot.bilevel else 8,
            **how,
        )
        page.obj["/Resources"] = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Scan=image))
        page.obj["/Contents"] = self._pdf.make_stream(f"q {width} 0 0 {height} 0 0 cm /Scan Do Q".encode())

    def files(self) -> list[bytes]:
        """The one file."""
        published = io.BytesIO()
        self._pdf.save(published, deterministic_id=True)
        self._pdf.close()
        return [published.getvalue()]


class Tiff:
    """One TIFF of many pages, as the devices write it: Group 4 without greys, JPEG of a scan, LZW of what is clean."""

    def __init__(self, *, lossless: bool) -> None:
        from PIL.TiffImagePlugin import AppendingTiffWriter

        self._lossless = lossless
        self._published = io.BytesIO()
        self._writer = AppendingTiffWriter(self._published, new=True)

    def add(self, shot: Shot) -> None:
        """The next page."""
        import cv2
        from PIL import Image

        pixels = np.asarray(cv2.cvtColor(shot.pixels, cv2.COLOR_BGR2RGB)) if shot.colour else shot.pixels
        picture = Image.fromarray(pixels)
        how: dict[str, Any] = {"compression": "jpeg", "quality": max(shot.quality, _LEAST_TIFF_QUALITY)}
        if shot.bilevel:
            picture, how = picture.convert("1", dither=Image.Dither.NONE), {"compression": "group4"}
        elif self._lossless:
            how = {"compression": "tiff_lzw"}
        picture.save(self._writer, format="TIFF", dpi=shot.dpi, description=SPECIMEN_NOTE, **how)
        self._writer.newFrame()

    def files(self) -> list[bytes]:
        """The one file."""
        self._writer.finalize()
        return [self._published.getvalue()]


class OneFileAPage:
    """PNG or JPEG."""

    def __init__(self, encode: Callable[[Shot], bytes]) -> None:
        self._encode = encode
        self._files: list[bytes] = []

    def add(self, shot: Shot) -> None:
        """The next page."""
        self._files.append(self._encode(shot))

    def files(self) -> list[bytes]:
        """A file a page."""
        return self._files


def jpeg_file(shot: Shot) -> bytes:
    """A JPEG that says how many dots an inch it has, and what it is."""
    data = _encoded(".jpg", shot)
    head = data[:13] + struct.pack(">BHH", 1, *shot.dpi) + data[18:_JFIF_HEAD]
    comment = SPECIMEN_NOTE.encode("ascii")
    return head + struct.pack(">HH", 0xFFFE, len(comment) + 2) + comment + data[_JFIF_HEAD:]


def png_file(shot: Shot) -> bytes:
    """A PNG that says how many dots a metre it has, and what it is."""
    data = _encoded(".png", shot)
    across, down = (round(dots * _INCHES_PER_METRE) for dots in shot.dpi)
    chunks = _chunk(b"pHYs", struct.pack(">IIB", across, down, 1))
    chunks += _chunk(b"tEXt", b"Description\0" + SPECIMEN_NOTE.encode("ascii"))
    return data[:_PNG_HEAD] + chunks + data[_PNG_HEAD:]


def _stream(shot: Shot) -> tuple[bytes, dict[str, Any]]:
    """A picture's bytes in a PDF, and how they are to be read."""
    import pikepdf

    if not shot.bilevel:
        return _encoded(".jpg", shot), {"Filter": pikepdf.Name.DCTDecode}
    # A PNG's rows are what a PDF calls predictor 15.
    rows = pikepdf.Dictionary(Predictor=15, Colors=1, BitsPerComponent=1, Columns=shot.pixels.shape[1])
    packed = b"".join(_chunks_of(_encoded(".png", shot), b"IDAT"))
    return packed, {"Filter": pikepdf.Name.FlateDecode, "DecodeParms": rows}


def _encoded(suffix: str, shot: Shot) -> bytes:
    import cv2

    how = [cv2.IMWRITE_JPEG_QUALITY, shot.quality] if suffix == ".jpg" else []
    if shot.bilevel and suffix == ".png":
        how = [cv2.IMWRITE_PNG_BILEVEL, 1]
    done, data = cv2.imencode(suffix, shot.pixels, how)
    if not done:
        raise RenderFailed(f"OpenCV did not encode a page as {suffix}")
    return data.tobytes()


def _chunks_of(png: bytes, kind: bytes) -> Iterator[bytes]:
    at = 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == kind:
            yield png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
