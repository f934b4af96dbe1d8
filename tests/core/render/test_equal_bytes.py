"""The same page gives the same bytes: in any process, place and time, and whatever was printed before."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from docgen_core.draws import Draws
from docgen_core.render.capture import CONDITIONS, capture

PRINTED_BEFORE = 120
MAKE = textwrap.dedent(
    """
    def sample(log):
        rows = "".join(
            f"<tr><td>{log.show('lines', str(n), 'item', f'Bolzen 軸受 {n}', 'x')}<td>{n * 7},50" for n in range(1, 60)
        )
        style = (
            "@page{size:A4;margin:20mm;@bottom-right{content:counter(page) '/' counter(pages)}}"
            "body{font:10pt/1.4 'Docgen Serif','Docgen JP'}"
        )
        return Page(f"<h1>Rechnung</h1><table>{rows}</table>", style, "de", "Rechnung", "Muster", tuple(log.prints))
    """
)
ALONE = (
    "import hashlib\n"
    "from docgen_core.draws import Draws\n"
    "from docgen_core.render.capture import CONDITIONS, capture\n"
    "from docgen_core.render.chromium import Renderer\n"
    "from docgen_core.render.html import Page, PrintLog\n"
    + MAKE
    + textwrap.dedent(
        """
        with Renderer() as renderer:
            rendered = renderer.render(sample(PrintLog()), document_id="d-1", subject="s")
        for condition in CONDITIONS:
            captured = capture(rendered, condition, Draws(7), document_id="d-1")
            print(hashlib.sha256(captured.files[0].data + repr(captured.boxes).encode()).hexdigest())
        """
    )
)


@pytest.fixture(scope="module")
def digests(renderer: Any) -> list[str]:
    """By condition, from a browser that has printed many other documents."""
    from docgen_core.render.html import Page, PrintLog

    scope: dict[str, Any] = {"Page": Page}
    exec(MAKE, scope)
    for number in range(PRINTED_BEFORE):
        other = Page(f"<h1>Other {number}</h1><p>{'text ' * (number % 40)}</p>", "", "en", "t", "a", ())
        renderer.render(other, document_id=f"o-{number}", subject="s")
    rendered = renderer.render(scope["sample"](PrintLog()), document_id="d-1", subject="s")
    assert rendered.pages > 1
    captured = [capture(rendered, condition, Draws(7), document_id="d-1") for condition in CONDITIONS]
    return [hashlib.sha256(each.files[0].data + repr(each.boxes).encode()).hexdigest() for each in captured]


@pytest.mark.parametrize(
    ("zone", "locale", "hash_seed"),
    [("UTC", "C", "0"), ("Asia/Tokyo", "ja_JP.UTF-8", "1"), ("America/St_Johns", "de_DE.UTF-8", "2")],
)
def test_another_process_elsewhere_makes_the_same_bytes(
    digests: list[str], zone: str, locale: str, hash_seed: str
) -> None:
    environment = {**os.environ, "TZ": zone, "LC_ALL": locale, "LANG": locale, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", ALONE], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == digests


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
