"""Blobs in this process's memory: the contract at its smallest, for tests and simulations."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from docgen_core.blobs.contract import BlobInfo, BlobStore
from docgen_core.blobs.keys import check_key, check_prefix
from docgen_core.errors import BlobExists, BlobMissing


class MemoryBlobStore(BlobStore):
    """Blobs that live as long as the process. `memory://name` opens the same ones again."""

    _named: ClassVar[dict[str, MemoryBlobStore]] = {}

    def __init__(self, uri: str = "memory://") -> None:
        self.uri = uri
        self._blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()

    @classmethod
    def named(cls, uri: str) -> MemoryBlobStore:
        """The one store of this URI in this process."""
        return cls._named.setdefault(uri, cls(uri))

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        """Publish `data` under `key`."""
        check_key(key)
        with self._lock:
            if create_only and key in self._blobs:
                raise BlobExists(key)
            self._blobs[key] = bytes(data)

    def get(self, key: str) -> bytes:
        """The whole blob."""
        try:
            return self._blobs[check_key(key)]
        except KeyError:
            raise BlobMissing(key) from None

    def open(self, key: str) -> BinaryIO:
        """A seekable reader of the blob."""
        return io.BytesIO(self.get(key))

    def size(self, key: str) -> int:
        """Bytes of the blob."""
        return len(self.get(key))

    def delete(self, key: str) -> None:
        """Remove the blob; a missing one is no error."""
        with self._lock:
            self._blobs.pop(check_key(key), None)

    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        """Blobs whose key starts with `prefix` and sorts behind `after`, in key order."""
        check_prefix(prefix)
        with self._lock:
            found = sorted((key, len(data)) for key, data in self._blobs.items() if key.startswith(prefix))
        return iter([BlobInfo(key, size) for key, size in found if key > after])

    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> Iterator[str]:
        """The distinct continuations of `prefix` up to and with the next delimiter, in order."""
        rests = (info.key[len(prefix) :] for info in self.iter_keys(prefix))
        heads = {rest.partition(delimiter)[0] for rest in rests if delimiter in rest}
        return iter(sorted(f"{prefix}{head}{delimiter}" for head in heads))
