"""What an extractor says, read from Parquet, CSV or JSON lines, every value with its document, row and field.

Three forms are read (docs/scoring.md): a line a value, a line a printed row, or a nested object a
document. Whatever does not fit is refused with its place. What does not belong here: whether a
value is right.
"""

from __future__ import annotations

import csv
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.errors import UsageError
from docgen_core.golden import KEY_FIELDS
from docgen_core.score.readings import is_empty

DOCUMENT, RUN, ROW, FIELD, VALUE, TABLE = "document_id", "run_id", "row", "field", "value", "table"
_KEYS = frozenset((*(key.name for key in KEY_FIELDS), ROW, TABLE))
_ONLY_ROW = ""
"""The row of a table that has one a document."""

_PAGE = re.compile(r"-p\d{4}$")
"""At the end of the name of a file that is one page of its document."""
_DELIMITERS = ",;\t"

Record = Mapping[str, Any]
Cells = dict[str, Any]
Tables = dict[str, dict[str | int, Cells]]
"""By table and row: the row's name in a line a value, else its number."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What can be predicted: the columns of each table of the document type."""

    tables: Mapping[str, tuple[str, ...]]
    """Columns by table. The first table has one row a document; its columns need no table's name."""

    @property
    def head(self) -> str:
        """The table of one row a document."""
        return next(iter(self.tables))

    def name(self, table: str, column: str) -> str:
        """How a field is called."""
        return column if table == self.head else f"{table}.{column}"

    def find(self, name: str) -> tuple[str, str]:
        """Table and column of a field. Raises `ValueError` naming what is meant."""
        table, mark, column = name.partition(".")
        if not mark:
            homes = [table for table, columns in self.tables.items() if name in columns]
            if homes and (homes[0] == self.head or len(homes) == 1):
                return homes[0], name
        elif column in self.tables.get(table, ()):
            return table, column
        known = [self.name(table, column) for table, columns in self.tables.items() for column in columns]
        raise ValueError(f"no field {name!r}{_meant(name, known)}")


@dataclass(slots=True)
class Predictions:
    """Predicted cells by document, table and row."""

    documents: dict[str, Tables] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    """Where a document is first spoken of."""
    runs: dict[str, str] = field(default_factory=dict)
    """Runs that the predictions say they are of, with the first place that says so."""
    attempted: set[tuple[str, str]] = field(default_factory=set)
    """Tables and columns that any value was predicted of."""

    def rows(self, document_id: str, table: str) -> list[Cells]:
        """Predicted rows of a document, in the order they were given."""
        return [row for row in self.documents.get(document_id, {}).get(table, {}).values() if row]


def read_predictions(paths: Sequence[Path], fields: Fields) -> Predictions:
    """Everything the files say. Raises `UsageError` with the place of what does not fit."""
    found = Predictions()
    for path in paths:
        reader = _Reader(found, fields)
        for place, record in _records(path):
            try:
                reader.take(place, record)
            except ValueError as wrong:
                raise UsageError(f"{path.name}, {place}: {wrong}") from None
    if not found.documents:
        raise UsageError(f"{', '.join(path.name for path in paths)} holds no predictions")
    return found


# Files -------------------------------------------------------------------------------------


def _records(path: Path) -> Iterator[tuple[str, Record]]:
    """Each record of a file with its place."""
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        raise UsageError(f"predictions {str(path)!r}: name a file ending in {', '.join(_FORMATS)}")
    try:
        yield from reader(path)
    except FileNotFoundError:
        raise UsageError(f"no file of predictions at {str(path)!r}") from None
    except UnicodeDecodeError:
        raise UsageError(f"predictions {str(path)!r} are not UTF-8 text") from None
    except (csv.Error, pa.ArrowException, OSError, ValueError, ArithmeticError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"predictions {str(path)!r} cannot be read: {reason}") from None


def _parquet(path: Path) -> Iterator[tuple[str, Record]]:
    number = 0
    with path.open("rb") as opened:
        file = pq.ParquetFile(opened)
        _refuse_doubles(path, file.schema_arrow.names)
        for batch in file.iter_batches():
            for record in batch.to_pylist():
                number += 1
                yield f"row {number}", record


def _csv(path: Path) -> Iterator[tuple[str, Record]]:
    with path.open(encoding="utf-8-sig", newline="") as opened:
        reader = csv.DictReader(opened, delimiter=_delimiter(opened), strict=True, skipinitialspace=True)
        names = reader.fieldnames or ()
        _refuse_doubles(path, names)
        if names and DOCUMENT not in names:
            raise UsageError(f"{path.name}: no column is called {DOCUMENT!r}; there are {', '.join(names)}")
        for record in reader:
            place = f"line {reader.line_num}"
            if None in record or None in record.values():
                raise UsageError(f"{path.name}, {place}: {len(names)} columns are named, and it has more or fewer")
            yield place, record


def _delimiter(opened: TextIO) -> str:
    """What sets the columns of a CSV file apart: that by which its first line names the document."""
    names = opened.readline().strip()
    opened.seek(0)
    fitting = (mark for mark in _DELIMITERS if DOCUMENT in (name.strip(' "') for name in names.split(mark)))
    return next(fitting, _DELIMITERS[0])


