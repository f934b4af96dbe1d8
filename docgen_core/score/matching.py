"""Which predicted row stands for which golden row: one to one, whatever their order.

Rows may be the same when their cells are alike on average; of the assignments of such rows, the one
with the most likeness over all cells is taken. What does not belong here: whether a cell is right
(readings), and counting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz, process
from scipy.optimize import linear_sum_assignment

from docgen_core.score.readings import Kind, folded, is_empty, readings

LEAST_LIKENESS = 0.3
"""Rows less alike than this are not the same row: one is missing, the other invented."""
_IN_ORDER = 1e-6
"""What the same place among the rows counts: it decides between rows that are equal."""

_Matrix = npt.NDArray[np.float64]
Cells = Mapping[str, Any]


def match_rows(
    golden: Sequence[Cells], predicted: Sequence[Cells], kinds: Mapping[str, Kind], locale: str, *, alone: bool
) -> list[tuple[int, int]]:
    """Pairs of golden and predicted rows, in golden order.

    Args:
        golden: the printed cells of each golden row, by column.
        predicted: the cells of each predicted row, by column; empty ones are left out.
        kinds: how each column is compared.
        locale: the document's.
        alone: whether the table has one row a document, which then needs no likeness.
    """
    if not golden or not predicted:
        return []
    if alone:
        return [(0, 0)]
    likeness, cells = _likeness(golden, predicted, kinds, locale)
    same = (cells > 0) & (likeness >= LEAST_LIKENESS * cells)
    height, width = likeness.shape
    apart = np.abs(np.arange(height)[:, None] - np.arange(width)[None, :])
    worth = np.where(same, likeness - _IN_ORDER * apart / max(height, width), 0.0)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [(row, column) for row, column in zip(rows.tolist(), columns.tolist(), strict=True) if same[row, column]]


def _likeness(
    golden: Sequence[Cells], predicted: Sequence[Cells], kinds: Mapping[str, Kind], locale: str
) -> tuple[_Matrix, _Matrix]:
    """Of each golden row to each predicted one, the sum over the cells that both have, and how many these are."""
    total: _Matrix = np.zeros((len(golden), len(predicted)))
    cells: _Matrix = np.zeros_like(total)
    columns = {name for row in golden for name in row} & {name for row in predicted for name in row}
    for name in sorted(columns):
        ours, theirs = [row.get(name) for row in golden], [row.get(name) for row in predicted]
        both = np.outer([not is_empty(value) for value in ours], [not is_empty(value) for value in theirs])
        alike = _equal(ours, theirs, kinds[name], locale)
        if kinds[name] is Kind.TEXT:
            texts = [folded("" if is_empty(value) else value) for value in ours]
            others = [folded("" if is_empty(value) else value) for value in theirs]
            alike = np.maximum(alike, process.cdist(texts, others, scorer=fuzz.ratio, dtype=np.float64) / 100)
        total += np.where(both, alike, 0.0)
        cells += both
    return total, cells


def _equal(ours: Sequence[Any], theirs: Sequence[Any], kind: Kind, locale: str) -> _Matrix:
    """1 where two values share a reading, else 0."""
    where: dict[object, list[int]] = {}
    for place, value in enumerate(theirs):
        if not is_empty(value):
            for reading in readings(kind, value, locale):
                where.setdefault(reading, []).append(place)
    equal: _Matrix = np.zeros((len(ours), len(theirs)))
    for row, value in enumerate(ours):
        if not is_empty(value):
            for reading in readings(kind, value, locale):
                equal[row, where.get(reading, [])] = 1.0
    return equal
