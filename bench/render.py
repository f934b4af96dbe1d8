"""CPU a document: docgen's renderer against a new page per document, and against nothing but a print.

CPU is user and system time of this process and every process below it, those that ended included.
All print the same pages with the same browser; docgen's time includes the gates, reading the boxes and
publishing the file, and for the invoice pack's own documents drawing the record and setting the page
too. The others' is that of the finished HTML alone:
- "new page": a new context and page, its HTML with the faces it needs, `page.pdf`;
- "bare": body and style set into a page that has the faces already, and `Page.printToPDF`: the least
  that a print costs which nothing is done about.
Beside them: where this process's own milliseconds go. What a capture costs is in bench/capture.py.

    python bench/render.py [--documents N] [--check] [--long]

--check exits with 1 below the promised ratio; --long prints 500 documents in one browser and shows memory.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from playwright.sync_api import sync_playwright

# ruff: noqa: E402  the path comes first
sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "fabricated")]

from planned_invoices import planned_invoices

from docgen_core.draws import Draws
from docgen_core.render import boxes as box_reading
from docgen_core.render.capture import capture
from docgen_core.render.chromium import PRINTS_PER_BROWSER, Renderer, chromium_version, find_chromium
from docgen_core.render.fonts import FACES
from docgen_core.render.html import Page, PrintLog

Make = Callable[[], Page]
"""Makes one document's page."""

PROMISED_RATIO = 4.0
"""Of a new page per document over docgen."""
PROMISED_OVER_BARE = 1.2
"""Of docgen over a bare print."""
PROMISED_KIND = "invoices"
"""The invoice pack's documents as a run mixes them; the others show what decides a ratio."""
WARM_UP = 4
DRIVER = "run-driver"
"""A word in the command of playwright's driver."""
TURN = 10
"""Documents that one way makes before the other has its turn."""
SETTLE_SECONDS = 1.0
"""For what a way leaves behind, such as the end of its last page's process, to be counted as its own."""
COMPANIES = 60
LONG_AMONG = 8
"""Long invoices are the longest of so many times their number."""
LONG_DOCUMENTS = 500

_NOUNS = ("Hex bolt", "Bearing", "Gasket", "Relay", "Filter", "Hose clamp", "Cable gland", "Shaft seal", "Spacer")
_JAPANESE_NOUNS = ("六角ボルト", "軸受", "ガスケット", "継電器", "濾過器", "締め金具", "電線管", "軸封", "間座")
_STYLE = """
@page {{ size: A4; margin: 18mm 16mm 22mm;
         @bottom-right {{ content: "Page " counter(page) " of " counter(pages); font: 8pt '{family}' }} }}
body {{ font: 9pt/1.35 '{family}', 'Docgen JP'; }}
h1 {{ font-size: 18pt; margin: 0 0 8mm }}
table {{ width: 100%; border-collapse: collapse; margin-top: 8mm }}
thead th {{ border-bottom: 1pt solid #333; text-align: left; padding: 2pt }}
td {{ border-bottom: .3pt solid #999; padding: 2.5pt 2pt }}
.n {{ text-align: right }}
.sum td {{ font-weight: 700; border: 0 }}
"""


def sample_page(kind: str, index: int) -> Page:
    """An invoice-like page: "light" has 12 lines, "heavy" 2.2 pages on average, "japanese" is set in Japanese."""
    draws = Draws("bench", kind, index)
    japanese = kind == "japanese"
    families = ("Docgen JP", "Docgen JP Serif") if japanese else ("Docgen Sans", "Docgen Serif", "Docgen Condensed")
    family = draws.choice("family", families)
    lines = 12 if kind == "light" else 210 if draws.chance("long", 100) else draws.integer("lines", 12, 60)
    log = PrintLog()

    def shown(row: str, column: str, text: str) -> str:
        return str(log.show("lines" if row else "invoices", row, column, text, text))

    rows, total = [], 0
    for number in range(1, lines + 1):
        each = draws.under(number)
        noun = each.choice("noun", _JAPANESE_NOUNS if japanese else _NOUNS)
        quantity, price = each.integer("quantity", 1, 90), each.integer("price", 99, 25_000)
        total += quantity * price
        cells = (
            shown(str(number), "number", str(number)),
            shown(str(number), "description", f"{noun} {each.integer('size', 3, 90)}/{each.integer('type', 100, 999)}"),
        )
        amounts = (
            shown(str(number), "quantity", str(quantity)),
            shown(str(number), "price", f"{price / 100:,.2f}"),
            shown(str(number), "amount", f"{quantity * price / 100:,.2f}"),
        )
        rows.append(
            "<tr>" + "".join(f"<td>{c}" for c in cells) + "".join(f'<td class="n">{c}' for c in amounts) + "</tr>"
        )
    title = "請求書" if japanese else "Invoice"
    buyer = "株式会社見本商事 御中" if japanese else "Sample Trading Company, 12 Main Street"
    sum_shown = shown("", "total", f"{total / 100:,.2f}")
    body = (
        f"<h1>{title} {shown('', 'number', f'R-{index:06d}')}</h1>"
        f"<p>{shown('', 'buyer', buyer)}</p>"
        "<table><thead><tr><th>#<th>Item<th class=n>Quantity<th class=n>Price<th class=n>Amount</tr></thead>"
        f"<tbody>{''.join(rows)}"
        f'<tr class="sum"><td colspan=4>Total<td class="n">{sum_shown}</tr></tbody></table>'
    )
    return Page(body, _STYLE.format(family=family), "ja" if japanese else "en", title, "Sample", tuple(log.prints))


