"""Who is asked for what, and what comes of it: shares, storms, dead providers, money, rounds. In virtual time."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from text_runs import World, asked_for, described, ends, fails, hangs, items_of, mix_of, reply, unusable_cost, writes
from virtual_time import VirtualLoop

from docgen_core.errors import UsageError
from docgen_core.llm.batches import Batches, BatchLine, BatchPending
from docgen_core.llm.breakers import UNUSABLE_STREAK
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.gates import Rule
from docgen_core.llm.guard import DistributedBudgetGuard
from docgen_core.llm.items import CallOutcome, Filled, Unfilled
from docgen_core.llm.job import MAX_ROUNDS
from docgen_core.llm.lanes import PATIENCE_SECONDS
from docgen_core.llm.languages import LANGUAGES
from docgen_core.llm.mix import Provider, ProviderMix
from docgen_core.llm.prompts import CHUNK_ITEMS
from docgen_core.llm.requests import Answer, Request
from docgen_core.llm.routing import route
from docgen_core.llm.runner import CatalogueRunner

T = TypeVar("T")

TWO = ({"name": "alpha"}, {"name": "beta"})


def in_virtual_time(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """What comes of it, and the seconds it would have taken."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        began = runner.get_loop().time()
        return runner.run(work), runner.get_loop().time() - began


# Shares and bounds ------------------------------------------------------------------------------


def test_every_provider_writes_its_share_and_no_more_calls_are_made_at_once_than_may_be() -> None:
    shares = {"alpha": 50, "beta": 30, "gamma": 20}
    world = World(mix_of(*({"name": name, "weight": weight} for name, weight in shares.items())))
    filled, _ = in_virtual_time(world.fill(items_of(900), concurrency=5))
    assert filled.unfilled == {} and len(filled.texts) == 900
    for name, weight in shares.items():
        assert abs(filled.written[f"openai/{name}-small"] / 900 - weight / 100) < 0.05
    assert world.most_at_once[""] == 5
    assert sum(record.cost or 0 for record in world.records) == world.booked()
    assert sum(record.accepted for record in world.records) == 900


def test_a_worker_that_may_make_no_call_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one call at once"):
        in_virtual_time(World(mix_of(*TWO)).fill(items_of(1), concurrency=0))


def test_providers_take_turns_so_that_none_keeps_the_others_waiting() -> None:
    world = World(mix_of({"name": "alpha", "weight": 9}, {"name": "beta"}))
    in_virtual_time(world.fill(items_of(600), concurrency=4))
    assert world.most_at_once["beta"] == 2


def test_the_same_items_with_the_same_cache_cost_nothing_and_give_the_same_texts() -> None:
    world = World(mix_of(*TWO))
    first, _ = in_virtual_time(world.fill(items_of(300)))
    calls = world.calls.total()
    world.new_state()
    again, _ = in_virtual_time(world.fill(items_of(300), concurrency=3))
    assert world.calls.total() == calls
    assert (again.texts, again.unfilled, again.rejected) == (first.texts, first.unfilled, first.rejected)
    assert list(again.texts) == list(first.texts)
    assert all(record.cached and record.cost == 0 for record in world.records[calls:])


def test_texts_do_not_depend_on_who_answers_first() -> None:
    async def in_any_order(provider: Provider, request: Request) -> Answer:
        await asyncio.sleep(random.random())
        lines = asked_for(request.messages)
        # Every third text is one that others of the company have too.
        said = [f"A part of size {int(line['name'].split()[2]) // 12} for the workshop." for line in lines]
        return reply(
            json.dumps([{"id": line["id"], "description": text} for line, text in zip(lines, said, strict=True)])
        )

    found = []
    for _ in range(3):
        world = World(mix_of(*TWO), alpha=in_any_order, beta=in_any_order)
        filled, _ = in_virtual_time(world.fill(items_of(240, companies=4)))
        found.append((filled.texts, filled.unfilled, filled.rejected))
    assert found[0] == found[1] == found[2]
    assert found[0][2].total() > 0, "some were turned down as duplicates"


# Failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("retry_after", [None, 5.0, 45.0])
def test_a_storm_of_429_for_a_minute_quarantines_nobody_and_all_items_get_their_models_text(
    retry_after: float | None,
) -> None:
    async def stormy(provider: Provider, request: Request) -> Answer:
        await asyncio.sleep(0.1)
        if asyncio.get_running_loop().time() < 1_060:
            raise CallFailed(Failure.TRANSIENT, "RateLimitError 429", retry_after=retry_after)
        return await writes(provider, request)

    world = World(mix_of(*TWO, fallback=[("procedural", 1)]), alpha=stormy, beta=stormy)
    calm = World(mix_of(*TWO))
    filled, seconds = in_virtual_time(world.fill(items_of(600)))
    assert ends(filled) == ends(in_virtual_time(calm.fill(items_of(600)))[0])
    assert world.state.quarantined_providers("r") == {}
    assert 60 < seconds < 160
    assert world.calls.total() < calm.calls.total() + 50, "nobody hammers on"
    assert world.booked() == calm.booked(), "a call that was refused costs nothing"


def test_a_hanging_provider_holds_nobody_longer_than_its_time_out() -> None:
    world = World(mix_of(*TWO, fallback=[("beta", 1)]), alpha=hangs)
    items = items_of(1_440)
    calm, calm_seconds = in_virtual_time(World(mix_of(*TWO)).fill(items))
    filled, seconds = in_virtual_time(world.fill(items, concurrency=16))
    assert ends(filled) == {"openai/beta-small": 1_440}
    assert calm.written["openai/alpha-small"] > 60 * 12 * 0.9, "some sixty chunks would have been its own"
    assert world.calls["alpha"] == 16, "what had not begun was given up with the first time-out"
    assert seconds <= 60 + 2 * calm_seconds
    charged = [record for record in world.records if record.outcome is CallOutcome.FAILED]
    worst = {world.mix.provider("alpha").worst_case(1).known_cost < (record.cost or 0) for record in charged}
    assert len(charged) == 16 and worst == {True}, "what may be billed is charged at its worst case"
    assert world.state.quarantined_providers("r") == {}


def test_a_hanging_provider_leaves_the_others_their_part_of_the_calls() -> None:
    world = World(mix_of(*TWO), alpha=hangs)
    beta_done: list[float] = []

    async def beta(provider: Provider, request: Request) -> Answer:
        answer = await writes(provider, request)
        beta_done.append(asyncio.get_running_loop().time() - 1_000)
        return answer

    world.models["beta"] = beta
    in_virtual_time(world.fill(items_of(960), concurrency=8))
    assert len(beta_done) > 35 and max(beta_done) < 15


def test_later_units_do_not_wait_for_a_hanging_provider_and_try_it_with_one_call_when_its_pause_is_over() -> None:
    world = World(mix_of(*TWO, fallback=[("beta", 1)]), alpha=hangs)

    async def units() -> list[tuple[int, float]]:
        runner, loop, told = world.runner(), asyncio.get_running_loop(), []
        for unit in range(3):
            if unit == 2:
                await asyncio.sleep(60)
            before, began = world.calls["alpha"], loop.time()
            items = [replace(item, id=f"{unit}-{item.id}") for item in items_of(300)]
            assert ends(await runner.run(items)) == {"openai/beta-small": 300}
            told.append((world.calls["alpha"] - before, loop.time() - began))
        return told

    ((first, _), (second, soon), (third, probed)), _ = in_virtual_time(units())
    assert (first, second, third) == (8, 0, 1)
    assert soon < 10 and 60 <= probed < 70


def test_a_provider_that_hung_gets_its_share_again_once_it_answers() -> None:
    async def recovers(provider: Provider, request: Request) -> Answer:
        return await (hangs if world.calls["alpha"] <= 8 else writes)(provider, request)

    world = World(mix_of(*TWO, fallback=[("beta", 1)]), alpha=recovers)

    async def units() -> list[Counter[str]]:
        runner = world.runner()
        first = await runner.run(items_of(300))
        await asyncio.sleep(60)
        return [ends(first), ends(await runner.run([replace(item, id=f"b-{item.id}") for item in items_of(300)]))]

    (first, second), _ = in_virtual_time(units())
    assert first == {"openai/beta-small": 300}
    assert abs(second["openai/alpha-small"] - 150) < 30


def test_one_call_that_hangs_costs_a_busy_provider_that_chunk_only() -> None:
    async def once(provider: Provider, request: Request) -> Answer:
        return await (hangs if world.calls["alpha"] == 1 else writes)(provider, request)

    world = World(mix_of({"name": "alpha", "weight": 30}, {"name": "beta"}, fallback=[("beta", 1)]), alpha=once)
    filled, seconds = in_virtual_time(world.fill(items_of(600)))
    assert filled.written["openai/beta-small"] < 60 and filled.unfilled == {}
    assert seconds < 70


