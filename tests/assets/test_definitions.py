"""What the code location offers, as one snapshot, and what every definition owes its reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]

TABLES = ["codes", "documents", "field_boxes", "instalments", "invoices", "line_items", "pages", "tax_lines", "words"]
CATALOGUE_TABLES = ["companies", "llm_usage", "price_tiers", "products"]
"""Of a whole catalogue version, and so without partitions."""

SNAPSHOT = {
    "assets": {
        "catalogue": [],
        "codes": ["golden_shards"],
        "companies": ["catalogue"],
        "documents": ["golden_shards"],
        "field_boxes": ["golden_shards"],
        "golden_shards": ["run_plan"],
        "instalments": ["golden_shards"],
        "invoices": ["golden_shards"],
        "line_items": ["golden_shards"],
        "llm_usage": ["catalogue"],
        "pages": ["golden_shards"],
        "price_tiers": ["catalogue"],
        "products": ["catalogue"],
        "run_plan": ["catalogue"],
        "tax_lines": ["golden_shards"],
        "words": ["golden_shards"],
    },
    "checks": [
        "catalogue:budget_kept",
        "catalogue:ranges_complete",
        "catalogue:texts_accepted",
        "codes:row_count_matches_manifest",
        "documents:row_count_matches_manifest",
        "field_boxes:box_coverage",
        "field_boxes:row_count_matches_manifest",
        "golden_shards:manifest_complete",
        "golden_shards:no_run_is_stuck",
        "instalments:row_count_matches_manifest",
        "invoices:golden_arithmetic",
        "invoices:row_count_matches_manifest",
        "line_items:row_count_matches_manifest",
        "pages:row_count_matches_manifest",
        "tax_lines:row_count_matches_manifest",
        "words:row_count_matches_manifest",
    ],
    "groups": ["corpus"],
    "jobs": [
        "add_workers",
        "cancel_run",
        "collect_garbage",
        "export_catalogue",
        "export_ranges",
        "export_run",
        "generate_corpus",
        "remove_run",
        "resume_run",
        "verify_run",
    ],
    "partitions": ["00000-00003", "00004-00007", "00008-00009"],
    "resources": ["corpus", "stores"],
    "schedules": {"collect_garbage_daily": ["collect_garbage", "STOPPED"]},
    "sensors": {
        "root_manifest_sensor": ["export_catalogue", "export_ranges", "export_run", "resume_run"],
        "stuck_run_sensor": [],
        "withdrawn_run_sensor": ["remove_run"],
    },
}


def keys(found: Any) -> list[str]:
    return sorted(key.to_user_string() for key in found)


def test_the_code_location_offers_exactly_this(defs: dg.Definitions):
    graph = defs.resolve_asset_graph()
    repository = defs.get_repository_def()
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    found = {
        "assets": {node.key.to_user_string(): keys(node.parent_keys) for node in nodes},
        "checks": keys(graph.asset_check_keys),
        "groups": sorted({node.group_name for node in nodes}),
        "jobs": sorted(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")),
        "partitions": graph.get(dg.AssetKey("catalogue")).partitions_def.get_partition_keys(),
        "resources": sorted(repository.get_top_level_resources()),
        "schedules": {each.name: [each.job.name, each.default_status.value] for each in repository.schedule_defs},
        "sensors": {
            sensor.name: sorted(job.name for job in sensor.jobs) if sensor.has_jobs else []
            for sensor in repository.sensor_defs
        },
    }
    assert json.loads(json.dumps(found)) == {**SNAPSHOT, "assets": dict(sorted(SNAPSHOT["assets"].items()))}


def test_whatever_can_be_materialised_has_the_same_partitions_and_comes_as_one_run(defs: dg.Definitions):
    """So that everything can be, for any ranges, at once."""
    graph = defs.resolve_asset_graph()
    whole = {dg.AssetKey(table) for table in CATALOGUE_TABLES}
    assert graph.get_all_asset_keys() - graph.materializable_asset_keys == whole
    nodes = [graph.get(key) for key in graph.materializable_asset_keys]
    assert len({node.partitions_def for node in nodes}) == 1
    assert {node.backfill_policy for node in nodes} == {dg.BackfillPolicy.single_run()}


def test_every_asset_tells_its_reader_what_it_is(defs: dg.Definitions):
    for spec in defs.resolve_all_asset_specs():
        assert spec.description and spec.owners and spec.kinds and spec.tags and spec.code_version, spec.key


@pytest.mark.parametrize("table", TABLES)
def test_a_table_shows_its_columns_with_descriptions_and_where_each_comes_from(defs: dg.Definitions, table: str):
    spec = next(spec for spec in defs.resolve_all_asset_specs() if spec.key == dg.AssetKey(table))
    schema, lineage = spec.metadata["dagster/column_schema"], spec.metadata["dagster/column_lineage"]
    columns = schema.schema.columns if hasattr(schema, "schema") else schema.columns
    by_column = (lineage.column_lineage if hasattr(lineage, "column_lineage") else lineage).deps_by_column
    assert [column.name for column in columns][:2] == ["run_id", "document_id"]
    assert all(column.description for column in columns)
    assert by_column.keys() == {column.name for column in columns}


def test_every_setting_in_the_launchpad_has_a_description(defs: dg.Definitions):
    from docgen_assets.defs.jobs import OneRun, OnRun, Verify
    from docgen_assets.defs.schedules import Collect
    from docgen_assets.fleet import Workers
    from docgen_assets.resources import Corpus, Stores

    for model in (Workers, OneRun, OnRun, Verify, Collect, Corpus, Stores):
        undescribed = [name for name, field in model.model_fields.items() if not field.description]
        assert not undescribed, model


def test_no_step_is_retried_since_a_cancellation_would_start_it_again(defs: dg.Definitions):
    repository = defs.get_repository_def()
    for job in repository.get_all_jobs():
        for node in job.graph.iterate_node_defs():
            assert getattr(node, "retry_policy", None) is None, node.name


def test_jobs_checks_sensors_and_the_schedule_have_descriptions(defs: dg.Definitions):
    repository = defs.get_repository_def()
    for job in repository.get_all_jobs():
        assert job.description or job.name.startswith("__"), job.name
    assert all(each.description for each in (*repository.sensor_defs, *repository.schedule_defs))
    for key in defs.resolve_asset_graph().asset_check_keys:
        assert defs.resolve_asset_graph().get_check_spec(key).description, key


def test_loading_the_code_location_imports_no_cloud_no_model_and_no_renderer():
    """Every process of a deployment pays for what is imported here; the graph shows the sink's kind even so."""
    heavy = ["litellm", "boto3", "google.cloud", "playwright", "cv2", "pypdfium2", "pikepdf", "pandas"]
    program = (
        f"import docgen_assets.definitions, sys; print([name for name in {heavy} if name in sys.modules], "
        "*sorted(docgen_assets.defs.exports.CATALOGUE_SPECS[0].kinds))"
    )
    environment = {**os.environ, "DOCGEN_SINK": "bigquery://project/dataset?staging=gs://bucket"}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[] bigquery table"
    assert answer.stderr == ""


def test_the_workspace_validates(tmp_path: Path):
    command = [str(Path(sys.executable).with_name("dagster")), "definitions", "validate", "-w", "workspace.yaml"]
    answer = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr


def test_the_cloud_location_is_the_workspaces():
    (location,) = yaml.safe_load((REPOSITORY / "dagster_cloud.yaml").read_text())["locations"]
    (loaded,) = yaml.safe_load((REPOSITORY / "workspace.yaml").read_text())["load_from"]
    assert location["location_name"] == loaded["python_module"]["location_name"]
    assert location["code_source"] == {"module_name": loaded["python_module"]["module_name"]}
    assert set(location) <= {"location_name", "code_source", "build", "working_directory", "image", "container_context"}


def test_the_instance_template_is_one_that_dagster_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "dagster.yaml").write_text((REPOSITORY / "deploy" / "dagster.yaml").read_text())
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_resume_run_attempts == 0
        assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
        assert instance.get_settings("run_monitoring")["free_slots_after_run_end_seconds"] > 0
