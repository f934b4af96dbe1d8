"""Capture conditions: what happened to a document between its printing and its file.

"clean" is the file as printed. "light_scan" is a good office scanner: a picture of each page, a
little askew and soft, on paper that is not quite white, without a text layer. Boxes move with
the pixels, by the same transform.
All randomness comes from the document's draws, and each page is worked on by one thread.
What does not belong here: printing, and which condition a document gets (its pack).
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from docgen_core.draws import Draws
from docgen_core.errors import RenderFailed, UsageError
from docgen_core.render.boxes import BOX_PLACES, CREATOR, SPECIMEN_NOTE, Box, Quad, Rendered

CONDITIONS: tuple[str, ...] = ("clean", "light_scan")
SUFFIX = ".pdf"

SCAN_DPI = 150
POINTS_PER_INCH = 72
_NOISE_SIDE = 512
"""Pixels; the noise of a page is one square of this side, laid out again and again."""
_NOISE_SUMMANDS = 4
"""A sum of so many uniform bytes is near enough to a normal distribution, and is integers only."""
_NOISE_DEVIATION = math.sqrt(_NOISE_SUMMANDS * (256**2 - 1) / 12)
_COLOUR_PER_MILLE = 350

Pixels = npt.NDArray[np.uint8]
_Affine = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Captured:
    """A document as it is published."""

    data: bytes
    suffix: str
    """Of the file's name, with its dot."""
    pages: int
    boxes: tuple[Box, ...]


def capture(rendered: Rendered, condition: str, draws: Draws, *, document_id: str) -> Captured:
    """The document under a capture condition.

    Args:
        rendered: the printed document.
        condition: one of `CONDITIONS`.
        draws: the document's draws; equal draws give equal bytes.
        document_id: stands in the metadata of a file that is made anew.

    Raises:
        UsageError: there is no such condition.
        RenderFailed: a picture could not be encoded.
    """
    if condition == "clean":
        return Captured(rendered.pdf, SUFFIX, rendered.pages, rendered.boxes)
    if condition == "light_scan":
        return _scan(rendered, draws.under("light_scan"), document_id)
    raise UsageError(f"no capture condition {condition!r}; there are {', '.join(CONDITIONS)}")


