"""Everything that can be typed wrong: one line that says what is wrong and what there is, and exit code 2 or 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

RUNS = {
    "--documents many": "'many' is not a valid integer",
    "--documents 100000001": "not in the range",
    "--documents 1.5": "'1.5' is not a valid integer",
    "--seed -1": "-1 is not in the range",
    "--unit-size 0": "0 is not in the range",
    "--workers 0": "0 is not in the range",
    "--workers 513": "513 is not in the range",
    "--condition clean=0": "the weight must be a whole number from 1",
    "--condition clean=-1": "the weight must be a whole number from 1",
    "--condition clean=": "the weight must be a whole number from 1",
    "--condition clean=1.5": "the weight must be a whole number from 1",
    "--condition clean=2000000": "weights of conditions are whole numbers",
    "--condition clean=1,coffee=2": "no condition 'coffee'",
    "--companies 900-999": "no company fits",
    "--companies 9-1": "give FIRST-LAST with FIRST not above LAST",
    "--companies 0": "give FIRST-LAST, e.g. 0-49, or how many companies",
    "--company x": "--company 'x': give company ids",
    "--wear 10 --wear 90": "--wear is given twice, as '10' and '90'",
    "--wear 101": "--wear '101': give a whole number from 0 (as new) to 100",
    "--output docx": "--output 'docx': there are pdf, png, jpeg, tiff, html",
    "--issued 2024-02-30": "'2024-02-30' is no day",
    "--line-items 9000": "no layout holds 9000 lines of items",
    "--line-items 0": "give FEWEST-MOST from 1",
    "--credit-notes 2": "give a share from 0 to 1",
    "--selection nowhere.yaml": "cannot read the selection 'nowhere.yaml' (No such file or directory)",
    "--jurisdiction XX": "no jurisdiction 'XX'; the invoice pack has ",
    "--layout poster": "no layout 'poster'",
    "--business-type piracy": "no business type 'piracy'",
    "--locale ja-JP --jurisdiction DE": "no company fits locale ja-JP with jurisdiction DE",
    "--catalogue a/b": "catalogue version 'a/b' is no name",
}
NAMES = ["a/b", "R1", ".hidden", "a..b", "a b", "é", "-x"]
COMMANDS = ["status", "failures", "spend", "verify", "show", "pause", "resume", "cancel", "withdraw", "export", "work"]
STATES = {
    "state.db?lease_seconds=soon": "lease_seconds is a number of seconds, more than 0, not 'soon'",
    "state.db?max_attempts=0": "max_attempts is a whole number, 1 or more, not '0'",
    "state.db?leases=1": "no setting 'leases'",
    "sqlite://state.db": "three slashes",
    "redis://host": "no scheme 'redis'",
}


@pytest.mark.parametrize(
    "command", ["show r9 0", "verify r9", "export r9", "score r9 said.csv", "work r9", "resume r9"]
)
def test_the_wrong_folder_is_left_as_it_is(tmp_path: Path, type_in: Any, command: str) -> None:
    refused = type_in(tmp_path)(*command.split())
    assert refused.code == 2 and ("no run 'r9'" in refused.complaint or "no state store at" in refused.complaint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        *("generate R9", "plan catalogue-r9", "plan r9 --locale de-ED", "generate r9 --locale de-ED"),
        *("catalogue build V9", "catalogue build v9 --mix cheap"),
    ],
)
def test_what_cannot_begin_leaves_no_state(tmp_path: Path, type_in: Any, command: str) -> None:
    assert type_in(tmp_path)(*command.split()).code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", RUNS)
def test_a_run_that_cannot_be(shop: Any, flags: str) -> None:
    refused = shop("generate", "r9", *flags.split())
    assert refused.code == 2 and RUNS[flags] in refused.complaint and refused.out == ""
    assert "no run 'r9'" in shop("status", "r9").complaint


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_none(shop: Any, name: str) -> None:
    refused = shop("generate", "--", name)
    assert refused.code == 2 and f"run id {name!r} is no name" in refused.complaint


@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_is_not_there(shop: Any, command: str) -> None:
    more = ["1"] if command == "show" else []
    refused = shop(command, "nope", *more)
    assert refused.code == 2 and "no run 'nope' here; `docgen status` lists the runs there are" in refused.complaint


@pytest.mark.parametrize("command", ["verify", "export", "show"])
def test_a_run_that_is_not_done(shop: Any, command: str) -> None:
    refused = shop(command, "r2", *(["1"] if command == "show" else []))
    assert refused.code == 3 and "`docgen work r2` finishes it" in refused.complaint


@pytest.mark.parametrize("state", STATES)
def test_a_state_that_cannot_be_read(docgen: Any, state: str) -> None:
    refused = docgen("gc", "--state", state)
    assert refused.code == 2 and STATES[state] in refused.complaint


@pytest.mark.parametrize("units", ["x", "3-1", "1,", "-1", "0-99999999999"])
def test_units_that_are_none(shop: Any, units: str) -> None:
    refused = shop("work", "r2", f"--units={units}")
    assert refused.code == 2 and f"--units {units!r}: give unit numbers and ranges" in refused.complaint


def test_units_that_the_run_does_not_have(shop: Any) -> None:
    refused = shop("work", "r2", "--units", "7")
    assert refused.code == 2 and "there is no unit 7" in refused.complaint


@pytest.mark.parametrize("wanted", ["9", "f00dcafe-0000001", "../../etc/passwd"])
def test_a_document_that_is_not_there(shop: Any, wanted: str) -> None:
    refused = shop("show", "r1", wanted)
    assert refused.code == 2 and f"has no document {wanted!r}" in refused.complaint


def test_pictures_where_a_file_is_in_the_way(shop: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file/deeper"):
        refused = shop("show", "r1", "0", "--pictures", place)
        assert refused.code == 2 and "something that is not a folder is in its way" in refused.complaint
    assert (tmp_path / "file").read_text() == "mine"


def test_a_catalogue_to_show(shop: Any) -> None:
    refused = shop("show", "catalogue-small", "1")
    assert refused.code == 2 and "built a catalogue" in refused.complaint


def test_to_wait_for_no_run_in_particular(shop: Any) -> None:
    refused = shop("status", "--wait")
    assert refused.code == 2 and "docgen status RUN --wait" in refused.complaint


@pytest.mark.parametrize("words", ["stauts", "generate", "generate r1 --document 3", "catalogue", "catalogue build"])
def test_a_command_that_is_none(docgen: Any, words: str) -> None:
    refused = docgen(*words.split())
    assert refused.code == 2 and "Traceback" not in refused.err


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("DOCGEN_STATE", "", "'state' (--state or DOCGEN_STATE): is empty"),
        (
            "DOCGEN_SINK",
            "duckdb:/tmp/golden.duckdb",
            "is no URI, which has :// in it; write ./duckdb:/tmp/golden.duckdb",
        ),
        ("DOCGEN_SINK", ":memory:", "is no URI"),
        ("DOCGEN_SINK", "~nobody-here/golden.duckdb", "there is no user 'nobody-here' here"),
        ("DOCGEN_SINK", "duckdb:///tmp/a%00b.duckdb", "has a character that no name can have"),
        ("DOCGEN_BLOBS", " ", "'blobs' (--blobs or DOCGEN_BLOBS): is empty"),
        ("DOCGEN_COMPANIES", "several", "DOCGEN_COMPANIES"),
        ("DOCGEN_RANGE_WIDTH", "0", "DOCGEN_RANGE_WIDTH"),
    ],
)
def test_a_variable_that_cannot_be(docgen: Any, variable: str, value: str, reason: str) -> None:
    refused = docgen("export", "r1", **{variable: value})
    assert refused.code == 2 and reason in refused.complaint