def sample(kind: str, count: int) -> list[Make]:
    pages = [sample_page(kind, index) for index in range(count)]
    return [lambda page=page: page for page in pages]


def invoices(count: int) -> dict[str, list[Make]]:
    """The invoice pack's documents as a run mixes them, and the longest of a longer run."""
    source = planned_invoices(LONG_AMONG * count, companies=COMPANIES)
    everything = [lambda index=index: source.generate(index).page for index in range(LONG_AMONG * count)]
    by_length = sorted(everything, key=lambda make: len(make().prints))
    return {"invoices": everything[:count], "long invoices": by_length[-count:]}


def cpu_seconds() -> Counter[str]:
    """CPU seconds of this process ("own"), of playwright's drivers and of browsers below it, so far.

    Those that ended and were waited for are in their parent's.
    """
    me = psutil.Process()
    spent: Counter[str] = Counter()
    for process in (*me.children(recursive=True), me):
        try:
            part = "own" if process == me else "driver" if DRIVER in process.cmdline() else "browser"
            times = process.cpu_times()
        except psutil.Error:
            continue
        spent[part] += times.user + times.system + times.children_user + times.children_system
    return spent


@contextmanager
def docgen_way() -> Iterator[Callable[[Make], None]]:
    with Renderer() as renderer:

        def work(make: Make) -> None:
            rendered = renderer.render(make(), document_id="bench", subject="bench")
            capture(rendered, "clean", Draws("bench"), document_id="bench")

        yield work


_SWAP = """([lang, style, body]) => {
  document.documentElement.lang = lang;
  document.getElementById('own').textContent = style;
  document.body.innerHTML = body;
}"""

_BARE_OPTIONS = {"preferCSSPageSize": True, "printBackground": True, "generateTaggedPDF": False}
"""Untagged as docgen's documents are: a tagged one costs a fifth more."""


class Finished(NamedTuple):
    """What the other ways are given."""

    page: Page
    html: str
    """Standing alone."""


@contextmanager
def other_ways(executable: Path) -> Iterator[dict[str, Callable[[Finished], None]]]:
    """A new context and page per document; and nothing but swapping what a page shows, and its print."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable)

        def new_page(document: Finished) -> None:
            context = browser.new_context()
            tab = context.new_page()
            tab.set_content(document.html)
            tab.pdf(prefer_css_page_size=True, print_background=True)
            context.close()

        live = browser.new_page()
        live.set_content(f"<!doctype html><style>{FACES.css(FACES.families)}</style><style id=own></style>")
        session = live.context.new_cdp_session(live)

        def bare(document: Finished) -> None:
            page = document.page
            live.evaluate(_SWAP, [page.lang, page.style, page.body])
            session.send("Page.printToPDF", _BARE_OPTIONS)

        yield {"new page": new_page, "bare": bare}
        browser.close()


def standing_alone(page: Page) -> str:
    """The page as HTML that brings its faces along, those that draw something in it."""
    needed = [face for face in FACES.families if face in page.style and ("JP" not in face or page.lang[:2] == "ja")]
    return (
        f'<!doctype html><html lang="{page.lang}"><head><meta charset="utf-8"><style>{FACES.css(needed)}{page.style}'
        f"</style></head><body>{page.body}</body></html>"
    )


def compared(makes: Sequence[Make], executable: Path) -> tuple[dict[str, float], Counter[str]]:
    """CPU milliseconds a document: of the other ways, and docgen's by part.

    They take turns, so that whatever else the machine does meets all.
    """
    spent = Counter[str]()
    ours = Counter[str]()
    finished = [Finished(page, standing_alone(page)) for page in (make() for make in makes)]
    with other_ways(executable) as ways, docgen_way() as docgen:
        for document in finished[:WARM_UP]:
            ways["new page"](document)
        for make, document in zip(makes, finished, strict=True):  # a face is loaded once in a browser's life
            docgen(make)
            ways["bare"](document)
        for start in range(0, len(makes), TURN):
            turn = slice(start, start + TURN)
            for name, way in ways.items():
                spent[name] += _turn(way, finished[turn]).total()
            ours += _turn(docgen, makes[turn])
    scale = 1000 / len(makes)
    each = {name: seconds * scale for name, seconds in spent.items()}
    return each, Counter({part: seconds * scale for part, seconds in ours.items()})


def _turn(way: Callable[[Any], None], documents: Sequence[Any]) -> Counter[str]:
    """CPU seconds of one way's turn."""
    before = cpu_seconds()
    for document in documents:
        way(document)
    time.sleep(SETTLE_SECONDS)
    return cpu_seconds() - before