@dataclass(frozen=True, slots=True)
class _Scanner:
    """How one document was scanned; the same for its every page."""

    colour: bool
    ink: int
    """Brightness of black, 0 to 255."""
    paper: tuple[int, ...]
    """Brightness of white by channel (blue, green, red)."""
    lid: tuple[int, ...]
    """What the scanner sees beside the sheet, by channel."""
    noise: float
    """Standard deviation in brightness."""
    quality: int
    """Of the JPEG, 0 to 100."""

    @staticmethod
    def drawn(draws: Draws) -> _Scanner:
        white = draws.integer("paper", 240, 251)
        yellowed = draws.integer("yellowed", 2, 9)
        lid = draws.integer("lid", 222, 240)
        colour = draws.chance("colour", _COLOUR_PER_MILLE)
        return _Scanner(
            colour=colour,
            ink=draws.integer("ink", 18, 52),
            paper=(white - yellowed, white - yellowed // 3, white) if colour else (white,),
            lid=(lid, lid, lid - 2) if colour else (lid,),
            noise=draws.integer("noise_tenths", 18, 42) / 10,
            quality=draws.integer("quality", 68, 86),
        )


@dataclass(frozen=True, slots=True)
class _Picture:
    """One scanned page."""

    jpeg: bytes
    width: int
    height: int
    colour: bool


def _scan(rendered: Rendered, draws: Draws, document_id: str) -> Captured:
    import cv2
    import pypdfium2

    cv2.setNumThreads(1)  # the order of a sum decides its last bit…
    cv2.setUseOptimized(False)  # …and so do the instructions that one machine has and another has not
    scanner = _Scanner.drawn(draws)
    boxes = list(rendered.boxes)
    pictures: list[_Picture] = []
    document = pypdfium2.PdfDocument(rendered.pdf)
    try:
        for number, (sheet, size) in enumerate(zip(document, rendered.page_sizes, strict=True), start=1):
            page_draws = draws.under("page", number)
            bitmap = sheet.render(scale=SCAN_DPI / POINTS_PER_INCH, grayscale=not scanner.colour)
            pixels = bitmap.to_numpy()
            here = [index for index, box in enumerate(boxes) if box.page == number]
            transform = _skew(page_draws, pixels.shape, size, [boxes[index].quad for index in here])
            for index in here:
                boxes[index] = replace(boxes[index], quad=_moved(boxes[index].quad, transform, pixels.shape, size))
            pictures.append(_picture(pixels[:, :, :3] if scanner.colour else pixels, transform, scanner, page_draws))
            sheet.close()
    finally:
        document.close()
    return Captured(_wrap(pictures, rendered.page_sizes, document_id), SUFFIX, rendered.pages, tuple(boxes))


def _skew(draws: Draws, shape: Sequence[int], size: tuple[float, float], quads: Sequence[Quad]) -> _Affine:
    """How the sheet lay on the glass: a 2 × 3 matrix over pixels, tamed until every value stays on the page."""
    degrees = draws.integer("milli_degrees", -900, 900) / 1000
    shift = (draws.integer("shift_x", -60, 60) / 10, draws.integer("shift_y", -60, 60) / 10)
    stretch = 1 + draws.integer("stretch", -30, 30) / 10_000
    for tamed in (1.0, 0.5, 0.25, 0.0):
        transform = _affine(degrees * tamed, (shift[0] * tamed, shift[1] * tamed), 1 + (stretch - 1) * tamed, shape)
        moved = [_moved(quad, transform, shape, size) for quad in quads]
        if all(0 <= x <= size[0] and 0 <= y <= size[1] for quad in moved for x, y in _corners(quad)):
            break
    return transform


def _affine(degrees: float, shift: tuple[float, float], stretch: float, shape: Sequence[int]) -> _Affine:
    """Turn and stretch about the middle, then shift; pixels measured from the picture's upper left corner."""
    turn = math.radians(degrees)
    cosine, sine = stretch * math.cos(turn), math.sin(turn)
    middle_x, middle_y = shape[1] / 2, shape[0] / 2
    return np.array(
        [
            [cosine, -sine, middle_x - cosine * middle_x + sine * middle_y + shift[0]],
            [sine, cosine, middle_y - sine * middle_x - cosine * middle_y + shift[1]],
        ]
    )


def _corners(quad: Quad) -> list[tuple[float, float]]:
    return list(zip(quad[::2], quad[1::2], strict=True))


def _moved(quad: Quad, transform: _Affine, shape: Sequence[int], size: tuple[float, float]) -> Quad:
    """A quadrilateral in points, moved by a transform over pixels."""
    across, up = shape[1] / size[0], shape[0] / size[1]
    (xx, xy, x_shift), (yx, yy, y_shift) = transform.tolist()
    moved: list[float] = []
    for x, y in _corners(quad):
        column, row = x * across, shape[0] - y * up
        moved += (
            round((xx * column + xy * row + x_shift) / across, BOX_PLACES) + 0.0,
            round((shape[0] - yx * column - yy * row - y_shift) / up, BOX_PLACES) + 0.0,
        )
    x0, y0, x1, y1, x2, y2, x3, y3 = moved
    return x0, y0, x1, y1, x2, y2, x3, y3


def _picture(pixels: Pixels, transform: _Affine, scanner: _Scanner, draws: Draws) -> _Picture:
    """One page as the scanner saw it."""
    import cv2

    # OpenCV measures from the middle of the first pixel, we from its corner.
    centred = transform.copy()
    centred[:, 2] += transform[:, :2] @ np.array([0.5, 0.5]) - 0.5
    height, width = pixels.shape[:2]
    # Paper and ink first, so that what the lid shows beside the sheet keeps its own shade.
    seen = cv2.LUT(pixels, _tones(scanner))
    seen = cv2.warpAffine(seen, centred, (width, height), flags=cv2.INTER_LINEAR, borderValue=scanner.lid)
    soft = np.asarray(cv2.GaussianBlur(seen, (3, 3), draws.integer("blur_hundredths", 42, 75) / 100), dtype=np.uint8)
    _specks(soft, draws)
    done, jpeg = cv2.imencode(".jpg", _noisy(soft, scanner.noise, draws), [cv2.IMWRITE_JPEG_QUALITY, scanner.quality])
    if not done:
        raise RenderFailed("OpenCV did not encode a scanned page as JPEG")
    return _Picture(jpeg.tobytes(), width, height, scanner.colour)


def _tones(scanner: _Scanner) -> Pixels:
    """The brightness that each printed brightness is seen as, by channel."""
    levels = np.arange(256)
    channels = [scanner.ink + levels * (paper - scanner.ink) // 255 for paper in scanner.paper]
    tones = np.stack(channels, axis=-1).astype(np.uint8)
    return tones.reshape((256, 1, 3) if scanner.colour else (256,))


def _specks(seen: Pixels, draws: Draws) -> None:
    """A few grains of dust on the glass."""
    import cv2

    for grain in range(draws.integer("specks", 0, 9)):
        place = (
            draws.integer(f"speck_x{grain}", 0, seen.shape[1] - 1),
            draws.integer(f"speck_y{grain}", 0, seen.shape[0] - 1),
        )
        shade = draws.integer(f"speck_shade{grain}", 120, 200)
        cv2.circle(seen, place, draws.integer(f"speck_size{grain}", 0, 1), (shade, shade, shade), -1, cv2.LINE_AA)


def _noisy(seen: Pixels, deviation: float, draws: Draws) -> Pixels:
    """The sensor's noise, and light that falls off towards one corner of the glass."""
    import cv2

    count = _NOISE_SIDE * _NOISE_SIDE
    stream = hashlib.shake_256(draws.bits("noise").to_bytes(8, "big")).digest(_NOISE_SUMMANDS * count)
    sums = np.frombuffer(stream, dtype=np.uint8).reshape(_NOISE_SUMMANDS, count).sum(axis=0, dtype=np.int16)
    noise = np.rint((sums - _NOISE_SUMMANDS * 127.5) * (deviation / _NOISE_DEVIATION)).astype(np.int16)
    height, width = seen.shape[:2]
    tiles = (-(-height // _NOISE_SIDE), -(-width // _NOISE_SIDE))
    grain = np.tile(noise.reshape(_NOISE_SIDE, _NOISE_SIDE), tiles)[:height, :width]
    falloff = np.array([draws.integer(f"falloff{corner}", -9, 0) for corner in range(4)], dtype=np.float32)
    light = cv2.resize(falloff.reshape(2, 2), (width, height), interpolation=cv2.INTER_LINEAR)
    change = cv2.add(grain, light, dtype=cv2.CV_16S)
    if seen.ndim == 3:
        change = cv2.merge([change, change, change])
    return np.asarray(cv2.add(seen, change, dtype=cv2.CV_8U), dtype=np.uint8)


def _wrap(pictures: Sequence[_Picture], sizes: Sequence[tuple[float, float]], document_id: str) -> bytes:
    """A file of one picture a page, each JPEG as it is."""
    import pikepdf

    with pikepdf.new() as pdf:
        for picture, (width, height) in zip(pictures, sizes, strict=True):
            page = pdf.add_blank_page(page_size=(width, height))
            image = pdf.make_stream(
                picture.jpeg,
                Type=pikepdf.Name.XObject,
                Subtype=pikepdf.Name.Image,
                Width=picture.width,
                Height=picture.height,
                ColorSpace=pikepdf.Name.DeviceRGB if picture.colour else pikepdf.Name.DeviceGray,
                BitsPerComponent=8,
                Filter=pikepdf.Name.DCTDecode,
            )
            page.obj["/Resources"] = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Scan=image))
            page.obj["/Contents"] = pdf.make_stream(f"q {width} 0 0 {height} 0 0 cm /Scan Do Q".encode())
        pdf.docinfo["/Title"] = pikepdf.String(document_id)
        pdf.docinfo["/Keywords"] = pikepdf.String(SPECIMEN_NOTE)
        for program in ("/Creator", "/Producer"):
            pdf.docinfo[program] = pikepdf.String(CREATOR)
        published = io.BytesIO()
        pdf.save(published, deterministic_id=True)
    return published.getvalue()
