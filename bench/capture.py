"""CPU milliseconds a page of each capture condition, against the same damage by Pillow and numpy.

Both get the same printed documents, the same resolution and colour, and end with a PDF. The other
way is written as the documentation of Pillow and numpy leads to: bicubic transforms, Pillow's
filters, arrays of doubles, and Pillow's own PDF. The two take turns, document by document.

    python bench/capture.py [--pages N] [--condition NAME] [--check]

--check exits with 1 when a condition costs more than a fifth of the other way.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pypdfium2
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

from docgen_core.draws import Draws
from docgen_core.render.boxes import Rendered
from docgen_core.render.capture import CLEAN, CONDITIONS, capture
from docgen_core.render.chromium import Renderer
from docgen_core.render.html import Page, PrintLog

PROMISED_RATIO = 5.0
WEAR = 60
"""Of both ways: enough of each kind of damage that each is paid for."""
LINES = 38
_STYLE = (
    "@page{size:A4;margin:18mm 16mm}body{font:9pt/1.5 'Docgen Sans','Docgen JP'}h1{background:#234;color:#fff}"
    "table{width:100%;border-collapse:collapse}td{border-bottom:.3pt solid #999}"
)

Doubles = npt.NDArray[np.float64]
Damage = Callable[[Image.Image, np.random.Generator], Image.Image]


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds a page."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def printed(count: int) -> list[Rendered]:
    """Documents of one full page."""
    documents = []
    with Renderer() as renderer:
        for index in range(count):
            draws, log = Draws("bench capture", index), PrintLog()
            rows = "".join(_row(log, draws, row) for row in range(LINES))
            body = f"<h1>Invoice {index}</h1><table>{rows}</table>"
            page = Page(body, _STYLE, "en", "Invoice", "Sample", tuple(log.prints))
            documents.append(renderer.render(page, document_id=f"b-{index}", subject="bench"))
    return documents


def _row(log: PrintLog, draws: Draws, row: int) -> str:
    item = log.show("lines", str(row), "item", f"Hose clamp {draws.integer(f'i{row}', 3, 90)}", "x")
    amount = log.show("lines", str(row), "amount", f"{draws.integer(f'a{row}', 1, 999)}.50", "x")
    return f"<tr><td>{item}<td>{amount}"


def by_pillow(pdf: bytes, damage: Damage, dpi: tuple[int, int], *, colour: bool) -> bytes:
    """The same damage to each page of a file, in the way that Pillow's and numpy's documentation leads to."""
    random = np.random.default_rng(7)
    taken = []
    for sheet in pypdfium2.PdfDocument(pdf):
        picture = sheet.render(scale=dpi[0] / 72).to_pil().convert("RGB" if colour else "L")
        if dpi[0] != dpi[1]:
            picture = picture.resize((picture.width, round(picture.height * dpi[1] / dpi[0])))
        taken.append(damage(picture, random))
    stored = io.BytesIO()
    how = {} if taken[0].mode == "1" else {"quality": 70}
    taken[0].save(stored, "PDF", save_all=True, append_images=taken[1:], resolution=dpi[0], **how)
    return stored.getvalue()


def light_scan(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    picture = _turned(picture, 0.6).filter(ImageFilter.GaussianBlur(0.6))
    return _finished(_array(picture) * 0.82 + 36 + _light(picture), random, 3)


def heavy_scan(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    behind = ImageOps.mirror(picture).filter(ImageFilter.GaussianBlur(1.6))
    pixels = np.minimum(_array(picture), 255 - (255 - _array(behind)) * 0.1)
    turned = _turned(Image.fromarray(pixels.astype(np.uint8)), 1.7).filter(ImageFilter.GaussianBlur(1.1))
    pixels = _array(turned) * 0.65 + 60
    pixels *= _wide(_noise_map(random, turned, 4, 3) * 0.1 + 0.9, pixels)
    for column in random.integers(0, turned.width - 2, 4):
        pixels[:, column : column + 2] = np.minimum(pixels[:, column : column + 2], 180)
    return _finished(pixels + _light(turned), random, 8)


def fax(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    picture = _turned(picture, 0.7).filter(ImageFilter.GaussianBlur(0.8))
    pixels = _array(picture) + random.normal(0, 16, (picture.height, picture.width))
    near = _array(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.BoxBlur(20)))
    black = np.where(pixels > near * 0.45 + 73, 255, 0).astype(np.uint8)
    for row in random.integers(0, picture.height - 4, 6):
        black[row, random.integers(0, picture.width) :] = 255
    return Image.fromarray(black).convert("1", dither=Image.Dither.NONE)


def phone_photo(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    margin = picture.width // 11
    size = (picture.width + 2 * margin, picture.height + 2 * margin)
    fibres = Image.fromarray(random.integers(0, 255, (size[1] // 5, 5), dtype=np.uint8)).resize(
        size, Image.Resampling.BICUBIC
    )
    table = ImageOps.colorize(fibres, (128, 86, 52), (196, 150, 104)).convert(picture.mode)
    corners = [
        (margin, margin * 1.3),
        (size[0] - margin * 1.4, margin),
        (size[0] - margin, size[1] - margin),
        (margin * 1.2, size[1] - margin * 1.3),
    ]
    back = _coefficients(corners, [(0, 0), (picture.width, 0), (picture.width, picture.height), (0, picture.height)])
    how = (size, Image.Transform.PERSPECTIVE, back, Image.Resampling.BICUBIC)
    mask = Image.new("L", picture.size, 255).transform(*how)
    shadow = ImageChops.offset(mask, 8, 10).filter(ImageFilter.GaussianBlur(8))
    table = Image.composite(table.point(lambda level: level * 0.5), table, shadow)
    seen = Image.composite(picture.transform(*how), table, mask).filter(ImageFilter.GaussianBlur(1.0))
    seen = seen.filter(ImageFilter.Kernel((5, 5), [0] * 10 + [1] * 5 + [0] * 10))
    hand = Image.new("L", size, 255)
    ImageDraw.Draw(hand).ellipse((0, size[1] // 2, size[0] * 0.8, size[1] * 1.2), fill=180)
    pixels = _array(seen) * _wide(_array(hand.filter(ImageFilter.GaussianBlur(60))) / 255, _array(seen)) * 0.9
    return _finished(pixels + _light(seen), random, 5)


def photocopy(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    picture = _turned(picture, 1.2)
    pixels = 255 - (255 - _array(picture)) * (1 - 0.3 * _noise_map(random, picture, 2, 7))
    levels = np.interp(np.arange(256), [0, 70, 150, 205, 236, 255], [14, 22, 105, 190, 236, 253]).tolist()
    for _ in range(3):
        picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.7))
        pixels = _array(picture)
        pixels[random.integers(0, picture.height, 400), random.integers(0, picture.width, 400)] = 70
        near = _array(Image.fromarray(pixels.astype(np.uint8)).filter(ImageFilter.BoxBlur(15)))
        pixels = np.clip(pixels + (255 - near) * 0.2, 0, 255)
        pixels = _array(Image.fromarray(pixels.astype(np.uint8)).point(levels))
    pixels[:, :30] = 24
    return _finished(pixels + _light(picture), random, 3)


def folded_stained(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    pixels = _array(picture) * 0.8 + 40
    down, across = np.gradient(_noise_map(random, picture, 11, 8) * 255)
    shade = np.clip(1 + (down + across) / 20, 0.6, 1)
    rows = np.arange(picture.height)[:, np.newaxis]
    for fold in (picture.height // 3, picture.height * 2 // 3):
        shade = shade * (1 - 0.2 * np.exp(-np.abs(rows - fold) / 40))
    pixels *= _wide(shade, pixels)
    for _ in range(2):
        ring = Image.new("L", picture.size, 0)
        middle = random.integers(0, picture.width), random.integers(0, picture.height)
        box = (middle[0] - 220, middle[1] - 220, middle[0] + 220, middle[1] + 220)
        ImageDraw.Draw(ring).ellipse(box, fill=12, outline=150, width=8)
        pixels *= _tint(_array(ring.filter(ImageFilter.GaussianBlur(3))), pixels, (196, 150, 92))
    tide = _noise_map(random, picture, 5, 4)
    pixels *= _tint(np.where(tide > 0.7, 60, 0) + np.where(np.abs(tide - 0.7) < 0.02, 150, 0), pixels, (226, 206, 168))
    turned = _turned(Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)), 0.9).filter(
        ImageFilter.GaussianBlur(0.8)
    )
    return _finished(_array(turned) + _light(turned), random, 4)


def highlighter_notes(picture: Image.Image, random: np.random.Generator) -> Image.Image:
    white, yellow, blue = ("white", (255, 250, 90), (28, 52, 150)) if picture.mode == "RGB" else (255, 230, 60)
    marker = Image.new(picture.mode, picture.size, white)
    draw = ImageDraw.Draw(marker)
    for _ in range(8):
        x, y = random.integers(0, picture.width - 200), random.integers(0, picture.height - 40)
        draw.line((x, y, x + 160, y + 3), fill=yellow, width=24)
    picture = ImageChops.multiply(picture, marker.filter(ImageFilter.GaussianBlur(1)))
    draw = ImageDraw.Draw(picture)
    for _ in range(10):
        x, y = random.integers(0, picture.width - 60), random.integers(0, picture.height - 60)
        draw.line([(x, y + 20), (x + 8, y + 32), (x + 30, y)], fill=blue, width=3, joint="curve")
    turned = _turned(picture, 0.8).filter(ImageFilter.GaussianBlur(0.8))
    return _finished(_array(turned) * 0.8 + 40 + _light(turned), random, 4)


def _array(picture: Image.Image) -> Doubles:
    return np.asarray(picture, dtype=np.float64)


def _turned(picture: Image.Image, degrees: float) -> Image.Image:
    white = (246, 248, 250) if picture.mode == "RGB" else 248
    return picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=white)


def _wide(field: Doubles, pixels: Doubles) -> Doubles:
    return field[:, :, np.newaxis] if pixels.ndim == 3 else field


def _light(picture: Image.Image) -> Doubles:
    """Darker towards a corner."""
    x, y = np.meshgrid(np.linspace(0, 1, picture.width), np.linspace(0, 1, picture.height))
    return _wide(-9 * x * y, _array(picture))


def _noise_map(random: np.random.Generator, picture: Image.Image, rows: int, columns: int) -> Doubles:
    heights = Image.fromarray(random.integers(0, 255, (rows, columns), dtype=np.uint8))
    return _array(heights.resize(picture.size, Image.Resampling.BICUBIC)) / 255


def _tint(amount: Doubles, pixels: Doubles, left: tuple[int, int, int]) -> Doubles:
    if pixels.ndim == 2:
        return 1 - amount / 255 * (1 - sum(left) / 765)
    return 1 - amount[:, :, np.newaxis] / 255 * (1 - np.array(left) / 255)


def _coefficients(source: list[tuple[float, float]], target: list[tuple[float, float]]) -> list[float]:
    rows = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return np.linalg.solve(np.array(rows), np.array(target).ravel()).tolist()


def _finished(pixels: Doubles, random: np.random.Generator, deviation: float) -> Image.Image:
    """With the sensor's noise."""
    noise = random.normal(0, deviation, pixels.shape[:2])
    return Image.fromarray(np.clip(pixels + _wide(noise, pixels), 0, 255).astype(np.uint8))