@contextmanager
def lap(stages: dict[str, float], name: str) -> Iterator[None]:
    before = time.process_time()
    yield
    stages[name] = stages.get(name, 0.0) + time.process_time() - before


def stages_of(pages: Sequence[Page]) -> dict[str, float]:
    """Milliseconds of this process by stage; the browser's own time is not in them."""
    stages: dict[str, float] = {}
    with Renderer() as renderer:
        renderer.render(pages[0], document_id="bench", subject="bench")
        for page in pages:
            with lap(stages, "glyph check"):
                drawn = set().union(*(map(unescape, (page.body, page.running_text, page.style))))
                renderer._check_glyphs(page, drawn)
                families = renderer._needed(page, drawn)
            with lap(stages, "swap, print, fetch"):
                raw = renderer._print(page, page.body, families)
            with lap(stages, "read text and links"):
                _, texts, fragments = box_reading._read(raw)
            with lap(stages, "tie boxes to the log"):
                box_reading._tie(page.prints, fragments)
            with lap(stages, "strip, stamp, save"):
                box_reading._publish(raw, page, texts, renderer._face_names, document_id="bench", subject="bench")
    return {name: seconds / len(pages) * 1000 for name, seconds in stages.items()}


def long_life() -> None:
    """Memory over many documents in one browser."""
    print(f"\n{'documents':>10} {'browser MB':>11} {'worker MB':>10}")
    with Renderer(prints_per_browser=max(PRINTS_PER_BROWSER, LONG_DOCUMENTS + 1)) as renderer:
        for index in range(1, LONG_DOCUMENTS + 1):
            kind = ("light", "heavy", "japanese")[index % 3]
            renderer.render(sample_page(kind, index), document_id="bench", subject="bench")
            if index in (10, 50) or index % 100 == 0:
                own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"{index:>10} {(renderer.private_bytes() or 0) / 1e6:>11.0f} {own:>10.0f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=40, help="pages of each kind")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    executable = find_chromium()
    print(f"{chromium_version(executable)}, {options.documents} documents of each kind, CPU ms per document\n")
    print(
        f"{'kind':14} {'new page':>9} {'bare':>7} {'docgen':>8} {'new/us':>7} {'us/bare':>8}"
        f" {'of docgen:':>12} {'browser':>8} {'driver':>7} {'own':>6}"
    )
    ratios: dict[str, tuple[float, float]] = {}
    kinds = {kind: sample(kind, options.documents) for kind in ("light", "heavy", "japanese")}
    for kind, makes in (kinds | invoices(options.documents)).items():
        others, parts = compared(makes, executable)
        ours = parts.total()
        ratios[kind] = others["new page"] / ours, ours / others["bare"]
        shown = f"{parts['browser']:8.1f} {parts['driver']:7.1f} {parts['own']:6.1f}"
        both = f"{ratios[kind][0]:7.2f} {ratios[kind][1]:8.2f}"
        print(
            f"{kind:14} {others['new page']:9.1f} {others['bare']:7.1f} {ours:8.1f} {both} {'':12} {shown}", flush=True
        )
    heavy = [sample_page("heavy", index) for index in range(options.documents)]
    print("\nThis process's own share, heavy, ms per document")
    for name, milliseconds in stages_of(heavy).items():
        print(f"  {name:22} {milliseconds:6.2f}")
    if options.long:
        long_life()
    cheaper, dearer = ratios[PROMISED_KIND]
    if options.check and (cheaper < PROMISED_RATIO or dearer > PROMISED_OVER_BARE):
        print(
            f"FAILED for {PROMISED_KIND}: {cheaper:.2f} times less than a new page, promised {PROMISED_RATIO:g}; "
            f"{dearer:.2f} times a bare print, promised {PROMISED_OVER_BARE:g} at most"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
