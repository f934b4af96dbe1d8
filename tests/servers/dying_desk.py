"""Desks that die by SIGKILL at a named step, and those that come after them.

They are processes forked from one that has loaded the libraries already, and reads one JSON object
a line: what the desk works on, and where it dies. It answers each with the exit code.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from plain_batches import PlainBatches

from docgen_core.blobs import open_blobs
from docgen_core.llm.batch_clients import BatchClient, _body, client_for
from docgen_core.llm.batches import BatchDesk, BatchPending
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Request, request_for
from docgen_core.state import open_state

STEPS = (
    "before the intent",
    "before the grant",
    "before it is handed in",
    "before the id is stored",
    "once the id is stored",
    "while it waits",
    "before it is settled",
    "before the grant is closed",
    "before the outcome",
    "after the outcome",
)


def requests_of(provider: Provider, count: int) -> list[Request]:
    """What all desks here ask for."""
    return [request_for(provider, [{"role": "user", "content": f"Describe item {n}"}]) for n in range(count)]


class Midwife:
    """The process that desks are forked from, for the time of a `with`."""

    def __enter__(self) -> Midwife:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def run(self, **work: object) -> int:
        """Run a desk until it dies or has all there is; its exit code, negative for a signal."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.kill()  # litellm takes seconds for its farewell
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


def _dies(*_: object, **__: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _client(told: Mapping[str, Any], provider: Provider) -> BatchClient:
    return client_for(provider) if told["real"] else PlainBatches(finds=provider.model.startswith("openai"))


async def _work(told: Mapping[str, Any]) -> None:
    provider = Provider.model_validate(told["provider"])
    blobs, state, step = open_blobs(told["blobs"]), open_state(told["state"]), told["step"]
    now = told["start"]
    put = blobs.put

    def put_or_die(key: str, data: bytes, *, create_only: bool = False) -> None:
        name = {"intent": STEPS[0], "placing": STEPS[3], "outcome": STEPS[8]}.get(Path(key).stem)
        if name is not None and name == step:
            _dies()
        put(key, data, create_only=create_only)
        if (Path(key).stem, step) in {("placing", STEPS[4]), ("outcome", STEPS[9])}:
            _dies()

    blobs.put = put_or_die  # type: ignore[method-assign]
    client = _client(told, provider)
    for at, holder, name in ((1, state, "open_grant"), (2, client, "submit"), (6, state, "settle_grant")):
        if step == STEPS[at]:
            setattr(holder, name, _dies)
    if step == STEPS[7]:
        state.close_grant = _dies  # type: ignore[method-assign]
    desk = BatchDesk(
        blobs, state, told["run"], 3, told["worker"], ReplyCache(blobs), clients=lambda _: client, clock=lambda: now
    )
    while True:
        try:
            await desk.answers(provider, requests_of(provider, told["count"]))
            return
        except BatchPending as pending:
            if step == STEPS[5]:
                _dies()
            now += pending.retry_seconds


def main() -> None:
    """Fork one desk for each line; a vendor's library is loaded once, where it is wanted."""
    for line in sys.stdin:
        told = json.loads(line)
        if told["real"]:
            provider = Provider.model_validate(told["provider"])
            _client(told, provider)
            _body(provider, requests_of(provider, 1)[0])
        child = os.fork()
        if child == 0:
            asyncio.run(_work(told))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