def _refuse_doubles(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise UsageError(f"{path.name}: a column stands there twice: {', '.join(names)}")


def _json_lines(path: Path) -> Iterator[tuple[str, Record]]:
    with path.open(encoding="utf-8-sig") as opened:
        for number, line in enumerate(opened, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line, parse_float=Decimal, object_pairs_hook=_object)
                json.dumps(record, ensure_ascii=False, default=str).encode()  # "\\ud800" is half a character
            except _StandsTwice as twice:
                raise UsageError(f"{path.name}, line {number}: {twice} stands there twice in one object") from None
            except (ValueError, ArithmeticError, RecursionError):
                raise UsageError(f"{path.name}, line {number}: it is no JSON") from None
            if not isinstance(record, dict):
                raise UsageError(f"{path.name}, line {number}: give one JSON object a line")
            yield f"line {number}", record


class _StandsTwice(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _StandsTwice(repr(next(name for name in names if names.count(name) > 1)))
    return found


_FORMATS = {".parquet": _parquet, ".csv": _csv, ".jsonl": _json_lines}


# Forms -------------------------------------------------------------------------------------


class _Reader:
    """Takes the records of one file, whichever of the forms they have."""

    def __init__(self, found: Predictions, fields: Fields) -> None:
        self._found, self._fields = found, fields
        self._home: dict[frozenset[str], str] = {}

    def take(self, place: str, record: Record) -> None:
        """Add what a record says. Raises `ValueError` for what does not fit."""
        document_id = _document(record)
        if not is_empty(run := record.get(RUN)):
            self._found.runs.setdefault(str(run), place)
        self._found.places.setdefault(document_id, place)
        tables = self._found.documents.setdefault(document_id, {})
        if FIELD in record and VALUE in record:
            table, column = self._fields.find(str(record[FIELD]))
            self._put(tables, table, self._row_of(table, record), {column: record[VALUE]})
        elif any(isinstance(value, list | dict) or name in self._fields.tables for name, value in record.items()):
            self._nested(tables, record)
        else:
            self._wide(tables, record)

    def _nested(self, tables: Tables, record: Record) -> None:
        head: Cells = {}
        for name, value in record.items():
            if name in self._fields.tables:
                rows = value if isinstance(value, list) else [] if is_empty(value) else [value]
                for row in rows:
                    if not isinstance(row, dict):
                        raise ValueError(f"{name!r} holds {row!r}; give a list of objects, one a printed row")
                    self._put(tables, name, self._next(tables, name), self._known(name, row))
            elif name not in _KEYS:
                head[name] = value
        if head:
            self._put(tables, self._fields.head, _ONLY_ROW, self._known(self._fields.head, head))

    def _next(self, tables: Tables, table: str) -> str | int:
        """The place of another row that has no name."""
        return _ONLY_ROW if table == self._fields.head else len(tables.get(table, ()))

    def _wide(self, tables: Tables, record: Record) -> None:
        given = record.get(TABLE)
        table = str(given) if not is_empty(given) else self._home_of(frozenset(record) - _KEYS)
        if table not in self._fields.tables:
            raise ValueError(f"no table {table!r}; there are {', '.join(self._fields.tables)}")
        # A file of many tables has columns that a row of one of them leaves empty.
        said = {name: value for name, value in record.items() if name not in _KEYS and not is_empty(value)}
        row = self._next(tables, table)
        if row in tables.get(table, {}):
            raise ValueError(f"a second row of {table!r}, which has one a document")
        self._put(tables, table, row, self._known(table, said))

    def _home_of(self, columns: frozenset[str]) -> str:
        """The table that has all of these columns."""
        if columns not in self._home:
            homes = [name for name, known in self._fields.tables.items() if columns <= set(known)]
            if not homes:
                self._known(self._fields.head, dict.fromkeys(columns))
            if len(homes) > 1 and homes[0] != self._fields.head:
                raise ValueError(f"these columns are in {' and '.join(homes)}; name the table in a column `table`")
            self._home[columns] = homes[0]
        return self._home[columns]

    def _known(self, table: str, cells: Mapping[str, Any]) -> Cells:
        """The cells, each of a column of the table; keys of the golden set are passed over."""
        kept = {name: value for name, value in cells.items() if name not in _KEYS}
        for name in kept:
            if not name.strip():
                raise ValueError("a column has no name; name it, or leave it out (pandas: index=False)")
            if name not in self._fields.tables[table]:
                raise ValueError(f"no column {name!r} in {table!r}{_meant(name, self._fields.tables[table])}")
        return kept

    def _row_of(self, table: str, record: Record) -> str:
        if table == self._fields.head:
            return _ONLY_ROW
        if is_empty(row := record.get(ROW)):
            raise ValueError(f"{record[FIELD]!r} is one of many rows: say which in a column `row`, in any numbering")
        return str(row)

    def _put(self, tables: Tables, table: str, row: str | int, cells: Cells) -> None:
        held = tables.setdefault(table, {}).setdefault(row, {})
        for column, value in cells.items():
            if is_empty(value):
                continue
            if isinstance(value, list | dict):
                raise ValueError(f"{table}.{column} holds a list or an object; give one value")
            if column in held:
                raise ValueError(f"{self._fields.name(table, column)} of this document stands there twice")
            held[column] = value
            self._found.attempted.add((table, column))


def _document(record: Record) -> str:
    """The document that a record speaks of; the name or path of its file, or of a page's, will do."""
    given = record.get(DOCUMENT)
    if is_empty(given):
        raise ValueError(f"it names no document; give its id, or its file's name, as {DOCUMENT!r}")
    return _PAGE.sub("", PurePath(str(given).strip().replace("\\", "/")).name.partition(".")[0])


def _meant(name: str, known: Iterable[str]) -> str:
    listed = list(known)
    near = difflib.get_close_matches(name, listed, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(listed)}"
