"""A provider that takes batches too: OpenAI's files and batches, Mistral's jobs, and Anthropic's message batches.

It bills what it answers, at half its price, and counts what was handed in. What does not belong
here: replies in real time (fake_provider.py).
"""

from __future__ import annotations

import email.parser
import email.policy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fake_provider import Body, FakeProvider, Says

CREATED_AT = 1_700_000_000
DATE = "2026-01-01T00:00:00Z"
MISSING = "missing"
"""A line that the results do not hold."""
EXPIRED = "expired"
"""A line that the vendor did not get to."""
ERRORED = "errored"
"""A line that the vendor refused."""

PLAIN = Says()

LineScript = Callable[[int, Body], Says | str]


@dataclass
class Batch:
    """What was handed in."""

    id: str
    lines: dict[str, Body]
    """What is asked for, by the customer's ids."""
    metadata: Body | None
    polls: int = 0
    told: dict[str, Says | str] = field(default_factory=dict)


class FakeBatches(FakeProvider):
    """A server for the time of a `with`. What it does with batches may be changed at any time."""

    def __init__(
        self,
        script: Callable[[int, Body], Says] | Says = PLAIN,
        *,
        lines: LineScript | None = None,
        slow_polls: int = 0,
        ends: str = "completed",
        price: tuple[Decimal, Decimal] = (Decimal(1), Decimal(2)),
    ) -> None:
        """`lines` says what becomes of a batch's lines, by their number; `slow_polls` times a batch is still worked on.

        `ends` is how a batch ends, or "never"; `price` is in real time, in dollars for a million tokens in and out.
        """
        super().__init__(script)
        self.lines: LineScript = lines or (lambda number, body: PLAIN)
        self.slow_polls, self.ends, self.price = slow_polls, ends, price
        self.batches: dict[str, Batch] = {}
        self.billed = 0
        """Nano-dollars, for batches."""
        self.polls = 0
        self.collections = 0
        self.forgets_metadata = False
        self.bad_creations: list[Says] = []
        """What the next batches that are handed in meet; `breaks` takes the batch and loses the answer."""
        self.bad_polls: list[Says] = []
        self._files: dict[str, bytes] = {}

    @property
    def submissions(self) -> int:
        """How many batches were handed in."""
        return len(self.batches)

    # Requests ----------------------------------------------------------------------------

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        url = urlsplit(handler.path)
        match url.path.removeprefix("/openai").removeprefix("/v1").strip("/").split("/"):
            case ["files"]:
                self._reply(handler, self._upload(handler))
            case ["files", file_id, "content"]:
                self._send(handler, 200, self._files[file_id], "application/octet-stream")
            case ["batches"] if handler.command == "GET":
                self._reply(handler, self._listed(parse_qs(url.query)))
            case ["batches"]:
                told = self._read(handler)
                self._begin(handler, self._lines_of(told["input_file_id"]), told.get("metadata"), self._openai)
            case ["batch", "jobs"]:
                told = self._read(handler)
                self._begin(handler, self._lines_of(told["input_files"][0]), told.get("metadata"), self._mistral)
            case ["messages", "batches"]:
                told = self._read(handler)
                lines = {line["custom_id"]: line["params"] for line in told["requests"]}
                self._begin(handler, lines, told.get("metadata"), self._anthropic)
            case ["messages", "batches", batch_id, "results"]:
                self._send(handler, 200, self._results(batch_id), "application/x-jsonl")
            case ["messages", "batches", batch_id]:
                self._poll(handler, batch_id, self._anthropic)
            case ["batch", "jobs", batch_id]:
                self._poll(handler, batch_id, self._mistral)
            case ["batches", batch_id]:
                self._poll(handler, batch_id, self._openai)
            case _:
                super()._answer(handler)

    def _begin(
        self, handler: BaseHTTPRequestHandler, lines: dict[str, Body], metadata: Body | None, told: Callable[..., Body]
    ) -> None:
        with self._lock:
            bad = self.bad_creations.pop(0) if self.bad_creations else None
            if bad is None or bad.breaks:
                batch = Batch(f"batch-{len(self.batches) + 1}", lines, metadata)
                self.batches[batch.id] = batch
        if bad is None:
            self._reply(handler, told(batch))
        else:
            self._fail(handler, bad)

    def _poll(self, handler: BaseHTTPRequestHandler, batch_id: str, told: Callable[..., Body]) -> None:
        with self._lock:
            self.polls += 1
            bad = self.bad_polls.pop(0) if self.bad_polls else None
            batch = self.batches.get(batch_id)
            if batch is None:
                bad = Says(404)
            elif bad is None:
                batch.polls += 1
                if self._has_ended(batch) and not batch.told:
                    self._work(batch)
        if bad is not None:
            self._fail(handler, bad)
        else:
            self._reply(handler, told(batch))

    def _fail(self, handler: BaseHTTPRequestHandler, bad: Says) -> None:
        if bad.breaks:
            handler.close_connection = True
            return
        error = {"error": bad.error or {"message": f"status {bad.status}", "type": "error"}}
        self._send(handler, bad.status, json.dumps(error).encode(), headers=bad.headers)

    # Work --------------------------------------------------------------------------------

    def _has_ended(self, batch: Batch) -> bool:
        return self.ends != "never" and batch.polls > self.slow_polls

    def _work(self, batch: Batch) -> None:
        """Decide on each line, and bill those that are answered."""
        for number, (ours, body) in enumerate(batch.lines.items()):
            says = MISSING if self.ends == "failed" else self.lines(number, body)
            batch.told[ours] = says
            if isinstance(says, Says) and says.status == 200:
                self.billed += self.bill(says)

    def bill(self, says: Says) -> int:
        """Nano-dollars that one answered line costs."""
        tokens_in, tokens_out = says.usage or (0, 0)
        exact = (tokens_in * self.price[0] + tokens_out * self.price[1]) * 1000 / 2
        return int(exact.to_integral_value(ROUND_CEILING))

    def _shuffled(self, batch: Batch) -> Iterator[tuple[str, Says | str]]:
        told = [(ours, says) for ours, says in batch.told.items() if says != MISSING]
        yield from told[1::2][::-1] + told[::2][::-1]

    # OpenAI ------------------------------------------------------------------------------

    def _openai(self, batch: Batch) -> Body:
        ended = self._has_ended(batch)
        told: Body = {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": "file-1",
            "completion_window": "24h",
            "status": self.ends if ended else "in_progress",
            "created_at": CREATED_AT,
            "metadata": None if self.forgets_metadata else batch.metadata,
            "request_counts": {"total": len(batch.lines), "completed": 0, "failed": 0},
        }
        if ended and self.ends == "failed":
            told["errors"] = {"object": "list", "data": [{"code": "bad", "message": "the file is not what we want"}]}
        elif ended:
            told |= self._files_of(batch, "output_file_id", "error_file_id")
        return told

    def _mistral(self, batch: Batch) -> Body:
        ended = self._has_ended(batch)
        status = {"completed": "SUCCESS", "failed": "FAILED", "expired": "TIMEOUT_EXCEEDED"}.get(self.ends, "RUNNING")
        told: Body = {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_files": ["file-1"],
            "errors": [],
            "status": status if ended else "RUNNING",
            "created_at": CREATED_AT,
            "metadata": batch.metadata,
        }
        return told | (self._files_of(batch, "output_file", "error_file") if ended else {})

    def _files_of(self, batch: Batch, output: str, errors: str) -> Body:
        """Write the files of results, and name those that hold anything."""
        files: dict[str, list[Body]] = {output: [], errors: []}
        for ours, says in self._shuffled(batch):
            line: Body = {"id": f"line-{ours[:8]}", "custom_id": ours, "response": None, "error": None}
            if says == EXPIRED:
                line["error"] = {"code": "batch_expired", "message": "not reached in time"}
            elif isinstance(says, str) or says.status != 200:
                status = 400 if isinstance(says, str) else says.status
                line["response"] = {"status_code": status, "body": {"error": {"message": f"status {status}"}}}
            else:
                body = self._told(says, "/v1/chat/completions", batch.lines[ours])
                line["response"] = {"status_code": 200, "request_id": "r", "body": body}
            files[output if isinstance(says, Says) and says.status == 200 else errors].append(line)
        named: Body = {}
        for name, lines in files.items():
            if lines:
                named[name] = f"{batch.id}-{name}"
                self._files[named[name]] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return named

    def _listed(self, query: dict[str, list[str]]) -> Body:
        """The newest first, two a page."""
        newest = list(self.batches.values())[::-1]
        after = query.get("after", [None])[0]
        start = next((at + 1 for at, batch in enumerate(newest) if batch.id == after), 0)
        page = newest[start : start + 2]
        return {
            "object": "list",
            "data": [self._openai(batch) for batch in page],
            "has_more": start + 2 < len(newest),
            "first_id": page[0].id if page else None,
            "last_id": page[-1].id if page else None,
        }

    def _upload(self, handler: BaseHTTPRequestHandler) -> Body:
        data = handler.rfile.read(int(handler.headers["content-length"]))
        head = f"content-type: {handler.headers['content-type']}\r\n\r\n".encode()
        form = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + data)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        assert parts["purpose"].get_payload().strip() == "batch"
        with self._lock:
            file_id = f"file-{len(self._files) + 1}"
            self._files[file_id] = parts["file"].get_payload(decode=True)
        return {
            "id": file_id,
            "object": "file",
            "bytes": len(data),
            "created_at": CREATED_AT,
            "filename": "batch.jsonl",
            "purpose": "batch",
            "status": "processed",
        }

    def _lines_of(self, file_id: str) -> dict[str, Body]:
        lines = [json.loads(line) for line in self._files[file_id].decode().splitlines()]
        return {line["custom_id"]: line["body"] for line in lines}

    # Anthropic ---------------------------------------------------------------------------

    def _anthropic(self, batch: Batch) -> Body:
        ended = self._has_ended(batch)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {"processing": 0, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
            "ended_at": DATE if ended else None,
            "created_at": DATE,
            "expires_at": DATE,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{self.base}/v1/messages/batches/{batch.id}/results" if ended else None,
        }

    def _results(self, batch_id: str) -> bytes:
        batch = self.batches[batch_id]
        lines = []
        for ours, says in self._shuffled(batch):
            result: Body = {"type": EXPIRED}
            if isinstance(says, Says) and says.status == 200:
                result = {"type": "succeeded", "message": self._told(says, "/v1/messages", batch.lines[ours])}
            elif says != EXPIRED:
                error = {"type": "invalid_request_error", "message": "status 400"}
                result = {"type": ERRORED, "error": {"type": "error", "error": error}}
            lines.append(json.dumps({"custom_id": ours, "result": result}) + "\n")
        return "".join(lines).encode()

    # HTTP --------------------------------------------------------------------------------

    @staticmethod
    def _read(handler: BaseHTTPRequestHandler) -> Any:
        return json.loads(handler.rfile.read(int(handler.headers["content-length"])))

    def _reply(self, handler: BaseHTTPRequestHandler, told: Body) -> None:
        self._send(handler, 200, json.dumps(told).encode())

    @staticmethod
    def _send(
        handler: BaseHTTPRequestHandler,
        status: int,
        data: bytes,
        kind: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        handler.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)
