"""A file over ranged reads. It knows no cloud: a function gives bytes from a start up to a stop."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

READ_BYTES = 4 << 20
"""Bytes of one ranged read: what a reader of a large object holds in memory."""


class RangeReader(io.RawIOBase):
    """Reads an object by ranges; `io.BufferedReader` in front of it makes them worth a request."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read_bytes = read
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes from the start."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go somewhere; no request is made."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise ValueError(f"negative seek position {start + offset}")
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer by one ranged read; 0 at the end."""
        view = memoryview(buffer).cast("B")
        stop = min(self._position + len(view), self._size)
        if stop <= self._position:
            return 0
        data = self._read_bytes(self._position, stop)
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def readall(self) -> bytes:
        """The rest, range by range."""
        # The inherited one asks for a few kilobytes at a time.
        whole = bytearray()
        while data := self.read(READ_BYTES):
            whole += data
        return bytes(whole)
