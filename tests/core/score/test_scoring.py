"""The scorer: perfect on the golden set itself, exactly as much lost as is wrong, and nothing of another run."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import delivery_note_pack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from printed_run import printed_run

from docgen_core import golden
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import UsageError
from docgen_core.packs.invoice import PACK
from docgen_core.score import Scores, score_run
from docgen_core.score.counting import Outcome
from docgen_core.score.thresholds import missed, parse_thresholds

RIGHT, WRONG, MISSING, SPURIOUS = Outcome.RIGHT, Outcome.WRONG, Outcome.MISSING, Outcome.SPURIOUS


def is_perfect(scores: Scores) -> bool:
    counted = scores.total.outcomes
    return (
        counted[RIGHT] > 0
        and not counted[WRONG] + counted[MISSING] + counted[SPURIOUS]
        and scores.total.f1 == scores.total.accuracy == 1
        and scores.perfect_documents == scores.documents
    )


def test_the_golden_set_scores_100_percent(corpus: Any) -> None:
    run = golden.open("r1", corpus.blobs)
    files = []
    for table in PACK.tables:
        files.append(corpus.folder / f"{table}.parquet")
        pq.write_table(run.table(table).to_arrow(), files[-1])
    scores = score_run("r1", files, blobs=corpus.blobs)
    assert is_perfect(scores) and scores.attempted >= {"gross_total", "line_items.net_amount", "tax_lines.tax"}
    assert {name: (count.golden, count.predicted) for name, count in scores.rows.items()} == {
        name: (run.table(name).num_rows,) * 2 for name in PACK.tables
    }


def test_what_stands_on_the_pages_scores_100_percent_in_every_locale(corpus: Any) -> None:
    read: dict[str, dict[str, dict[str, dict[str, str]]]] = {}
    for (document, table, row, column), text in corpus.printed.items():
        read.setdefault(document, {}).setdefault(table, {}).setdefault(row, {})[column] = text
    said = {
        document: {table: list(rows.values()) for table, rows in tables.items()} for document, tables in read.items()
    }
    faults: list[Any] = []
    scores = corpus.score(
        said, on_cell=lambda _, cell, _attempted: faults.append(cell) if cell.outcome is not RIGHT else None
    )
    assert [fault for fault in faults if fault.outcome is not Outcome.EMPTY] == []
    assert is_perfect(scores)


def test_rows_are_found_whatever_their_order(corpus: Any) -> None:
    turned = {
        document: {table: list(reversed(rows)) for table, rows in tables.items()}
        for document, tables in corpus.perfect.items()
    }
    assert is_perfect(corpus.score(turned))


# Twenty planted errors ---------------------------------------------------------------------

Plant = Callable[[Any, dict[str, Any]], dict[str, dict[Outcome, int]]]
"""Spoils predictions; returns what each field loses and gains."""


def changed(table: str, column: str, make: Callable[[str], Any], locale: str = "", fits: Any = bool) -> Plant:
    def plant(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
        document, place = corpus.with_(table, column, fits, locale)
        row = said[document][table][place]
        row[column] = make(row[column])
        name = column if table == "invoices" else f"{table}.{column}"
        outcome = MISSING if row[column] in (None, "", " ") else WRONG
        return {name: {RIGHT: -1, outcome: 1}}

    return plant


def one_document_lost(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    document, _ = corpus.with_("invoices", "gross_total")
    gone = said.pop(document)
    lost: dict[str, dict[Outcome, int]] = {}
    for table, rows in gone.items():
        for row in rows:
            for column in row:
                losses = lost.setdefault(column if table == "invoices" else f"{table}.{column}", {RIGHT: 0, MISSING: 0})
                losses[RIGHT] -= 1
                losses[MISSING] += 1
    return lost


def a_line_lost(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    document, place = corpus.with_("line_items", "description")
    gone = said[document]["line_items"].pop(place)
    return {f"line_items.{column}": {RIGHT: -1, MISSING: 1} for column in gone}


def a_line_invented(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    document, _ = corpus.with_("line_items", "description")
    said[document]["line_items"].append({"description": "zzzzzzzz", "net_amount": "0.015"})
    return {name: {SPURIOUS: 1} for name in ("line_items.description", "line_items.net_amount")}


def a_sum_among_the_lines(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    """A subtotal that is one of the amounts stands before its line, and takes no line's place."""
    document, place = corpus.with_("line_items", "net_amount")
    said[document]["line_items"].insert(0, {"net_amount": said[document]["line_items"][place]["net_amount"]})
    return {"line_items.net_amount": {SPURIOUS: 1}}


