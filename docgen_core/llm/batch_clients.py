"""Vendors' batches in one form: hand in, look, collect by our ids, and find one whose id got lost.

litellm speaks to those that follow OpenAI's files and batches; for Anthropic it creates none, so
that vendor's own client does. A line asks for the very same as the call in real time would: litellm
writes both. What does not belong here: records, money, and when to look again (batches.py).
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from docgen_core.errors import MissingExtra
from docgen_core.llm import calls
from docgen_core.llm.calls import NO_KEY, CallFailed, Failure
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request

REQUEST_SECONDS = 60.0
"""A vendor answers each request about a batch within this time, or has failed."""
METADATA = "docgen_batch"
"""Under this name a batch carries our key at vendors that keep such things."""
LISTED_PAGES = 20
PAGE_BATCHES = 100
"""An account's newest batches, among which a lost one is looked for."""
_ENDPOINT = "/v1/chat/completions"
_ENDED = {"completed", "failed", "expired", "cancelled"}
_SURELY_REFUSED = {429, 503, 529}
"""Of the answers that blame the vendor, those that say that nothing was begun."""
_LISTS = {"openai", "azure"}
"""litellm lists these vendors' batches, and they keep metadata."""
_LISTS_ALL = {"openai"}
"""For azure litellm always gives the first page."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """Where a batch stands at its vendor."""

    id: str
    ended: bool
    files: tuple[str, ...] = ()
    """Of results, where the vendor keeps them in files."""
    detail: str | None = None
    """Why it failed as a whole, in one line."""


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one request of a batch that has ended. One without an answer was not billed."""

    answer: Answer | None
    detail: str | None = None


class BatchClient(ABC):
    """A vendor's batches. Every operation raises `CallFailed`, and `UsageError` where the environment has no key."""

    finds: bool
    """Whether there is no such batch, when `find` finds none."""

    @abstractmethod
    async def submit(self, provider: Provider, requests: Mapping[str, Request], key: str) -> str:
        """Hand in the requests, by our ids; the vendor's id of the batch.

        `CallFailed.may_be_billed` says that a batch may have been begun all the same. `key` is new
        for each batch, and is what `find` looks for. It ends within twice `REQUEST_SECONDS`.
        """

    @abstractmethod
    async def status(self, provider: Provider, batch_id: str) -> BatchStatus:
        """Where the batch stands."""

    @abstractmethod
    async def collect(self, provider: Provider, status: BatchStatus) -> dict[str, Line]:
        """The lines of a batch that has ended, by our ids, in any order; lines may be missing."""

    async def find(self, provider: Provider, key: str) -> str | None:
        """The vendor's id of the batch that was handed in with this key, where there is one."""
        return None


def client_for(provider: Provider) -> BatchClient:
    """The client of the provider's vendor. Raises `MissingExtra`."""
    vendor = provider.model.partition("/")[0]
    return AnthropicBatches() if vendor == "anthropic" else LitellmBatches(vendor)