@pytest.mark.parametrize("wish", [None, 3600.0])
def test_a_provider_that_only_fails_is_waited_for_so_long_and_then_its_share_goes_to_the_others(
    wish: float | None,
) -> None:
    world = World(mix_of(*TWO, fallback=[("beta", 1)]), alpha=fails(Failure.TRANSIENT, retry_after=wish))
    filled, seconds = in_virtual_time(world.fill(items_of(300)))
    assert ends(filled) == {"openai/beta-small": 300}
    assert seconds < (PATIENCE_SECONDS if wish is None else 10)
    assert world.state.quarantined_providers("r") == {}
    assert world.calls["alpha"] <= 20


def test_a_failure_long_ago_does_not_shorten_the_patience_with_a_new_one() -> None:
    async def fails_once_a_unit(provider: Provider, request: Request) -> Answer:
        if asyncio.get_running_loop().time() < next_well[0]:
            raise CallFailed(Failure.TRANSIENT, "RateLimitError 429")
        return await writes(provider, request)

    next_well = [float("inf")]
    world = World(mix_of({"name": "alpha"}), alpha=fails_once_a_unit)

    async def units() -> Counter[str]:
        runner, loop = world.runner(), asyncio.get_running_loop()
        cancelled = asyncio.ensure_future(runner.run(items_of(60)))
        await asyncio.sleep(5)
        cancelled.cancel()
        await asyncio.wait([cancelled])
        await asyncio.sleep(2 * PATIENCE_SECONDS)
        next_well[0] = loop.time() + 20
        return ends(await runner.run(items_of(60)))

    assert in_virtual_time(units())[0] == {"openai/alpha-small": 60}


def test_a_provider_that_has_failed_for_long_costs_later_units_one_call_each() -> None:
    world = World(mix_of(*TWO, fallback=[("beta", 1)]), alpha=fails(Failure.TRANSIENT))

    async def units() -> list[tuple[int, float]]:
        runner, loop, told = world.runner(), asyncio.get_running_loop(), []
        for unit in range(3):
            before, began = world.calls["alpha"], loop.time()
            items = [replace(item, id=f"{unit}-{item.id}") for item in items_of(120)]
            assert ends(await runner.run(items)) == {"openai/beta-small": 120}
            told.append((world.calls["alpha"] - before, loop.time() - began))
            await asyncio.sleep(60)
        return told

    (first, *later), _ = in_virtual_time(units())
    assert first[0] > 5 and all(calls == 1 and seconds < 10 for calls, seconds in later)


def test_a_dead_key_is_quarantined_once_for_all_workers_and_its_share_takes_the_fallback_pool() -> None:
    pool = [("beta", 60), ("procedural", 40)]
    world = World(
        mix_of({"name": "alpha", "weight": 3}, {"name": "beta"}, fallback=pool), alpha=fails(Failure.QUARANTINE)
    )
    filled, _ = in_virtual_time(world.fill(items_of(900)))
    told = ends(filled)
    assert world.state.quarantined_providers("r") == {"alpha": "refused"}
    assert 1 <= world.calls["alpha"] <= 8
    assert set(told) == {"openai/beta-small", "routed"}
    assert abs(told["routed"] / 900 - 0.75 * 0.4) < 0.05
    before = world.calls["alpha"]
    in_virtual_time(world.fill([replace(item, id=f"b-{item.id}") for item in items_of(100)]))
    assert world.calls["alpha"] == before, "a worker that starts later does not learn it again"


def test_calls_under_way_at_a_provider_that_is_quarantined_are_given_up_and_charged() -> None:
    async def slow_then_refused(provider: Provider, request: Request) -> Answer:
        if world.calls["alpha"] < 4:
            return await hangs(provider, request)
        return await fails(Failure.QUARANTINE)(provider, request)

    world = World(mix_of({"name": "alpha"}), alpha=slow_then_refused)
    filled, seconds = in_virtual_time(world.fill(items_of(200), concurrency=4))
    assert ends(filled) == {"unavailable": 200} and seconds < 1
    worst = [record.cost for record in world.records if record.detail == "given up while it was under way"]
    assert len(worst) == 3 and all(worst) and world.booked() == sum(cost or 0 for cost in worst)


