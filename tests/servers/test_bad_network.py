"""The bad network does what it says: the server has a request or has it not, the client hears of it or does not."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from bad_network import Fault, bad_network
from google.api_core.exceptions import GoogleAPICallError
from google.api_core.retry import Retry
from google.cloud.firestore import Client

CARRIED_OUT = {Fault.UNANSWERED, Fault.HALF_ANSWERED, Fault.DRIPPING}
BODY = b"x" * 10_000


def at_second(fault: Fault) -> Any:
    """The first request passes, so that its connection is there and in use; the second meets the fault."""
    return SimpleNamespace(fault=lambda number: fault if number == 2 else None, silent_seconds=0.2)


@pytest.fixture
def shelf() -> Iterator[ThreadingHTTPServer]:
    """An HTTP server that keeps what is put."""

    class Keeper(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            length = int(self.headers["Content-Length"])
            if len(self.rfile.read(length)) == length:
                kept.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(BODY)))
            self.end_headers()
            self.wfile.write(BODY)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    kept: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Keeper)
    server.daemon_threads, server.kept = True, kept
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("fault", Fault)
def test_a_request_of_http(fault: Fault, shelf: Any) -> None:
    with bad_network(shelf.server_port, at_second(fault)) as network:
        connection = http.client.HTTPConnection("127.0.0.1", network.port, timeout=10)

        def put(path: str) -> bytes:
            connection.request("PUT", path, BODY)
            return connection.getresponse().read()

        assert put("/first") == BODY
        if fault is Fault.DRIPPING:
            assert put("/second") == BODY
        else:
            with pytest.raises((OSError, http.client.HTTPException)):
                put("/second")
        connection.close()
        assert put("/third") == BODY, "another connection passes"
        connection.close()
        assert network.struck == {fault: 1} and network.requests == 3
    assert shelf.kept == ["/first", *(["/second"] if fault in CARRIED_OUT else []), "/third"]


@pytest.mark.parametrize("fault", Fault)
def test_a_request_of_grpc(fault: Fault, firestore_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    once: Any = Retry(predicate=lambda error: False)
    with bad_network(firestore_server.port, at_second(fault)) as network:
        for name, text in firestore_server.behind(network.port).items():
            monkeypatch.setenv(name, text)
        kept = Client(project=f"docgen-{uuid4().hex[:16]}").collection("kept")

        def put(name: str) -> None:
            kept.document(name).create({"body": BODY}, retry=once, timeout=10)

        put("first")
        if fault is Fault.DRIPPING:
            put("second")
        else:
            with pytest.raises(GoogleAPICallError):
                put("second")
        # By the client's own retries: a channel whose connection was reset may send once more into the dead one.
        there = [document.id for document in kept.stream(timeout=10)]
        assert network.struck == {fault: 1} and network.requests == 3
    assert there == ["first", *(["second"] if fault in CARRIED_OUT else [])]