def a_line_broken_in_two(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    """Its description on a line of its own: one row is found, the cells of the other are lost and invented."""
    document, place = corpus.with_("line_items", "description")
    line = said[document]["line_items"][place]
    said[document]["line_items"].insert(place, {"description": line.pop("description")})
    return {"line_items.description": {RIGHT: -1, MISSING: 1, SPURIOUS: 1}}


def a_code_where_no_line_has_one(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    """On a line that is invented, in a column that the document's lines leave empty."""
    empty = {name: set() for name in said}  # type: dict[str, set[str]]
    for row in golden.open("r1", corpus.blobs).table("line_items").to_arrow().to_pylist():
        empty[row["document_id"]] |= {name for name, value in row.items() if value is not None}
    document = next(name for name, used in empty.items() if used and "discount_percent" not in used)
    said[document]["line_items"].append({"discount_percent": "77"})
    return {"line_items.discount_percent": {SPURIOUS: 1}}


def a_line_twice(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    document, place = corpus.with_("line_items", "description")
    twice = dict(said[document]["line_items"][place])
    said[document]["line_items"].append(twice)
    return {f"line_items.{column}": {SPURIOUS: 1} for column in twice}


def amounts_of_two_lines_exchanged(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    for tables in said.values():
        lines = [line for line in tables["line_items"] if "net_amount" in line and "description" in line]
        if len({line["net_amount"] for line in lines[:2]}) == 2:
            one, other = lines[:2]
            one["net_amount"], other["net_amount"] = other["net_amount"], one["net_amount"]
            return {"line_items.net_amount": {RIGHT: -2, WRONG: 2}}
    raise AssertionError("no document of two lines with different amounts")


def a_value_where_there_is_none(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    run = golden.open("r1", corpus.blobs).table("invoices").to_arrow().to_pylist()
    document = next(row["document_id"] for row in run if row["order_number"] is None)
    said[document]["invoices"][0]["order_number"] = "PO-1"
    return {"order_number": {SPURIOUS: 1, Outcome.EMPTY: -1}}


def due_and_issue_date_exchanged(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    document, _ = corpus.with_("invoices", "due_date")
    head = said[document]["invoices"][0]
    head["due_date"], head["issue_date"] = head["issue_date"], head["due_date"]
    return {name: {RIGHT: -1, WRONG: 1} for name in ("due_date", "issue_date")}


def a_whole_field_left_out(corpus: Any, said: dict[str, Any]) -> dict[str, dict[Outcome, int]]:
    lost = sum(tables["invoices"][0].pop("gross_total", None) is not None for tables in said.values())
    return {"gross_total": {RIGHT: -lost, MISSING: lost}}


PLANTED: dict[str, Plant] = {
    "a minor unit too much": changed("invoices", "gross_total", lambda text: str(Decimal(text) + Decimal("0.01"))),
    "a digit lost": changed("invoices", "amount_due", lambda text: text[1:], fits=lambda text: len(text) > 5),
    "ten times as much": changed("invoices", "net_total", lambda text: str(Decimal(text) * 10)),
    "another sign": changed("line_items", "net_amount", lambda text: f"-{text}", fits=lambda text: Decimal(text) > 0),
    "another country's marks": changed("invoices", "net_total", lambda _: "1,234.50", "de-DE"),
    "finer than the minor unit": changed("invoices", "net_total", lambda text: f"{text}0004", "de-DE"),
    "an amount in words": changed("invoices", "gross_total", lambda _: "two hundred"),
    "two amounts in one": changed("invoices", "gross_total", lambda text: f"{text} {text}"),
    "day and month exchanged": changed(
        "invoices",
        "issue_date",
        lambda text: f"{text[8:]}.{text[5:7]}.{text[:4]}",
        "en-US",
        lambda text: text[8:] > "12",
    ),
    "another year": changed("invoices", "issue_date", lambda text: f"{int(text[:4]) - 1}{text[4:]}"),
    "a digit of a number misread": changed(
        "invoices", "number", lambda text: text[:-1] + ("1" if text[-1] == "7" else "7")
    ),
    "a letter of a name misread": changed("invoices", "seller_name", lambda text: f"{text[:-1]}~"),
    "half a description": changed("line_items", "description", lambda text: text[: len(text) // 2]),
    "nothing but white space": changed("invoices", "buyer_name", lambda _: " "),
    "a document lost": one_document_lost,
    "a line lost": a_line_lost,
    "a line invented": a_line_invented,
    "a line twice": a_line_twice,
    "a sum among the lines": a_sum_among_the_lines,
    "a line broken in two": a_line_broken_in_two,
    "a code where no line has one": a_code_where_no_line_has_one,
    "amounts of two lines exchanged": amounts_of_two_lines_exchanged,
    "a value where there is none": a_value_where_there_is_none,
    "two dates exchanged": due_and_issue_date_exchanged,
    "a whole field left out": a_whole_field_left_out,
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_costs_exactly_what_it_is(corpus: Any, name: str) -> None:
    before, said = corpus.before, corpus.copy()
    expected = PLANTED[name](corpus, said)
    after = corpus.score(said)
    for field in before.fields.keys() | after.fields.keys():
        had = before.fields[field].outcomes if field in before.fields else {}
        difference = {
            outcome: after.fields[field].outcomes[outcome] - had.get(outcome, 0)
            for outcome in Outcome
            if after.fields[field].outcomes[outcome] != had.get(outcome, 0)
        }
        assert difference == expected.get(field, {}), field
    lost = -sum(deltas.get(RIGHT, 0) for deltas in expected.values())
    assert after.total.outcomes[RIGHT] == before.total.outcomes[RIGHT] - lost
    invented = sum(deltas.get(SPURIOUS, 0) for deltas in expected.values())
    assert after.total.outcomes[SPURIOUS] == before.total.outcomes[SPURIOUS] + invented
    assert after.perfect_documents < after.documents and (after.total.f1 or 0) < 1


@pytest.mark.parametrize(
    ("column", "make", "locale"),
    [
        ("gross_total", lambda text: f"{Decimal(text):,.2f}".translate(str.maketrans(",.", ".,")) + " €", "de-DE"),
        ("gross_total", lambda text: f"EUR {text}", "de-DE"),
        ("gross_total", lambda text: f"${Decimal(text):,.2f}", "en-US"),
        ("gross_total", float, "en-US"),
        ("net_total", lambda text: f"{text} m²", "en-US"),
        ("issue_date", lambda text: f"{text[8:]}.{text[5:7]}.{text[2:4]}", "de-DE"),
        ("issue_date", lambda text: f"{text}T00:00:00", ""),
        ("number", lambda text: text.replace("-", " ").lower(), ""),
        ("seller_name", lambda text: f"  {text.replace(' ', '   ')}", ""),
        ("seller_address", lambda text: text.replace("\n", ", "), "de-DE"),
    ],
)
def test_another_way_to_write_the_same_is_right(
    corpus: Any, column: str, make: Callable[[str], Any], locale: str
) -> None:
    said = corpus.copy()
    document, _ = corpus.with_("invoices", column, locale=locale)
    head = said[document]["invoices"][0]
    head[column] = make(head[column])
    assert is_perfect(corpus.score(said))


# Other runs, other packs -------------------------------------------------------------------


def test_predictions_of_another_run_are_refused(corpus: Any, tmp_path: Path) -> None:
    printed_run(corpus.blobs, "r2", PACK, documents=2, companies=50, seed=1)
    with pytest.raises(UsageError, match=r"20 of 20 predicted documents are not of run 'r2', first '.*' \(line 1\)"):
        score_run("r2", [corpus.written(corpus.perfect)], blobs=corpus.blobs)
    document = next(iter(corpus.perfect))
    said = tmp_path / "said.csv"
    said.write_text(f"run_id,document_id,field,value\nr2,{document},gross_total,1\n")
    with pytest.raises(UsageError, match=r"the predictions are of run 'r2' \(line 2\), not of 'r1'"):
        score_run("r1", [said], blobs=corpus.blobs)


def test_another_document_type_is_scored_by_its_own_schemas(tmp_path: Path) -> None:
    blobs = MemoryBlobStore()
    printed_run(blobs, "notes", delivery_note_pack.PACK, documents=6, companies=4)
    run = golden.open("notes", blobs)
    files = []
    for table in ("delivery_notes", "parcels"):
        files.append(tmp_path / f"{table}.parquet")
        pq.write_table(run.table(table).to_arrow(), files[-1])
    assert is_perfect(score_run("notes", files, blobs=blobs))
    first = run.table("delivery_notes").to_arrow().slice(0, 1).to_pylist()[0]
    said = tmp_path / "notes.csv"
    said.write_text(f"document_id,depot,weight\n{first['document_id']}.pdf,{first['depot']},-1\n")
    scores = score_run("notes", [said], blobs=blobs)
    assert {name: scores.fields[name].outcomes[RIGHT] for name in ("depot", "weight")} == {"depot": 1, "weight": 0}
    assert scores.rows["parcels"].matched == 0 and scores.predicted_documents == 1


# Forms of predictions ----------------------------------------------------------------------


def test_a_line_a_value_says_the_same_as_an_object_a_document(corpus: Any, tmp_path: Path) -> None:
    path, lines = tmp_path / "values.csv", []
    for document, tables in corpus.perfect.items():
        for table, rows in tables.items():
            for number, row in enumerate(rows):
                name = f"{table}." if table != "invoices" else ""
                lines += [(document, f"{name}{column}", number, value) for column, value in row.items()]
    with path.open("w", newline="") as opened:
        csv.writer(opened).writerows([("document_id", "field", "row", "value"), *lines])
    assert is_perfect(score_run("r1", [path], blobs=corpus.blobs))


def test_columns_may_be_set_apart_by_semicolons_and_tabs(corpus: Any, tmp_path: Path) -> None:
    document = next(iter(corpus.perfect))
    number = corpus.perfect[document]["invoices"][0]["number"]
    for mark in ";\t":
        said = tmp_path / "said.csv"
        said.write_text(f'"document_id"{mark}number\n{document}{mark}{number}\n', encoding="utf-8-sig")
        assert score_run("r1", [said], blobs=corpus.blobs).fields["number"].outcomes[RIGHT] == 1


def test_a_page_and_a_table_of_nothing_are_no_fault(corpus: Any, tmp_path: Path) -> None:
    document = next(iter(corpus.perfect))
    number = corpus.perfect[document]["invoices"][0]["number"]
    said = {"document_id": f"scans/{document}-p0001.png", "number": number, "line_items": None, "codes": []}
    (tmp_path / "said.jsonl").write_text(json.dumps(said))
    scores = score_run("r1", [tmp_path / "said.jsonl"], blobs=corpus.blobs)
    assert scores.fields["number"].outcomes[RIGHT] == 1 and scores.rows["line_items"].predicted == 0


def test_rows_with_a_name_and_rows_without_are_not_mixed_up(corpus: Any, tmp_path: Path) -> None:
    document = next(iter(corpus.perfect))
    (tmp_path / "values.csv").write_text(f"document_id,field,row,value\n{document},line_items.sku,1,A\n")
    (tmp_path / "rows.csv").write_text(f"document_id,table,sku\n{document},line_items,B\n{document},line_items,C\n")
    scores = score_run("r1", [tmp_path / "values.csv", tmp_path / "rows.csv"], blobs=corpus.blobs)
    assert scores.rows["line_items"].predicted == 3


def test_slices_add_up_to_the_whole(corpus: Any) -> None:
    scores = corpus.score(corpus.perfect, fields=["gross_total"])
    for by in ("layout", "locale", "condition"):
        counted = [fields["gross_total"].golden for fields in scores.slices(by).values()]
        assert sum(counted) == scores.fields["gross_total"].golden == len(corpus.documents)
    assert set(scores.slices("locale")) == {row["locale"] for row in corpus.documents.values()}


def test_thresholds_are_of_a_field_and_a_measure(corpus: Any) -> None:
    said = corpus.copy()
    said[next(iter(said))]["invoices"][0]["gross_total"] = "0.01"
    scores = corpus.score(said)
    wanted = parse_thresholds(["gross_total=0.95,gross_total:recall=1", "all:precision=0.9"])
    assert missed(scores, parse_thresholds(["invoices.gross_total=0.95"])) == []
    assert [str(each) for each in missed(scores, wanted)] == ["gross_total:recall is 0.95, wanted 1.0"]
    with pytest.raises(UsageError, match="no field 'grand_total' was scored"):
        missed(scores, parse_thresholds(["grand_total=1"]))


@pytest.mark.parametrize("text", ["gross_total", "gross_total=2", "=1", "a=x", "a:beauty=1", ""])
def test_a_threshold_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--at-least"):
        parse_thresholds([text])


DOCUMENT = "DOCUMENT"
WRONG_FILES = {
    "p.txt": ("", "name a file ending in .parquet, .csv, .jsonl"),
    "p.csv": ("document_id,gross_total\n", "p.csv holds no predictions"),
    "columns.csv": (
        "document_id,gross_totl\nDOCUMENT,1\n",
        "line 2: no column 'gross_totl' in 'invoices'; did you mean 'gross_total'?",
    ),
    "short.csv": (
        "document_id,gross_total\nDOCUMENT\n",
        "short.csv, line 2: 2 columns are named, and it has more or fewer",
    ),
    "nobody.csv": ("document_id,gross_total\n,1\n", "nobody.csv, line 2: it names no document"),
    "twice.csv": ("document_id,number\nDOCUMENT,1\nDOCUMENT,2\n", "twice.csv, line 3: a second row of 'invoices'"),
    "again.csv": (
        "document_id,field,value\nDOCUMENT,number,1\nDOCUMENT,number,2\n",
        "again.csv, line 3: number of this document stands there twice",
    ),
    "rowless.csv": ("document_id,field,value\nDOCUMENT,line_items.sku,1\n", "'line_items.sku' is one of many rows"),
    "field.csv": ("document_id,field,value\nDOCUMENT,line_items.skuu,1\n", "did you mean 'line_items.sku'?"),
    "table.csv": ("document_id,table,sku\nDOCUMENT,lines,1\n", "no table 'lines'; there are invoices, line_items"),
    "broken.jsonl": ('{"document_id": ', "broken.jsonl, line 1: it is no JSON"),
    "list.jsonl": ("[1]", "list.jsonl, line 1: give one JSON object a line"),
    "index.csv": (",document_id,number\n0,DOCUMENT,1\n", "index.csv, line 2: a column has no name; name it, or leave"),
    "names.csv": ("id,number\nDOCUMENT,1\n", "names.csv: no column is called 'document_id'; there are id, number"),
    "twice.jsonl": ('{"document_id": "DOCUMENT", "number": "1", "number": "2"}', "line 1: 'number' stands there twice"),
    "half.jsonl": ('{"document_id": "DOCUMENT", "number": "\\ud800"}', "half.jsonl, line 1: it is no JSON"),
    "long.jsonl": (f'{{"document_id": "DOCUMENT", "number": {"9" * 5000}}}', "long.jsonl, line 1: it is no JSON"),
    "far.jsonl": ('{"document_id": "DOCUMENT", "number": 1e9999999999999999999}', "far.jsonl, line 1: it is no JSON"),
    "value.jsonl": ('{"document_id": "DOCUMENT", "field": "number", "value": ["1"]}', "invoices.number holds a list"),
    "lines.jsonl": ('{"document_id": "DOCUMENT", "line_items": "none"}', "'line_items' holds 'none'; give a list of"),
    "number.csv": (f"document_id,number\n1f2e3d4c-{'9' * 5000},1\n", "1 of 1 predicted documents are not of run"),
    "rows.jsonl": ('{"document_id": "DOCUMENT", "line_items": [3]}', "give a list of objects"),
    "deep.jsonl": ('{"document_id": "DOCUMENT", "number": {"a": 1}}', "invoices.number holds a list or an object"),
    "broken.parquet": ("PAR1", "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_what_does_not_fit_is_refused_with_its_place(corpus: Any, tmp_path: Path, name: str) -> None:
    text, reason = WRONG_FILES[name]
    (tmp_path / name).write_text(text.replace(DOCUMENT, next(iter(corpus.perfect))))
    with pytest.raises(UsageError) as refused:
        score_run("r1", [tmp_path / name], blobs=corpus.blobs)
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_said_so(corpus: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file of predictions at"):
        score_run("r1", [tmp_path / "p.csv"], blobs=corpus.blobs)


def test_values_of_parquet_are_read_with_their_types(corpus: Any, tmp_path: Path) -> None:
    document, head = next((name, tables["invoices"][0]) for name, tables in corpus.perfect.items())
    table = pa.table({"document_id": [document], "gross_total": [Decimal(head["gross_total"])]})
    pq.write_table(table, tmp_path / "typed.parquet")
    scores = score_run("r1", [tmp_path / "typed.parquet"], blobs=corpus.blobs, fields=["gross_total"])
    assert scores.fields["gross_total"].outcomes[RIGHT] == 1