@pytest.mark.parametrize("dead", [hangs, fails(Failure.QUARANTINE), fails(Failure.TRANSIENT), fails(Failure.ITEM)])
def test_with_every_provider_dead_all_items_end_with_a_reason(dead: Any) -> None:
    world = World(mix_of(*TWO, fallback=[("alpha", 1), ("beta", 1)]), alpha=dead, beta=dead)
    filled, seconds = in_virtual_time(world.fill(items_of(400)))
    assert filled.texts == {} and len(filled.unfilled) == 400
    assert set(filled.unfilled.values()) <= {Unfilled.UNAVAILABLE, Unfilled.REJECTED}
    assert seconds <= PATIENCE_SECONDS * 2
    world.booked()


def test_a_request_that_is_refused_for_itself_is_asked_in_other_words() -> None:
    async def picky(provider: Provider, request: Request) -> Answer:
        if len(asked_for(request.messages)) > 6:
            raise CallFailed(Failure.ITEM, "BadRequestError 400")
        return await writes(provider, request)

    world = World(mix_of({"name": "alpha"}), alpha=picky)
    filled, _ = in_virtual_time(world.fill(items_of(48)))
    assert len(filled.texts) == 48 and {text.round for text in filled.texts.values()} == {1}


def test_a_provider_that_refuses_every_request_is_asked_no_more_after_a_streak() -> None:
    world = World(mix_of({"name": "alpha"}), alpha=fails(Failure.ITEM))
    filled, _ = in_virtual_time(world.fill(items_of(600), concurrency=1))
    assert world.calls["alpha"] == UNUSABLE_STREAK
    assert len(filled.unfilled) == 600


def test_what_is_wrong_with_this_machine_ends_the_run_and_not_the_provider() -> None:
    async def no_key(provider: Provider, request: Request) -> Answer:
        raise UsageError("provider 'alpha' needs its key in the environment variable ALPHA_KEY")

    world = World(mix_of(*TWO), alpha=no_key)
    with pytest.raises(UsageError, match="ALPHA_KEY"):
        in_virtual_time(world.fill(items_of(300)))
    assert world.state.quarantined_providers("r") == {}
    assert world.booked() == sum(record.cost or 0 for record in world.records)


# Replies ----------------------------------------------------------------------------------------


async def empty(provider: Provider, request: Request) -> Answer:
    return reply("", cut=True, tokens=(300, 2000))


def test_case_13_empty_replies_are_booked_and_capped_and_end_the_model() -> None:
    world = World(mix_of({"name": "alpha"}), alpha=empty)
    first, _ = in_virtual_time(world.fill(items_of(100, language="tr"), concurrency=1))
    assert world.calls["alpha"] == 17 and world.most_at_once[""] == 1
    assert len(first.unfilled) == 100 and first.texts == {}
    assert unusable_cost(world.records) == (17, 17 * 602_000)
    assert world.booked() == 17 * 602_000
    assert world.state.quarantined_providers("r") == {
        "alpha": "17 replies without a usable text cost $0.010234, the cap is $0.010000"
    }
    items = [replace(item, id=f"later-{item.id}") for item in items_of(100)]
    later, _ = in_virtual_time(world.fill(items, concurrency=1))
    assert world.calls["alpha"] == 17
    assert ends(later) == {"unavailable": 100}


def test_case_13_again_with_the_same_cache_asks_for_nothing() -> None:
    world = World(mix_of({"name": "alpha"}), alpha=empty)
    first, _ = in_virtual_time(world.fill(items_of(100), concurrency=1))
    world.new_state()
    again, _ = in_virtual_time(world.fill(items_of(100), concurrency=1))
    assert world.calls["alpha"] == 17 and again.unfilled == first.unfilled
    assert list(world.state.quarantined_providers("r")) == ["alpha"], "learnt out of the cache, for nothing"


def test_case_12_5_of_a_reply_that_was_cut_only_the_rest_is_asked_for_again() -> None:
    asked: list[list[str]] = []

    async def cut_once(provider: Provider, request: Request) -> Answer:
        asked.append([line["name"] for line in asked_for(request.messages)])
        if len(asked) == 1:
            return reply(
                '{"items":[{"id":"1","description":"종이와 강철로 만든 엔진 오일용 필터입니다."},{"id":"2","de',
                cut=True,
            )
        return reply(described(request.messages))

    world = World(mix_of({"name": "alpha"}), alpha=cut_once)
    names = ["오일 필터", "에어컨 필터"]
    items = [replace(item, subject=name) for item, name in zip(items_of(2, language="ko"), names, strict=True)]
    filled, _ = in_virtual_time(world.fill(items))
    assert asked == [names, names[1:]]
    assert [text.round for text in filled.texts.values()] == [0, 1]


