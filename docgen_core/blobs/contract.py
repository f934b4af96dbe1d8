"""The contract of a blob store. Keys are '/'-separated, relative, and cannot leave the root.

What belongs here: what every store promises. What does not: a scheme, a client, a path.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from docgen_core.errors import BlobExists, BlobMissing, UsageError


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """One listed blob: its key and its size in bytes."""

    key: str
    size: int


@dataclass(frozen=True, slots=True)
class Temporary:
    """What an unfinished put left behind: no blob, never listed, fit to be collected once it is old."""

    name: str
    size: int
    modified_at: float
    """Seconds since 1970, by the store's clock."""


class BlobStore(ABC):
    """Whole objects under keys. Every put is atomic and durable when it returns.

    Errors: `BlobMissing` (get, open, size), `BlobExists` (create-only put),
    `UsageError` (a key that is not one), `StorageFailed` (no space, no permission, out of reach).
    """

    uri: str
    """The URI that opens this store again in another process."""

    @abstractmethod
    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        """Publish `data` under `key`, replacing what is there unless `create_only`."""

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The whole blob."""

    @abstractmethod
    def open(self, key: str) -> BinaryIO:
        """A seekable reader of the blob, for objects too large to hold in memory.

        It gives the blob as it was when it was opened. A store that cannot keep that, once other
        bytes have replaced it, raises `StorageFailed` from the read, and never mixes two.
        """

    @abstractmethod
    def size(self, key: str) -> int:
        """Bytes of the blob."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove the blob; a missing one is no error."""

    @abstractmethod
    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        """Blobs whose key starts with `prefix` and sorts behind `after`, in key order (code points)."""

    @abstractmethod
    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> Iterator[str]:
        """The distinct continuations of `prefix` up to and with the next delimiter, in order."""

    def exists(self, key: str) -> bool:
        """Whether a blob stands under `key`."""
        try:
            self.size(key)
        except BlobMissing:
            return False
        return True

    def put_same(self, key: str, data: bytes) -> bool:
        """Create `key`, or find these very bytes there. True when this call wrote it.

        Raises `BlobExists` when other bytes stand there. This is how whatever has one right
        content (plan, root manifest, markers) is published by any number of workers.
        """
        try:
            self.put(key, data, create_only=True)
        except BlobExists:
            if self.get(key) != data:
                raise
            return False
        return True

    def iter_temporary(self) -> Iterator[Temporary]:
        """What unfinished puts left behind. Stores that take whole objects leave nothing."""
        return iter(())

    def delete_temporary(self, name: str) -> None:
        """Remove one of `iter_temporary`; a missing one is no error."""
        raise UsageError(f"{self.uri} keeps no temporary files, so there is no {name!r}")

    def close(self) -> None:  # noqa: B027  most stores hold nothing open
        """Give back connections and handles."""
