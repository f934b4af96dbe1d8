"""Batches over HTTP, at every vendor there is one client for: the same request, the same reply, and no key anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal

import pytest
from fake_batches import ERRORED, EXPIRED, MISSING, FakeBatches
from fake_provider import Body, Says

from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import UsageError
from docgen_core.llm import batch_clients, calls
from docgen_core.llm.batch_clients import BatchStatus, client_for
from docgen_core.llm.batches import BatchDesk, BatchPending
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.mix import BATCH_VENDORS, Price, Provider
from docgen_core.llm.requests import Request, request_for
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

KEY = "sk-docgen-0123456789abcdef"
MODELS = {
    "openai": ("openai/gpt-6-luna", "/v1", {"reasoning_effort": "none"}),
    "azure": ("azure/writer", "", {}),
    "mistral": ("mistral/mistral-small-2603", "/v1", {"reasoning_effort": "none"}),
    "anthropic": ("anthropic/claude-haiku-5-5", "", {"thinking": {"type": "disabled"}}),
}
SCHEMA = {"type": "object", "properties": {"items": {"type": "array"}}}

vendors = pytest.mark.parametrize("vendor", MODELS)


@pytest.fixture(autouse=True)
def key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPHA_KEY", KEY)
    monkeypatch.setenv("AZURE_API_VERSION", "2025-03-01-preview")


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner
        runner.run(calls.close())


def provider_at(server: FakeBatches, vendor: str) -> Provider:
    model, path, extra = MODELS[vendor]
    return Provider(
        name="alpha",
        model=model,
        weight=Decimal(1),
        api_base=server.base + path,
        api_key_env="ALPHA_KEY",
        extra_body=extra,
        max_output_tokens=50,
        timeout_seconds=20,
        batch=True,
        price=Price(input_per_million=Decimal(1), output_per_million=Decimal(2)),
    )


def asked(provider: Provider, count: int) -> dict[str, Request]:
    requests = [
        request_for(
            provider,
            [{"role": "system", "content": "Name items"}, {"role": "user", "content": f"Number {n}\u2028of the list"}],
            schema=SCHEMA,
        )
        for n in range(count)
    ]
    return {request.digest: request for request in requests}


def test_each_vendor_of_the_mix_has_a_client_here() -> None:
    assert set(MODELS) == set(BATCH_VENDORS)


@vendors
def test_a_line_asks_for_the_very_same_as_the_call_in_real_time(loop: asyncio.Runner, vendor: str) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, vendor)
        requests = asked(provider, 2)
        batch = loop.run(client_for(provider).submit(provider, requests, "key-1"))
        for ours, request in requests.items():
            loop.run(calls.call(provider, request))
            assert server.batches[batch].lines[ours] == server.requests[-1]
        assert KEY not in str(server.batches[batch])


@vendors
def test_lines_are_joined_by_our_ids_whatever_their_order_and_each_failure_says_why(
    loop: asyncio.Runner, vendor: str
) -> None:
    outcomes: list[Says | str] = [
        Says(text='["é\u2028"]'), ERRORED, EXPIRED, MISSING, Says(text="[", finish="length"), Says(usage=(7, 9))
    ]  # fmt: skip
    with FakeBatches(lines=lambda number, body: outcomes[number], slow_polls=1) as server:
        provider = provider_at(server, vendor)
        client, ours = client_for(provider), asked(provider, len(outcomes))
        batch = loop.run(client.submit(provider, ours, "key-1"))
        assert not loop.run(client.status(provider, batch)).ended
        status = loop.run(client.status(provider, batch))
        assert status.ended
        lines = loop.run(client.collect(provider, status))
    first, errored, expired, missing, cut, last = map(lines.get, ours)
    assert first and first.answer and (first.answer.text, first.answer.cut) == ('["é\u2028"]', False)
    assert first.answer.model == f"{provider.model.partition('/')[2]}-0901" and first.answer.request_id
    assert errored and errored.answer is None and errored.detail and "400" in errored.detail
    assert expired and expired.answer is None and expired.detail
    assert missing is None
    assert cut and cut.answer and cut.answer.cut
    assert last and last.answer and (last.answer.input_tokens, last.answer.output_tokens) == (7, 9)


@vendors
def test_a_lost_batch_is_found_by_its_key_where_the_vendor_keeps_one(loop: asyncio.Runner, vendor: str) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, vendor)
        client = client_for(provider)
        batches = [loop.run(client.submit(provider, asked(provider, 1), f"key-{n}")) for n in range(3)]
        found = [loop.run(client.find(provider, f"key-{n}")) for n in range(4)]
    pages = {"openai": [*batches, None], "azure": [None, *batches[1:], None]}
    assert found == pages.get(vendor, [None] * 4), "azure's older pages are out of litellm's reach"
    assert client.finds == (vendor == "openai")


@pytest.mark.parametrize("vendor", ["openai", "mistral", "anthropic"])
@pytest.mark.parametrize(
    ("bad", "failure", "may_be_there"),
    [
        (Says(429, headers={"retry-after": "7"}), Failure.TRANSIENT, False),
        (Says(529), Failure.TRANSIENT, False),
        (Says(500), Failure.TRANSIENT, True),
        (Says(breaks=True), Failure.TRANSIENT, True),
        (Says(400), Failure.ITEM, False),
        (Says(401, error={"message": f"no such key: {KEY}", "type": "error"}), Failure.QUARANTINE, False),
    ],
)
def test_a_batch_that_is_not_taken_says_whether_it_may_be_there_all_the_same(
    loop: asyncio.Runner, vendor: str, bad: Says, failure: Failure, may_be_there: bool
) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, vendor)
        server.bad_creations = [bad]
        with pytest.raises(CallFailed) as failed:
            loop.run(client_for(provider).submit(provider, asked(provider, 1), "key-1"))
        assert (failed.value.failure, failed.value.may_be_billed) == (failure, may_be_there)
        assert failed.value.retry_after == (7.0 if bad.headers else None)
        assert server.submissions == (1 if bad.breaks else 0), "one attempt is one request"
        assert KEY not in str(failed.value)


@vendors
def test_a_look_that_fails_says_when_to_look_again_and_whether_the_batch_is_gone(
    loop: asyncio.Runner, vendor: str
) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, vendor)
        client = client_for(provider)
        batch = loop.run(client.submit(provider, asked(provider, 1), "key-1"))
        server.bad_polls = [Says(429, headers={"retry-after": "7"})]
        with pytest.raises(CallFailed) as busy:
            loop.run(client.status(provider, batch))
        with pytest.raises(CallFailed) as gone:
            loop.run(client.status(provider, "batch-99"))
    assert (busy.value.failure, busy.value.status, busy.value.retry_after) == (Failure.TRANSIENT, 429, 7.0)
    assert (gone.value.status, gone.value.may_be_billed) == (404, False)


@pytest.mark.parametrize(("ends", "status"), [("failed", "failed"), ("expired", "expired")])
@pytest.mark.parametrize("vendor", ["openai", "mistral"])
def test_a_batch_that_failed_as_a_whole_says_why(loop: asyncio.Runner, vendor: str, ends: str, status: str) -> None:
    with FakeBatches(ends=ends, lines=lambda number, body: EXPIRED) as server:
        provider = provider_at(server, vendor)
        client = client_for(provider)
        found = loop.run(client.status(provider, loop.run(client.submit(provider, asked(provider, 1), "key-1"))))
        lines = loop.run(client.collect(provider, found))
    assert found.ended and found.detail and status in found.detail
    assert {line.answer for line in lines.values()} <= {None}
    if (vendor, ends) == ("openai", "failed"):
        assert "the file is not what we want" in found.detail


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_a_desk_works_with_the_vendors_own_libraries(loop: asyncio.Runner, vendor: str) -> None:
    state = SegmentStore(MemoryPrimitives(), Settings(), uri="test")
    state.create_run(RunMarker("r1", RunKind.CATALOGUE, "catalogue/r1", {}, "0" * 64, 9, 1, 9))
    state.set_budget("r1", 10**9)
    blobs = MemoryBlobStore()
    cache = ReplyCache(blobs)
    with FakeBatches() as server:
        provider = provider_at(server, vendor)
        requests = list(asked(provider, 2).values())
        with pytest.raises(BatchPending):
            loop.run(BatchDesk(blobs, state, "r1", 0, "first", cache).answers(provider, requests))
        lines = loop.run(BatchDesk(blobs, state, "r1", 0, "second", cache).answers(provider, requests))
        assert [lines[request.digest].answer is not None for request in requests] == [True, True]
        assert state.spend("r1").total.cost == server.billed > 0
        assert server.submissions == 1


def test_results_that_cannot_be_read_are_no_results(loop: asyncio.Runner) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, "openai")
        server._files["file-1"] = b'{"custom_id":"a","response":{"status_code":200,"body":{}}}\n{"custom_id":"b",'
        with pytest.raises(CallFailed) as failed:
            loop.run(client_for(provider).collect(provider, BatchStatus("batch-1", True, ("file-1",))))
        assert failed.value.failure is Failure.TRANSIENT


def test_a_vendor_that_is_done_before_it_names_its_results_is_not_done(loop: asyncio.Runner) -> None:
    class Early(FakeBatches):
        def _openai(self, batch: object) -> Body:
            told = super()._openai(batch)  # type: ignore[arg-type]
            told["request_counts"]["completed"] = 1
            return told if self.polls > 1 else {**told, "output_file_id": None}

    with Early() as server:
        provider = provider_at(server, "openai")
        client = client_for(provider)
        batch = loop.run(client.submit(provider, asked(provider, 1), "key-1"))
        assert [loop.run(client.status(provider, batch)).ended for _ in range(2)] == [False, True]


def test_a_vendor_that_does_not_answer_holds_nobody(loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_clients, "REQUEST_SECONDS", 0.05)
    with FakeBatches() as server:
        provider = provider_at(server, "openai")
        server._lock.acquire()  # nothing is answered
        try:
            with pytest.raises(CallFailed) as failed:
                loop.run(client_for(provider).submit(provider, asked(provider, 1), "key-1"))
        finally:
            server._lock.release()
        assert not failed.value.may_be_billed, "a file is no batch yet"


def test_without_a_key_nothing_is_asked(loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBatches() as server:
        provider = provider_at(server, "anthropic")
        monkeypatch.delenv("ALPHA_KEY")
        with pytest.raises(UsageError, match="ALPHA_KEY"):
            loop.run(client_for(provider).status(provider, "batch-1"))
