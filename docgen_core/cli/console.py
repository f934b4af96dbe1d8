"""What a command says: tables and a bar at a terminal, one JSON object a line in a pipe.

Results go to standard output; what explains them goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.table import Table

from docgen_core.errors import ReaderLeft

err = Console(stderr=True, highlight=False)
out = Console(highlight=False)

_FRESH_LINE = Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2))
"""A fleet's bar may stand in the line where one of its workers is to write; it is drawn anew in the next."""


def at_terminal() -> bool:
    """Whether a person is reading standard output."""
    return sys.stdout.isatty()


def note(message: str) -> None:
    """A line about what is going on, for people; a bar, be it another process's, goes on below it."""
    with err:
        err.control(_FRESH_LINE)
        err.print(message, markup=False, soft_wrap=True)


def emit(event: str, **fields: Any) -> None:
    """One JSON event on standard output, whole, even with other processes writing there."""
    _write(json.dumps({"event": event, **fields}, ensure_ascii=False, default=str) + "\n")


def result(fields: Mapping[str, Any]) -> None:
    """A command's result as one JSON object."""
    _write(json.dumps(fields, ensure_ascii=False, indent=2 if at_terminal() else None, default=str) + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """A table at a terminal; tab-separated lines in a pipe."""
    if not at_terminal():
        _write("".join("\t".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows))
        return
    grid = Table(title=title, title_justify="left", header_style="bold")
    for column in columns:
        grid.add_column(column, overflow="fold")  # half the name of a model would be nobody's
    for row in rows:
        grid.add_row(*("" if cell is None else str(cell) for cell in row))
    out.print(grid)


def _write(text: str) -> None:
    """Raise `ReaderLeft` when nobody reads any more."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer must not fail once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReaderLeft from None
