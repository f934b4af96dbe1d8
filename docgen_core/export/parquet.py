"""Golden tables as Parquet files: `<table>/run_id=<run>/unit-000123.parquet`, on any blob store.

The files are the run's shards, byte for byte: equal names and equal digests however often they are
exported. `_exports/<run>.json` names the files of a run that is wholly there, with digests and rows.

What a reader sees while a run is published: each file whole or not at all; a first export file by
file; a repeated one unchanged, since its files are replaced by the same bytes. Files that no longer
belong to the run go last. Who must not see a run half there waits for its `_exports` file.

`run_id` is a column of each file and also a segment of its path, so that one file alone is complete
and a warehouse can prune. Readers take the column: DuckDB with `hive_partitioning=false`, Arrow and
pandas with `partitioning=None`; a guess from the path turns a run called 20250102 into a number.

What does not belong here: encoding. A column's type was declared and written with the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import canonical_json
from docgen_core.errors import StorageFailed, UsageError
from docgen_core.export.contract import BATCH_ROWS, GoldenSink, Shard

EXPORTS = "_exports"
"""Folder of the exports' manifests; the underscore keeps it out of what readers take for data."""
FORMAT = 1
SUFFIX = ".parquet"


@dataclass(frozen=True, slots=True)
class _File:
    """A file waiting in the spool."""

    key: str
    offset: int
    size: int
    sha256: str
    rows: int


@dataclass(slots=True)
class _Replacement:
    run_id: str
    root_sha256: str
    spool: IO[bytes]
    """Holds the new files until all are known to be good. It has no name, so a killed process leaves nothing."""
    files: list[_File] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)

    def manifest(self) -> bytes:
        files = [{"key": file.key, "sha256": file.sha256, "bytes": file.size, "rows": file.rows} for file in self.files]
        content: dict[str, Any] = {"format": FORMAT, "run_id": self.run_id, "root_sha256": self.root_sha256}
        return canonical_json({**content, "rows": self.rows, "files": sorted(files, key=lambda file: str(file["key"]))})


class ParquetSink(GoldenSink):
    """Files of one blob store, which is closed with the sink."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.uri = f"parquet://{blobs.uri.removeprefix('file://')}"
        self._open: _Replacement | None = None

    def begin(self, run_id: str, root_sha256: str) -> None:
        """Open a spool; nothing is published yet."""
        if self._open is not None:
            raise UsageError(f"{self.uri}: the export of run {self._open.run_id!r} has not ended")
        with _spool_errors_told():
            self._open = _Replacement(run_id, root_sha256, tempfile.TemporaryFile())  # noqa: SIM115  until commit or abort

    def write(self, table: str, schema: pa.Schema, shards: Iterable[Shard]) -> int:
        """Spool the table's files."""
        replacement = self._replacement()
        rows = 0
        for shard in shards:
            key = f"{_folder(table, replacement.run_id)}unit-{shard.unit:06d}{SUFFIX}"
            with _spool_errors_told():
                offset = replacement.spool.tell()
                replacement.spool.write(shard.data)
                replacement.spool.flush()
            replacement.files.append(_File(key, offset, len(shard.data), shard.sha256, shard.rows))
            rows += shard.rows
        replacement.rows[table] = rows
        return rows

    def commit(self) -> None:
        """Put the new files, then take away what no longer belongs, then say that the run is there."""
        replacement = self._replacement()
        manifest_key, manifest = _manifest_key(replacement.run_id), replacement.manifest()
        if self._blobs.exists(manifest_key) and self._blobs.get(manifest_key) != manifest:
            self._blobs.delete(manifest_key)
        for file in replacement.files:
            with _spool_errors_told():
                replacement.spool.seek(file.offset)
                data = replacement.spool.read(file.size)
            self._blobs.put(file.key, data)
        self._delete_all_but({file.key for file in replacement.files}, replacement.run_id)
        self._blobs.put(manifest_key, manifest)
        self.abort()

    def abort(self) -> None:
        """Drop the spool."""
        if self._open is not None:
            # What a full disk refused is dropped anyway; closing would try to write it once more.
            with suppress(OSError):
                self._open.spool.close()
            self._open = None

    def remove(self, run_id: str) -> None:
        """Take the manifest away, then the files."""
        self._blobs.delete(_manifest_key(run_id))
        self._delete_all_but(set(), run_id)

    def counts(self, run_id: str) -> dict[str, int]:
        """Rows as the files' own footers count them."""
        found: dict[str, int] = {}
        for table in self._tables():
            for key in self._files(table, run_id):
                with self._blobs.open(key) as file, self._damage_told(key):
                    found[table] = found.get(table, 0) + pq.ParquetFile(file).metadata.num_rows
        return found

    def fetch(self, table: str, run_id: str, *, limit: int | None = None) -> Generator[pa.RecordBatch, None, None]:
        """The rows of the files, in key order."""
        left, first = limit, True
        for key in self._files(table, run_id):
            with self._damage_told(key):
                file = pq.ParquetFile(pa.BufferReader(self._blobs.get(key)))
                if first:
                    yield pa.RecordBatch.from_pylist([], file.schema_arrow)
                first = False
                for batch in file.iter_batches(BATCH_ROWS):
                    yield batch if left is None else batch.slice(0, left)
                    if left is not None and (left := left - batch.num_rows) <= 0:
                        return
        if first:
            raise StorageFailed(f"{self.uri} holds no table {table!r} of run {run_id!r}; export it first")

    def register(self) -> None:
        """Nothing: the files describe themselves, each with its columns and their descriptions."""

    def close(self) -> None:
        """Drop a replacement under way, close the blob store."""
        self.abort()
        self._blobs.close()

    def _replacement(self) -> _Replacement:
        if self._open is None:
            raise UsageError(f"{self.uri}: no export has begun")
        return self._open

    def _delete_all_but(self, kept: set[str], run_id: str) -> None:
        for table in self._tables():
            for key in list(self._files(table, run_id)):
                if key not in kept:
                    self._blobs.delete(key)

    def _tables(self) -> list[str]:
        """Folders that may be tables'; that of the manifests holds no folder of a run."""
        names = (folder.rstrip("/") for folder in self._blobs.iter_prefixes())
        return [name for name in names if name.isidentifier()]

    def _files(self, table: str, run_id: str) -> Iterator[str]:
        """Keys of what a reader of the run's folder meets; any other file there is somebody's own."""
        return (info.key for info in self._blobs.iter_keys(_folder(table, run_id)) if info.key.endswith(SUFFIX))

    @contextmanager
    def _damage_told(self, key: str) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise StorageFailed(
                f"{self.uri}: {key} cannot be read as Parquet; export its run again, which replaces or removes it"
            ) from error


def _folder(table: str, run_id: str) -> str:
    return f"{table}/run_id={run_id}/"


def _manifest_key(run_id: str) -> str:
    return f"{EXPORTS}/{run_id}.json"


@contextmanager
def _spool_errors_told() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = tempfile.gettempdir()
        raise StorageFailed(
            f"{place}: {error.strerror}; an export is collected there first, so free some space or set TMPDIR"
        ) from error