def test_a_text_that_is_turned_down_three_times_stays_procedural_and_each_time_is_counted() -> None:
    async def praises(provider: Provider, request: Request) -> Answer:
        lines = asked_for(request.messages)
        told = [{"id": line["id"], "description": f"{line['name']}, the world-class must-have."} for line in lines[:1]]
        return reply(json.dumps(told + json.loads(described(request.messages))["items"][1:]))

    world = World(mix_of({"name": "alpha"}), alpha=praises)
    filled, _ = in_virtual_time(world.fill(items_of(4)))
    assert list(filled.unfilled.values()) == [Unfilled.REJECTED] and len(filled.texts) == 3
    assert filled.rejected == {("openai/alpha-small", Rule.MARKETING): MAX_ROUNDS}
    assert [(record.accepted, record.rejected) for record in world.records] == [(3, 1), (0, 1), (0, 1)]
    assert [record.round for record in world.records] == [0, 1, 2]


def test_descriptions_of_one_company_differ_and_none_repeats_what_was_asked_about() -> None:
    async def lazy(provider: Provider, request: Request) -> Answer:
        lines = asked_for(request.messages)
        said = [lines[0]["name"], f"{lines[0]['trade'].title()}.", *["A part for the workshop."] * 8][: len(lines)]
        return reply(json.dumps([{"id": str(n), "description": text} for n, text in enumerate(said, start=1)]))

    world = World(mix_of({"name": "alpha"}), alpha=lazy)
    filled, _ = in_virtual_time(world.fill(items_of(8, companies=2)))
    by_company = Counter(item.group for item in items_of(8, companies=2) if item.id in filled.texts)
    assert by_company == {"c000": 1, "c001": 1}, "another company may say the same"
    assert filled.rejected["openai/alpha-small", Rule.ECHO] == 2 * 4, "in a request of eight, of six, and two of three"
    assert {rule for _, rule in filled.rejected} == {Rule.DUPLICATE, Rule.ECHO}


# Money ------------------------------------------------------------------------------------------


def dear_and_cheap() -> ProviderMix:
    price = {"input_per_million": 0.01, "output_per_million": 0.01}
    return mix_of({"name": "alpha"}, {"name": "cheap", "price": price}, fallback=[("cheap", 1), ("alpha", 1)])


def test_where_the_money_ends_items_say_so_and_nothing_is_overspent() -> None:
    world = World(mix_of({"name": "alpha"}), budget=3_000_000)
    filled, _ = in_virtual_time(world.fill(items_of(600)))
    told = ends(filled)
    assert set(told) == {"openai/alpha-small", "budget"} and told.total() == 600
    booked, worst = world.booked(), 700_000
    assert 3_000_000 - worst <= booked <= 3_000_000, "calls under way are waited for, since they free money"


