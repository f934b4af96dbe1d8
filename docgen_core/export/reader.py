"""A sealed run's golden shards: found through the root, checked, read ahead, in key order.

Every byte that leaves here was hashed, and the bytes that were hashed are the ones that are
parsed. What does not belong here: where the rows go (the sinks), and what else may be wrong under
a run's prefix (runs/verify.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import Damage, RunIncomplete, UsageError
from docgen_core.export.contract import Shard
from docgen_core.export.usage import UsageRecords
from docgen_core.runs.keys import default_prefix, shard_table, unit_of
from docgen_core.runs.manifest import BlobEntry, Part, PartEntry, Root, read_blob, read_part, read_root
from docgen_core.runs.usage import LLM_USAGE
from docgen_core.runs.usage import SCHEMA as USAGE_SCHEMA

READ_AHEAD_BYTES = 16 * 1024 * 1024
"""Blobs fetched and not yet consumed; a blob larger than this waits alone."""
READ_AHEAD_THREADS = 4
"""Fetches at once: enough to hide an object store's answer time behind the parsing."""
PART_BYTES = 64 * 1024
"""What a manifest part is taken to weigh: the root does not say."""

ItemT = TypeVar("ItemT")
FetchedT = TypeVar("FetchedT")


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """A shard as its part names it."""

    table: str
    unit: int
    blob: BlobEntry
    rows: int


@dataclass(frozen=True, slots=True)
class TableStream:
    """A table on its way: its declared columns, and its shards, which can be walked once."""

    name: str
    schema: pa.Schema
    shards: Iterator[Shard]


class RunReader:
    """The golden tables of one sealed run, or of some of its units."""

    def __init__(
        self, blobs: BlobStore, root: Root, entries: Iterable[ShardEntry], leftovers: int, usage: UsageRecords
    ) -> None:
        self._blobs, self._usage = blobs, usage
        self.root = root
        self.leftovers = leftovers
        """Blobs under `golden/` that no part names."""
        self._entries: dict[str, list[ShardEntry]] = {}
        for entry in sorted(entries, key=lambda entry: entry.blob.key):
            self._entries.setdefault(entry.table, []).append(entry)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables, in order."""
        return (*self._entries, *([LLM_USAGE] if self._usage else []))

    def rows(self, table: str) -> int:
        """Rows of a table, as the parts count them."""
        if self._is_usage(table):
            return self._usage.rows()
        return sum(entry.rows for entry in self._named(table))

    def stream(self, table: str) -> TableStream:
        """A table's shards in key order, each checked before it is parsed.

        Raises `UsageError` for a table the run does not have; walking raises `Damage` naming the key.
        """
        shards = self._usage.shards() if self._is_usage(table) else self._read(self._named(table))
        first = next(shards)
        return TableStream(table, first.schema, _same_columns(first.schema, first.key, chain((first,), shards)))

    def schema(self, table: str) -> pa.Schema:
        """A table's declared columns, from its first shard."""
        if self._is_usage(table):
            return USAGE_SCHEMA
        return self._open(self._named(table)[0]).schema

    def _is_usage(self, table: str) -> bool:
        """Whether it is the table that no part names."""
        return table == LLM_USAGE and bool(self._usage)

    def _named(self, table: str) -> list[ShardEntry]:
        if table not in self._entries:
            raise UsageError(f"run {self.root.run_id!r} has no table {table!r}; it has {', '.join(self.tables)}")
        return self._entries[table]

    def _read(self, entries: list[ShardEntry]) -> Iterator[Shard]:
        return read_ahead(entries, self._open, lambda entry: entry.blob.bytes)

    def _open(self, entry: ShardEntry) -> Shard:
        key, data = entry.blob.key, read_blob(self._blobs, entry.blob)
        try:
            file = pq.ParquetFile(pa.BufferReader(data))
        except (pa.ArrowException, OSError) as error:
            raise Damage(f"shard {key!r} is no Parquet file: {str(error).splitlines()[0]}") from None
        if file.metadata.num_rows != entry.rows:
            raise Damage(f"shard {key!r} has {file.metadata.num_rows} rows, its manifest part counts {entry.rows}")
        return Shard(entry.unit, key, entry.blob.sha256, data, file)


