"""One document: each golden value that is printed on it, and what was predicted for it.

A golden value that the page does not print cannot be extracted, and is not judged. What does not
belong here: adding outcomes up (counting), and where documents come from (run).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from rapidfuzz import fuzz

from docgen_core.score.counting import Outcome
from docgen_core.score.matching import match_rows
from docgen_core.score.readings import Kind, folded, is_empty, readings

Cells = Mapping[str, Any]
Texts = Mapping[tuple[str, str], Collection[str]]
"""By row key and column of a table: how the value is written in canonical form, and as printed."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One judged place of a document."""

    table: str
    column: str
    row_key: str | None
    """Of the golden row; None where a row was predicted that there is not."""
    golden: str | None
    """In canonical form."""
    predicted: str | None
    outcome: Outcome
    exact: bool = False
    likeness: float = 0.0


@dataclass(frozen=True, slots=True)
class TableJudged:
    """The cells of one table of a document, and how many of its rows were found."""

    cells: tuple[Cell, ...]
    golden_rows: int
    predicted_rows: int
    matched_rows: int


def judge_table(
    table: str,
    golden: Sequence[Cells],
    printed: Texts,
    predicted: Sequence[Cells],
    kinds: Mapping[str, Kind],
    locale: str,
    *,
    alone: bool,
) -> TableJudged:
    """Hold the predicted rows of a document's table against its golden ones, matched one to one.

    Args:
        table: its name.
        golden: its golden rows, `row_key` among their columns.
        printed: the cells that the page prints.
        predicted: the predicted rows, by column.
        kinds: of the table's columns.
        locale: the document's.
        alone: whether the table has one row a document.
    """
    shown = [{name: row[name] for name in kinds if (row["row_key"], name) in printed} for row in golden]
    on_page = {column for _, column in printed}
    unasked = {name for row in golden for name in kinds if not is_empty(row[name])} - on_page
    theirs = [{name: value for name, value in row.items() if name in kinds} for row in predicted]
    pairs = dict(match_rows(shown, theirs, kinds, locale, alone=alone))
    cells: list[Cell] = []
    for place, row in enumerate(golden):
        found = theirs[pairs[place]] if place in pairs else {}
        cells += _judge_row(table, row, printed, found, kinds, locale)
    invented = [row for place, row in enumerate(theirs) if place not in set(pairs.values())]
    cells += (
        Cell(table, name, None, None, str(value), Outcome.SPURIOUS)
        for row in invented
        for name, value in row.items()
        if name not in unasked
    )
    return TableJudged(tuple(cells), len(golden), len(predicted), len(pairs))


def _judge_row(
    table: str, row: Cells, printed: Texts, found: Cells, kinds: Mapping[str, Kind], locale: str
) -> Iterator[Cell]:
    key = row["row_key"]
    for name, kind in kinds.items():
        golden, predicted = row[name], found.get(name)
        said = None if is_empty(predicted) else str(predicted)
        texts = printed.get((key, name))
        if texts is not None:
            yield _judge(
                Cell(table, name, key, canonical(golden), said, Outcome.MISSING), golden, predicted, texts, kind, locale
            )
        elif is_empty(golden):
            yield Cell(table, name, key, None, said, Outcome.EMPTY if said is None else Outcome.SPURIOUS)


def _judge(blank: Cell, golden: Any, predicted: Any, texts: Collection[str], kind: Kind, locale: str) -> Cell:
    """The cell with its outcome; `blank` says that it is missing."""
    if blank.predicted is None:
        return blank
    meant = readings(kind, golden, locale)
    if kind is Kind.TEXT:  # which is also right as this page prints it
        meant = meant.union(*(readings(kind, text, locale) for text in texts))
    right = not meant.isdisjoint(readings(kind, predicted, locale))
    likeness = 1.0 if right else 0.0
    if not right and kind is Kind.TEXT:
        likeness = fuzz.ratio(folded(golden), folded(predicted)) / 100
    return Cell(
        table=blank.table,
        column=blank.column,
        row_key=blank.row_key,
        golden=blank.golden,
        predicted=blank.predicted,
        outcome=Outcome.RIGHT if right else Outcome.WRONG,
        exact=right and canonical(predicted) in texts,
        likeness=likeness,
    )


def canonical(value: Any) -> str:
    """A value as text: a decimal without needless zeros, a date in ISO form, a truth value in small letters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(value)
