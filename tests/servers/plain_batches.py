"""A client of `FakeBatches` by plain HTTP: for desks and their deaths, without loading vendors' libraries."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from docgen_core.llm.batch_clients import METADATA, BatchClient, BatchStatus, Line
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request

_FAILURES = {400: Failure.ITEM, 401: Failure.QUARANTINE, 404: Failure.QUARANTINE}


class PlainBatches(BatchClient):
    """Batches in Anthropic's form, at a vendor that lists them with our key, or does not."""

    def __init__(self, finds: bool) -> None:
        self.finds = finds

    async def submit(self, provider: Provider, requests: Mapping[str, Request], key: str) -> str:
        lines = [
            {"custom_id": ours, "params": {"model": request.model, "messages": request.messages}}
            for ours, request in requests.items()
        ]
        metadata = {METADATA: key} if self.finds else None
        return str((await _asked(provider, "messages/batches", {"requests": lines, "metadata": metadata}))["id"])

    async def status(self, provider: Provider, batch_id: str) -> BatchStatus:
        told = await _asked(provider, f"messages/batches/{batch_id}")
        return BatchStatus(batch_id, told["processing_status"] == "ended")

    async def collect(self, provider: Provider, status: BatchStatus) -> dict[str, Line]:
        results = await _asked(provider, f"messages/batches/{status.id}/results", lines=True)
        return {told["custom_id"]: _line(told["result"]) for told in results}

    async def find(self, provider: Provider, key: str) -> str | None:
        after = ""
        while self.finds:
            page = await _asked(provider, f"batches?{after}")
            for batch in page["data"]:
                if (batch["metadata"] or {}).get(METADATA) == key:
                    return str(batch["id"])
            if not page["has_more"]:
                break
            after = f"after={page['last_id']}"
        return None


def _line(result: Mapping[str, Any]) -> Line:
    if result["type"] != "succeeded":
        return Line(None, str(result["type"]))
    message = result["message"]
    usage, cut = message["usage"], message["stop_reason"] == "max_tokens"
    known = usage["input_tokens"] > 0
    return Line(
        Answer(
            message["content"][0]["text"],
            cut,
            usage["input_tokens"] if known else None,
            usage["output_tokens"] if known else None,
            message["model"],
            message["id"],
        )
    )


async def _asked(provider: Provider, path: str, body: object = None, lines: bool = False) -> Any:
    return await asyncio.to_thread(_ask, f"{provider.api_base}/{path}", body, lines)


def _ask(url: str, body: object, lines: bool) -> Any:
    asked = urllib.request.Request(url, None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(asked, timeout=20) as reply:
            text = reply.read().decode()
    except urllib.error.HTTPError as error:
        after = error.headers.get("retry-after")
        raise CallFailed(
            _FAILURES.get(error.code, Failure.TRANSIENT),
            f"status {error.code}",
            retry_after=float(after) if after else None,
            may_be_billed=error.code == 500,
            status=error.code,
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise CallFailed(Failure.TRANSIENT, type(error).__name__, may_be_billed=True) from None
    return [json.loads(line) for line in text.split("\n") if line] if lines else json.loads(text)
