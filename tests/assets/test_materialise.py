"""From nothing to queryable tables for company ranges, by the jobs of the code location."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pytest

if TYPE_CHECKING:
    from tests.assets.conftest import Location

FIRST, SECOND, LAST = "00000-00003", "00004-00007", "00008-00009"
RUN = f"invoices-{FIRST}"
FIRST_STEP = "catalogue.launch_catalogue_workers"


def materialised(location: Location, asset: str, key: str) -> dg.AssetMaterialization:
    """The latest materialisation of an asset's range."""
    found = location.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[key]), limit=1
    )
    event = found.records[0].asset_materialization
    assert event is not None
    return event


def sealed(location: Location, run_id: str) -> str:
    return (location.folder / "blobs" / "sealed" / run_id).read_text().strip()


def evaluations(result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
    """Every evaluation of a run, also those of single ranges."""
    return [
        event.asset_check_evaluation_data
        for event in result.all_events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_range_from_nothing_ends_in_rows_of_exactly_its_companies(made: Location):
    assert made.query("SELECT DISTINCT run_id FROM invoices") == [(RUN,)]
    assert made.query("SELECT count(*) FROM documents") == [(3,)]
    ((lowest, highest),) = made.query("SELECT min(company_id), max(company_id) FROM invoices")
    assert 0 <= lowest <= highest <= 3


def test_a_materialised_range_tells_its_root_and_rows(made: Location):
    for asset in ("golden_shards", "invoices", "field_boxes"):
        event = materialised(made, asset, FIRST)
        assert event.metadata["root digest"].value == sealed(made, RUN)
        assert event.tags["dagster/data_version"] == sealed(made, RUN)
    ((boxes,),) = made.query("SELECT count(*) FROM field_boxes")
    assert materialised(made, "field_boxes", FIRST).metadata["dagster/partition_row_count"].value == boxes
    assert materialised(made, "golden_shards", FIRST).metadata["documents a second"].value > 0


def test_a_materialised_range_shows_its_first_pages_in_bounds(made: Location):
    from docgen_assets.preview import _MAX_BYTES

    shown = materialised(made, "golden_shards", FIRST).metadata["first pages"].value
    assert "data:image/png;base64,iVBOR" in str(shown)
    assert len(str(shown)) < _MAX_BYTES * 3 / 2


def test_a_table_shows_its_first_rows(made: Location):
    shown = materialised(made, "invoices", FIRST).metadata["first rows"]
    assert isinstance(shown, dg.TableMetadataValue)
    assert len(shown.records) == 3
    ids = made.query("SELECT document_id FROM invoices ORDER BY document_id")
    assert [(record.data["document_id"],) for record in shown.records] == ids


def test_every_check_passes_on_what_was_just_made(made: Location):
    result = made.run("generate_corpus", FIRST, corpus={"documents_per_range": 3})
    evaluations = result.get_asset_check_evaluations()
    assert len(evaluations) == 16
    assert all(evaluation.passed for evaluation in evaluations)


def test_generating_again_makes_nothing_anew_and_doubles_nothing(made: Location):
    before, rows = files(made.folder / "blobs"), made.query("SELECT * FROM invoices ORDER BY ALL")
    assert made.generate(FIRST).success
    assert files(made.folder / "blobs") == before
    assert made.query("SELECT * FROM invoices ORDER BY ALL") == rows


def test_several_ranges_in_one_run_each_get_their_own_run_root_and_rows(location: Location):
    result = location.generate(FIRST, LAST, documents_per_range=2)
    assert result.success
    assert location.query("SELECT run_id, count(*) FROM documents GROUP BY run_id ORDER BY run_id") == [
        (f"invoices-{key}", 2) for key in (FIRST, SECOND, LAST)
    ]
    for key in (FIRST, SECOND, LAST):
        for asset in ("golden_shards", "tax_lines"):
            assert materialised(location, asset, key).metadata["root digest"].value == sealed(
                location, f"invoices-{key}"
            )
    checked = {(each.check_name, each.asset_key, each.partition) for each in evaluations(result) if each.passed}
    for key in (FIRST, SECOND, LAST, None):
        assert ("golden_arithmetic", dg.AssetKey("invoices"), key) in checked
        assert ("row_count_matches_manifest", dg.AssetKey("field_boxes"), key) in checked
    assert sealed(location, "catalogue-roster"), "whoever completes the last range seals the catalogue"


def test_other_documents_under_the_same_corpus_name_are_refused_saying_so(made: Location):
    said = made.refusal(made.generate(FIRST, documents_per_range=4))
    assert "corpus 'invoices' has other documents for range 00000-00003 already" in said
    assert "documents" in said and "another name" in said
    assert made.query("SELECT count(*) FROM documents") == [(3,)]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"documents_per_range": 0}, "documents"),
        ({"locales": ["tlh-QO"]}, "tlh-QO"),
        ({"conditions": {"crumpled": 1}}, "crumpled"),
        ({"name": "Up/../there"}, "run id"),
        ({"catalogue": "../up"}, "catalogue"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_refused_in_one_line_that_names_it_before_anything_is_made(
    made: Location, setting: dict[str, object], said: str
):
    result = made.generate(FIRST, **{"name": "wrong", **setting})
    refused = made.refusal(result)
    assert [each.step_key for each in result.all_events if each.is_step_failure] == [FIRST_STEP]
    assert said in refused
    assert "\n" not in refused


def test_a_number_of_workers_out_of_bounds_is_refused_by_its_step(planned: Location):
    result = planned.run(
        "generate_corpus", FIRST, ops={"golden_shards": {"config": {"workers": 0}}}, selection=["golden_shards"]
    )
    assert planned.refusal(result) == "workers 0: give a whole number from 1 to 512"


def test_a_paused_run_is_not_materialised_and_a_cancelled_one_never(planned: Location):
    from docgen_core.state import open_state

    chosen = {"documents_per_range": 2}
    state = open_state(planned.stores["state"])
    state.pause(RUN)
    said = planned.refusal(planned.run("generate_corpus", FIRST, corpus=chosen, selection=["golden_shards"]))
    assert "is paused" in said and "resume_run" in said
    state.resume(RUN)
    state.cancel(RUN)
    said = planned.refusal(planned.run("generate_corpus", FIRST, corpus=chosen, selection=["golden_shards"]))
    assert "was cancelled" in said
    assert not planned.instance.fetch_materializations(dg.AssetKey("golden_shards"), limit=1).records
    state.close()


def test_a_run_that_other_software_planned_is_refused_before_a_worker_starts(planned: Location):
    plan = planned.folder / "blobs" / "runs" / RUN / "plan.json"
    plan.write_text(re.sub(r'"docgen":"[^"]*"', '"docgen":"0.0.1"', plan.read_text()))
    chosen = {"documents_per_range": 2}
    said = planned.refusal(planned.run("generate_corpus", FIRST, corpus=chosen, selection=["golden_shards"]))
    assert "the plan names 0.0.1" in said


def test_tables_of_a_range_that_is_not_sealed_are_refused(planned: Location):
    said = planned.refusal(planned.run("export_ranges", FIRST, corpus={}))
    assert RUN in said
    assert not planned.instance.fetch_materializations(dg.AssetKey("invoices"), limit=1).records


def test_tables_go_to_parquet_as_well(made: Location, tmp_path: Path):
    """The same roots, exported elsewhere, are checked by the same SQL."""
    from docgen_assets.warehouse import opened_sink

    elsewhere = type(made)(made.defs, made.folder, made.instance, f"parquet://{tmp_path / 'golden'}")
    result = elsewhere.run("export_ranges", FIRST, corpus={})
    assert result.success
    assert [evaluation.passed for evaluation in result.get_asset_check_evaluations()] == [True] * 11
    with opened_sink(elsewhere.sink) as there, opened_sink(made.sink) as here:
        lines = [pa.Table.from_batches(sink.fetch("line_items", RUN)).to_pylist() for sink in (there, here)]
    assert lines[0] == lines[1] != []
