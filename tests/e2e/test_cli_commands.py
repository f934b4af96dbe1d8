"""What each docgen command does and says, typed in a folder by somebody who has read the README."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from docgen_core.blobs import open_blobs
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.state import open_state

TABLES = {"documents", "pages", "words", "field_boxes", "invoices", "line_items", "tax_lines", "instalments", "codes"}
PNG = b"\x89PNG\r\n"


def rows_by_run(file: Path, table: str = "invoices") -> dict[str, int]:
    with duckdb.connect(str(file), read_only=True) as golden:
        return dict(golden.execute(f"select run_id, count(*) from {table} group by all").fetchall())


def parquet_rows(folder: Path, table: str = "invoices") -> int:
    found = list(folder.glob(f"{table}/**/*.parquet"))
    return sum(duckdb.execute("select count(*) from read_parquet($1)", [str(file)]).fetchall()[0][0] for file in found)


EVENT = {"event", "run", "unit", "generation", "attempt", "outcome", "seconds", "documents", "worker"}
"""What is said of a unit that is done."""


class TestGenerate:
    def test_from_nothing_says_line_by_line_what_it_did_and_ends_with_a_summary(self, making: Any) -> None:
        desk, said = making
        assert re.fullmatch("no catalogue here yet: building a small one, 'default', first\n", said.err)
        summaries = [event for event in said.events if event["event"] == "summary"]
        assert [(event["run"], event["state"]) for event in summaries] == [
            ("catalogue-default", "COMPLETED"),
            ("r1", "COMPLETED"),
        ]
        last = said.events[-1]
        assert last["event"] == "summary" and last["exit_code"] == 0 and last["root_present"]
        units = [event for event in said.events if event["event"] == "unit" and event["run"] == "r1"]
        assert sorted(event["unit"] for event in units) == list(range(last["units"]["total"]))
        assert {event["outcome"] for event in units} == {"done"}
        assert all(set(event) == EVENT for event in units)
        assert all((event["generation"], event["attempt"]) == (1, 1) and event["seconds"] > 0 for event in units)
        assert sum(event["documents"] for event in units) == last["made"] == last["items_done"] == last["items"]
        assert Path(last["place"]) == desk.folder / ".docgen/blobs/runs/r1"
        assert len(list(Path(last["place"]).rglob("*.pdf"))) == last["items"]

    def test_again_ends_at_once_however_many_workers_are_asked_for(self, corpus: Any, order: Sequence[str]) -> None:
        before = corpus.digests("")
        said = corpus.done(*order, "--workers", "8")
        (summary,) = said.events
        assert summary["made"] == 0 and summary["state"] == "COMPLETED" and said.err == ""
        assert corpus.digests("") == before

    def test_at_a_terminal_shows_a_line_a_unit_and_a_bar_and_an_end(self, stocked: Any) -> None:
        shown = at_a_terminal(stocked, "generate", "r1", "--documents", "4", "--workers", "2")
        told = re.findall(r"r1 unit (\d) done: 1 documents in \d+\.\d s \(generation 1, attempt 1, \S+\)\r\n", shown)
        assert sorted(told) == ["0", "1", "2", "3"]
        assert re.search(r"r1 .*4/4", shown)
        assert re.search(r"run 'r1' COMPLETED: 4 of 4 documents, 4 now in \d+ s", shown)
        assert "event" not in shown and "Traceback" not in shown
        listed = at_a_terminal(stocked, "status")
        assert re.search(r"r1\W+COMPLETED\W+4/4\W+4\W+0\W+0\W+4\W+0\W+yes", listed)
        assert re.search(r"run\W+state\W+documents\W+units", listed)

    def test_asked_for_json_says_at_a_terminal_what_it_says_in_a_pipe(self, stocked: Any) -> None:
        shown = at_a_terminal(stocked, "generate", "r1", "--documents", "4", "--workers", "2", "--json")
        *units, summary = (json.loads(line) for line in shown.splitlines())
        assert sorted(event["unit"] for event in units) == [0, 1, 2, 3] and all(set(event) == EVENT for event in units)
        assert summary["event"] == "summary"

    def test_a_run_keeps_its_catalogue_when_there_is_a_newer_one(self, stocked: Any) -> None:
        planned = stocked.done("plan", "r1", "--documents", "2").json
        assert planned["created"] and planned["catalogue"]["version"] == "small"
        stocked.done("catalogue", "build", "newer", "--companies", "6", "--products", "2", "--workers", "2")
        assert stocked.done("generate", "r1", "--documents", "2").events[-1]["made"] == 2
        assert stocked.done("status", "r1").json["spec"]["catalogue"] == planned["catalogue"]
        assert stocked.done("plan", "r2", "--documents", "2").json["catalogue"]["version"] == "newer"

    def test_whose_reader_leaves_hands_its_leases_back(self, stocked: Any) -> None:
        with stocked.start("generate", "r1", "--documents", "200", "--state", "state.db?lease_seconds=600") as process:
            assert json.loads(process.stdout.readline())["event"] == "unit"
            process.stdout.close()
            assert process.wait() == 141
            assert process.stderr.read() == ""
        units = stocked.done("status", "r1", "--state", "state.db").json["units"]
        assert units["done"] >= 1 and units["pending"] >= 1 and units["running"] == 0


def at_a_terminal(desk: Any, *words: str) -> str:
    """What a pseudo-terminal showed, without its control sequences."""
    ours, theirs = pty.openpty()
    wide = type(desk)(desk.folder, {"TERM": "xterm", "COLUMNS": "140"})
    process = wide.start(*words, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while some := os.read(ours, 65536):
            shown += some
    except OSError:
        """The other side of a pseudo-terminal is gone when its last process is."""
    os.close(ours)
    assert process.wait() == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


class TestPlanAndWork:
    def test_a_run_from_its_plan_to_its_seal(self, stocked: Any) -> None:
        planned = stocked.done("plan", "r1", "--documents", "4", "--tasks", "9")
        assert planned.json["units"] == 4 and "2 workers are enough" in planned.err
        for early in (("verify", "r1"), ("export", "r1"), ("show", "r1", "1")):
            refused = stocked.docgen(*early)
            assert refused.code == 3 and "`docgen work r1` finishes it" in refused.complaint
        with stocked.start("status", "r1", "--wait", "--json") as waiting:
            some = stocked.done("work", "r1", "--units", "0-1,3", "--no-wait")
            assert {event["unit"] for event in some.events[:-1]} == {0, 1, 3}
            assert not some.events[-1]["root_present"]
            assert waiting.poll() is None
            rest = stocked.done("work", "r1")
            assert [event["unit"] for event in rest.events[:-1]] == [2] and rest.events[-1]["root_present"]
            assert waiting.wait() == 0
            assert json.load(waiting.stdout)["state"] == "COMPLETED"
        assert "no damage" in stocked.done("verify", "r1", "--deep").err
        again = stocked.done("plan", "r1", "--documents", "4").json
        assert again == {**planned.json, "created": False}

    def test_nothing_to_claim_and_no_wait_leaves_with_success(self, stocked: Any) -> None:
        stocked.done("plan", "r1", "--documents", "1")
        state = open_state(stocked.folder / ".docgen/state.db")
        state.claim_next_unit("r1", "somebody")
        left = stocked.done("work", "r1", "--no-wait")
        assert left.events[-1]["units"]["running"] == 1 and left.events[-1]["made"] == 0

    def test_pause_stops_claims_and_resume_goes_on(self, stocked: Any) -> None:
        stocked.done("plan", "r1", "--documents", "2")
        stocked.done("pause", "r1")
        paused = stocked.done("generate", "r1", "--documents", "2", "--workers", "2")
        assert paused.events[-1]["made"] == 0 and "`docgen resume r1` goes on" in paused.err
        assert stocked.done("status", "r1", "--wait").json["state"] == "PAUSED"
        resumed = stocked.done("resume", "r1")
        assert resumed.events[-1]["state"] == "COMPLETED" and resumed.events[-1]["made"] == 2
        for late in ("pause", "cancel"):
            assert stocked.docgen(late, "r1").code == 2

    def test_cancel_is_for_good(self, stocked: Any) -> None:
        stocked.done("plan", "r1", "--documents", "2")
        stocked.done("cancel", "r1")
        assert stocked.docgen("generate", "r1", "--documents", "2", "--workers", "2").code == 4
        waited = stocked.docgen("status", "r1", "--wait")
        assert waited.code == 4 and waited.json["state"] == "CANCELLED"
        assert stocked.docgen("resume", "r1").code == 4


class TestStatus:
    def test_of_all_runs_and_of_one(self, corpus: Any) -> None:
        (catalogue, run) = corpus.done("status", "--json").json["runs"]
        assert (catalogue["run"], catalogue["kind"]) == ("catalogue-default", "catalogue")
        assert run == corpus.done("status", "r1").json
        assert run["units"]["done"] == run["units"]["total"] and run["root_present"] and not run["withdrawn"]

    def test_makes_no_store_where_there_is_none(self, desk: Any) -> None:
        refused = desk.docgen("status")
        assert refused.code == 2 and "no state store at" in refused.complaint
        assert list(desk.folder.iterdir()) == []


class TestFailures:
    """Over a document type that makes trouble at document or company 5."""

    STATE = "state.db?lease_seconds=1&max_attempts=2"

    @pytest.fixture
    def here(self, desk: Any, packs_path: Path) -> Any:
        return type(desk)(desk.folder, {"PYTHONPATH": str(packs_path), "DOCGEN_STATE": self.STATE})

    def plan_catalogue(self, here: Any, pack: str, companies: int) -> None:
        state, blobs = open_state(here.folder / self.STATE), open_blobs(str(here.folder / ".docgen/blobs"))
        spec = CatalogueSpec(pack=f"delivery_note_pack:{pack}", companies=companies, products=1, range_width=1)
        build_catalogue_run(state, blobs, "v1", spec)

    def plan_run(self, here: Any, pack: str) -> None:
        self.plan_catalogue(here, pack, companies=4)
        state, blobs = open_state(here.folder / self.STATE), open_blobs(str(here.folder / ".docgen/blobs"))
        assert work_run("catalogue-v1", state=state, blobs=blobs, worker="here").exit_code == 0
        name = f"delivery_note_pack:{pack}"
        create_run(state, blobs, RunRequest("r1", 7, 1, Selection(), "v1", unit_size=1, pack=name))

    def test_are_told_listed_and_tried_again(self, here: Any) -> None:
        self.plan_run(here, "REFUSING")
        assert here.done("failures", "r1").out == ""
        worked = here.docgen("work", "r1")
        assert worked.code == 3 and worked.events[-1]["units"]["done"] == 6
        (told,) = [event for event in worked.events if event.get("outcome") == "failed"]
        assert told["unit"] == 5 and told["error"] == "parcels weigh more than the lorry"
        listed = here.docgen("failures", "r1")
        assert listed.code == 3 and listed.out == "5\t1\tparcels weigh more than the lorry\n"
        assert "`docgen resume r1` tries them again" in listed.err
        assert here.docgen("failures", "r1", "--json").json == {
            "run": "r1",
            "failures": [{"unit": 5, "attempts": 1, "error": "parcels weigh more than the lorry"}],
        }
        assert here.docgen("status", "r1", "--wait").code == 3
        assert here.docgen("work", "r1", "--workers", "4").code == 3
        resumed = here.docgen("resume", "r1")
        assert resumed.code == 3 and "1 failed units reset" in resumed.err and len(resumed.events) == 2
        assert here.docgen("export", "r1").code == 3

    def test_a_unit_that_kills_its_worker_fails_and_the_others_are_done_by_new_workers(self, here: Any) -> None:
        self.plan_catalogue(here, "POISONOUS", companies=8)
        worked = here.docgen("work", "catalogue-v1", "--workers", "2")
        assert worked.code == 3 and worked.events[-1]["units"]["done"] == 7
        assert "workers were killed" in worked.err
        ((unit, attempts, error),) = [
            line.split("\t") for line in here.docgen("failures", "catalogue-v1").out.splitlines()
        ]
        assert (unit, attempts) == ("5", "2") and "attempts used up" in error


class TestVerify:
    def test_names_what_is_changed_missing_or_foreign(self, copied: Any) -> None:
        run = copied.folder / ".docgen/blobs/runs/r1"
        document, shard = sorted(run.glob("documents/*/*.pdf"))[3], sorted(run.glob("golden/invoices/*"))[0]
        sound, foreign = document.read_bytes(), run / "documents/unit-000000/other.pdf"
        document.write_bytes(sound[:-10] + bytes([sound[-10] ^ 1]) + sound[-9:])
        assert copied.docgen("verify", "r1").code == 0, "the sizes are right"
        flipped = copied.docgen("verify", "r1", "--deep")
        assert flipped.code == 1 and "1 findings" in flipped.err
        assert flipped.out.split("\t")[:2] == ["changed", f"runs/r1/{document.relative_to(run)}"]
        document.write_bytes(sound)
        shard.unlink()
        foreign.write_bytes(b"%PDF-")
        found = copied.docgen("verify", "r1", "--json")
        assert found.code == 1 and not found.json["ok"]
        assert {(finding["kind"], finding["key"]) for finding in found.json["findings"]} == {
            ("missing", f"runs/r1/{shard.relative_to(run)}"),
            ("foreign", "runs/r1/documents/unit-000000/other.pdf"),
        }


class TestExport:
    def test_twice_replaces_and_never_doubles(self, corpus: Any, tmp_path: Path) -> None:
        root = json.loads((corpus.folder / ".docgen/blobs/runs/r1/manifest.json").read_bytes())
        for sink in (f"duckdb://{tmp_path / 'g.duckdb'}", str(tmp_path / "tables")):
            for _ in range(2):
                told = corpus.done("export", "r1", "--sink", sink).json
                assert told["rows"] == root["rows"] and set(told["rows"]) == TABLES
        for table in TABLES:
            # No words without being asked for.
            assert rows_by_run(tmp_path / "g.duckdb", table) == (
                {"r1": root["rows"][table]} if table != "words" else {}
            )
            assert parquet_rows(tmp_path / "tables", table) == root["rows"][table]

    def test_a_second_run_stands_beside_the_first_and_a_withdrawn_one_leaves(self, copied: Any, tmp_path: Path) -> None:
        sink, tables = tmp_path / "g.duckdb", tmp_path / "tables"
        env = {"DOCGEN_SINK": str(sink)}
        here = type(copied)(copied.folder, env)
        here.done("generate", "r2", "--documents", "2", "--seed", "3")
        for run in ("r1", "r2"):
            here.done("export", run)
        here.done("export", "r1", "--sink", tables)
        both = rows_by_run(sink)
        assert both["r2"] == 2 and both["r1"] == parquet_rows(tables)

        assert "none of its rows are left in" in here.done("withdraw", "r1").err
        assert rows_by_run(sink) == {"r2": 2}
        for words in (("export", "r1", "--sink", tables), ("show", "r1", "1"), ("verify", "r1"), ("work", "r1")):
            refused = here.docgen(*words)
            assert refused.code == 3 and "run 'r1' was withdrawn" in refused.complaint
        assert parquet_rows(tables) == 0
        assert here.done("status", "r1").json["withdrawn"]

        kept = here.digests("runs/r2", "catalogue", "sealed")
        told = here.done("gc", "--withdrawn", "--dry-run").json
        assert told["removed"] == len(here.digests("runs/r1")) > 0 and told["dry_run"]
        assert here.done("gc", "--withdrawn").json["keys"] == told["keys"]
        assert here.digests("runs/r1") == {} and here.digests("runs/r2", "catalogue", "sealed") == kept
        here.done("verify", "r2", "--deep")
        assert here.docgen("export", "r1").code == 3


class TestShow:
    def test_a_document_by_its_number_or_its_id(self, corpus: Any, exported: Path) -> None:
        by_number = corpus.done("show", "r1", "5").json
        assert set(by_number) == TABLES - {"field_boxes"}
        document = by_number["documents"][0]["document_id"]
        assert document.endswith("-0000005")
        assert corpus.done("show", "r1", document, "--json").json == by_number
        with duckdb.connect(str(exported), read_only=True) as golden:
            for table, shown in by_number.items():
                query = f"select count(*) from {table} where document_id = $1"
                assert golden.execute(query, [document]).fetchall() == [(len(shown),)]

    def test_with_its_boxes_and_pictures_of_its_pages(self, corpus: Any, tmp_path: Path) -> None:
        shown = corpus.done("show", "r1", "0", "--boxes", "--pictures", tmp_path / "deep/pages")
        document = shown.json["documents"][0]
        assert {box["page"] for box in shown.json["field_boxes"]} <= set(range(1, document["pages"] + 1))
        pictures = sorted((tmp_path / "deep/pages").iterdir())
        assert [picture.name for picture in pictures] == [
            f"{document['document_id']}-page-{page}.png" for page in range(1, document["pages"] + 1)
        ]
        assert all(picture.read_bytes().startswith(PNG) for picture in pictures)

    def test_at_a_terminal_as_tables(self, corpus: Any) -> None:
        shown = at_a_terminal(corpus, "show", "r1", "1")
        assert "line_items" in shown and "gross_total" in shown and "Decimal" not in shown


class TestGarbage:
    def test_goes_when_it_is_old_and_nothing_else_does(self, copied: Any) -> None:
        before = copied.digests("")
        temporary = copied.folder / ".docgen/blobs/.tmp/4711-abc"
        temporary.parent.mkdir(exist_ok=True)
        temporary.write_bytes(b"half a document")
        assert copied.done("gc").json["removed"] == 0, "it may still be written"
        os.utime(temporary, (0, 0))
        assert copied.done("gc", "--dry-run").json["keys"] == ["4711-abc"] and temporary.exists()
        assert copied.done("gc").json["bytes"] == 15 and not temporary.exists()
        assert copied.digests("") == before


class TestCatalogue:
    def test_is_built_once(self, stocked: Any) -> None:
        order = ("catalogue", "build", "small", "--companies", "24", "--products", "8", "--range", "12")
        assert stocked.done(*order, "--workers", "4").events[-1]["made"] == 0
        other = stocked.docgen(*order[:-1], "6")
        assert other.code == 2 and "range_width" in other.complaint


class TestDoctor:
    def test_finds_this_machine_able(self, desk: Any) -> None:
        told = desk.done("doctor").json
        assert told["healthy"] and all(check["ok"] for check in told["checks"])
        assert {check["check"] for check in told["checks"]} == {
            "browser",
            "fonts",
            "state store",
            "blob store",
            "clock",
        }
        assert desk.digests("") == {}, "it leaves nothing behind"

    def test_names_what_is_wrong_and_goes_on(self, desk: Any) -> None:
        ill = type(desk)(desk.folder, {"DOCGEN_CHROMIUM": "/nowhere/chromium"})
        (ill.folder / "notes.txt").write_text("not a database")
        told = ill.docgen("doctor", "--state", "notes.txt")
        checks = {check["check"]: check for check in told.json["checks"]}
        assert told.code == 3 and not told.json["healthy"]
        assert {name for name, check in checks.items() if not check["ok"]} == {"browser", "state store"}
        assert "/nowhere/chromium" in checks["browser"]["detail"]


def test_the_module_is_the_same_command(desk: Any) -> None:
    by_module = desk.done("--version", prefix=[sys.executable, "-m", "docgen_core.cli"])
    assert by_module == desk.done("--version") and by_module.out.startswith("docgen ")
