"""Calling a model over HTTP: one request a call, every failure told for what it is, and no key anywhere."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from fake_provider import FakeProvider, Says

from docgen_core.llm import calls
from docgen_core.llm.calls import REPLY_CHARACTERS, CallFailed, Failure, call, read_retry_after
from docgen_core.llm.mix import Price, Provider, load_mix
from docgen_core.llm.replies import read_reply
from docgen_core.llm.requests import Answer, Message, request_for

KEY = "sk-docgen-0123456789abcdef"
PRICE = Price(input_per_million=Decimal("0.14"), output_per_million=Decimal("0.28"))
ASKED: list[Message] = [{"role": "user", "content": "Name an item of a garage"}]
SCHEMA = {"type": "object", "properties": {"items": {"type": "array"}}}


@pytest.fixture(autouse=True)
def key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALPHA_KEY", KEY)


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    """One event loop for all calls here, since litellm keeps connections by loop."""
    with asyncio.Runner() as runner:
        yield runner
        runner.run(calls.close())


def provider_at(server: FakeProvider, **other: object) -> Provider:
    told: dict[str, object] = {
        "name": "alpha",
        "model": "openai/alpha-small",
        "weight": 1,
        "api_base": f"{server.base}/v1",
        "api_key_env": "ALPHA_KEY",
        "max_output_tokens": 50,
        "timeout_seconds": 20,
        "price": PRICE,
    }
    return Provider.model_validate(told | other)


def answered(loop: asyncio.Runner, says: Says, **other: object) -> tuple[Answer, FakeProvider]:
    with FakeProvider(says) as server:
        provider = provider_at(server, **other)
        return loop.run(call(provider, request_for(provider, ASKED, schema=SCHEMA))), server


def failed(loop: asyncio.Runner, says: Says, **other: object) -> CallFailed:
    with FakeProvider(says) as server:
        provider = provider_at(server, **other)
        with pytest.raises(CallFailed) as failure:
            loop.run(call(provider, request_for(provider, ASKED)))
        assert len(server.requests) == 1, "one attempt is one request"
        return failure.value


def test_a_call_is_one_request_and_is_priced_by_the_mix_whatever_the_vendor_calls_its_model(
    loop: asyncio.Runner,
) -> None:
    answer, server = answered(loop, Says())
    (body,) = server.requests
    assert (body["model"], body["max_tokens"], body["messages"]) == ("alpha-small", 50, ASKED)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert [item["name"] for item in read_reply(answer.text).items] == ["Oil filter"]
    assert answer.model == "alpha-small-0901"
    assert answer.input_tokens is not None and answer.output_tokens is not None
    assert provider_at(server).used(answer.input_tokens, answer.output_tokens).cost == 300 * 140 + 200 * 280


def test_an_empty_or_cut_reply_is_an_answer_that_was_paid_for(loop: asyncio.Runner) -> None:
    answer, _ = answered(loop, Says(text="", finish="length", usage=(300, 2000)))
    assert (answer.text, answer.cut, answer.output_tokens) == ("", True, 2000)


def test_usage_that_the_vendor_does_not_tell_is_unknown_and_not_zero(loop: asyncio.Runner) -> None:
    answer, _ = answered(loop, Says(usage=None))
    assert (answer.input_tokens, answer.output_tokens) == (None, None)


@pytest.mark.parametrize("usage", [(300, -7), (-5, 200), (10**30, 200), (300, 10**18)])
def test_usage_that_cannot_be_is_as_good_as_none(loop: asyncio.Runner, usage: tuple[int, int]) -> None:
    answer, _ = answered(loop, Says(usage=usage))
    assert (answer.input_tokens, answer.output_tokens) == (None, None)


def test_a_reply_is_kept_as_far_as_it_can_be_stored_and_read(loop: asyncio.Runner) -> None:
    answer, _ = answered(loop, Says(text="half \ud800 of a pair"))
    assert answer.text == "half \ufffd of a pair"
    endless, _ = answered(loop, Says(text="x" * (REPLY_CHARACTERS + 1)))
    assert (len(endless.text), endless.cut) == (REPLY_CHARACTERS, True)


@pytest.mark.parametrize(
    ("says", "failure", "billed"),
    [
        (Says(429), Failure.TRANSIENT, False),
        (Says(500), Failure.TRANSIENT, False),
        (Says(503), Failure.TRANSIENT, False),
        (Says(529), Failure.TRANSIENT, False),
        (Says(breaks=True), Failure.TRANSIENT, True),
        (Says(raw=b"<html>proxy</html>"), Failure.TRANSIENT, True),
        (Says(401, error={"message": f"Incorrect API key provided: {KEY}"}), Failure.QUARANTINE, False),
        (Says(402), Failure.QUARANTINE, False),
        (Says(403), Failure.QUARANTINE, False),
        (Says(404), Failure.QUARANTINE, False),
        (Says(400, error={"message": "no", "code": "model_not_found"}), Failure.QUARANTINE, False),
        (Says(429, error={"message": "no", "code": "insufficient_quota"}), Failure.QUARANTINE, False),
        (Says(400, error={"message": "Your credit balance is too low"}), Failure.QUARANTINE, False),
        (Says(400), Failure.ITEM, False),
        (Says(422), Failure.ITEM, False),
    ],
)
def test_a_failure_says_what_to_do_and_whether_it_may_be_billed(
    loop: asyncio.Runner, caplog: pytest.LogCaptureFixture, says: Says, failure: Failure, billed: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    error = failed(loop, says)
    assert (error.failure, error.may_be_billed) == (failure, billed)
    assert "\n" not in str(error) and len(str(error)) <= calls.REASON_CHARACTERS
    assert KEY not in str(error) + repr(error) + caplog.text
    assert error.__cause__ is None and error.__suppress_context__


@pytest.mark.parametrize("says", [Says(hangs=True)])
def test_a_provider_that_hangs_holds_nobody_longer_than_its_time_out(loop: asyncio.Runner, says: Says) -> None:
    error = failed(loop, says, timeout_seconds=0.3)
    assert (error.failure, error.may_be_billed, error.timed_out) == (Failure.TRANSIENT, True, True)


def test_a_time_out_that_litellm_finds_first_is_one_too(loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CLOSING_SECONDS", -19.7)
    error = failed(loop, Says(hangs=True))
    assert (error.failure, error.may_be_billed, error.timed_out) == (Failure.TRANSIENT, True, True)
    assert "no answer within" not in str(error)


def test_a_server_that_is_not_there_bills_nothing(loop: asyncio.Runner) -> None:
    with FakeProvider() as gone:
        pass
    provider = provider_at(gone)
    with pytest.raises(CallFailed) as failure:
        loop.run(call(provider, request_for(provider, ASKED)))
    assert (failure.value.failure, failure.value.may_be_billed) == (Failure.TRANSIENT, False)


def test_a_vendors_wish_to_wait_is_heard(loop: asyncio.Runner) -> None:
    assert failed(loop, Says(429, headers={"retry-after": "7"})).retry_after == 7
    assert failed(loop, Says(429)).retry_after is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "99999999"}, calls.RETRY_AFTER_LIMIT),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "-5"}, 0),
    ],
)
def test_retry_after_is_read_as_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, now=datetime(2026, 11, 29, 12, tzinfo=UTC)) == seconds


def test_a_server_without_a_key_gets_none_of_another_vendor(
    loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, server = answered(loop, Says(), api_key_env=None)
    assert KEY not in json.dumps(server.headers)


@pytest.mark.parametrize("name", ["luna", "haiku", "mistral-small", "deepseek"])
def test_presets_switch_reasoning_off_in_what_is_really_sent(
    loop: asyncio.Runner, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    told = next(p for preset in ("cheap", "balanced") for p in load_mix(preset).providers if p.name == name)
    assert told.api_key_env is not None
    monkeypatch.setenv(told.api_key_env, KEY)
    with FakeProvider() as server:
        base = server.base if told.model.startswith("anthropic/") else f"{server.base}/v1"
        provider = told.model_copy(update={"api_base": base})
        loop.run(call(provider, request_for(provider, ASKED)))
    (body,) = server.requests
    assert body.get("reasoning_effort") == "none" or body.get("thinking") == {"type": "disabled"}
    assert "extra_body" not in body


def test_importing_the_layer_loads_no_litellm_and_the_first_call_looks_up_no_host() -> None:
    code = """
import socket, sys
from docgen_core.llm import batch_clients, batches, cache, calls, gates, guard, items, mix, replies, requests, routing
assert not {"litellm", "openai", "anthropic", "yaml"} & set(sys.modules), "loaded too early"
looked_up = []
real = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **named: looked_up.append(host) or real(host, *rest, **named)
assert calls.library() is sys.modules["litellm"]
assert looked_up == [], looked_up
"""
    subprocess.run([sys.executable, "-c", code], check=True)
