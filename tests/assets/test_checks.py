"""A check fails on real damage, names it, and says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import duckdb
import pytest

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


def test_a_changed_blob_of_the_right_size_is_found_where_the_sample_reads_it(damageable: Location):
    """Three units of a document and eight shards or more: the sample reads most of the blobs."""
    documents = list((damageable.folder / "blobs").rglob("*.pdf"))
    for document in documents:
        data = document.read_bytes()
        document.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    evaluation = evaluated(damageable, "golden_shards", "manifest_complete")
    assert any(document.name in found(evaluation) for document in documents)
    assert "docgen verify" in (evaluation.description or "")
    assert evaluation.metadata["blobs read and hashed"].value == 20


def test_the_sample_is_the_same_for_the_same_root_and_another_for_another(made: Location):
    from docgen_assets.defs import checks
    from docgen_assets.resources import Places
    from docgen_core.blobs import open_blobs
    from docgen_core.runs.manifest import BlobEntry, Part, read_root
    from docgen_core.state import open_state

    blobs = open_blobs(made.stores["blobs"])
    root = read_root(blobs, f"runs/{RUN}")
    many = [BlobEntry(key=f"k{number:03d}", sha256="0" * 64, bytes=1) for number in range(200)]
    part = Part(run_id=RUN, unit=0, first=0, count=1, blobs=many, rows={})
    other = root.model_copy(update={"total_items": 99})
    with open_state(made.stores["state"]) as state, pytest.MonkeyPatch.context() as patch:
        patch.setattr("docgen_core.runs.manifest.iter_parts", lambda *_: iter([part]))
        here = Places(state, blobs)
        first, again, another = (checks._sample(here, each) for each in (root, root, other))
    assert len(first) == checks.SAMPLED_BLOBS
    assert first == again != another


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM field_boxes WHERE column_name = 'gross_total'", "a printed golden value has its box"),
        ("DELETE FROM line_items WHERE row_key = '1'", "a box belongs to a golden value"),
        ("UPDATE invoices SET number = number || 'x'", "a box says its golden value"),
        ("UPDATE field_boxes SET part = 1 WHERE column_name = 'number'", "has each of its parts once"),
        ("UPDATE field_boxes SET page = 9 WHERE column_name = 'number'", "stands on a page of its document"),
        ("UPDATE field_boxes SET x1 = 5000 WHERE column_name = 'number'", "a box is inside its page"),
        ("UPDATE field_boxes SET y3 = -1 WHERE column_name = 'number'", "a box is inside its page"),
    ],
)
def test_a_value_without_its_box_or_a_box_out_of_place_is_named(damageable: Location, sql: str, said: str):
    change(damageable, sql)
    evaluation = evaluated(damageable, "field_boxes", "box_coverage")
    assert said in found(evaluation) and FIRST in found(evaluation)
    assert "materialise" in (evaluation.description or "")
    assert evaluation.metadata["documents whose pages were measured"].value == 3
