"""What every sink promises: a run is replaced whole, nobody else's rows are touched, damage stays out."""

from __future__ import annotations

from contextlib import closing
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from fabricated_run import ORDERS, case_21, orders_and_notes, seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import Damage, DocgenError, RunIncomplete, RunWithdrawn, StorageFailed, UsageError
from docgen_core.export import ExportReport, export_run
from docgen_core.llm.items import CallOutcome, CallRecord
from docgen_core.runs.keys import part_key, root_key, sealed_key, shard_key, usage_key, withdrawn_key
from docgen_core.runs.shards import encode_shard
from docgen_core.runs.usage import LLM_USAGE, SCHEMA, usage_rows
from docgen_core.state.contract import Lease

if TYPE_CHECKING:
    from conftest import Place


COST = Decimal("0.000602000")


def export(run_id: str, blobs: BlobStore, place: Place, **more: object) -> ExportReport:
    with closing(place.open()) as sink:
        return export_run(run_id, blobs=blobs, sink=sink, **more)  # type: ignore[arg-type]


def flip_a_byte(blobs: BlobStore, key: str) -> None:
    data = bytearray(blobs.get(key))
    data[len(data) // 2] ^= 1
    blobs.put(key, bytes(data))


def test_case_21_keeps_declared_types_and_exact_rates(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    report = export("r1", blobs, place)
    assert report.rows == {"notes": 0, "orders": 2}
    first, second = place.rows("orders")
    assert (first["po_number"], first["due"], first["rate"]) == (None, None, Decimal("1.100000000"))
    assert (second["po_number"], second["due"], second["rate"]) == ("P1", date(2025, 1, 2), Decimal("0.004200000"))


def test_what_is_held_is_counted_and_read_back_as_declared(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    with closing(place.open()) as sink:
        assert sink.counts("r1") == {}
        export_run("r1", blobs=blobs, sink=sink)
        assert (sink.counts("r1"), sink.counts("r2")) == ({"notes": 0, "orders": 3}, {})
        orders = pa.Table.from_batches(sink.fetch("orders", "r1"))
        assert (orders.schema.names, orders.schema.types) == (ORDERS.names, ORDERS.types)
        assert sorted(orders.to_pylist(), key=lambda row: row["document_id"]) == place.rows("orders")
        few = pa.Table.from_batches(sink.fetch("orders", "r1", limit=2))
        assert few.column("document_id").to_pylist() == sorted(orders.column("document_id").to_pylist())[:2]
        assert pa.Table.from_batches(sink.fetch("notes", "r1")).num_rows == 0
        for table, run_id in (("orders", "r2"), ("nothing", "r1")):
            with pytest.raises(StorageFailed, match=run_id):
                next(sink.fetch(table, run_id))


def test_case_21_types_do_not_depend_on_the_second_shard(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, place)
    assert place.read("orders").schema.types == place.met(ORDERS)
    assert place.read("orders").schema.names == ORDERS.names


def test_case_21_exported_again_has_the_same_rows(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    reports = [export("r1", blobs, place) for _ in range(3)]
    assert reports[0] == reports[1] == reports[2]
    assert len(place.rows("orders")) == 2


def test_case_21_after_the_second_shard_is_gone_one_row_is_left(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, place)
    blobs.delete(shard_key("runs/r1", "orders", 1))
    blobs.delete(shard_key("runs/r1", "notes", 1))
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, place)
    assert [row["rate"] for row in place.rows("orders")] == [Decimal("1.100000000")]


def test_case_21_with_a_shard_a_run_and_the_second_withdrawn(place: Place, blobs: BlobStore) -> None:
    for run_id, rows in zip(("r1", "r2"), case_21("x"), strict=True):
        own = [{**row, "run_id": run_id} for row in rows]
        seal(blobs, run_id, {"orders": [encode_shard("orders", ORDERS, own)]})
        export(run_id, blobs, place)
    assert len(place.rows("orders")) == 2
    blobs.put(withdrawn_key("r2"), b"")
    with pytest.raises(RunWithdrawn, match="none of its rows are left"):
        export("r2", blobs, place)
    assert [row["run_id"] for row in place.rows("orders")] == ["r1"]


def test_no_other_run_is_touched(place: Place, blobs: BlobStore) -> None:
    for run_id in ("r1", "r10", "r1.0"):
        seal(blobs, run_id, orders_and_notes(run_id, units=3))
        export(run_id, blobs, place)
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, place)
    assert [row["run_id"] for row in place.rows("orders")] == ["r1", *["r1.0"] * 3, *["r10"] * 3]


def test_units_replace_the_whole_run_by_themselves(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=4))
    export("r1", blobs, place)
    export("r1", blobs, place, units=[3, 0, 3])
    assert [row["document_id"][-1] for row in place.rows("orders")] == ["0", "3"]
    export("r1", blobs, place, units={1})
    assert [row["document_id"][-1] for row in place.rows("orders")] == ["1"]


@pytest.mark.parametrize(("units", "named"), [([4], "no unit 4"), ([-1], "no unit -1"), ([], "no units were named")])
def test_units_that_are_not_there_are_refused(place: Place, blobs: BlobStore, units: list[int], named: str) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=4))
    with pytest.raises(UsageError, match=named):
        export("r1", blobs, place, units=units)
    assert place.tables() == set()