OTHER_WAY: dict[str, Damage] = {
    "light_scan": light_scan,
    "heavy_scan": heavy_scan,
    "fax": fax,
    "phone_photo": phone_photo,
    "photocopy": photocopy,
    "folded_stained": folded_stained,
    "highlighter_notes": highlighter_notes,
}


def compared(condition: str, documents: list[Rendered]) -> Cost:
    """Both ways over the same documents; what each page costs."""
    ours = theirs = 0.0
    capture(documents[0], condition, Draws("warm"), document_id="w", wear=WEAR)
    for index, document in enumerate(documents):
        before = time.process_time()
        taken = capture(document, condition, Draws("bench", index), document_id="b", wear=WEAR)
        between = time.process_time()
        dpi = taken.pages[0].dpi
        assert dpi is not None
        colour = b"/DeviceRGB" in taken.files[0].data
        started = time.process_time()
        by_pillow(document.pdf, OTHER_WAY[condition], dpi, colour=colour)
        ours, theirs = ours + between - before, theirs + time.process_time() - started
    pages = sum(document.pages for document in documents)
    return Cost(ours / pages * 1000, theirs / pages * 1000)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6, help="of each condition")
    parser.add_argument("--condition", choices=sorted(OTHER_WAY), help="this one alone")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    assert set(OTHER_WAY) == set(CONDITIONS) - {CLEAN}
    documents = printed(options.pages)
    print(f"{options.pages} A4 pages of each condition at wear {WEAR}, CPU ms a page\n")
    print(f"{'condition':20} {'Pillow, numpy':>14} {'docgen':>8} {'ratio':>6}")
    worst = float("inf")
    for condition in [options.condition] if options.condition else OTHER_WAY:
        cost = compared(condition, documents)
        worst = min(worst, cost.ratio)
        print(f"{condition:20} {cost.theirs:14.0f} {cost.ours:8.0f} {cost.ratio:6.1f}", flush=True)
    if options.check and worst < PROMISED_RATIO:
        print(f"FAILED: {worst:.1f} times Pillow and numpy, promised {PROMISED_RATIO:g}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
