"""Models that do whatever they like: the run ends, money and records add up, and nothing is left open."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from text_runs import World, asked_for, described, items_of, mix_of, reply
from virtual_time import VirtualLoop

from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.items import CallOutcome, Filled
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request

FAILING = ("429", "wish", "500", "billed", "hang", "dead", "refuses")
MOODS = ("well", "slow", *FAILING, "empty", "cut", "prose", "praise", "same")
"""What a model may do with a call."""


class Moody:
    """Does one of its moods with each call, as chance has it."""

    def __init__(self, seed: int, moods: list[str]) -> None:
        self.chance, self.moods = random.Random(seed), moods

    async def __call__(self, provider: Provider, request: Request) -> Answer:
        mood = self.chance.choice(self.moods)
        await asyncio.sleep(self.chance.uniform(0.1, 30 if mood == "slow" else 2))
        text = described(request.messages)
        tokens = (self.chance.randrange(1, 600), self.chance.randrange(0, 2000))
        match mood:
            case "429" | "500":
                raise CallFailed(Failure.TRANSIENT, mood)
            case "wish":
                raise CallFailed(Failure.TRANSIENT, mood, retry_after=self.chance.choice([0.0, 3.0, 40.0, 3600.0]))
            case "billed":
                raise CallFailed(Failure.TRANSIENT, mood, may_be_billed=True)
            case "hang":
                await asyncio.sleep(provider.timeout_seconds)
                raise CallFailed(Failure.TRANSIENT, mood, may_be_billed=True, timed_out=True)
            case "dead":
                raise CallFailed(Failure.QUARANTINE, mood)
            case "refuses":
                raise CallFailed(Failure.ITEM, mood)
            case "empty":
                return reply("", tokens=self.chance.choice([tokens, None]))
            case "cut":
                return reply(text[: self.chance.randrange(len(text))], cut=True, tokens=tokens)
            case "prose":
                return reply(f"Sure!\n```json\n{text}\n```", tokens=tokens)
            case "praise":
                return reply(text.replace("fits", "is amazing"), tokens=tokens)
            case "same":
                lines = asked_for(request.messages)
                return reply(json.dumps([{"id": line["id"], "description": "A spare part."} for line in lines]))
        return reply(text, tokens=tokens)


@given(
    seed=st.integers(0, 10**6),
    alpha=st.lists(st.sampled_from(MOODS), min_size=1, max_size=4),
    beta=st.lists(st.sampled_from(MOODS), min_size=1, max_size=4),
    concurrency=st.integers(1, 9),
    budget=st.sampled_from([None, 0, 700_000, 3_000_000, 10**9]),
    cancelled_after=st.none() | st.floats(0, 90),
)
@settings(max_examples=1_000 if os.environ.get("DOCGEN_PROVE") == "1" else 25, deadline=None)
def test_whatever_models_do(
    seed: int,
    alpha: list[str],
    beta: list[str],
    concurrency: int,
    budget: int | None,
    cancelled_after: float | None,
) -> None:
    mix = mix_of(
        {"name": "alpha", "weight": 2}, {"name": "beta"}, fallback=[("beta", 2), ("alpha", 1), ("procedural", 1)]
    )
    world = World(mix, budget=budget, alpha=Moody(seed, alpha), beta=Moody(seed + 1, beta))
    items = items_of(90, companies=3)

    async def units() -> None:
        runner = world.runner(concurrency=concurrency)
        running = asyncio.ensure_future(runner.run(items[:60]))
        if cancelled_after is not None:
            await asyncio.wait([running], timeout=cancelled_after)
            running.cancel()
            await asyncio.wait([running])
        else:
            all_ended(await running, 60)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing goes on after a run"
        all_ended(await runner.run(items), 90)

    with asyncio.Runner(loop_factory=VirtualLoop) as loop:
        loop.run(units())
    booked = world.booked()
    assert budget is None or booked <= budget
    assert sum(record.cost or 0 for record in world.records) == booked
    assert len([record for record in world.records if not record.cached]) == world.calls.total()
    assert world.most_at_once[""] <= concurrency
    answered = Counter(record.request_digest for record in world.records if record.outcome is not CallOutcome.FAILED)
    paid = Counter(
        record.request_digest
        for record in world.records
        if record.outcome is not CallOutcome.FAILED and not record.cached
    )
    assert answered.keys() == paid.keys() and max(paid.values(), default=1) == 1, "no answer is paid for twice"


def all_ended(filled: Filled, count: int) -> None:
    assert len(filled.texts) + len(filled.unfilled) == count
    assert not filled.texts.keys() & filled.unfilled.keys()