def test_a_table_without_rows_can_be_read(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, place)
    assert place.read("notes").num_rows == 0
    assert place.read("notes").schema.field("text").type == pa.string()


def test_a_table_that_the_run_no_longer_has_loses_its_rows(place: Place, blobs: BlobStore) -> None:
    shards = orders_and_notes("r1")
    seal(blobs, "r1", {"orders": shards["orders"], "more_orders": shards["orders"]})
    export("r1", blobs, place)
    for unit in range(2):
        blobs.delete(shard_key("runs/r1", "more_orders", unit))
    seal(blobs, "r1", {"orders": shards["orders"]})
    export("r1", blobs, place)
    if "more_orders" in place.tables():
        assert place.rows("more_orders") == []
    assert len(place.rows("orders")) == 2


def test_a_flipped_byte_refuses_and_leaves_what_was_there(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1", units=1))
    export("r1", blobs, place)
    seal(blobs, "r1", orders_and_notes("r1", units=3))
    flip_a_byte(blobs, shard_key("runs/r1", "orders", 2))
    with pytest.raises(Damage, match=r"golden/orders/unit-000002\.parquet") as caught:
        export("r1", blobs, place)
    assert caught.value.exit_code == 1
    assert len(place.rows("orders")) == 1


@pytest.mark.parametrize(
    "key",
    [
        shard_key("runs/r1", "notes", 0),
        shard_key("runs/r1", "orders", 1),
        part_key("runs/r1", 1),
        root_key("runs/r1"),
    ],
)
@pytest.mark.parametrize("harm", ["flipped", "missing", "longer"])
def test_damage_names_the_key_and_exports_nothing(place: Place, blobs: BlobStore, key: str, harm: str) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    if harm == "flipped":
        flip_a_byte(blobs, key)
    elif harm == "missing":
        blobs.delete(key)
    else:
        blobs.put(key, blobs.get(key) + b"\0")
    with pytest.raises(DocgenError) as caught:
        export("r1", blobs, place)
    assert key in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 1
    assert place.tables() == set()


def test_a_run_without_a_root_is_refused(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    blobs.delete(root_key("runs/r1"))
    blobs.delete(sealed_key("r1"))
    with pytest.raises(RunIncomplete, match="docgen work r1") as caught:
        export("r1", blobs, place)
    assert caught.value.exit_code == 3
    assert place.tables() == set()


def test_leftovers_are_passed_over_and_counted(place: Place, blobs: BlobStore) -> None:
    shards = orders_and_notes("r1", units=3)
    seal(blobs, "r1", shards)
    blobs.put("runs/r1/golden/orders/unit-000001.g1.parquet", shards["orders"][0])
    blobs.put("runs/r1/golden/orders/unit-000009.parquet", shards["orders"][0])
    assert export("r1", blobs, place).leftovers == 2
    assert len(place.rows("orders")) == 3


def test_a_run_withdrawn_while_it_is_exported_is_not_left_behind(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    seal(blobs, "r2", orders_and_notes("r2"))
    export("r2", blobs, place)
    with pytest.raises(RunWithdrawn):
        export("r1", blobs, place, on_table=lambda name, rows: blobs.put(withdrawn_key("r1"), b""))
    assert {row["run_id"] for row in place.rows("orders")} == {"r2"}


def test_a_run_collected_while_it_is_exported_is_withdrawn_not_damaged(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, place)

    def withdraw_and_collect(name: str, rows: int) -> None:
        blobs.put(withdrawn_key("r1"), b"")
        for info in list(blobs.iter_keys("runs/r1/golden/")):
            blobs.delete(info.key)

    with pytest.raises(RunWithdrawn):
        export("r1", blobs, place, on_table=withdraw_and_collect)
    assert "orders" not in place.tables() or place.rows("orders") == []


def _asked(blobs: BlobStore, unit: int, generation: int, calls: int) -> None:
    """An attempt's record of calls to a language model."""
    lease = Lease("catalogue-v1", unit, generation, generation, "w", 0, 0.0)
    call = CallRecord(
        provider="cheap", model="openai/small", reported_model="small-0901", items=("0/1", "0/2"), round=0,
        request_digest="0" * 64, request_id="chat-1", outcome=CallOutcome.ANSWERED, detail=None, accepted=2, rejected=0,
        input_tokens=300, output_tokens=200, cost=602_000, cached=False, batch=False,
    )  # fmt: skip
    rows = usage_rows(run_id="catalogue-v1", catalogue_version="v1", lease=lease, calls=[call] * calls)
    blobs.put(usage_key("catalogue/v1", unit, generation), encode_shard(LLM_USAGE, SCHEMA, rows))


def test_a_catalogue_is_exported_with_every_call_of_every_attempt(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "catalogue-v1", orders_and_notes("catalogue-v1"))
    for unit, generation, calls in ((0, 1, 1), (0, 2, 2), (1, 1, 0)):
        _asked(blobs, unit, generation, calls)
    for _ in range(2):
        report = export("catalogue-v1", blobs, place)
        assert report.rows == {"notes": 0, "orders": 2, "llm_usage": 3}
    found = [
        (row["unit"], row["generation"], row["call"], row["cost_usd"]) for row in place.read("llm_usage").to_pylist()
    ]
    assert sorted(found) == [(0, 1, 1, COST), (0, 2, 1, COST), (0, 2, 2, COST)]
    assert export("catalogue-v1", blobs, place, units={1}).rows == {"notes": 0, "orders": 1, "llm_usage": 0}
    assert place.read("llm_usage").num_rows == 0


def test_a_record_of_calls_that_cannot_be_read_is_named(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "catalogue-v1", orders_and_notes("catalogue-v1"))
    blobs.put(usage_key("catalogue/v1", 1, 1), b"no parquet")
    with pytest.raises(Damage, match=r"usage/unit-000001\.g1"):
        export("catalogue-v1", blobs, place)


@pytest.mark.parametrize("run_id", ["../r1", "r1/..", "", "R1", "a..b"])
def test_a_run_id_that_is_no_name_is_refused(place: Place, blobs: BlobStore, run_id: str) -> None:
    with pytest.raises(UsageError, match="is no name"):
        export(run_id, blobs, place)


def test_tables_are_told_in_key_order_before_they_are_published(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    told: list[tuple[str, int]] = []
    export("r1", blobs, place, on_table=lambda name, rows: told.append((name, rows)))
    assert told == [("notes", 0), ("orders", 2)]


def test_removing_a_run_twice_or_from_nothing(place: Place, blobs: BlobStore) -> None:
    with closing(place.open()) as sink:
        sink.remove("r1")
        sink.register()
        assert place.tables() == set()
        seal(blobs, "r1", orders_and_notes("r1"))
        export_run("r1", blobs=blobs, sink=sink)
        sink.remove("r1")
        sink.remove("r1")
    assert "orders" not in place.tables() or place.rows("orders") == []


def test_an_aborted_replacement_leaves_what_was_there_and_frees_the_sink(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    export("r1", blobs, place)
    with closing(place.open()) as sink:
        sink.begin("r1", "0" * 64)
        sink.write("orders", ORDERS, [])
        sink.abort()
        sink.abort()
        export_run("r1", blobs=blobs, sink=sink)
    assert len(place.rows("orders")) == 2


def test_steps_out_of_turn_are_refused(place: Place) -> None:
    with closing(place.open()) as sink:
        for step in (sink.commit, lambda: sink.write("orders", ORDERS, [])):
            with pytest.raises(UsageError, match="no export has begun"):
                step()
        sink.begin("r1", "0" * 64)
        with pytest.raises(UsageError, match="has not ended"):
            sink.begin("r2", "0" * 64)


def test_a_sink_opens_again_by_its_own_uri(place: Place, blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    with closing(place.open()) as sink:
        place.uri = sink.uri
    export("r1", blobs, place)
    assert len(place.rows("orders")) == 2