def open_run(run_id: str, blobs: BlobStore, *, units: Collection[int] | None = None) -> RunReader:
    """The run's tables, every shard known to be there with the size that was sealed.

    Raises `RunWithdrawn`, `RunIncomplete` (no root), `Damage` (naming the key), `UsageError` (a
    unit the run does not have).
    """
    prefix = default_prefix(run_id)
    root = read_root(blobs, prefix)
    if root.run_id != run_id:
        raise Damage(f"the root under {prefix!r} is that of run {root.run_id!r}, not of {run_id!r}; restore it")
    parts = _parts(root, units)
    entries = [
        entry
        for part in read_ahead(parts, lambda entry: read_part(blobs, entry), lambda _: PART_BYTES)
        for entry in _shards_of(prefix, part)
    ]
    left_out = {part.unit for part in root.parts} - {part.unit for part in parts}
    leftovers = _join_listing(blobs, prefix, entries, left_out)
    return RunReader(blobs, root, entries, leftovers, UsageRecords(blobs, prefix, units))


def read_ahead(
    items: Iterable[ItemT],
    fetch: Callable[[ItemT], FetchedT],
    weigh: Callable[[ItemT], int],
    *,
    limit_bytes: int = READ_AHEAD_BYTES,
    threads: int = READ_AHEAD_THREADS,
) -> Iterator[FetchedT]:
    """`fetch(item)` for each item in order, some fetched ahead in threads.

    What is fetched and not yet handed out weighs at most `limit_bytes`, or is a single item: the next
    one is on its way even where each weighs more. What was handed out is not held on to. An
    error is raised in its item's turn; leaving the iterator early cancels what has not begun.
    """
    waiting: deque[tuple[int, Future[FetchedT]]] = deque()
    held = 0

    def next_fetched() -> FetchedT:
        nonlocal held
        weight, future = waiting.popleft()
        held -= weight
        return future.result()

    pool = ThreadPoolExecutor(threads, thread_name_prefix="read-ahead")
    try:
        for item in items:
            weight = weigh(item)
            waiting.append((weight, pool.submit(fetch, item)))
            held += weight
            while len(waiting) > 1 and held > limit_bytes:
                yield next_fetched()
        while waiting:
            yield next_fetched()
    finally:
        pool.shutdown(cancel_futures=True)


def _parts(root: Root, units: Collection[int] | None) -> list[PartEntry]:
    """The root's entries for the units, or all. A root with a gap is refused either way."""
    by_unit = {entry.unit: entry for entry in root.parts}
    if gap := sorted(set(range(root.total_units)) - by_unit.keys()):
        raise RunIncomplete(root.run_id, gap, "its root manifest has a gap; run `docgen verify`")
    if units is None:
        return root.parts
    if not units:
        raise UsageError(f"run {root.run_id!r}: no units were named; leave them out to mean all")
    if unknown := sorted(set(units) - by_unit.keys()):
        raise UsageError(f"run {root.run_id!r} has units 0 to {root.total_units - 1}; there is no unit {unknown[0]}")
    return [by_unit[unit] for unit in sorted(set(units))]


def _shards_of(prefix: str, part: Part) -> Iterator[ShardEntry]:
    seen: dict[str, str] = {}
    for blob in part.blobs:
        if (table := shard_table(prefix, blob.key)) is None:
            continue
        if table in seen:
            raise Damage(f"the part of unit {part.unit} names two shards of {table!r}: {seen[table]!r}, {blob.key!r}")
        seen[table] = blob.key
        yield ShardEntry(table, part.unit, blob, part.rows.get(table, 0))


def _join_listing(blobs: BlobStore, prefix: str, entries: Iterable[ShardEntry], left_out: set[int]) -> int:
    """Count leftovers. Raises `Damage` for a shard that is missing or of another size, before any is read."""
    expected = {entry.blob.key: entry.blob.bytes for entry in entries}
    leftovers = 0
    for info in blobs.iter_keys(f"{prefix}/golden/"):
        size = expected.pop(info.key, None)
        if size is None:
            leftovers += unit_of(prefix, info.key) not in left_out
        elif size != info.size:
            raise Damage(f"blob {info.key!r} has {info.size} bytes, its manifest names {size}; run `docgen verify`")
    if expected:
        more = f" and {len(expected) - 1} more" if len(expected) > 1 else ""
        raise Damage(f"blob {min(expected)!r}{more} is named by its manifest and is missing; run `docgen verify`")
    return leftovers


def _same_columns(schema: pa.Schema, key: str, shards: Iterator[Shard]) -> Iterator[Shard]:
    """The shards, as long as each has the columns of the first one, which stood under `key`."""

    def checked(shard: Shard) -> Shard:
        if not shard.schema.equals(schema, check_metadata=False):
            raise Damage(f"shard {shard.key!r} has other columns than {key!r}; run `docgen verify`")
        return shard

    # A loop would hold on to a shard while the next one is worked on.
    return map(checked, shards)
