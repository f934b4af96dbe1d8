"""Scores as people and programs read them: rows of tables, a page of HTML, judged cells as Parquet.

What does not belong here: counting, and the terminal (cli).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader

from docgen_core.score.counting import MEASURES, SLICES, Outcome, Tally, total
from docgen_core.score.judging import Cell
from docgen_core.score.run import Scores

COLUMNS = ("field", "golden", "right", "wrong", "missing", "spurious", *MEASURES)
SHOWN_MISTAKES = 200
"""Of an HTML report: the first so many faults of attempted fields; those of the others would hide them."""
BATCH_CELLS = 50_000
"""Cells that are held before they are written."""

CELLS = pa.schema(
    [
        pa.field("run_id", pa.string()),
        pa.field("document_id", pa.string()),
        *(pa.field(name, pa.string()) for name in SLICES),
        pa.field("table_name", pa.string()),
        pa.field("column_name", pa.string()),
        pa.field(
            "row_key", pa.string(), metadata={"description": "Of the golden row; null for a row that there is not."}
        ),
        pa.field("golden", pa.string()),
        pa.field("predicted", pa.string()),
        pa.field("outcome", pa.string(), metadata={"description": "right, wrong, missing or spurious."}),
        pa.field("exact", pa.bool_(), metadata={"description": "Right, and written as printed or in canonical form."}),
        pa.field("likeness", pa.float64(), metadata={"description": "From 0 to 1; 1 where it is right."}),
    ]
)
"""The Parquet report: one row a judged cell."""


def field_rows(scores: Scores) -> list[tuple[str, ...]]:
    """A row a field that was attempted, and their total, and that of all that is printed."""
    rows = [_row(name, tally) for name, tally in scores.fields.items() if name in scores.attempted]
    return [*rows, _row("all attempted", scores.total_attempted), _row("all printed", scores.total)]


def slice_rows(scores: Scores) -> Iterator[tuple[str, ...]]:
    """A row a slice: all its fields together."""
    for by in SLICES:
        for value, fields in scores.slices(by).items():
            yield _row(f"{by} {value}", total(fields.values()))


def not_attempted(scores: Scores) -> list[str]:
    """Fields that are printed and that no value was predicted of."""
    return [name for name in scores.fields if name not in scores.attempted]


def percent(measure: Fraction | None) -> str:
    """A measure in per cent, cut and not rounded; no sign, for a column of them."""
    return "" if measure is None else f"{measure * 1000 // 1 / 10:.1f}"


def _row(name: str, tally: Tally) -> tuple[str, ...]:
    counts = (tally.golden, *(tally.outcomes[outcome] for outcome in list(Outcome)[:4]))
    return (name, *map(str, counts), *(percent(getattr(tally, measure)) for measure in MEASURES))


def html(scores: Scores, mistakes: list[tuple[Mapping[str, Any], Cell]]) -> str:
    """The report as one page that needs nothing else."""
    environment = Environment(loader=PackageLoader("docgen_core.score"), autoescape=True, trim_blocks=True)
    return environment.get_template("report.html").render(
        scores=scores,
        columns=COLUMNS,
        fields=[_row(name, tally) for name, tally in scores.fields.items()],
        totals=field_rows(scores)[-2:],
        slices=[(by, list(_slices_by(scores, by))) for by in SLICES],
        mistakes=mistakes,
    )


def _slices_by(scores: Scores, by: str) -> Iterator[tuple[str, ...]]:
    for value, fields in scores.slices(by).items():
        yield _row(value, total(fields.values()))


@dataclass(slots=True)
class CellReport:
    """Takes judged cells as they come: writes them to Parquet, and keeps the first mistakes of attempted fields.

    A context manager; the file is only there when everything was written.
    """

    run_id: str
    parquet: Path | None = None
    mistakes: list[tuple[Mapping[str, Any], Cell]] = field(default_factory=list)
    _held: list[dict[str, Any]] = field(default_factory=list)
    _writer: Any = None

    def __enter__(self) -> Self:
        if self.parquet is not None:
            self._writer = pq.ParquetWriter(self._partial, CELLS, compression="zstd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.parquet is None:
            return
        if error is None:
            self._flush()
        self._writer.close()
        if error is None:
            self._partial.replace(self.parquet)
        else:
            self._partial.unlink()

    def take(self, document: Mapping[str, Any], cell: Cell, attempted: bool) -> None:
        """One judged cell, with its document's row in `documents`, and whether anything was predicted of its field."""
        if cell.outcome is Outcome.EMPTY:
            return
        if attempted and cell.outcome is not Outcome.RIGHT and len(self.mistakes) < SHOWN_MISTAKES:
            self.mistakes.append((document, cell))
        if self.parquet is not None:
            self._held.append(self._row(document, cell))
            if len(self._held) >= BATCH_CELLS:
                self._flush()

    def _row(self, document: Mapping[str, Any], cell: Cell) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "document_id": document["document_id"],
            **{name: document[name] for name in SLICES},
            "table_name": cell.table,
            "column_name": cell.column,
            "row_key": cell.row_key,
            "golden": cell.golden,
            "predicted": cell.predicted,
            "outcome": cell.outcome.value,
            "exact": cell.exact,
            "likeness": cell.likeness,
        }

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._held, CELLS))
        self._held.clear()

    @property
    def _partial(self) -> Path:
        assert self.parquet is not None
        return self.parquet.with_name(f".{self.parquet.name}.partial")
