"""Answers that were paid for are kept: nothing is asked twice, and all workers see one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.requests import Answer, Request

OF_OTHER_TYPES = b'{"format":1,"text":5,"cut":false,"input_tokens":1,"output_tokens":2,"model":"m","request_id":"r"}'
REQUEST = Request("openai/m", None, ({"role": "user", "content": "Name it"},), 100, {"effort": "none"})


def answer(text: str) -> Answer:
    return Answer(text, False, 10, 20, "m-0901", "id-1")


class Vendor:
    """Answers with the number of the call."""

    def __init__(self, then: Callable[[], None] = lambda: None) -> None:
        self.calls, self.then = 0, then

    async def __call__(self) -> Answer:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(0)
        self.then()
        return answer(f"text {number}")


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return open_blobs(str(tmp_path / "blobs"))


def test_a_second_process_pays_nothing_and_reads_the_same(blobs: BlobStore) -> None:
    vendor = Vendor()
    first = asyncio.run(ReplyCache(blobs).fetch(REQUEST, vendor))
    again = ReplyCache(blobs)
    second = asyncio.run(again.fetch(REQUEST, vendor))
    assert (vendor.calls, again.hits) == (1, 1)
    assert (first.paid, second.paid) == (answer("text 1"), None)
    assert first.answer == second.answer == answer("text 1")


def test_twins_in_one_process_make_one_call(blobs: BlobStore) -> None:
    vendor, cache = Vendor(), ReplyCache(blobs)

    async def run() -> list[bool]:
        fetched = await asyncio.gather(*(cache.fetch(REQUEST, vendor) for _ in range(8)))
        return [one.paid is not None for one in fetched]

    assert sorted(asyncio.run(run())) == [False] * 7 + [True]
    assert vendor.calls == 1


def test_whoever_loses_the_race_reads_the_winner_and_still_knows_what_it_paid(blobs: BlobStore) -> None:
    winner = ReplyCache(blobs)
    loser = Vendor(lambda: blobs.put(winner.key(REQUEST), blobs.get("theirs"), create_only=True))
    asyncio.run(winner.fetch(REQUEST, Vendor()))
    blobs.put("theirs", blobs.get(winner.key(REQUEST)).replace(b"text 1", b"theirs"))
    blobs.delete(winner.key(REQUEST))
    fetched = asyncio.run(ReplyCache(blobs).fetch(REQUEST, loser))
    assert (fetched.answer, fetched.paid) == (answer("theirs"), answer("text 1"))


def test_a_failed_call_stores_nothing_and_its_twins_try_themselves(blobs: BlobStore) -> None:
    calls: list[str] = []

    def failing(name: str) -> Callable[[], Awaitable[Answer]]:
        async def call() -> Answer:
            calls.append(name)
            await asyncio.sleep(0)
            if len(calls) < 3:
                raise OSError(name)
            return answer("at last")

        return call

    async def run() -> list[object]:
        cache = ReplyCache(blobs)
        return await asyncio.gather(*(cache.fetch(REQUEST, failing(name)) for name in "abcd"), return_exceptions=True)

    results = asyncio.run(run())
    assert [isinstance(one, OSError) for one in results] == [True, True, False, False]
    assert len(calls) == 3


def test_a_cancelled_call_leaves_the_way_free(blobs: BlobStore) -> None:
    cache = ReplyCache(blobs)

    async def run() -> Answer:
        hangs = asyncio.Event()

        async def hang() -> Answer:
            await hangs.wait()
            raise AssertionError

        task = asyncio.create_task(cache.fetch(REQUEST, hang))
        while not cache._under_way:
            await asyncio.sleep(0)
        task.cancel()
        return (await cache.fetch(REQUEST, Vendor())).answer

    assert asyncio.run(run()) == answer("text 1")


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format":2}', b'{"format":1,"text":"x"}', b"\xff", b"[" * 100_000, OF_OTHER_TYPES]
)
def test_a_damaged_answer_is_asked_for_again_and_replaced(blobs: BlobStore, damage: bytes) -> None:
    cache = ReplyCache(blobs)
    blobs.put(cache.key(REQUEST), damage)
    assert asyncio.run(cache.fetch(REQUEST, Vendor())).paid == answer("text 1")
    assert asyncio.run(cache.fetch(REQUEST, Vendor())).paid is None


def test_what_decides_a_reply_decides_its_key() -> None:
    others = [
        replace(REQUEST, model="openai/n"),
        replace(REQUEST, api_base="http://127.0.0.1:1"),
        replace(REQUEST, messages=({"role": "user", "content": "Name it!"},)),
        replace(REQUEST, max_output_tokens=101),
        replace(REQUEST, extra_body={"effort": "low"}),
        replace(REQUEST, extra_body={"effort": "none", "temperature": Decimal("0.5")}),
        replace(REQUEST, schema={"type": "object"}),
        replace(REQUEST, round=1),
    ]
    assert len({request.digest for request in [REQUEST, *others]}) == 9
    assert REQUEST.digest == replace(REQUEST, extra_body=dict(REQUEST.extra_body)).digest


def test_tokens_that_go_in_are_counted_rather_too_high() -> None:
    english = replace(REQUEST, messages=({"role": "user", "content": "word " * 300},))
    japanese = replace(REQUEST, messages=({"role": "user", "content": "軸受" * 300},))
    assert 300 < english.input_tokens < 800
    assert japanese.input_tokens >= 1200
    assert replace(REQUEST, schema={"type": "object"}).input_tokens > REQUEST.input_tokens
