"""An object store that answers as a cloud does, behind the production code that asks it again.

What does not belong here: retries, and what an answer means to a run (docgen_core.blobs.objects).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from sim_faults import Line
from sim_stores import Server

from docgen_core.blobs.objects import Absent, Again, ObjectStore, Page, Patience, Stat, Unmet
from docgen_core.errors import BlobExists, BlobMissing

T = TypeVar("T")

NOW = Patience(first_wait_seconds=0.0, longest_wait_seconds=0.0)
"""Real seconds would pass in vain."""


class Answered(Exception):
    """The cloud's answer, when it is not yes. `0` is no answer at all."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}" if status else "no answer in time")
        self.status = status


class SimulatedCloud(ObjectStore):
    """One process's connection to the bucket. Each request is a yield point.

    `story` yields what becomes of the process's create-only puts, one by one, and then nothing
    more: a status that the cloud answers without doing anything, or 0 for a put that is done and
    not answered.
    """

    scheme, client_method, client_errors = "sim", "none", (Answered,)

    def __init__(self, server: Server, line: Line, story: Callable[[], Iterator[int]]) -> None:
        super().__init__("bucket", patience=NOW)
        self._server, self._line, self._story = server, line, story
        self._stories: dict[str, Iterator[int]] = {}

    @classmethod
    def _client_wanted(cls) -> str:
        return "none"

    def _connect(self) -> Any:
        raise NotImplementedError("there is no client")

    def _judge(self, error: Exception) -> Exception:
        assert isinstance(error, Answered)
        match error.status:
            case 404:
                return Absent()
            case 412:
                return Unmet()
            case 409 | 429:
                return Again(str(error), lost=False)
            case _:
                return Again(str(error), lost=True)

    def _request(self, what: str, act: Callable[[], T], *, write: bool = False) -> T:
        def answered() -> T:
            try:
                return act()
            except BlobMissing:
                raise Answered(404) from None
            except BlobExists:
                raise Answered(412) from None

        return self._line.call(what, answered, write=write)

    def _write(self, name: str, data: bytes, create_only: bool) -> None:
        def act() -> None:
            status = next(self._stories.setdefault(name, self._story()), None) if create_only else None
            if status:
                raise Answered(status)
            self._server.put(self._line.process.name, name, data, create_only=create_only)
            if status is not None:
                raise Answered(0)

        self._request(f"put {name}", act, write=True)

    def _read(self, name: str) -> bytes:
        return self._request(f"get {name}", lambda: self._server.blobs.get(name))

    def _read_range(self, name: str, version: str, start: int, stop: int) -> bytes:
        return self._read(name)[start:stop]

    def _stat(self, name: str) -> Stat:
        return Stat(self._request(f"size {name}", lambda: self._server.blobs.size(name)), "1")

    def _remove(self, name: str) -> None:
        self._request(f"delete {name}", lambda: self._server.blobs.delete(name), write=True)

    def _page(self, prefix: str, after: str, delimiter: str, token: str | None, limit: int) -> Page:
        found = self._request(f"list {prefix}", lambda: list(self._server.blobs.iter_keys(prefix, after=after)))
        return Page(tuple((info.key, info.size) for info in found), (), None)
