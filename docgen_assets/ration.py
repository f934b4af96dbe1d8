"""A bound on what one tick of a sensor may ask of the blob store, whatever it finds there.

A tick that has used its ration up stops where it is; the next one goes on. A request that is asked
again because the store did not answer is not counted: a store that stays silent ends the tick. What
does not belong here: what is looked for, and in which order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NoReturn

from docgen_core.blobs.contract import BlobInfo, BlobStore

PAGE_KEYS = 1_000
"""Keys that one request of a listing brings: what the stores of the clouds give at most."""


class RationUsedUp(Exception):
    """No further request in this tick."""


class RationedBlobs(BlobStore):
    """The blob store as a sensor sees it: it may look, a bounded number of times, and change nothing."""

    def __init__(self, blobs: BlobStore, requests: int) -> None:
        self.uri = blobs.uri
        self.left = requests
        self._blobs = blobs

    def _spend(self) -> None:
        if self.left < 1:
            raise RationUsedUp
        self.left -= 1

    def get(self, key: str) -> bytes:
        """The whole blob, by one request."""
        self._spend()
        return self._blobs.get(key)

    def size(self, key: str) -> int:
        """Bytes of the blob, by one request."""
        self._spend()
        return self._blobs.size(key)

    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        """Blobs in key order, by one request a page."""
        for number, info in enumerate(self._keys(prefix, after), start=1):
            yield info
            if number % PAGE_KEYS == 0:
                self._spend()

    def _keys(self, prefix: str, after: str) -> Iterator[BlobInfo]:
        self._spend()
        yield from self._blobs.iter_keys(prefix, after=after)

    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> NoReturn:
        """Not offered: it costs as many requests as there are keys behind the prefixes."""
        raise NotImplementedError("a sensor lists markers only")

    def open(self, key: str) -> BinaryIO:
        """Not offered: a reader asks as often as it likes."""
        raise NotImplementedError("a sensor reads small blobs whole")

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> NoReturn:
        """Not offered."""
        raise NotImplementedError("a sensor changes nothing")

    def delete(self, key: str) -> NoReturn:
        """Not offered."""
        raise NotImplementedError("a sensor changes nothing")
