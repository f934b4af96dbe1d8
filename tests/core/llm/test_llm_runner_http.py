"""The runner against a server on loopback, through litellm: each way in which a vendor can fail; and kill -9."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_provider import Body, FakeProvider, Says
from text_runs import World, described, ends, items_of, mix_of

from docgen_core.llm import calls
from docgen_core.llm.gates import Rule
from docgen_core.llm.items import CallOutcome, Filled

KEY = "sk-docgen-0123456789abcdef"
KILLS, LANES, ONE_BY_ONE = 3, 4, 90
"""`ONE_BY_ONE`: tokens of a reply that holds one description only."""


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all runs here, since litellm keeps connections by loop."""
    with asyncio.Runner() as runner:
        yield runner
        runner.run(calls.close())


@pytest.fixture(autouse=True)
def key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPHA_KEY", KEY)


def right(body: Body) -> str:
    return described(body["messages"])


def filled_by(
    loop: asyncio.Runner, alpha: Callable[[int, Body], Says], *, items: int = 48, **other: Any
) -> tuple[Filled, World, int]:
    """A run in which alpha does as it is told, beta is well, and the fallback is beta; and alpha's requests."""
    numbers: dict[str, int] = {}

    def script(_: int, body: Body) -> Says:
        number = numbers[body["model"]] = numbers.get(body["model"], -1) + 1
        return alpha(number, body) if body["model"] == "alpha-small" else Says(text=right(body))

    with FakeProvider(script) as server:
        base = {"api_base": f"{server.base}/v1", "api_key_env": "ALPHA_KEY", "timeout_seconds": 20}
        world = World(mix_of(base | {"name": "alpha"} | other, base | {"name": "beta"}, fallback=[("beta", 1)]))
        filled = loop.run(world.fill(items_of(items), concurrency=2, call=calls.call))
        assert len(server.requests) <= len(world.records), "each request is recorded"
    assert len(filled.texts) + len(filled.unfilled) == items
    assert sum(record.cost or 0 for record in world.records) == world.booked()
    assert KEY not in repr(world.records) + repr(world.state.quarantined_providers("r"))
    assert not any(KEY.encode() in world.blobs.get(blob.key) for blob in world.blobs.iter_keys())
    return filled, world, numbers.get("alpha-small", -1) + 1


def first(says: Says) -> Callable[[int, Body], Says]:
    return lambda number, body: says if number == 0 else Says(text=right(body))


@pytest.mark.parametrize(
    "says",
    [Says(429), Says(429, headers={"retry-after": "1"}), Says(500), Says(breaks=True)],
    ids=["429", "retry-after", "500", "broken connection"],
)
def test_what_passes_is_waited_for(loop: asyncio.Runner, says: Says) -> None:
    filled, world, requests = filled_by(loop, first(says))
    healthy, _, needed = filled_by(loop, lambda _, body: Says(text=right(body)))
    assert filled.texts == healthy.texts and len(filled.texts) == 48
    assert requests == needed + 1
    assert [record.outcome for record in world.records].count(CallOutcome.FAILED) == 1
    assert world.state.quarantined_providers("r") == {}


def test_a_provider_that_hangs_is_left_after_one_time_out(loop: asyncio.Runner) -> None:
    began = time.monotonic()
    filled, world, requests = filled_by(loop, lambda *_: Says(hangs=True), timeout_seconds=0.5, items=120)
    assert ends(filled) == {"openai/beta-small": 120}
    assert requests <= 2, "as many as there are lanes"
    assert all(record.cost for record in world.records if record.provider == "alpha"), "charged at its worst case"
    assert time.monotonic() - began < 20, "and no call of litellm's own time-outs"


