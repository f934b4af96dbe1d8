"""A check fails on real damage, names it, and says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import duckdb

if TYPE_CHECKING:
    from tests.assets.conftest import Location

FIRST = "00000-00003"
RUN = f"invoices-{FIRST}"


def evaluated(location: Location, asset: str, check: str) -> dg.AssetCheckEvaluation:
    """The check of one range, run alone, as the button on the asset's page does."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    job = location.defs.resolve_job_def("generate_corpus").get_subset(
        asset_selection=set(), asset_check_selection={key}
    )
    result = job.execute_in_process(
        run_config={"resources": {"stores": {"config": location.stores}}},
        instance=location.instance,
        partition_key=FIRST,
    )
    (evaluation,) = result.get_asset_check_evaluations()
    return evaluation


def change(location: Location, sql: str) -> None:
    with duckdb.connect(location.sink) as connection:
        connection.execute(sql)


def found(evaluation: dg.AssetCheckEvaluation) -> str:
    assert not evaluation.passed
    assert evaluation.description
    return str(evaluation.metadata["the first"].value)


def test_a_missing_document_is_named(damageable: Location):
    document = next((damageable.folder / "blobs").rglob("*.pdf"))
    document.unlink()
    listed = found(evaluated(damageable, "golden_shards", "manifest_complete"))
    assert document.name in listed and "missing" in listed and FIRST in listed


def test_a_foreign_blob_is_named(damageable: Location):
    (damageable.folder / "blobs" / "runs" / RUN / "golden" / "invoices" / "unit-000099.parquet").write_bytes(b"x")
    assert "unit-000099" in found(evaluated(damageable, "golden_shards", "manifest_complete"))


def test_a_wrong_amount_in_the_sink_is_named_with_its_rule(damageable: Location):
    change(damageable, "UPDATE invoices SET gross_total = gross_total + 1, amount_due = amount_due + 1")
    listed = found(evaluated(damageable, "invoices", "golden_arithmetic"))
    assert "gross_total = net_total + tax_total" in listed and FIRST in listed


def test_missing_rows_in_the_sink_are_counted(damageable: Location):
    change(damageable, "DELETE FROM tax_lines WHERE row_key = '1'")
    assert "in the sink" in found(evaluated(damageable, "tax_lines", "row_count_matches_manifest"))
    assert evaluated(damageable, "line_items", "row_count_matches_manifest").passed
