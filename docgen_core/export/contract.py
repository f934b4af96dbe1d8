"""The contract of a sink: where a run's golden tables go, and what a reader of them may rely on.

A run is replaced whole. `begin` opens its replacement, each table is written once, `commit`
publishes: afterwards the sink holds exactly what was written for the run, and no other run's
row has been touched. Without a commit (`abort`, an error, a killed process) the sink holds what it
held. A sink that cannot switch at once (files) says in its own module what a reader sees meanwhile.

What does not belong here: where shards come from and whether they are whole (reader.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

BATCH_ROWS = 16 * 1024
"""Rows to a record batch: a few megabytes of the widest golden table."""

LISTED_COLUMNS = 5
"""Of those that do not fit, in a message."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One unit's rows of one table: the very Parquet bytes whose digest was checked.

    A sink that takes files takes `data` as it is; one that inserts rows takes `batches()`.
    """

    unit: int
    key: str
    """Blob key it was read from, for messages."""
    sha256: str
    data: bytes = field(repr=False)
    file: pq.ParquetFile = field(repr=False)
    """`data`, opened."""

    @property
    def schema(self) -> pa.Schema:
        """Declared columns, with their descriptions."""
        return self.file.schema_arrow

    @property
    def rows(self) -> int:
        """Rows of the shard."""
        return int(self.file.metadata.num_rows)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order, at most `BATCH_ROWS` at a time; none for an empty shard."""
        return iter(self.file.iter_batches(BATCH_ROWS))


class GoldenSink(ABC):
    """A place that holds golden tables of many runs. One replacement at a time; not for many threads.

    Errors: `StorageFailed` (out of reach, no space, in use by somebody else), `UsageError` (the place
    holds something that golden tables cannot go into). Whatever a shard stream raises passes through.
    """

    uri: str
    """The URI that opens this sink again in another process."""

    @abstractmethod
    def begin(self, run_id: str, root_sha256: str) -> None:
        """Open the replacement of the run by the content that the root digest stands for."""

    @abstractmethod
    def write(self, table: str, schema: pa.Schema, shards: Iterable[Shard]) -> int:
        """Add a table to the replacement, shard by shard, in order. Returns its rows.

        Holds one shard at a time. A table without rows is written too, so that it can be queried.
        """

    @abstractmethod
    def commit(self) -> None:
        """Publish the replacement."""

    @abstractmethod
    def abort(self) -> None:
        """Drop the replacement; the sink holds what it held. Without one under way, nothing happens."""

    @abstractmethod
    def remove(self, run_id: str) -> None:
        """Take every row of the run out, at once where the sink can. A run it does not hold is no error."""

    @abstractmethod
    def counts(self, run_id: str) -> dict[str, int]:
        """Rows of the run by table, counted by the place itself, not remembered; empty where it holds none of it."""

    @abstractmethod
    def fetch(self, table: str, run_id: str, *, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The run's rows as a reader of the place meets them, in their declared types.

        Of a limited fetch, the first by the table's leading columns, or in key order. At least one
        batch comes, perhaps an empty one, so that the columns are known. Close it to leave early: it
        holds the place open. Raises `StorageFailed` where the place holds no such table of the run.
        """

    @abstractmethod
    def register(self) -> None:
        """Make what is held easy to query: views, external tables. Idempotent; concerns no single run."""

    @abstractmethod
    def close(self) -> None:
        """Drop a replacement under way and give back connections."""

    @contextmanager
    def replacing(self, run_id: str, root_sha256: str) -> Iterator[None]:
        """`begin`, then `commit` when the block ends, or `abort` when anything is raised."""
        self.begin(run_id, root_sha256)
        try:
            yield
            self.commit()
        except BaseException:
            self.abort()
            raise


def odd_columns(names: Collection[str]) -> str:
    """Columns that do not fit, for a message: the first few; without any, it is their order that differs."""
    first = sorted(names)[:LISTED_COLUMNS]
    more = [f"and {len(names) - len(first)} more"] if len(names) > len(first) else []
    return ", ".join([*first, *more]) or "in another order"
