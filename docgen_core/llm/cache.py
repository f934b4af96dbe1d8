"""Answers that were paid for, kept in the blob store: a re-run costs nothing.

A blob for each request, under the digest of what was asked, written once: whoever comes second reads
what the first one wrote, so that all workers see one answer. What does not belong here: money, and
what a text is worth.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass

from pydantic import TypeAdapter

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import canonical_json
from docgen_core.errors import BlobExists, BlobMissing
from docgen_core.llm.requests import Answer, Request

PREFIX = "llm-cache"
FORMAT = 1
_ANSWER = TypeAdapter(Answer)


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, and what this process has paid for it."""

    answer: Answer
    paid: Answer | None
    """What came back from a call that was made for it here, to be settled; None when it cost nothing.

    Not the answer itself where another worker was first."""


class ReplyCache:
    """Answers by request. Belongs to one event loop, in which a request is under way once at a time."""

    def __init__(self, blobs: BlobStore, prefix: str = PREFIX) -> None:
        self._blobs, self._prefix = blobs, prefix
        self._under_way: dict[str, asyncio.Future[None]] = {}
        self.hits = 0
        """Answers that cost nothing here."""

    def key(self, request: Request) -> str:
        """Where the answer stands."""
        return self._key(request.digest)

    async def kept(self, digest: str) -> Answer | None:
        """The answer to the request of this digest, where there is one."""
        return (await asyncio.to_thread(self._read, self._key(digest)))[0]

    async def keep(self, digest: str, paid: Answer) -> Answer:
        """Store what was paid for in another way than by `fetch`; the answer that stands then."""
        key = self._key(digest)
        stored, damaged = await asyncio.to_thread(self._read, key)
        return stored if stored is not None else await asyncio.to_thread(self._store, key, paid, damaged)

    def _key(self, digest: str) -> str:
        return f"{self._prefix}/{digest[:2]}/{digest}.json"

    async def fetch(self, request: Request, call: Callable[[], Awaitable[Answer]]) -> Fetched:
        """The answer to the request: from the store, from a twin under way, or else by `call`.

        What `call` raises is raised, and nothing is stored; twins that waited for it make their own.
        What was paid for is stored before this returns, so that a death after it costs nothing.
        """
        key = self.key(request)
        while (twin := self._under_way.get(key)) is not None:
            await asyncio.wait([twin])
        self._under_way[key] = asyncio.get_running_loop().create_future()
        try:
            stored, damaged = await asyncio.to_thread(self._read, key)
            if stored is not None:
                self.hits += 1
                return Fetched(stored, None)
            paid = await call()
            return Fetched(await asyncio.to_thread(self._store, key, paid, damaged), paid)
        finally:
            self._under_way.pop(key).set_result(None)

    def _read(self, key: str) -> tuple[Answer | None, bool]:
        """The answer, and whether something else stands there."""
        try:
            data = self._blobs.get(key)
        except BlobMissing:
            return None, False
        try:
            told = json.loads(data)
            if told.pop("format") != FORMAT:
                return None, True
            return _ANSWER.validate_json(json.dumps(told), strict=True), False
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None, True

    def _store(self, key: str, answer: Answer, damaged: bool) -> Answer:
        """Write the answer, or read the one that was written first; what cannot be read is replaced."""
        data = canonical_json({"format": FORMAT, **asdict(answer)})
        try:
            self._blobs.put(key, data, create_only=not damaged)
        except BlobExists:
            return self._read(key)[0] or answer
        return answer
