"""What the object stores of the clouds share: patience, lost answers, paging, readers of ranges.

A store gives seven requests and a judgement of its client's errors; all else of the contract is
here, once. Retrying happens here and nowhere else: the clients are told not to.

A create-only put whose answer was lost is asked again, and then its own blob may stand in its way.
So when a precondition fails after an answer was lost, the bytes there are compared: equal ones
count as this call's. What another writer put meanwhile with the very same bytes counts, too; no
caller could tell, and none has to.

What does not belong here: a vendor's client, its error codes, a URI's options.
"""

from __future__ import annotations

import io
import os
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO, ClassVar, TypeVar

from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_random_exponential,
)

from docgen_core.blobs.contract import BlobInfo, BlobStore
from docgen_core.blobs.keys import MAX_KEY_BYTES, check_key, check_prefix
from docgen_core.blobs.ranges import READ_BYTES, RangeReader
from docgen_core.errors import BlobExists, BlobMissing, DocgenError, StorageFailed, UsageError

PAGE_KEYS = 1_000
"""Keys to a page of a listing: the most that S3 and Cloud Storage give."""

PART_BYTES = 16 << 20
"""Bytes above which a put is sent in parts of this size; a multiple of what either cloud asks for."""

MESSAGE_CHARACTERS = 300
"""How much of a client's own words goes into an error."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")

_CONTENT_TYPES = {
    ".pdf": "application/pdf",
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".tiff": "image/tiff",
    ".html": "text/html; charset=utf-8",
}
_ANY_CONTENT = "application/octet-stream"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a store waits for one answer, and for one that is yes or no."""

    tries: int = 8
    first_wait_seconds: float = 0.25
    longest_wait_seconds: float = 8.0
    give_up_seconds: float = 120.0
    """No further try is begun after this time, whatever `tries` says."""
    connect_seconds: float = 5.0
    read_seconds: float = 60.0


class Absent(Exception):
    """The client said 404: no such object, or no such bucket."""


class Unmet(Exception):
    """A precondition did not hold. `lost` when the client itself had asked before and got no answer."""

    def __init__(self, *, lost: bool = False) -> None:
        super().__init__()
        self.lost = lost


class Again(Exception):
    """Worth another try. `lost` when the request may have been carried out all the same."""

    def __init__(self, reason: str, *, lost: bool) -> None:
        super().__init__(reason)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class Stat:
    """Size in bytes, and what names this very content of the object."""

    size: int
    version: str


@dataclass(frozen=True, slots=True)
class Page:
    """One answer to a listing: whole names, in order, and the token of the next page."""

    blobs: tuple[tuple[str, int], ...]
    prefixes: tuple[str, ...]
    token: str | None


