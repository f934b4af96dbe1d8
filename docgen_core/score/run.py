"""Score predictions against a sealed run: unit by unit, every golden byte checked against its manifest.

What does not belong here: how scores are told (report), and thresholds (thresholds).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import UsageError
from docgen_core.export.reader import RunReader, open_run
from docgen_core.golden import KEY_FIELDS
from docgen_core.packs import load_pack
from docgen_core.runs.keys import default_prefix, document_id
from docgen_core.runs.manifest import Plan, read_plan, read_root
from docgen_core.score.counting import SLICES, Outcome, RowCount, Tally, total
from docgen_core.score.judging import Cell, TableJudged, canonical, judge_table
from docgen_core.score.predictions import Fields, Predictions, read_predictions
from docgen_core.score.readings import Kind, kind_of

Row = Mapping[str, Any]
OnCell = Callable[[Row, Cell, bool], None]
"""Told of every judged cell, with the document's row in `documents`, and whether its field was attempted at all."""

_EVERY = ("", "")
"""The slice that all documents are in."""


@dataclass(slots=True)
class Scores:
    """What was counted."""

    run_id: str
    documents: int
    predicted_documents: int
    perfect_documents: int = 0
    """Documents with every value right, and none invented."""
    tallies: dict[tuple[str, str], dict[str, Tally]] = field(default_factory=dict)
    """By slice (column of `documents` and its value), then by field in the tables' order."""
    rows: dict[str, RowCount] = field(default_factory=dict)
    attempted: frozenset[str] = frozenset()
    """Fields that any value was predicted of."""

    @property
    def fields(self) -> dict[str, Tally]:
        """Every field that was printed or predicted, over all documents."""
        return {name: tally for name, tally in self.tallies.get(_EVERY, {}).items() if tally.scored}

    @property
    def total(self) -> Tally:
        """All fields, attempted or not."""
        return total(self.fields.values())

    @property
    def total_attempted(self) -> Tally:
        """The fields that any value was predicted of."""
        return total(tally for name, tally in self.fields.items() if name in self.attempted)

    def slices(self, by: str) -> dict[str, dict[str, Tally]]:
        """Fields by value of a column of `documents`."""
        found = {value: fields for (column, value), fields in self.tallies.items() if column == by}
        return {value: {name: tally for name, tally in found[value].items() if tally.scored} for value in sorted(found)}

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""

        def told(fields: Mapping[str, Tally]) -> dict[str, Any]:
            return {
                "total": total(fields.values()).as_json(),
                "fields": {name: tally.as_json() for name, tally in fields.items()},
            }

        return {
            "run": self.run_id,
            "documents": self.documents,
            "predicted_documents": self.predicted_documents,
            "perfect_documents": self.perfect_documents,
            **told(self.fields),
            "total_attempted": self.total_attempted.as_json(),
            "attempted": sorted(self.attempted),
            "rows": {
                name: {"golden": count.golden, "predicted": count.predicted, "matched": count.matched}
                for name, count in self.rows.items()
            },
            "slices": {by: {value: told(fields) for value, fields in self.slices(by).items()} for by in SLICES},
        }


def score_run(
    run_id: str,
    files: Sequence[Path],
    *,
    blobs: BlobStore,
    fields: Collection[str] = (),
    on_cell: OnCell | None = None,
) -> Scores:
    """Score the predictions in `files` against the run's golden set, over these fields or over all that is printed.

    Raises `UsageError` for predictions that do not fit or are of another run, `RunIncomplete`,
    `RunWithdrawn`, and `Damage` for golden bytes that are not those that were sealed.
    """
    prefix = default_prefix(run_id)
    read_root(blobs, prefix)
    plan = read_plan(blobs, prefix)
    if plan.kind != "documents":
        raise UsageError(f"run {run_id!r} built a catalogue; score against a run of documents")
    reader = open_run(run_id, blobs)
    kinds = _kinds(reader, load_pack(str(plan.spec["pack"])).tables)
    known = Fields({table: tuple(columns) for table, columns in kinds.items()})
    chosen = _chosen(fields, known, kinds)
    predictions = read_predictions(files, known)
    _refuse_others(plan, predictions)
    return _Scorer(reader, plan, predictions, known, chosen, on_cell).score()


def _kinds(reader: RunReader, tables: Collection[str]) -> dict[str, dict[str, Kind]]:
    """Kinds of the columns of the document type's tables, keys left out."""
    keys = {key.name for key in KEY_FIELDS}
    return {
        table: {column.name: kind_of(column) for column in reader.schema(table) if column.name not in keys}
        for table in tables
        if table in reader.tables
    }


def _chosen(fields: Collection[str], known: Fields, kinds: Mapping[str, dict[str, Kind]]) -> dict[str, dict[str, Kind]]:
    if not fields:
        return {table: dict(columns) for table, columns in kinds.items()}
    chosen: dict[str, dict[str, Kind]] = {table: {} for table in kinds}
    for name in fields:
        try:
            table, column = known.find(name)
        except ValueError as wrong:
            raise UsageError(str(wrong)) from None
        chosen[table][column] = kinds[table][column]
    return chosen


