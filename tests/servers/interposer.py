"""An HTTP server that stands in front of another, and answers, loses or cuts off what it is told to.

It speaks the protocol's own answers, so that a client meets a fault as it would from the cloud.
"""

from __future__ import annotations

import http.client
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}
UPSTREAM_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """An answer in the server's place, which never sees the request."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Lost:
    """The server carries the request out, and the connection ends without an answer."""


@dataclass(frozen=True)
class Late:
    """The server carries the request out, and the answer comes after the client has given up."""


@dataclass(frozen=True)
class Short:
    """The server's answer, cut off in the middle of its body."""


@dataclass(frozen=True)
class Garbled:
    """The server's answer with one byte of its body changed on the way."""


Fault = Answer | Lost | Late | Short | Garbled


@dataclass
class Seen:
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]


class Interposer(ThreadingHTTPServer):
    """Hands requests on to `upstream`, but for those whose method has a fault waiting."""

    daemon_threads = True

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.seen: list[Seen] = []
        self.over = threading.Event()
        self._faults: dict[str, deque[Fault | None]] = {}
        self._lock = threading.Lock()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def next(self, method: str, *faults: Fault | None) -> None:
        """What the next requests of this method meet, one each; None is nothing."""
        self._faults.setdefault(method, deque()).extend(faults)

    def forget(self) -> None:
        """Begin anew: no request seen, no fault waiting."""
        with self._lock:
            self.seen.clear()
            self._faults.clear()

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.seen)

    def note(self, request: Seen) -> Fault | None:
        """Write the request down. Returns its fault."""
        with self._lock:
            self.seen.append(request)
            waiting = self._faults.get(request.method)
            return waiting.popleft() if waiting else None

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has given up closes its connection; that is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Heads and bodies are two writes: with it, the second waits 40 ms for the client to acknowledge the first.
    disable_nagle_algorithm = True
    server: Interposer

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.server.note(Seen(self.command, self.path, dict(self.headers)))
        if isinstance(fault, Answer):
            self._reply(fault.status, fault.body, dict(fault.headers))
            return
        status, headers, answer = self._upstream(body)
        if isinstance(fault, Late):
            self.server.over.wait()
        if isinstance(fault, Lost | Late):
            self.close_connection = True
            return
        if isinstance(fault, Garbled):
            answer = bytes([answer[0] ^ 1]) + answer[1:]
        self._reply(status, answer, headers, short=isinstance(fault, Short))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _handle  # noqa: N815  the library's names

    def _upstream(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=UPSTREAM_SECONDS)
        try:
            kept = {name: text for name, text in self.headers.items() if name.lower() not in HOP_BY_HOP}
            connection.request(self.command, self.path, body or None, kept)
            given = connection.getresponse()
            answer = given.read()
            headers = {name: text for name, text in given.getheaders() if name.lower() not in HOP_BY_HOP}
        finally:
            connection.close()
        # An upload's session is told as an address, which has to lead through here, too.
        own, other = f":{self.server.port}", f":{self.server.upstream}"
        return given.status, {name: text.replace(other, own) for name, text in headers.items()}, answer

    def _reply(self, status: int, body: bytes, headers: dict[str, str], *, short: bool = False) -> None:
        self.send_response(status)
        if not any(name.lower() == "content-length" for name in headers):
            headers = {**headers, "Content-Length": str(len(body))}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if short else body)
        if short:
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def interposed(upstream: int) -> Iterator[Interposer]:
    """A server in front of the one at this port, for as long as the block."""
    server = Interposer(upstream)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