@dataclass(slots=True)
class _Own:
    """A process's own client, made when it is first needed."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    client: Any = None


class ObjectStore(BlobStore):
    """Blobs as the objects of one bucket, under a prefix.

    One object serves many threads. A process that was forked makes its own client; a client that
    was handed in belongs to the process that did so.
    """

    scheme: ClassVar[str]
    client_method: ClassVar[str]
    """A method that this store's client has and another's has not."""
    client_errors: tuple[type[Exception], ...]

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        *,
        client: Any = None,
        patience: Patience | None = None,
        page_keys: int = PAGE_KEYS,
        part_bytes: int = PART_BYTES,
    ) -> None:
        place = f"{self.scheme}://{bucket}/{prefix}".rstrip("/")
        if not _BUCKET.fullmatch(bucket):
            raise UsageError(f"blob URI {place!r}: {bucket!r} is no bucket; write {self.scheme}://bucket/prefix")
        if client is not None and not hasattr(client, self.client_method):
            raise UsageError(f"blob URI {place!r}: its client is {self._client_wanted()}, not {type(client).__name__}")
        self.bucket = bucket
        self.uri = place
        self.patience = patience or Patience()
        self.page_keys = page_keys
        self.part_bytes = part_bytes
        self._root = f"{check_key(prefix)}/" if prefix else ""
        self._given = client
        self._home = os.getpid()
        self._own: dict[int, _Own] = {}
        self._bucket_seen = False

    # What a cloud gives. Each is one request (a put in parts excepted), and may raise `client_errors`.

    @classmethod
    @abstractmethod
    def _client_wanted(cls) -> str:
        """What a client of this store is, for messages."""

    @abstractmethod
    def _connect(self) -> Any:
        """A client with this store's patience that does not retry by itself."""

    @abstractmethod
    def _judge(self, error: Exception) -> Exception:
        """What a client's error means: `Absent`, `Unmet`, `Again`, or an error for the user."""

    @abstractmethod
    def _write(self, name: str, data: bytes, create_only: bool) -> None:
        """Put the object, if there is none when `create_only`."""

    @abstractmethod
    def _read(self, name: str) -> bytes:
        """The whole object, checked against its checksum where it has one."""

    @abstractmethod
    def _read_range(self, name: str, version: str, start: int, stop: int) -> bytes:
        """Bytes of this very version; raises `Absent` or `Unmet` when it is gone."""

    @abstractmethod
    def _stat(self, name: str) -> Stat:
        """Size and version."""

    @abstractmethod
    def _remove(self, name: str) -> None:
        """Delete the object."""

    @abstractmethod
    def _page(self, prefix: str, after: str, delimiter: str, token: str | None, limit: int) -> Page:
        """Names that start with `prefix`, from `after` on; or the page that `token` names."""

    # The contract.

    def put(self, key: str, data: bytes, *, create_only: bool = False) -> None:
        """Publish `data` under `key`."""
        name = self._name(key)
        faults: list[Again] = []
        try:
            self._ask(lambda: self._write(name, data, create_only), faults)
        except Unmet as unmet:
            lost = unmet.lost or any(fault.lost for fault in faults)
            if not (lost and self._holds(key, data)):
                raise BlobExists(key) from None
        except Absent:
            raise self._no_bucket() from None

    def get(self, key: str) -> bytes:
        """The whole blob."""
        name = self._name(key)
        try:
            return self._ask(lambda: self._read(name))
        except Absent:
            raise self._missing(key) from None

    def open(self, key: str) -> BinaryIO:
        """A seekable reader of the blob as it is now, which reads a large one range by range."""
        name, found = self._name(key), self._found(key)
        if found.size <= READ_BYTES:
            return io.BytesIO(self.get(key))
        return io.BufferedReader(RangeReader(partial(self._range, key, name, found.version), found.size), READ_BYTES)

    def size(self, key: str) -> int:
        """Bytes of the blob."""
        return self._found(key).size

    def delete(self, key: str) -> None:
        """Remove the blob; a missing one is no error."""
        name = self._name(key)
        try:
            self._ask(lambda: self._remove(name))
        except Absent:
            self._missing(key)

    def iter_keys(self, prefix: str = "", *, after: str = "") -> Iterator[BlobInfo]:
        """Blobs whose key starts with `prefix` and sorts behind `after`, in key order."""
        return self._keys(check_prefix(prefix), after)

    def _keys(self, prefix: str, after: str) -> Iterator[BlobInfo]:
        last = ""
        for page in self._pages(prefix, after, ""):
            for name, size in page.blobs:
                if name <= last:
                    raise self._out_of_order(last, name)
                last = name
                key = name.removeprefix(self._root)
                # A console makes an empty object for a folder, and its name ends in a slash.
                is_folder = not size and (not key or key.endswith("/"))
                if key > after and not is_folder:
                    yield BlobInfo(key, size)

    def iter_prefixes(self, prefix: str = "", *, delimiter: str = "/") -> Iterator[str]:
        """The distinct continuations of `prefix` up to and with the next delimiter, in order."""
        check_prefix(prefix)
        last = ""
        for page in self._pages(prefix, "", delimiter):
            for group in page.prefixes:
                # A group that a page ends in may come again on the next.
                if group > last:
                    last = group
                    yield group.removeprefix(self._root)

    def close(self) -> None:
        """Close this process's own client; one that was handed in stays open."""
        own = self._own.pop(os.getpid(), None)
        if own is not None and own.client is not None:
            own.client.close()

    # How it is kept.

    @property
    def _client(self) -> Any:
        process = os.getpid()
        if self._given is not None:
            if process != self._home:
                raise UsageError(f"{self.uri}: its client was made before this process was forked; open the store here")
            return self._given
        # A lock of each process: one that was shut when a process was forked would stay shut in the child.
        own = self._own.setdefault(process, _Own())
        with own.lock:
            if own.client is None:
                own.client = self._connect()
            return own.client

    def _ask(self, request: Callable[[], T], faults: list[Again] | None = None) -> T:
        """The answer to a request, asked again while that is worth it; `faults` collects why it was."""

        def judged() -> T:
            try:
                return request()
            except self.client_errors as error:
                raise self._judge(error) from error

        def note(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome else None
            if faults is not None and isinstance(error, Again):
                faults.append(error)

        patience = self.patience
        retrying = Retrying(
            retry=retry_if_exception_type(Again),
            stop=stop_after_attempt(patience.tries) | stop_after_delay(patience.give_up_seconds),
            wait=wait_random_exponential(patience.first_wait_seconds, patience.longest_wait_seconds),
            before_sleep=note,
            reraise=True,
        )
        try:
            return retrying(judged)
        except Again as error:
            raise StorageFailed(f"{self.uri}: {error}; it was tried again and again, so try later") from error

    def _pages(self, prefix: str, after: str, delimiter: str) -> Iterator[Page]:
        start = f"{self._root}{after}" if after else ""
        token: str | None = None
        while True:
            ask = partial(self._page, f"{self._root}{prefix}", start, delimiter, token, self.page_keys)
            try:
                page = self._ask(ask)
            except Absent:
                raise self._no_bucket() from None
            yield page
            token = page.token
            if token is None:
                return

    def _found(self, key: str) -> Stat:
        name = self._name(key)
        try:
            return self._ask(lambda: self._stat(name))
        except Absent:
            raise self._missing(key) from None

    def _range(self, key: str, name: str, version: str, start: int, stop: int) -> bytes:
        try:
            return self._ask(lambda: self._read_range(name, version, start, stop))
        except (Absent, Unmet):
            raise StorageFailed(f"blob {key!r} was replaced or removed while it was read; read it again") from None

    def _holds(self, key: str, data: bytes) -> bool:
        try:
            return self.get(key) == data
        except BlobMissing:
            return False

    def _missing(self, key: str) -> BlobMissing:
        """The error for a 404. The first one is looked into: it may be the bucket that is not there."""
        if not self._bucket_seen:
            try:
                self._ask(lambda: self._page(self._root, "", "", None, 1))
            except Absent:
                raise self._no_bucket() from None
            self._bucket_seen = True
        return BlobMissing(key)

    def _no_bucket(self) -> DocgenError:
        return StorageFailed(f"{self.uri}: there is no bucket {self.bucket!r}; make it first, or name another")

    def _out_of_order(self, last: str, name: str) -> DocgenError:
        """Paging from a key on, and whoever compares two listings, rely on the order."""
        return StorageFailed(
            f"{self.uri}: the server lists {name!r} behind {last!r}; docgen needs a bucket that lists in byte order"
        )

    def _name(self, key: str) -> str:
        name = f"{self._root}{check_key(key)}"
        if len(name.encode()) > MAX_KEY_BYTES:
            raise UsageError(f"blob key {key[:40]!r}… is longer than {MAX_KEY_BYTES} bytes under {self.uri}")
        return name


def content_type(name: str) -> str:
    """What a browser is told of an object, so that a document opens from the cloud's console."""
    return next((kind for suffix, kind in _CONTENT_TYPES.items() if name.endswith(suffix)), _ANY_CONTENT)


def one_line(error: object) -> str:
    """A client's own words, short and in one line."""
    return " ".join(str(error).split())[:MESSAGE_CHARACTERS]
