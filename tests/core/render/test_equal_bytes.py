"""The same record gives the same bytes: in any process, folder, time zone and locale, on any processor, after anything.

In `make test` a small page, elsewhere and after a few others; with DOCGEN_PROVE=1 an invoice of each layout, in three
places, and after 500 invoices in one browser. Run as a script, this file makes the same files in a process of its own,
and says what they are.
"""

from __future__ import annotations

import locale
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "fabricated"))

from planned_invoices import planned_invoices

from docgen_core.canonical import sha256_hex
from docgen_core.draws import Draws
from docgen_core.render.capture import CLEAN, CONDITIONS, SUFFIXES, Captured, capture
from docgen_core.render.chromium import Renderer
from docgen_core.render.html import Page, PrintLog
from docgen_core.render.webpage import web_page
from docgen_core.render.words import words_of
from docgen_core.runs.source import DocumentSource

PRINTED_BEFORE, FULL_PRINTED_BEFORE = 60, 500
PATIENCE_SECONDS = 5_400
"""For the full figures; a small page takes seconds."""
pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)
COMPANIES = 120
MOST_PAGES = 3
"""Of an invoice that is taken."""
PICTURES = tuple(output for output in SUFFIXES if output != "html")
LESSER_PROCESSOR = {
    "OPENCV_CPU_DISABLE": "AVX2,FMA3,AVX,FP16,AVX512F,AVX512_SKX",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512_SKX",
}
WITHOUT_UTF8 = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""The locale's own encoding, which of C is ASCII."""
PLACES = (
    {
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C",
        "LANG": "ja_JP.UTF-8",
        "PYTHONHASHSEED": "1",
        **WITHOUT_UTF8,
        **LESSER_PROCESSOR,
    },
    {"TZ": "America/St_Johns", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "PYTHONHASHSEED": "2"},
    {"TZ": "UTC", "LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "PYTHONHASHSEED": "3"},
)
"""The first is all that `make test` goes to."""


def sample() -> Page:
    """Two small pages of more than one face."""
    log = PrintLog()
    rows = "".join(
        f"<tr><td>{log.show('lines', str(n), 'item', f'Bolzen 軸受 {n}', 'x')}<td>{n * 7},50" for n in range(1, 21)
    )
    style = (
        "@page{size:105mm 110mm;margin:8mm;@bottom-right{content:counter(page) '/' counter(pages)}}"
        "body{font:10pt/1.4 'Docgen Serif','Docgen JP'}"
    )
    return Page(f"<h1>Rechnung</h1><table>{rows}</table>", style, "de", "Rechnung", "Muster", tuple(log.prints))


def invoices() -> DocumentSource:
    """The documents of a run of the invoice pack."""
    return planned_invoices(10_000, companies=COMPANIES, seed=5)


def taken(renderer: Renderer, name: str, page: Page, outputs: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a page becomes under each condition as these outputs, and as a web page: a line with a digest for each."""
    rendered = renderer.render(page, document_id=name, subject="s")
    rendered = replace(rendered, words=words_of(rendered))
    for condition, wanted in zip(CONDITIONS, outputs, strict=True):
        for output in wanted:
            found = capture(rendered, condition, Draws("bytes", name), document_id=name, output=output)
            yield _line(name, condition, output, found)
    yield _line(name, CLEAN, "html", web_page(page, rendered, document_id=name))


def _line(name: str, condition: str, output: str, found: Captured) -> str:
    told = repr((found.boxes, found.words, found.pages)).encode()
    return f"{name} {condition} {output} {sha256_hex(b''.join((told, *(file.data for file in found.files))))}"


def all_taken(renderer: Renderer, indexes: Sequence[int]) -> Iterator[str]:
    """The small page under each condition as each output; these invoices under each condition, as outputs in turn."""
    yield from taken(renderer, "sample", sample(), [PICTURES] * len(CONDITIONS))
    source = invoices() if indexes else None
    for number, index in enumerate(indexes):
        assert source
        outputs = [[PICTURES[(number + turn) % len(PICTURES)]] for turn in range(len(CONDITIONS))]
        yield from taken(renderer, str(index), source.generate(index).page, outputs)


def of_each_layout(renderer: Renderer) -> list[int]:
    """Print the first invoices of a run; of each layout, the first that is no longer than a few pages."""
    source, first = invoices(), dict[str, int]()
    for index in range(FULL_PRINTED_BEFORE):
        document = source.generate(index)
        printed = renderer.render(document.page, document_id=document.document_id, subject="s")
        if printed.pages <= MOST_PAGES:
            first.setdefault(document.record.layout, index)  # type: ignore[attr-defined]
    return sorted(first.values())


def of_no_layout(renderer: Renderer) -> list[int]:
    """Print something, of which nothing is taken."""
    for number in range(PRINTED_BEFORE):
        other = Page(f"<h1>Other {number}</h1><p>{'text ' * (number % 40)}</p>", "", "en", "t", "a", ())
        renderer.render(other, document_id=f"o-{number}", subject="s")
    return []


def test_another_process_elsewhere_makes_the_same_bytes(
    full_figures: bool, tmp_path: Path, say: Callable[[str], None]
) -> None:
    with Renderer() as renderer:
        indexes = of_each_layout(renderer) if full_figures else of_no_layout(renderer)
        driver = renderer.process_ids()[0]
        here = list(all_taken(renderer, indexes))
        assert renderer.process_ids()[0] == driver, "the browser that printed the others"
    assert len(set(here)) == len(CONDITIONS) * len(PICTURES) + 1 + len(indexes) * (len(CONDITIONS) + 1)
    for place in PLACES if full_figures else PLACES[:1]:
        command = [sys.executable, __file__, *map(str, indexes)]
        environment = {**os.environ, **place}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        settled, *there = done.stdout.splitlines()
        assert there == here, place["TZ"]
        say(f"{place['TZ']}, {settled}: {len(there)} outputs of {1 + len(indexes)} documents alike")


def test_another_document_id_is_another_file(renderer: Any, paper: Any) -> None:
    page = paper.page("<p>x</p>")
    one, two = (renderer.render(page, document_id=name, subject="s").pdf for name in ("d-1", "d-2"))
    assert one != two


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_file_holds_no_clock_and_no_version(renderer: Any, paper: Any, condition: str, pdf_text: Callable) -> None:
    rendered = renderer.render(paper.page("<p>x</p>"), document_id="d-1", subject="s")
    seen = pdf_text(capture(rendered, condition, Draws(1), document_id="d-1").files[0].data)
    for word in ("CreationDate", "ModDate", "Chrom", "Skia", "pikepdf", "qpdf", "D:20"):
        assert word not in seen
    assert "Specimen: synthetic document, not for payment" in seen


if __name__ == "__main__":
    with suppress(locale.Error):  # not every machine has each
        locale.setlocale(locale.LC_ALL, "")
    with Renderer() as alone:
        found = all_taken(alone, [int(index) for index in sys.argv[1:]])
        sys.stdout.writelines(f"{line}\n" for line in (locale.setlocale(locale.LC_ALL), *found))
