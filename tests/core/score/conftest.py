"""One scored run for all: invoices of every kind there is, and predictions that are the golden set itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from printed_run import printed_run

from docgen_core import golden
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.packs.invoice import PACK
from docgen_core.runs.selection import Selection
from docgen_core.score import Scores, score_run

RUN = "r1"
LOCALES = ("de-DE", "en-US", "fr-FR", "ja-JP")
"""Unlike in their marks, the order of their dates and their scripts."""
Tables = dict[str, list[dict[str, Any]]]


@dataclass
class Corpus:
    """A sealed run, and what a perfect extractor says of it."""

    blobs: MemoryBlobStore
    folder: Path
    perfect: dict[str, Tables]
    """By document and table: the printed cells of each row, canonical."""
    documents: dict[str, dict[str, Any]]
    printed: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    """How a value first stands on its page, by document, table, row key and column."""

    @cached_property
    def before(self) -> Scores:
        """Of the perfect extractor."""
        return self.score(self.perfect)

    def score(self, predicted: dict[str, Tables], **how: Any) -> Scores:
        return score_run(RUN, [self.written(predicted)], blobs=self.blobs, **how)

    def written(self, predicted: dict[str, Tables], name: str = "predictions.jsonl") -> Path:
        lines = [json.dumps({"document_id": document, **tables}) for document, tables in predicted.items()]
        (self.folder / name).write_text("\n".join(lines))
        return self.folder / name

    def copy(self) -> dict[str, Tables]:
        return copy.deepcopy(self.perfect)

    def with_(self, table: str, column: str, fits: Callable[[Any], bool] = bool, locale: str = "") -> tuple[str, int]:
        """The first document, and the place in its table, with such a value."""
        for document, tables in self.perfect.items():
            for place, row in enumerate(tables.get(table, ())):
                if self.documents[document]["locale"].startswith(locale) and column in row and fits(row[column]):
                    return document, place
        raise AssertionError(f"no {table}.{column} in the corpus fits")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    blobs = MemoryBlobStore()
    printed_run(blobs, RUN, PACK, documents=20, companies=50, selection=Selection(locales=LOCALES))
    run = golden.open(RUN, blobs)
    rows: Sequence[dict[str, Any]] = run.table("documents").to_arrow().to_pylist()
    made = Corpus(blobs, tmp_path_factory.mktemp("scored"), {}, {row["document_id"]: row for row in rows})
    placed: dict[tuple[str, str, str], dict[str, Any]] = {}
    for document in made.documents:
        made.perfect[document] = {table: [] for table in PACK.tables}
    for table in PACK.tables:
        for row in run.table(table).to_arrow().to_pylist():
            placed[row["document_id"], table, row["row_key"]] = cells = {}
            made.perfect[row["document_id"]][table].append(cells)
    for box in run.table("field_boxes").to_arrow().to_pylist():
        place = (box["document_id"], box["table_name"], box["row_key"])
        placed[place][box["column_name"]] = box["value"]
        made.printed.setdefault((*place, box["column_name"]), box["text"] or box["value"])  # a bar code has no text
    return made
