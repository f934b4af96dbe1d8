"""The sensor asks for tables of whatever is sealed, once, whoever made it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

if TYPE_CHECKING:
    from tests.assets.conftest import Location

FIRST = "00000-00003"
RUN = f"invoices-{FIRST}"


def tick(location: Location, cursor: str | None = None, *, sensor: str = "root_manifest_sensor") -> dg.SensorResult:
    """One evaluation with the location's stores and history."""
    from docgen_assets.defs import sensors
    from docgen_assets.resources import Stores

    context = dg.build_sensor_context(
        instance=location.instance,
        cursor=cursor,
        definitions=location.defs,
        resources={"stores": Stores(**location.stores)},
    )
    answer = getattr(sensors, sensor)(context)
    assert isinstance(answer, dg.SensorResult)
    return answer


def seal(location: Location, run_id: str) -> None:
    """A run of the command line's: planned, worked on and sealed without Dagster."""
    from docgen_core.blobs import open_blobs
    from docgen_core.runs.drain import work_run
    from docgen_core.runs.plan import RunRequest, create_run
    from docgen_core.runs.selection import Selection
    from docgen_core.state import open_state

    state, blobs = open_state(location.stores["state"]), open_blobs(location.stores["blobs"])
    selection = Selection(companies=(0, 3))
    request = RunRequest(run_id, documents=1, seed=3, selection=selection, catalogue="roster", pin=(0,))
    create_run(state, blobs, request)
    assert work_run(run_id, state=state, blobs=blobs, worker="test").root_digest
    state.close()


def seal_catalogue(location: Location, version: str) -> str:
    """A small catalogue of the command line's, and its root's digest."""
    from docgen_core.blobs import open_blobs
    from docgen_core.runs.catalogue import build_catalogue_run
    from docgen_core.runs.drain import work_run
    from docgen_core.runs.selection import CatalogueSpec
    from docgen_core.state import open_state

    with (
        closing(open_state(location.stores["state"])) as state,
        closing(open_blobs(location.stores["blobs"])) as blobs,
    ):
        planned = build_catalogue_run(state, blobs, version, CatalogueSpec(companies=4, products=2, range_width=2))
        digest = work_run(planned.run.run_id, state=state, blobs=blobs, worker="test").root_digest
    assert digest
    return digest