def test_without_money_for_a_provider_a_cheaper_one_is_asked_and_never_one_as_dear() -> None:
    world = World(dear_and_cheap(), budget=300_000)
    filled, _ = in_virtual_time(world.fill(items_of(60)))
    assert world.calls["alpha"] == 0 and filled.written["openai/cheap-small"] == 60
    poor = World(dear_and_cheap(), budget=100)
    assert ends(in_virtual_time(poor.fill(items_of(60)))[0]) == {"budget": 60}
    assert poor.calls.total() == 0
    (guard,) = poor.guards
    assert isinstance(guard, DistributedBudgetGuard)
    first = Counter(route(poor.mix, "v1", item.id) for item in items_of(60))
    chunks = {name: -(-count // CHUNK_ITEMS) for name, count in first.items()}
    assert guard.declined == 2 * chunks["alpha"] + chunks["cheap"], "the dearer one is not tried after the cheaper"


def test_case_16_a_model_without_a_price_is_refused_before_any_call_where_there_is_a_budget() -> None:
    beta = {"name": "beta", "model": "openai/beta-unlisted", "price": None}
    mix = mix_of({"name": "alpha"}, beta, {"name": "local", "free": True})
    world = World(mix)
    with pytest.raises(UsageError, match=r"openai/beta-unlisted has none: give it `price:"):
        in_virtual_time(world.fill(items_of(60, language="pl")))
    without_beta = World(mix.model_copy(update={"providers": (mix.providers[0], mix.providers[2])}))
    in_virtual_time(without_beta.fill(items_of(60, language="pl")))
    assert {record.cost for record in without_beta.records if record.provider == "local"} == {0}
    unlimited = World(mix, budget=None)
    in_virtual_time(unlimited.fill(items_of(60, language="pl")))
    assert {record.cost for record in unlimited.records if record.provider == "beta"} == {None}
    unlimited.close()
    total = unlimited.state.spend("r")
    assert total.total.cost is None and total.models["openai/alpha-small"].cost


def test_a_call_whose_usage_is_not_told_is_charged_at_its_worst_case() -> None:
    async def silent(provider: Provider, request: Request) -> Answer:
        return reply(described(request.messages), tokens=None)

    world = World(mix_of({"name": "alpha"}), alpha=silent)
    in_virtual_time(world.fill(items_of(12)))
    (record,) = world.records
    assert record.input_tokens is None and record.cost == world.booked() > 2000 * 280


# Languages --------------------------------------------------------------------------------------


def test_each_language_is_asked_for_and_judged_by_itself() -> None:
    world = World(mix_of({"name": "alpha"}))
    items = [
        replace(item, id=f"{language}-{item.id}", group=f"{language}-{item.group}", language=language)
        for item in items_of(10)
        for language in LANGUAGES
    ]
    filled, _ = in_virtual_time(world.fill(items))
    assert len(filled.texts) == 10 * len(LANGUAGES) and filled.rejected == {}
    assert "Betrieb" in filled.texts["de-c000-p0000"].text and "業務" in filled.texts["ja-c000-p0000"].text


def test_a_model_that_falls_back_into_english_writes_english_texts_only() -> None:
    async def english(provider: Provider, request: Request) -> Answer:
        told = [
            {"id": line["id"], "description": f"A filter that fits the oil system of the {line['name']}."}
            for line in asked_for(request.messages)
        ]
        return reply(json.dumps(told))

    world = World(mix_of({"name": "alpha"}), alpha=english)
    items = [
        replace(item, id=f"{language}-{item.id}", group=language, language=language)
        for item in items_of(1)
        for language in LANGUAGES
    ]
    filled, _ = in_virtual_time(world.fill(items))
    assert filled.texts.keys() == {"en-c000-p0000"}
    assert {rule for _, rule in filled.rejected} == {Rule.LANGUAGE, Rule.SCRIPT}


# Batches ----------------------------------------------------------------------------------------


class Desk:
    """A unit's desk whose vendor needs so many looks, and then answers all lines but those that are told."""

    def __init__(self, world: World, looks: int = 0, without: int = 0, failure: Failure | None = None) -> None:
        self.cache, self.looks, self.without, self.failure = ReplyCache(world.blobs), looks, without, failure
        self.asked: list[int] = []

    async def answers(self, provider: Provider, requests: Sequence[Request]) -> Mapping[str, BatchLine]:
        self.asked.append(len(requests))
        assert {request.round for request in requests} == {0}
        if self.failure:
            raise CallFailed(self.failure, "batches are refused")
        if len(self.asked) <= self.looks:
            raise BatchPending(provider.name, 30)
        lines = {}
        for number, request in enumerate(requests):
            if number < self.without:
                lines[request.digest] = BatchLine(None, "expired", 0)
            elif await self.cache.kept(request.digest) is None:
                answer = await self.cache.keep(request.digest, reply(described(request.messages)))
                lines[request.digest] = BatchLine(answer, None, 49_000)
        return lines


def batched() -> ProviderMix:
    return mix_of({"name": "alpha", "batch": True}, {"name": "beta"}, fallback=[("beta", 1)])


def test_what_needs_no_batch_is_done_first_and_then_the_unit_waits_for_its_batch() -> None:
    world = World(batched())
    desk = Desk(world, looks=1)

    async def unit() -> Filled:
        return await world.runner().run(items_of(240), desk=desk)

    with pytest.raises(BatchPending) as pending:
        in_virtual_time(unit())
    assert pending.value.retry_seconds == 30 and world.calls["alpha"] == 0
    in_real_time = world.calls["beta"]
    assert in_real_time > 5
    filled, _ = in_virtual_time(unit())
    assert world.calls == {"beta": in_real_time} and len(filled.texts) == 240
    of_batch = [record for record in world.records if record.batch]
    assert {(record.provider, record.cost, record.cached) for record in of_batch} == {("alpha", 49_000, False)}
    assert sum(record.accepted for record in of_batch) == filled.written["openai/alpha-small"]


def test_lines_that_a_batch_did_not_answer_are_asked_for_at_once_in_the_same_round() -> None:
    world = World(batched())
    filled, _ = in_virtual_time(world_run(world, Desk(world, without=2)))
    assert world.calls["alpha"] == 2 and len(filled.texts) == 240
    assert {text.round for text in filled.texts.values()} == {0}
    failed = [record for record in world.records if record.outcome is CallOutcome.FAILED]
    assert [(record.batch, record.detail) for record in failed] == [(True, "expired")] * 2


def test_a_batch_collected_before_is_found_in_the_cache_and_costs_nothing_again() -> None:
    world = World(batched())
    desk = Desk(world)
    first, _ = in_virtual_time(world_run(world, desk))
    calls = world.calls.total()
    world.records.clear()
    again, _ = in_virtual_time(world_run(world, desk))
    assert again.texts == first.texts and world.calls.total() == calls
    assert all(record.cached and not record.batch for record in world.records)


@pytest.mark.parametrize(("failure", "quarantined"), [(Failure.QUARANTINE, ["alpha"]), (Failure.TRANSIENT, [])])
def test_a_vendor_that_refuses_batches_is_quarantined_or_asked_one_by_one(
    failure: Failure, quarantined: list[str]
) -> None:
    world = World(batched())
    filled, _ = in_virtual_time(world_run(world, Desk(world, failure=failure)))
    assert len(filled.texts) == 240
    assert list(world.state.quarantined_providers("r")) == quarantined
    assert bool(world.calls["alpha"]) is not bool(quarantined)


def test_a_batch_of_somebody_before_is_booked_also_when_its_provider_is_asked_no_more() -> None:
    class Before(Desk):
        async def answers(self, provider: Provider, requests: Sequence[Request]) -> Mapping[str, BatchLine]:
            self.asked.append(len(requests))
            told = Answer("[]", False, 300, 9, "alpha-0901", "chat-9")
            return {"0" * 64: BatchLine(told, None, 49_000), "1" * 64: BatchLine(None, "expired", 0)}

    world = World(batched())
    world.state.quarantine_providers("r", {"alpha": "no money left"})
    desk = Before(world)
    filled, _ = in_virtual_time(world_run(world, desk))
    assert desk.asked == [0] and filled.written == {"openai/beta-small": 240}
    lines = sorted((record for record in world.records if record.batch), key=lambda record: record.request_digest)
    assert [(line.items, line.cost, line.outcome) for line in lines] == [
        ((), 49_000, CallOutcome.UNUSABLE),
        ((), 0, CallOutcome.FAILED),
    ]


def test_empty_lines_of_a_batch_end_a_model_as_other_replies_do() -> None:
    class Empty(Desk):
        async def answers(self, provider: Provider, requests: Sequence[Request]) -> Mapping[str, BatchLine]:
            return {request.digest: BatchLine(await empty(provider, request), None, 301_000) for request in requests}

    world = World(batched())
    filled, _ = in_virtual_time(world_run(world, Empty(world), items=900))
    (reason,) = world.state.quarantined_providers("r").values()
    assert reason == f"{UNUSABLE_STREAK} replies on end without a usable text"
    assert ends(filled) == {"openai/beta-small": 900}
    assert world.calls["alpha"] == 0


async def world_run(world: World, desk: Batches, items: int = 240) -> Filled:
    return await world.runner().run(items_of(items), desk=desk)


# The end of a run -------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0, 1.5, 59.0])
def test_a_cancelled_run_leaves_no_reservation_open_and_every_call_is_recorded(after: float) -> None:
    world = World(mix_of(*TWO), alpha=hangs)

    async def cancelled() -> None:
        runner: CatalogueRunner = world.runner()
        running = asyncio.ensure_future(runner.run(items_of(600)))
        await asyncio.sleep(after)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}

    in_virtual_time(cancelled())
    assert len(world.records) == world.calls.total()
    assert sum(record.cost or 0 for record in world.records) == world.booked()