class LitellmBatches(BatchClient):
    """Vendors whose batches are a file of requests and files of results."""

    def __init__(self, vendor: str) -> None:
        self._vendor, self._litellm = vendor, calls.library()
        self.finds = vendor in _LISTS_ALL

    async def submit(self, provider: Provider, requests: Mapping[str, Request], key: str) -> str:
        """See `BatchClient.submit`."""
        data = await asyncio.to_thread(self._file, provider, requests)
        told = self._told(provider)
        file = await _asked(
            provider, self._litellm.acreate_file(file=("batch.jsonl", data), purpose="batch", **told), begins=False
        )
        batch = await _asked(
            provider,
            self._litellm.acreate_batch(
                completion_window="24h",
                endpoint=_ENDPOINT,
                input_file_id=file.id,
                metadata={METADATA: key},
                model=provider.model,
                **told,
            ),
            begins=True,
        )
        return str(batch.id)

    async def status(self, provider: Provider, batch_id: str) -> BatchStatus:
        """See `BatchClient.status`."""
        batch = await _asked(
            provider,
            self._litellm.aretrieve_batch(
                batch_id=batch_id,
                model=provider.model,
                litellm_metadata={"batch_ignore_default_logging": True},  # else it fetches the results, to price them
                **self._told(provider),
            ),
        )
        files = tuple(file for file in (batch.output_file_id, batch.error_file_id) if file)
        completed = batch.status == "completed"
        answered = bool(batch.request_counts and batch.request_counts.completed)
        # A vendor may say that it is done before it says where the results are.
        ended = batch.status in _ENDED and not (completed and answered and not batch.output_file_id)
        said = "; ".join(str(error.message) for error in (batch.errors.data if batch.errors else None) or [])
        detail = f"the batch is {batch.status}" + (f": {said}" if said else "")
        return BatchStatus(batch_id, ended, files, None if completed else calls.one_line(detail, _key(provider)))

    async def collect(self, provider: Provider, status: BatchStatus) -> dict[str, Line]:
        """See `BatchClient.collect`."""
        lines: dict[str, Line] = {}
        for file in status.files:
            content = await _asked(provider, self._litellm.afile_content(file_id=file, **self._told(provider)))
            for told in _json_lines(content.text):
                lines[str(told.get("custom_id"))] = self._line(told, _key(provider))
        return lines

    async def find(self, provider: Provider, key: str) -> str | None:
        """See `BatchClient.find`."""
        pages = LISTED_PAGES if self.finds else int(self._vendor in _LISTS)
        after = None
        for _ in range(pages):
            page = await _asked(
                provider, self._litellm.alist_batches(after=after, limit=PAGE_BATCHES, **self._told(provider))
            )
            for batch in page.data:
                if (batch.metadata or {}).get(METADATA) == key:
                    return str(batch.id)
            if not page.data or not page.has_more:
                break
            after = page.data[-1].id
        return None

    def _told(self, provider: Provider) -> dict[str, Any]:
        return {
            "custom_llm_provider": self._vendor,
            "api_base": provider.api_base,
            "api_key": _key(provider),
            "timeout": REQUEST_SECONDS,
            "max_retries": 0,
            "num_retries": 0,
        }

    def _file(self, provider: Provider, requests: Mapping[str, Request]) -> bytes:
        lines = (
            {"custom_id": ours, "method": "POST", "url": _ENDPOINT, "body": _body(provider, request)[0]}
            for ours, request in requests.items()
        )
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()

    def _line(self, told: Mapping[str, Any], key: str) -> Line:
        response = told.get("response") or {}
        body = response.get("body") or {}
        if response.get("status_code") == 200 and isinstance(body, dict):
            return Line(calls.answer_of(self._litellm.ModelResponse(**_with_plain_text(body))))
        error = told.get("error") or (body.get("error") if isinstance(body, dict) else None) or body
        said = error.get("message") or error.get("code") if isinstance(error, dict) else error
        return Line(None, calls.one_line(f"{response.get('status_code') or 'no reply'}: {said}", key))


