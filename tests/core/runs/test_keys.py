"""A key says what it is by its form and by whose prefix it stands under, and by nothing else."""

from __future__ import annotations

import pytest

from docgen_core.runs.keys import is_attempt, is_document, shard_table

RUN, CATALOGUE = "runs/r1", "catalogue/v1"


@pytest.mark.parametrize(
    ("key", "table"),
    [
        (f"{RUN}/golden/documents/unit-000000.parquet", "documents"),
        (f"{RUN}/golden/orders/unit-000012.parquet", "orders"),
        (f"{RUN}/documents/unit-000000/golden.parquet", None),
        (f"{RUN}/golden/orders/stray.parquet", None),
        ("runs/r1x/golden/orders/unit-000000.parquet", None),
        (f"{RUN}/r2/golden/orders/unit-000000.parquet", None),
        ("golden/orders/unit-000000.parquet", None),
    ],
)
def test_a_shard_is_known_by_its_place_under_the_runs_own_prefix(key: str, table: str | None) -> None:
    assert shard_table(RUN, key) == table


def test_a_run_that_is_called_like_a_folder_has_its_documents_told_from_its_shards() -> None:
    for prefix in ("runs/golden", "runs/documents"):
        assert is_document(prefix, f"{prefix}/documents/unit-000000/a-0000001.pdf")
        assert not is_document(prefix, f"{prefix}/golden/documents/unit-000000.parquet")
        assert shard_table(prefix, f"{prefix}/documents/unit-000000/a-0000001.pdf") is None


def test_only_a_catalogue_has_attempts() -> None:
    for name in ("golden/orders/unit-000000.g9.parquet", "manifest/unit-000000.g2.json"):
        assert is_attempt(CATALOGUE, f"{CATALOGUE}/{name}")
        assert not is_attempt(RUN, f"{RUN}/{name}")
    assert not is_attempt(CATALOGUE, f"{CATALOGUE}/golden/orders/unit-000000.parquet")
