"""CPU of this process for the words of a clean document, against printing it and reading its boxes.

    python bench/words.py [--documents N] [--check]

--check exits with 1 when words cost more than half of what the document costs this process and its
browser together: they are made on request because they are dear, and must not become dearer.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil

# ruff: noqa: E402  the path comes first
sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / "fabricated")]

from planned_invoices import planned_invoices

from docgen_core.golden import WORDS
from docgen_core.render.capture import capture
from docgen_core.render.chromium import Renderer
from docgen_core.render.words import words_of
from docgen_core.runs.selection import Selection
from docgen_core.runs.shards import encode_shard, word_rows

MOST_SHARE = 0.5
COMPANIES = 30
WARM_UP = 4
LOCALES = ("de-DE", "en-US", "ja-JP")


def cpu_seconds() -> float:
    """Of this process and every process below it."""
    me = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in (me, *me.children(recursive=True)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    made = planned_invoices(asked.documents, companies=COMPANIES, selection=Selection(locales=LOCALES))
    documents = [made.generate(index) for index in range(asked.documents)]
    with Renderer() as renderer:
        for document in documents[:WARM_UP]:
            renderer.render(document.page, document_id="bench", subject="bench")
        begun = cpu_seconds()
        drawn = [renderer.render(each.page, document_id=each.document_id, subject="bench") for each in documents]
        printing = cpu_seconds() - begun
    begun = time.process_time()
    rows = []
    for document, rendered in zip(documents, drawn, strict=True):
        worded = replace(rendered, words=words_of(rendered))
        draws = made.view.draws(document.index)
        captured = capture(worded, "clean", draws, document_id=document.document_id)
        rows += word_rows(made.run_id, made.view.catalogue.version, document.record, captured)
    shard = encode_shard("words", WORDS, rows)
    words = time.process_time() - begun
    share = words / printing
    count = asked.documents
    print(f"{count} documents, {sum(each.pages for each in drawn)} pages, {len(rows) / count:.0f} words each")
    print(f"printed, boxes read: {printing / count * 1e3:.1f} ms CPU a document (browser and driver included)")
    print(f"words: {words / count * 1e3:.1f} ms CPU and {len(shard) / count:,.0f} bytes a document: {share:.2f} of it")
    return int(asked.check and share > MOST_SHARE)


if __name__ == "__main__":
    sys.exit(main())