class AnthropicBatches(BatchClient):
    """Anthropic's message batches, by that vendor's own client. They are listed without anything of ours."""

    finds = False

    def __init__(self) -> None:
        try:
            import anthropic
        except ImportError:
            raise MissingExtra("handing in a batch to Anthropic", "models") from None
        logging.getLogger("anthropic").setLevel(logging.CRITICAL)  # it logs requests
        self._anthropic = anthropic

    async def submit(self, provider: Provider, requests: Mapping[str, Request], key: str) -> str:
        """See `BatchClient.submit`."""
        bodies = {ours: await asyncio.to_thread(_body, provider, request) for ours, request in requests.items()}
        lines: list[Any] = [{"custom_id": ours, "params": body} for ours, (body, _) in bodies.items()]
        betas = ",".join(sorted({beta for _, beta in bodies.values() if beta}))
        headers = {"anthropic-beta": betas} if betas else {}
        async with self._client(provider) as client:
            batch = await _asked(
                provider, client.messages.batches.create(requests=lines, extra_headers=headers), begins=True
            )
        return str(batch.id)

    async def status(self, provider: Provider, batch_id: str) -> BatchStatus:
        """See `BatchClient.status`."""
        async with self._client(provider) as client:
            batch = await _asked(provider, client.messages.batches.retrieve(batch_id))
        return BatchStatus(batch_id, batch.processing_status == "ended")

    async def collect(self, provider: Provider, status: BatchStatus) -> dict[str, Line]:
        """See `BatchClient.collect`."""
        async with self._client(provider) as client:

            async def all_of_them() -> dict[str, Line]:
                entries = await client.messages.batches.results(status.id)
                return {entry.custom_id: self._line(entry.result, _key(provider)) async for entry in entries}

            return await _asked(provider, all_of_them())

    def _client(self, provider: Provider) -> Any:
        base = provider.api_base and provider.api_base.removesuffix("/messages").removesuffix("/v1")
        return self._anthropic.AsyncAnthropic(
            api_key=_key(provider), base_url=base, timeout=REQUEST_SECONDS, max_retries=0
        )

    def _line(self, result: Any, key: str) -> Line:
        if result.type != "succeeded":
            error = getattr(getattr(result, "error", None), "error", None)
            return Line(None, calls.one_line(f"{result.type}: {getattr(error, 'message', 'no reply')}", key))
        message = result.message
        usage = message.usage
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Line(
            Answer(
                text="".join(block.text for block in message.content if block.type == "text"),
                cut=message.stop_reason == "max_tokens",
                input_tokens=usage.input_tokens + cached,
                output_tokens=usage.output_tokens,
                model=message.model,
                request_id=message.id,
            )
        )


async def _asked(provider: Provider, asked: Awaitable[T], *, begins: bool = False) -> T:
    """The vendor's answer. `begins` says that what is asked for costs, once the vendor has heard of it."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await asked
    except TimeoutError:
        raise CallFailed(Failure.TRANSIENT, f"no answer within {REQUEST_SECONDS:g} s", may_be_billed=begins) from None
    except Exception as error:  # noqa: BLE001  both libraries raise errors of several others
        failed = calls.failed(error, _key(provider))
        if failed.status is not None:
            failed.may_be_billed = failed.status >= 500 and failed.status not in _SURELY_REFUSED
        failed.may_be_billed = failed.may_be_billed and begins
        raise failed from None


def _key(provider: Provider) -> str:
    return provider.key() or NO_KEY


def _body(provider: Provider, request: Request) -> tuple[dict[str, Any], str | None]:
    """What the call in real time would send, and the vendor's features that its headers ask for."""
    litellm = calls.library()
    raw = litellm.utils.return_raw_request(litellm.types.utils.CallTypes.completion, calls.arguments(provider, request))
    if not raw.get("raw_request_body"):
        raise CallFailed(Failure.ITEM, calls.one_line(f"litellm writes no such request: {raw.get('error')}", NO_KEY))
    body = dict(raw["raw_request_body"])
    body |= body.pop("extra_body", None) or {}
    return body, (raw.get("raw_request_headers") or {}).get("anthropic-beta")


def _json_lines(text: str) -> Iterator[dict[str, Any]]:
    """The objects of the lines. Raises `CallFailed` for another one: part of the results may not be what it was."""
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise CallFailed(Failure.TRANSIENT, "a line of the batch's results cannot be read")
        yield told


def _with_plain_text(body: Mapping[str, Any]) -> dict[str, Any]:
    """The reply with its text in one piece, where the vendor gives it in parts."""
    choices = [dict(choice) for choice in body.get("choices") or []]
    for choice in choices:
        message = choice["message"] = dict(choice.get("message") or {})
        if isinstance(parts := message.get("content"), list):
            texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
            message["content"] = "".join(map(str, texts))
    return {**body, "choices": choices}
