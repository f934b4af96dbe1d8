"""What a user gets wrong is said in one line with exit code 2 or 3, and nothing is lost or half-written."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

WRONG = {
    "unknown locale": (("--locale", "xx-XX"), "no locale 'xx-XX'; the invoice pack has de-CH, de-DE, en-001"),
    "no documents": (("--documents", "0"), "0 is not in the range"),
    "negative documents": (("--documents", "-5"), "-5 is not in the range"),
    "a condition that the pack refuses": (
        ("--condition", "negative"),
        "no condition 'negative'; the invoice pack has",
    ),
    "no such catalogue": (("--catalogue", "nope"), "`docgen catalogue build nope` makes it"),
}
NAMES = ["../x", "a/b", "", "catalogue-x"]
URIS = {
    "state": (("status",), "no scheme 'redis'; there are sqlite"),
    "blobs": (("gc",), "unknown scheme 'redis'; there are file"),
    "sink": (("export", "r1"), "unknown scheme 'redis'; there are athena, bigquery, duckdb"),
}
VARIABLES = {
    "DOCGEN_CATALOGUE": ("../x", "catalogue version '../x' is no name"),
    "DOCGEN_CHROMIUM": ("/nowhere/chromium", "DOCGEN_CHROMIUM names '/nowhere/chromium'"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_run_that_cannot_be_is_refused_and_not_recorded(stocked: Any, wrong: str) -> None:
    flags, reason = WRONG[wrong]
    before = stocked.digests("")
    refused = stocked.docgen("generate", "r1", *flags)
    assert refused.code == 2 and reason in refused.complaint and refused.out == ""
    assert stocked.digests("") == before


def test_a_selection_is_refused_before_a_catalogue_is_built_for_it(desk: Any) -> None:
    refused = desk.docgen("generate", "r1", "--locale", "xx-XX")
    assert refused.code == 2 and "no locale 'xx-XX'" in refused.complaint
    assert desk.files() <= {".docgen/state.db"}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_none_is_refused_before_anything_is_made(desk: Any, name: str) -> None:
    refused = desk.docgen("generate", name, "--documents", "1")
    assert refused.code == 2 and f"run id {name!r}" in refused.complaint
    assert desk.files() <= {".docgen/state.db"}
    assert [path.name for path in desk.folder.parent.iterdir()] == [desk.folder.name], "nothing outside"


def test_another_spec_under_the_same_run_id_names_what_differs(corpus: Any, order: tuple[str, ...]) -> None:
    before = corpus.digests("")
    refused = corpus.docgen(*order, "--seed", "9999", "--locale", "de-DE", "--unit-size", "7")
    assert refused.code == 2
    for difference in ("seed is ", ", asked for 9999", "selection.locales is [], asked for ['de-DE']", "unit_size is"):
        assert difference in refused.complaint
    assert corpus.digests("") == before


@pytest.mark.parametrize("place", URIS)
def test_an_unknown_scheme_names_those_there_are(corpus: Any, place: str) -> None:
    words, reason = URIS[place]
    refused = corpus.docgen(*words, f"--{place}", "redis://host/1")
    assert refused.code == 2 and reason in refused.complaint


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_that_cannot_be_is_named(stocked: Any, variable: str) -> None:
    value, reason = VARIABLES[variable]
    here = type(stocked)(stocked.folder, {variable: value})
    before = here.digests("")
    refused = here.docgen("generate", "r1", "--documents", "1")
    assert refused.code == 2 and reason in refused.complaint
    assert here.digests("") == before


def test_a_machine_without_a_browser_is_told_how_to_get_one(stocked: Any) -> None:
    nothing = {"PATH": str(stocked.folder), "PLAYWRIGHT_BROWSERS_PATH": str(stocked.folder), "DOCGEN_CHROMIUM": ""}
    here = type(stocked)(stocked.folder, nothing)
    before = here.digests("")
    refused = here.docgen("generate", "r1", "--documents", "1")
    assert refused.code == 2 and "playwright install --with-deps chromium" in refused.complaint
    assert here.digests("") == before


class TestState:
    @pytest.mark.parametrize("content", [b"These are my notes.\n" * 60, b"\x00" * 4096])
    def test_a_file_that_is_no_database_is_left_as_it_is(self, desk: Any, content: bytes) -> None:
        (desk.folder / "notes.txt").write_bytes(content)
        refused = desk.docgen("generate", "r1", "--state", "notes.txt")
        assert refused.code == 2 and "notes.txt is not a state store" in refused.complaint
        assert (desk.folder / "notes.txt").read_bytes() == content
        assert desk.files() == {"notes.txt"}

    def test_somebody_elses_database_is_left_as_it_is(self, desk: Any) -> None:
        with sqlite3.connect(desk.folder / "theirs.db") as theirs:
            theirs.execute("create table accounts (name text)")
        theirs.close()
        before = (desk.folder / "theirs.db").read_bytes()
        refused = desk.docgen("status", "--state", "theirs.db")
        assert refused.code == 2 and "theirs.db is another program's SQLite database" in refused.complaint
        assert (desk.folder / "theirs.db").read_bytes() == before

    def test_a_folder_is_no_state_store(self, desk: Any) -> None:
        (desk.folder / "folder").mkdir()
        refused = desk.docgen("status", "--state", "folder")
        assert refused.code == 2 and "cannot open the state store" in refused.complaint
        assert desk.files() == set()


class TestPlaces:
    def test_a_file_where_the_blobs_should_be(self, desk: Any) -> None:
        (desk.folder / "file").write_text("mine")
        refused = desk.docgen("generate", "r1", "--blobs", "file")
        assert refused.code == 2 and "it is not a folder" in refused.complaint
        assert (desk.folder / "file").read_text() == "mine"

    @pytest.mark.parametrize("sink", ["folder.duckdb", "notes.duckdb", "notes.duckdb/tables", "parquet.txt"])
    def test_a_sink_that_cannot_hold_tables(self, corpus: Any, tmp_path: Path, sink: str) -> None:
        (tmp_path / "folder.duckdb").mkdir()
        for notes in ("notes.duckdb", "parquet.txt"):
            (tmp_path / notes).write_text("These are my notes.\n" * 500)
        refused = corpus.docgen("export", "r1", "--sink", tmp_path / sink)
        assert refused.code in (2, 3) and str(tmp_path) in refused.complaint
        for notes in ("notes.duckdb", "parquet.txt"):
            assert (tmp_path / notes).read_text() == "These are my notes.\n" * 500
        assert list((tmp_path / "folder.duckdb").iterdir()) == []


def test_a_plan_that_was_tampered_with_is_damage(stocked: Any) -> None:
    stocked.done("plan", "r1", "--documents", "2")
    plan = stocked.folder / ".docgen/blobs/runs/r1/plan.json"
    sound = plan.read_bytes()
    plan.write_bytes(sound.replace(b'"documents":2', b'"documents":3'))
    refused = stocked.docgen("work", "r1")
    assert refused.code == 1 and "runs/r1/plan.json" in refused.complaint
    plan.write_bytes(sound)
    assert stocked.done("work", "r1").events[-1]["made"] == 2, "nothing was lost, and nothing done in vain"


def test_a_run_of_other_software_is_not_joined(stocked: Any) -> None:
    """The plan names what its bytes depend on; a worker with something else refuses, and says what."""
    stocked.done("plan", "r1", "--documents", "2")
    other = stocked.folder / "chromium"
    other.write_text("#!/bin/sh\necho 'Chromium 1.0.0.0'\n")
    other.chmod(0o755)
    refused = type(stocked)(stocked.folder, {"DOCGEN_CHROMIUM": str(other)}).docgen("work", "r1")
    assert refused.code == 2 and "cannot join run 'r1'" in refused.complaint and "1.0.0.0" in refused.complaint
    assert stocked.units("r1")["running"] == 0