def _refuse_others(plan: Plan, predictions: Predictions) -> None:
    """Raise `UsageError` for predictions that are, or say they are, of another run's documents."""
    for said, place in predictions.runs.items():
        if said != plan.run_id:
            raise UsageError(
                f"the predictions are of run {said!r} ({place}), not of {plan.run_id!r}; score them against {said!r}"
            )
    stream = plan.documents_spec.stream
    foreign = [name for name in predictions.documents if not _is_of(name, stream, plan.total_items)]
    if foreign:
        first, last = document_id(stream, 0), document_id(stream, plan.total_items - 1)
        raise UsageError(
            f"{len(foreign)} of {len(predictions.documents)} predicted documents are not of run {plan.run_id!r}, "
            f"first {foreign[0]!r} ({predictions.places[foreign[0]]}); its documents are {first} to {last}"
        )


def _is_of(name: str, stream: str, documents: int) -> bool:
    number = name.rpartition("-")[2]
    if not (number.isdecimal() and len(number) <= _MOST_DIGITS):
        return False
    return int(number) < documents and name == document_id(stream, int(number))


_MOST_DIGITS = 18
"""Of a document's number."""


class _Scorer:
    """Walks the run's units, and counts."""

    def __init__(
        self,
        reader: RunReader,
        plan: Plan,
        predictions: Predictions,
        known: Fields,
        chosen: Mapping[str, dict[str, Kind]],
        on_cell: OnCell | None,
    ) -> None:
        self._reader, self._predictions, self._known, self._chosen = reader, predictions, known, chosen
        self._on_cell = on_cell
        self._names = {
            (table, column): known.name(table, column) for table, columns in chosen.items() for column in columns
        }
        attempted = {self._names[place] for place in predictions.attempted if place in self._names}
        self._scores = Scores(
            plan.run_id,
            documents=plan.total_items,
            predicted_documents=len(predictions.documents),
            rows={table: RowCount() for table in chosen if chosen[table]},
            attempted=frozenset(attempted),
        )

    def score(self) -> Scores:
        for document, tables in self._documents():
            judged = {table: self._judged(table, document, tables) for table in self._scores.rows}
            self._count(document, judged)
        return self._scores

    def _documents(self) -> Iterator[tuple[Row, Mapping[str, Mapping[str, list[Row]]]]]:
        """Each row of `documents`, with the rows of its unit by table and document."""
        names = ("documents", "field_boxes", *self._scores.rows)
        streams = [self._reader.stream(name).shards for name in names]
        for shards in zip(*streams, strict=True):
            tables: dict[str, dict[str, list[Row]]] = {}
            for name, shard in zip(names, shards, strict=True):
                found = tables.setdefault(name, defaultdict(list))
                for batch in shard.batches():
                    for row in batch.to_pylist():
                        found[row["document_id"]].append(row)
            for rows in tables["documents"].values():
                yield rows[0], tables

    def _judged(self, table: str, document: Row, tables: Mapping[str, Mapping[str, list[Row]]]) -> TableJudged:
        name = document["document_id"]
        golden = tables[table].get(name, [])
        kinds = self._chosen[table]
        return judge_table(
            table,
            golden,
            _printed(table, golden, tables["field_boxes"].get(name, []), kinds),
            self._predictions.rows(name, table),
            kinds,
            document["locale"],
            alone=table == self._known.head,
        )

    def _count(self, document: Row, judged: Mapping[str, TableJudged]) -> None:
        slices = [_EVERY, *((by, str(document[by])) for by in SLICES)]
        tallies = [self._scores.tallies.setdefault(slice_, self._blank()) for slice_ in slices]
        perfect = True
        for table, found in judged.items():
            rows = self._scores.rows[table]
            rows.golden += found.golden_rows
            rows.predicted += found.predicted_rows
            rows.matched += found.matched_rows
            for cell in found.cells:
                name = self._names[table, cell.column]
                perfect &= cell.outcome in (Outcome.RIGHT, Outcome.EMPTY)
                for tally in tallies:
                    tally[name].add(cell.outcome, exact=cell.exact, likeness=cell.likeness)
                if self._on_cell is not None:
                    self._on_cell(document, cell, name in self._scores.attempted)
        self._scores.perfect_documents += perfect

    def _blank(self) -> dict[str, Tally]:
        return {name: Tally() for name in self._names.values()}


def _printed(
    table: str, golden: Sequence[Row], boxes: Sequence[Row], kinds: Mapping[str, Kind]
) -> dict[tuple[str, str], set[str]]:
    """The printed cells of a document's table: their texts as printed, and in canonical form."""
    texts: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    printed: dict[tuple[str, str], set[str]] = defaultdict(set)
    values = {row["row_key"]: row for row in golden}
    for box in boxes:
        key, column = box["row_key"], box["column_name"]
        if box["table_name"] == table and column in kinds and key in values:
            texts[key, column, box["occurrence"]].append(box["text"])
            printed[key, column] |= {box["value"], canonical(values[key][column])}
    for (key, column, _), parts in texts.items():
        printed[key, column] |= {" ".join(parts)}
    return printed