def launch(location: Location, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
    """What the daemon does with a request, in this process."""
    config: dict[str, Any] = dict(request.run_config)
    config["resources"] = {**config.get("resources", {}), "stores": {"config": location.stores}}
    return location.defs.resolve_job_def(request.job_name or "").execute_in_process(
        run_config=config,
        instance=location.instance,
        partition_key=request.partition_key,
        tags={**request.tags, "dagster/run_key": request.run_key or ""},
    )


@pytest.mark.parametrize(
    ("place", "value"),
    [("bucket", 99_999), ("bucket", "x"), ("marks", "x"), ("unfinished_after", 5), ("drained", 5), ("drained", [5])],
)
def test_a_cursor_that_somebody_mangled_is_begun_anew(defs: dg.Definitions, place: str, value: object):
    from docgen_assets.defs.sensors import Cursor

    mangled = json.loads(Cursor(drained=["r1"]).dump())
    assert Cursor.load(json.dumps(mangled)) != Cursor(), "as it was dumped, it is taken"
    (mangled["markers"]["windows"][""] if place in ("bucket", "marks") else mangled)[place] = value
    assert Cursor.load(json.dumps(mangled)) == Cursor()
    for text in (None, "", "null", "[]", "no JSON", "{}"):
        assert Cursor.load(text) == Cursor()


def test_what_dagster_exported_itself_is_not_asked_for(made: Location):
    answer = tick(made)
    assert not answer.run_requests
    assert answer.skip_reason


def test_a_run_of_the_command_line_is_exported_once(damageable: Location):
    seal(damageable, "by-hand")
    requests = [each for each in tick(damageable).run_requests or () if each.job_name == "export_run"]
    (request,) = requests
    digest = (damageable.folder / "blobs" / "sealed" / "by-hand").read_text().strip()
    assert request.run_key == f"by-hand:{digest}"
    assert launch(damageable, request).success
    assert damageable.query("SELECT run_id FROM documents WHERE run_id = 'by-hand'") == [("by-hand",)]
    again = tick(damageable).run_requests or ()
    assert request.run_key not in {each.run_key for each in again}, "a fresh cursor does not export it again"


def test_a_sealed_catalogue_is_exported_once_whoever_built_it(location: Location):
    digest = seal_catalogue(location, "v2")
    (request,) = tick(location).run_requests or ()
    assert (request.job_name, request.run_key) == ("export_catalogue", f"catalogue-v2:{digest}")
    assert launch(location, request).success
    assert location.query("SELECT DISTINCT catalogue_version FROM products") == [("v2",)]
    assert not tick(location).run_requests, "a fresh cursor does not export it again"
    seal_catalogue(location, "v3")
    (other,) = tick(location).run_requests or ()
    assert other.tags["docgen/run"] == "catalogue-v3"


def test_a_catalogue_whose_tables_are_of_its_root_already_is_not_asked_for(location: Location):
    """Somebody launched the job by hand: no request of the sensor's is in the history."""
    seal_catalogue(location, "v2")
    assert location.run("export_catalogue", corpus={"catalogue": "v2"}).success
    assert not tick(location).run_requests


def test_a_sealed_run_of_a_range_gets_its_tables_at_that_range(damageable: Location):
    """The history of this location is empty, so the tables of the range were never materialised here."""
    (request,) = tick(damageable).run_requests or ()
    assert (request.job_name, request.partition_key) == ("export_ranges", FIRST)
    assert request.run_key and request.run_key.startswith(f"{RUN}:")
    result = launch(damageable, request)
    assert result.success
    assert damageable.instance.get_materialized_partitions(dg.AssetKey("invoices")) == {FIRST}
    assert not tick(damageable).run_requests


def test_a_name_alone_makes_no_partition(damageable: Location):
    """Its plan draws from other companies than its name says."""
    seal(damageable, "extra-00004-00007")
    by_name = {each.tags["docgen/run"]: each.job_name for each in tick(damageable).run_requests or ()}
    assert by_name["extra-00004-00007"] == "export_run"


def test_a_range_that_dagster_is_working_on_is_left_for_a_later_tick(damageable: Location):
    going = damageable.instance.create_run_for_job(
        damageable.defs.resolve_job_def("generate_corpus"),
        tags={"dagster/partition": FIRST},
        status=dg.DagsterRunStatus.STARTED,
    )
    waiting = tick(damageable)
    assert not waiting.run_requests
    damageable.instance.report_run_failed(going)
    (request,) = tick(damageable, waiting.cursor).run_requests or ()
    assert request.partition_key == FIRST


def test_a_tick_is_bounded_and_the_next_ones_bring_the_rest(damageable: Location, monkeypatch: pytest.MonkeyPatch):
    from docgen_assets.defs import sensors

    monkeypatch.setattr(sensors, "MAX_REQUESTS", 2)
    names = [f"by-hand-{number}" for number in range(3)]
    for name in names:
        seal(damageable, name)
    asked: list[str] = []
    cursor = None
    for _ in range(3):
        answer = tick(damageable, cursor)
        assert len(answer.run_requests or ()) <= 2
        asked += [each.tags["docgen/run"] for each in answer.run_requests or ()]
        cursor = answer.cursor
    assert sorted(asked) == sorted([*names, RUN])


@pytest.mark.parametrize("left_as", ["RUNNING", "FINALIZING"])
def test_a_drained_run_that_nobody_sealed_is_resumed_after_a_second_look(damageable: Location, left_as: str):
    """All units are done, and the process died before the root: its workers get a tick to do it themselves."""
    unseal(damageable, left_as)
    first = tick(damageable)
    assert not [each for each in first.run_requests or () if each.job_name == "resume_run"]
    second = tick(damageable, first.cursor)
    (request,) = [each for each in second.run_requests or () if each.job_name == "resume_run"]
    assert launch(damageable, request).success
    assert (damageable.folder / "blobs" / "sealed" / RUN).exists()


def test_a_damaged_plan_and_a_strangers_file_hide_no_other_run(damageable: Location):
    (damageable.folder / "blobs" / "sealed" / ".DS_Store").write_text("x")
    (damageable.folder / "blobs" / "sealed" / "UPPER-00000-00003").write_text("x")
    plan = damageable.folder / "blobs" / "runs" / RUN / "plan.json"
    plan.write_bytes(plan.read_bytes().replace(b"documents", b"dokuments"))
    seal(damageable, "by-hand")
    asked = {each.tags["docgen/run"] for each in tick(damageable).run_requests or ()}
    assert "by-hand" in asked and RUN not in asked


def withdraw(location: Location, run_id: str) -> None:
    """What `docgen withdraw` does to the blobs."""
    from docgen_core.blobs import open_blobs
    from docgen_core.runs.withdraw import withdraw as put_tombstone

    with closing(open_blobs(location.stores["blobs"])) as blobs:
        put_tombstone(run_id, blobs)


def removals(location: Location, cursor: str | None = None) -> list[dg.RunRequest]:
    return list(tick(location, cursor, sensor="withdrawn_run_sensor").run_requests or ())


def test_a_withdrawn_run_disappears_whoever_exported_it(damageable: Location):
    """Its rows came with a copy of the sink: this history knows of no export."""
    assert removals(damageable) == []
    withdraw(damageable, RUN)
    (request,) = removals(damageable)
    assert (request.job_name, request.run_key) == ("remove_run", f"withdrawn:{RUN}")
    result = launch(damageable, request)
    assert result.success
    assert damageable.query("SELECT count(*) FROM invoices") == [(0,)]
    (output,) = [event.step_output_data for event in result.all_events if event.is_successful_output]
    assert output.metadata["documents rows"].value == 3
    assert removals(damageable) == [], "a fresh cursor does not ask again"
    assert not tick(damageable).run_requests, "nor are its tables asked for"


def test_the_tables_of_a_withdrawn_run_say_so_where_they_were_made_from_it(damageable: Location):
    seal(damageable, "by-hand")
    assert damageable.run("export_ranges", FIRST, corpus={}).success
    for run_id in (RUN, "by-hand"):
        withdraw(damageable, run_id)
    for request in removals(damageable):
        assert launch(damageable, request).success
    wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey("invoices"), asset_partitions=[FIRST])
    (record,) = damageable.instance.fetch_observations(wanted, limit=5).records
    observed = record.asset_observation
    assert observed is not None and observed.metadata["docgen run"].value == RUN


def test_the_rows_of_a_run_that_is_not_withdrawn_stay(made: Location):
    refused = made.refusal(made.run("remove_run", ops={"remove_one_run": {"config": {"run_id": RUN}}}))
    assert "is not withdrawn" in refused and f"`docgen withdraw {RUN}`" in refused
    assert made.query("SELECT count(*) FROM documents") == [(3,)]


def unseal(location: Location, left_as: str) -> None:
    """The range's run as a process leaves it that dies between the last unit and the root."""
    import sqlite3

    with sqlite3.connect(location.folder / "state.db") as database:
        changed = database.execute(
            "UPDATE runs SET state = ?, root_digest = NULL WHERE run_id = ?", [left_as, RUN]
        ).rowcount
    assert changed == 1
    (location.folder / "blobs" / "sealed" / RUN).unlink()
    (location.folder / "blobs" / "runs" / RUN / "manifest.json").unlink()
