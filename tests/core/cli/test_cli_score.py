"""`docgen score` as it is typed: JSON in a pipe, reports on request, code 1 below a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest


@pytest.fixture
def said(shop: Any, tmp_path: Path) -> Path:
    """Predictions of the two documents of run `r1`: one total, right for the first."""
    path = tmp_path / "said.csv"
    heads = [shop("show", "r1", number, "--json").json for number in ("0", "1")]
    total = heads[0]["invoices"][0]["gross_total"]
    rows = [f"{head['documents'][0]['document_id']},gross_total,{total}" for head in heads]
    path.write_text("\n".join(["document_id,field,value", *rows, ""]))
    return path


def test_a_score_is_told_and_reported(shop: Any, said: Path, tmp_path: Path) -> None:
    page, cells = tmp_path / "scores.html", tmp_path / "cells.parquet"
    scored = shop("score", "r1", said, "--field", "gross_total", "--html", page, "--parquet", cells)
    assert scored.code == 0 and scored.json["fields"]["gross_total"]["f1"] == scored.json["total"]["recall"] == 0.5
    assert set(scored.json["slices"]) == {"layout", "locale", "condition"}
    assert pq.read_table(cells).column("outcome").to_pylist() == ["right", "wrong"]
    assert "gross_total" in page.read_text() and "wrong" in page.read_text()


def test_the_page_shows_faults_of_what_was_tried_and_not_what_was_left_out(
    shop: Any, said: Path, tmp_path: Path
) -> None:
    page = tmp_path / "scores.html"
    assert shop("score", "r1", said, "--html", page).json["total"]["missing"] > 0
    faults = page.read_text().partition("faults of attempted fields")[2]
    assert faults.count("invoices.gross_total") == faults.count('class="wrong"') == faults.count("<td class=") == 1


def test_a_score_that_is_too_low_ends_with_code_1(shop: Any, said: Path) -> None:
    low = shop("score", "r1", said, "--at-least", "gross_total=0.51")
    assert low.code == 1 and "too low: gross_total:f1 is 0.5, wanted 0.51" in low.err
    assert shop("score", "r1", said, "--at-least", "gross_total=0.5").code == 0


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_scored(shop: Any, said: Path) -> None:
    refused = shop("score", "r1", said, "--html", "nowhere/scores.html")
    assert refused.code == 2 and "cannot write 'nowhere/scores.html'" in refused.complaint


def test_a_report_takes_no_other_files_place(shop: Any, said: Path, tmp_path: Path) -> None:
    before = said.read_text()
    refused = shop("score", "r1", said, "--html", tmp_path / "." / "said.csv")
    assert refused.code == 2 and "it is another file of this command" in refused.complaint
    assert said.read_text() == before


def test_a_threshold_of_no_field_leaves_no_report(shop: Any, said: Path, tmp_path: Path) -> None:
    reports = ("--parquet", tmp_path / "cells.parquet", "--html", tmp_path / "scores.html")
    refused = shop("score", "r1", said, "--at-least", "grand_total=1", *reports)
    assert refused.code == 2 and "no field 'grand_total' was scored" in refused.complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["said.csv"]


def test_predictions_that_do_not_fit_leave_no_report(shop: Any, tmp_path: Path) -> None:
    (tmp_path / "said.csv").write_text("document_id,number\nb0b0b0b0-0000000,1\n")
    refused = shop("score", "r1", tmp_path / "said.csv", "--parquet", tmp_path / "cells.parquet")
    assert refused.code == 2 and "are not of run 'r1', first 'b0b0b0b0-0000000' (line 2)" in refused.complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["said.csv"]


def test_a_run_that_is_not_there_or_not_done_is_not_scored(shop: Any, said: Path) -> None:
    unknown = shop("score", "nope", said)
    assert unknown.code == 2 and "no run 'nope' here" in unknown.complaint
    undone = shop("score", "r2", said)
    assert undone.code == 3 and "`docgen work r2` finishes it" in undone.complaint
