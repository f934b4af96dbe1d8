"""A spool: a folder beside a table's file in which checked shards lie as files until they are inserted.

Who inserts then holds no shard in memory. What a killed export left there goes when the next one
begins; nothing else in the folder is touched. What does not belong here: how a file is inserted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from docgen_core.errors import StorageFailed, UsageError
from docgen_core.export.contract import Shard

GATHERED_BYTES = 4 * 1024 * 1024
"""Small shards are inserted together up to this: a statement costs 3 ms."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A file that holds a shard's very bytes."""

    path: Path
    bytes: int
    rows: int


class Spool:
    """Takes shards in a `with` block, and is gone after it. Raises `StorageFailed` for a shard that finds no room."""

    def __init__(self, file: Path) -> None:
        self._file, self._folder = file, file.with_name(f"{file.name}.spool")
        self._numbers = count()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the folder. Raises `UsageError` when something else has its name, `OSError` where none can be made."""
        # What a link leads to is not ours to empty.
        if self._folder.is_symlink() or self._folder.is_file():
            raise UsageError(f"{self._folder} is in the way: a folder of that name is to hold shards; remove it")
        self._folder.mkdir(exist_ok=True)
        self._empty()
        try:
            yield
        finally:
            self._empty()
            with suppress(OSError):  # somebody's own files keep it
                self._folder.rmdir()

    def gathered(self, shards: Iterable[Shard]) -> Iterator[list[Spooled]]:
        """The shards in order, together as long as they are small; each file is there until the next are asked for."""
        gathered: list[Spooled] = []
        size = 0
        # Not a loop over the shards themselves, which would hold one of them while it is inserted.
        for file in map(self._write, shards):
            gathered.append(file)
            size += file.bytes
            if size >= GATHERED_BYTES:
                yield gathered
                _remove(gathered)
                gathered, size = [], 0
        if gathered:
            yield gathered
            _remove(gathered)

    def _write(self, shard: Shard) -> Spooled:
        """A name is used once: DuckDB remembers what it saw in a file."""
        path = self._folder / f"{next(self._numbers)}.parquet"
        try:
            path.write_bytes(shard.data)
        except OSError as error:
            raise StorageFailed(f"{self._file}: {error.strerror}; shards wait beside it: free some space") from error
        return Spooled(path, len(shard.data), shard.rows)

    def _empty(self) -> None:
        for path in self._folder.glob("[0-9]*.parquet"):
            path.unlink(missing_ok=True)


def _remove(files: Iterable[Spooled]) -> None:
    for file in files:
        file.path.unlink()
