"""The golden set of a sealed run is read exactly, and not at all when it is not what was sealed."""

from __future__ import annotations

import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from fabricated_run import ORDERS, orders_and_notes, seal

from docgen_core import golden
from docgen_core.blobs.file import FileBlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import Damage, MissingExtra, RunIncomplete, RunWithdrawn, UsageError
from docgen_core.runs.keys import withdrawn_key


@pytest.fixture
def blobs() -> MemoryBlobStore:
    store = MemoryBlobStore()
    seal(store, "r1", orders_and_notes("r1", units=3))
    return store


def test_tables_rows_and_schemas_are_known_before_rows_are_read(blobs: MemoryBlobStore) -> None:
    run = golden.open("r1", blobs)
    assert (run.run_id, run.tables) == ("r1", ("notes", "orders"))
    assert [run.table(name).num_rows for name in run.tables] == [0, 3]
    assert run.table("orders").schema.equals(ORDERS, check_metadata=True)


def test_arrow_rows_come_in_the_order_of_the_documents(blobs: MemoryBlobStore) -> None:
    table = golden.open("r1", blobs).table("orders").to_arrow()
    assert table.schema.equals(ORDERS, check_metadata=True)
    assert table.column("document_id").to_pylist() == [f"0a1b2c3d-{index:07d}" for index in range(3)]
    assert table.column("rate").to_pylist() == [Decimal("1.1"), Decimal("0.0042"), Decimal("1.1")]


def test_frames_keep_decimals_dates_and_counts_as_they_are(blobs: MemoryBlobStore) -> None:
    frame = golden.open("r1", blobs).table("orders").to_pandas()
    row = frame.iloc[1].to_dict()
    assert (row["rate"], row["due"], row["copies"]) == (Decimal("0.0042"), date(2025, 1, 2), 3)
    assert {type(row[name]) for name in ("rate", "due", "copies")} == {Decimal, date, int}
    assert frame.iloc[0]["copies"] is None
    assert frame["rate"].sum() == Decimal("2.2042")


def test_a_table_without_rows_has_its_columns(blobs: MemoryBlobStore) -> None:
    notes = golden.open("r1", blobs).table("notes")
    assert notes.to_arrow().num_rows == 0
    assert list(notes.to_pandas().columns) == ["run_id", "document_id", "catalogue_version", "row_key", "text"]


def test_whoever_speaks_arrow_can_take_a_table(blobs: MemoryBlobStore) -> None:
    orders = golden.open("r1", blobs).table("orders")
    assert pa.table(orders).num_rows == 3
    total = duckdb.sql("SELECT sum(rate) FROM orders").fetchall()
    assert total == [(Decimal("2.2042"),)]


def test_a_changed_shard_is_refused(blobs: MemoryBlobStore) -> None:
    key = "runs/r1/golden/orders/unit-000002.parquet"
    blobs.put(key, blobs.get(key)[::-1])
    run = golden.open("r1", blobs)
    for read in (run.table("orders").to_arrow, run.table("orders").to_pandas, lambda: pa.table(run.table("orders"))):
        with pytest.raises(Exception, match=r"orders/unit-000002\.parquet") as caught:
            read()
        assert isinstance(caught.value, Damage | pa.ArrowException | OSError)
    assert run.table("notes").to_arrow().num_rows == 0


def test_what_is_not_sealed_or_is_withdrawn_is_not_opened(blobs: MemoryBlobStore) -> None:
    with pytest.raises(RunIncomplete):
        golden.open("r2", blobs)
    blobs.put(withdrawn_key("r1"), b"")
    with pytest.raises(RunWithdrawn):
        golden.open("r1", blobs)


def test_a_catalogue_is_read_by_its_runs_id() -> None:
    blobs = MemoryBlobStore()
    seal(blobs, "catalogue-v1", orders_and_notes("catalogue-v1"))
    assert golden.open("catalogue-v1", blobs).table("orders").num_rows == 2


def test_a_run_copied_to_another_runs_place_is_damage(blobs: MemoryBlobStore) -> None:
    blobs.put("runs/r3/manifest.json", blobs.get("runs/r1/manifest.json"))
    with pytest.raises(Damage, match="that of run 'r1', not of 'r3'"):
        golden.open("r3", blobs)


def test_the_environment_names_the_blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(FileBlobStore(tmp_path / "blobs"), "r1", orders_and_notes("r1"))
    monkeypatch.setenv("DOCGEN_BLOBS", str(tmp_path / "blobs"))
    assert golden.open("r1").table("orders").num_rows == 2
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOCGEN_BLOBS")
    assert golden.open("r1", "blobs").table("orders").num_rows == 2


def test_a_table_that_is_not_there_names_those_that_are(blobs: MemoryBlobStore) -> None:
    with pytest.raises(UsageError, match="it has notes, orders"):
        golden.open("r1", blobs).table("invoices")


def test_without_pandas_the_message_names_the_install(blobs: MemoryBlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'docgen\[pandas\]'"):
        golden.open("r1", blobs).table("orders").to_pandas()
