"""A provider of language models on loopback, speaking OpenAI's and Anthropic's protocols, as well or ill as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Says:
    """What the provider does with one request."""

    status: int = 200
    text: str = '[{"name":"Oil filter"}]'
    finish: str = "stop"
    usage: tuple[int, int] | None = (300, 200)
    headers: dict[str, str] = field(default_factory=dict)
    error: Body | None = None
    """The error's object where the status is none of success."""
    raw: bytes | None = None
    """Instead of any JSON."""
    hangs: bool = False
    """Until the server ends; nothing is ever sent."""
    breaks: bool = False
    """The connection, in the middle of the reply."""


class FakeProvider:
    """A server for the time of a `with`. `base` is its address; `requests` what it was asked, in order."""

    def __init__(self, script: Callable[[int, Body], Says] | Says = Says()) -> None:
        self.script: Callable[[int, Body], Says] = script if callable(script) else lambda number, body: script
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()

    def __enter__(self) -> FakeProvider:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                provider._answer(self)

            do_GET = do_POST  # noqa: N815  the library's name

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # clients die here
        self.base = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body: Body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
        says = self.script(number, body)
        if says.hangs:
            self._ended.wait()
            handler.close_connection = True
            return
        data = says.raw if says.raw is not None else json.dumps(self._told(says, handler.path, body)).encode()
        handler.send_response(says.status)
        for name, value in {"content-type": "application/json", **says.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        with suppress(ConnectionError):  # whoever asked may be gone
            handler.wfile.write(data[: len(data) // 2] if says.breaks else data)
        handler.close_connection = handler.close_connection or says.breaks

    @staticmethod
    def _told(says: Says, path: str, body: Body) -> Body:
        if says.status != 200:
            return {"error": says.error or {"message": f"status {says.status}", "type": "error"}}
        usage = says.usage or (0, 0)
        if path.endswith("/messages"):
            return {
                "id": "msg-1",
                "type": "message",
                "role": "assistant",
                "model": f"{body['model']}-0901",
                "content": [{"type": "text", "text": says.text}],
                "stop_reason": {"stop": "end_turn", "length": "max_tokens"}[says.finish],
                "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
            }
        told: Body = {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": f"{body['model']}-0901",
            "choices": [
                {"index": 0, "finish_reason": says.finish, "message": {"role": "assistant", "content": says.text}}
            ],
        }
        if says.usage:
            told["usage"] = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        return told
