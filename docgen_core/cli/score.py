"""`docgen score`: predictions against a run's golden set, told at a terminal or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docgen_core.cli import console
from docgen_core.cli.options import AsJson, Blobs, RunId, State, published
from docgen_core.errors import UsageError

if TYPE_CHECKING:
    from docgen_core.score import Scores

MISSED_EXIT_CODE = 1


def score(
    run: RunId,
    predictions: Annotated[
        list[Path], typer.Argument(metavar="PREDICTIONS…", help="Files of predictions: .parquet, .csv, .jsonl.")
    ],
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="FIELD", help="Score these fields only (repeat): gross_total, line_items.sku."),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            "--at-least",
            metavar="FIELD[:MEASURE]=NUMBER",
            help="End with code 1 below this F1 (or precision, recall, accuracy): gross_total=0.95, all:recall=0.9.",
        ),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option("--parquet", metavar="FILE", help="Write each judged value there.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a report there.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Score an extractor's predictions against the run's golden set (docs/scoring.md tells their form)."""
    from docgen_core.runs.manifest import refuse_unknown
    from docgen_core.score import score_run
    from docgen_core.score.report import CellReport
    from docgen_core.score.report import html as as_html
    from docgen_core.score.thresholds import missed, parse_thresholds

    thresholds = parse_thresholds(at_least or ())
    _refuse_no_place(predictions, [report for report in (parquet, html) if report is not None])
    with published(state, blobs) as here:
        refuse_unknown(here.blobs, here.state, run)
        with CellReport(run, parquet) as cells:
            scores = score_run(run, predictions, blobs=here.blobs, fields=field or (), on_cell=cells.take)
            below = missed(scores, thresholds)  # what cannot be judged leaves no report
    if html is not None:
        html.write_text(as_html(scores, cells.mistakes), encoding="utf-8")
    if as_json or not console.at_terminal():
        console.result({**scores.as_json(), "missed": [str(each) for each in below]})
    else:
        tell(scores)
    for each in below:
        console.note(f"too low: {each}")
    return MISSED_EXIT_CODE if below else 0


def tell(scores: Scores) -> None:
    """The scores as tables."""
    from docgen_core.score.report import COLUMNS, field_rows, not_attempted, slice_rows

    told = f"run {scores.run_id}: {scores.documents} documents, {scores.predicted_documents} predicted"
    _print(f"{told}, {scores.perfect_documents} without a fault", COLUMNS, field_rows(scores))
    rows = [(name, count.golden, count.predicted, count.matched) for name, count in scores.rows.items()]
    _print("rows, matched one to one", ("table", "golden", "predicted", "matched"), rows)
    _print("everything that is printed, by", ("slice", *COLUMNS[1:]), slice_rows(scores))
    if left := not_attempted(scores):
        console.note(f"not attempted, and counted as missing in all printed: {', '.join(left)}")


def _print(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table of names and numbers that fits a narrow terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    grid = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    grid.add_column(columns[0], overflow="fold")
    for name in columns[1:]:
        grid.add_column(_SHORT.get(name, name), justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(*map(str, row))
    console.out.print(grid)


_SHORT = {"missing": "miss", "spurious": "spur", "precision": "prec", "recall": "rec", "accuracy": "acc"}


def _refuse_no_place(predictions: Sequence[Path], reports: Sequence[Path]) -> None:
    """Raise `UsageError` before anything is scored when a report could not be written, or over what is read."""
    taken = {path.resolve() for path in predictions}
    for report in reports:
        folder = report.absolute().parent
        if report.is_dir() or not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise UsageError(f"cannot write {str(report)!r}: name a file in a folder that is there and may be written")
        if report.resolve() in taken:
            raise UsageError(f"cannot write {str(report)!r}: it is another file of this command; name a new one")
        taken.add(report.resolve())
