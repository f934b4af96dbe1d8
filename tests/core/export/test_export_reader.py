"""Shards are found through the root, read ahead within bounds, and checked before they are parsed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest
from fabricated_run import NOTES, ORDERS, keys, orders_and_notes, seal

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import Damage, RunIncomplete, UsageError
from docgen_core.export.reader import open_run, read_ahead
from docgen_core.runs.keys import part_key, root_key, sealed_key
from docgen_core.runs.manifest import Part, Root, blob_entry, parse
from docgen_core.runs.shards import encode_shard


class CountingBlobs(MemoryBlobStore):
    """Counts what is read of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def get(self, key: str) -> bytes:
        self.reads.append(key)
        return super().get(key)


def test_each_shard_is_read_once_in_key_order() -> None:
    blobs = CountingBlobs()
    seal(blobs, "r1", orders_and_notes("r1", units=20))
    reader = open_run("r1", blobs)
    blobs.reads.clear()
    stream = reader.stream("orders")
    found = [shard.key for shard in stream.shards]
    assert found == [f"runs/r1/golden/orders/unit-{unit:06d}.parquet" for unit in range(20)]
    assert sorted(blobs.reads) == found


def test_opening_a_run_reads_no_shard() -> None:
    blobs = CountingBlobs()
    seal(blobs, "r1", orders_and_notes("r1"))
    reader = open_run("r1", blobs)
    assert not [key for key in blobs.reads if "/golden/" in key]
    assert reader.tables == ("notes", "orders")
    assert (reader.rows("notes"), reader.rows("orders")) == (0, 2)


def test_the_schema_is_the_declared_one_with_its_descriptions(blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    assert open_run("r1", blobs).schema("orders").equals(ORDERS, check_metadata=True)


def test_a_table_that_is_not_there_names_those_that_are(blobs: BlobStore) -> None:
    seal(blobs, "r1", orders_and_notes("r1"))
    with pytest.raises(UsageError, match="has no table 'invoice'; it has notes, orders"):
        open_run("r1", blobs).stream("invoice")


def test_shards_of_other_columns_are_damage(blobs: BlobStore) -> None:
    note = encode_shard("notes", NOTES, [{**keys("r1", 0), "text": "x"}])
    seal(blobs, "r1", {"orders": [*orders_and_notes("r1")["orders"], note]})
    with pytest.raises(Damage, match=r"unit-000002\.parquet' has other columns than .*unit-000000\.parquet"):
        list(open_run("r1", blobs).stream("orders").shards)


def test_a_shard_that_is_no_parquet_is_damage() -> None:
    blobs = MemoryBlobStore()
    root = seal(blobs, "r1", orders_and_notes("r1"))
    change_part(blobs, root, "orders", b"PAR1 this is not PAR1", rows=1)
    with pytest.raises(Damage, match=r"orders/unit-000001\.parquet' is no Parquet file"):
        list(open_run("r1", blobs).stream("orders").shards)


def test_a_shard_whose_rows_the_part_miscounts_is_damage() -> None:
    blobs = MemoryBlobStore()
    root = seal(blobs, "r1", orders_and_notes("r1"))
    change_part(blobs, root, "orders", orders_and_notes("r1")["orders"][1], rows=2)
    with pytest.raises(Damage, match="has 1 rows, its manifest part counts 2"):
        list(open_run("r1", blobs).stream("orders").shards)


def test_a_part_with_two_shards_of_a_table_is_damage() -> None:
    blobs = MemoryBlobStore()
    root = seal(blobs, "r1", orders_and_notes("r1"))
    change_part(blobs, root, "orders", orders_and_notes("r1")["orders"][1], rows=1, name="unit-000001.g2")
    with pytest.raises(Damage, match="names two shards of 'orders'"):
        open_run("r1", blobs)


def test_a_root_with_a_gap_is_refused_by_index() -> None:
    blobs = MemoryBlobStore()
    root = seal(blobs, "r1", orders_and_notes("r1", units=4))
    publish(blobs, root.model_copy(update={"parts": [root.parts[0], root.parts[3]]}))
    for units in (None, {0}):
        with pytest.raises(RunIncomplete) as caught:
            open_run("r1", blobs, units=units)
        assert caught.value.gap == (1, 2)


def change_part(blobs: BlobStore, root: Root, table: str, data: bytes, *, rows: int, name: str = "unit-000001") -> None:
    """Publish other content of unit 1, with digests that are right all the way up."""
    key = f"runs/r1/golden/{table}/{name}.parquet"
    blobs.put(key, data)
    part = parse(Part, part_key("runs/r1", 1), blobs.get(part_key("runs/r1", 1)))
    entries = [entry for entry in part.blobs if entry.key != key] + [blob_entry(key, data)]
    part = part.model_copy(
        update={"blobs": sorted(entries, key=lambda entry: entry.key), "rows": {**part.rows, table: rows}}
    )
    blobs.put(part_key("runs/r1", 1), part.to_bytes())
    named = root.parts[1].model_copy(update={"sha256": part.digest})
    publish(blobs, root.model_copy(update={"parts": [root.parts[0], named]}))


def publish(blobs: BlobStore, root: Root) -> None:
    blobs.put(root_key("runs/r1"), root.to_bytes())
    blobs.put(sealed_key("r1"), f"{root.digest}\n".encode())


def test_reading_ahead_keeps_the_order_whatever_ends_first() -> None:
    later_done = threading.Event()

    def fetch(item: int) -> int:
        if item == 0:
            assert later_done.wait(30)
        elif item == 3:
            later_done.set()
        return item * 10

    assert list(read_ahead(range(8), fetch, lambda _: 1)) == [item * 10 for item in range(8)]


@pytest.mark.parametrize(("weight", "ahead"), [(1, 5), (5, 1), (99, 1)])
def test_reading_ahead_holds_no_more_than_its_limit(weight: int, ahead: int) -> None:
    started: list[int] = []

    def fetch(item: int) -> int:
        started.append(item)
        return item

    for taken, item in enumerate(read_ahead(range(30), fetch, lambda _: weight, limit_bytes=5), start=1):
        assert item in started
        assert len(started) <= taken + ahead
    assert started.count(29) == 1


def test_an_error_is_raised_in_its_turn_and_ends_the_fetching() -> None:
    def items() -> Iterator[int]:
        yield from range(1000)

    def fetch(item: int) -> int:
        if item == 2:
            raise Damage(f"item {item}")
        return item

    found = []
    with pytest.raises(Damage, match="item 2"):
        for item in read_ahead(items(), fetch, lambda _: 1, limit_bytes=10):
            found.append(item)
    assert found == [0, 1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def test_leaving_early_ends_the_threads() -> None:
    ahead = read_ahead(range(1000), lambda item: item, lambda _: 1, limit_bytes=10)
    assert next(ahead) == 0
    ahead.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("read-ahead")]


def test_batches_are_bounded() -> None:
    blobs = MemoryBlobStore()
    rows = [{**keys("r1", number), "text": "x"} for number in range(70_000)]
    seal(blobs, "r1", {"notes": [encode_shard("notes", NOTES, rows)]})
    (shard,) = open_run("r1", blobs).stream("notes").shards
    batches = list(shard.batches())
    assert max(batch.num_rows for batch in batches) <= 16 * 1024
    assert pa.Table.from_batches(batches).column("document_id").to_pylist() == [row["document_id"] for row in rows]