@pytest.mark.parametrize(
    "says",
    [
        Says(401, error={"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}),
        Says(429, error={"message": "You exceeded your current quota", "code": "insufficient_quota"}),
    ],
    ids=["invalid key", "quota gone"],
)
def test_what_is_gone_for_good_is_quarantined_and_asked_no_more(loop: asyncio.Runner, says: Says) -> None:
    filled, world, requests = filled_by(loop, lambda *_: says)
    assert ends(filled) == {"openai/beta-small": 48}
    assert list(world.state.quarantined_providers("r")) == ["alpha"] and requests <= 2
    assert not any(record.cost for record in world.records if "Error" in (record.detail or "")), "a refusal is free"


def half(body: Body) -> str:
    text = right(body)
    return text[: len(text) // 2]


@pytest.mark.parametrize(
    ("wrong", "again"),
    [
        (lambda body: Says(text="", finish="length", usage=(300, 2000)), True),
        (lambda body: Says(text=half(body), finish="length"), True),
        (lambda body: Says(text=f"```json\n{right(body)}\n```"), False),
        (lambda body: Says(text=f"Sure! Here you go:\n\n{right(body)}\n\nEnjoy!"), False),
        (lambda body: Says(text='{"result": "ok", "count": 12}'), True),
        (lambda body: Says(text=right(body).replace("supplied", "amazing")), True),
    ],
    ids=["empty", "cut", "fenced", "prose", "out of schema", "marketing"],
)
def test_replies_give_what_is_whole_in_them_and_the_rest_is_asked_for_again(
    loop: asyncio.Runner, wrong: Callable[[Body], Says], again: bool
) -> None:
    filled, world, _ = filled_by(loop, lambda number, body: wrong(body) if number == 0 else Says(text=right(body)))
    assert len(filled.texts) == 48
    assert ({text.round for text in filled.texts.values()} == {0, 1}) is again
    asked = [item for record in world.records if record.round for item in record.items]
    first_round = {item for item, text in filled.texts.items() if text.round == 0}
    assert not first_round & set(asked), "nothing that was there is asked for twice"


def test_a_reply_that_repeats_the_prompt_is_turned_down_for_it(loop: asyncio.Runner) -> None:
    def echoes(_: int, body: Body) -> Says:
        piece = body["messages"][0]["content"].partition("trade: ")[2][:90]
        told = json.loads(right(body))["items"]
        return Says(text=json.dumps([line | {"description": piece} for line in told]))

    filled, _, _ = filled_by(loop, echoes)
    assert set(filled.written) == {"openai/beta-small"}
    assert {rule for _, rule in filled.rejected} == {Rule.ECHO}


def test_numbers_of_the_mix_reach_the_vendor_as_numbers(loop: asyncio.Runner) -> None:
    sent: list[Body] = []

    def keeps(_: int, body: Body) -> Says:
        sent.append(body)
        return Says(text=right(body))

    filled_by(loop, keeps, extra_body={"temperature": 0.7, "nested": {"top_k": 20, "min_p": 1e-3}})
    assert sent and {json.dumps([body["temperature"], body["nested"]]) for body in sent} == {
        '[0.7, {"top_k": 20, "min_p": 0.001}]'
    }


# kill -9 ----------------------------------------------------------------------------------------

WORKER = """
import asyncio, json, sys, urllib.request
from text_runs import items_of, mix_of, reply
from docgen_core.blobs import open_blobs
from docgen_core.llm.breakers import Quarantine
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.guard import SpendBook
from docgen_core.llm.runner import CatalogueRunner
from docgen_core.state import open_state

folder, base, lanes, items, tokens = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])

def ask(request):
    body = json.dumps({"model": request.model, "messages": request.messages}).encode()
    asked = urllib.request.Request(base + "/v1", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        return reply(json.load(answer)["choices"][0]["message"]["content"])

async def call(provider, request):
    return await asyncio.to_thread(ask, request)

async def main():
    state, blobs = open_state("memory://killed"), open_blobs(folder)
    runner = CatalogueRunner(
        mix_of({"name": "alpha", "max_output_tokens": tokens}), build="v1", guard=SpendBook(state, "r"),
        cache=ReplyCache(blobs), quarantine=Quarantine(state, "r"), concurrency=lanes,
        on_call=lambda record: None, call=call,
    )
    return await runner.run(items_of(items))

from docgen_core.state.contract import RunKind, RunMarker
open_state("memory://killed").create_run(RunMarker("r", RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
print(len(asyncio.run(main()).texts))
"""


def test_workers_that_are_killed_pay_again_for_the_calls_under_way_at_most(tmp_path: Path) -> None:
    items = 60

    def slowly(_: int, body: Body) -> Says:
        time.sleep(0.02)
        return Says(text=right(body))

    with FakeProvider(slowly) as server:
        command = [sys.executable, "-c", WORKER, str(tmp_path), server.base, *map(str, (LANES, items, ONE_BY_ONE))]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "servers")}
        for kill in range(1, KILLS + 1):
            worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
            while len(server.requests) < kill * items // (KILLS + 1):
                assert worker.poll() is None, "it ended before it could be killed"
                time.sleep(0.005)
            worker.send_signal(signal.SIGKILL)
            worker.communicate()
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        assert int(done.stdout) == items
        assert items <= len(server.requests) <= items + KILLS * LANES
