"""Turns of a lane, and money in a loop: what is handed over in the very moment of a cancellation is not lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from text_runs import World, described, items_of, mix_of, reply
from virtual_time import VirtualLoop

from docgen_core.llm.breakers import Quarantine
from docgen_core.llm.calls import CallFailed, Failure, call
from docgen_core.llm.guard import DistributedBudgetGuard
from docgen_core.llm.lanes import Lane, Slots
from docgen_core.llm.mix import Provider
from docgen_core.llm.purse import Purse
from docgen_core.llm.requests import Answer, Request
from docgen_core.state.budget import ModelUsage


def in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(work)


def lane_of(world: World, slots: Slots) -> Lane:
    return Lane(
        world.mix.providers[0],
        slots=slots,
        purse=Purse(DistributedBudgetGuard(world.state, "r", "w", 10**9)),
        quarantine=Quarantine(world.state, "r"),
        empty_reply_cap=10**7,
        call=call,
        on_call=world.records.append,
        clock=asyncio.get_running_loop().time,
    )


def test_a_turn_that_is_given_to_whoever_is_cancelled_just_then_goes_to_the_next() -> None:
    async def turns() -> None:
        lane = lane_of(World(mix_of({"name": "alpha"})), Slots(1))
        await lane.turn()
        second, third = asyncio.ensure_future(lane.turn()), asyncio.ensure_future(lane.turn())
        await asyncio.sleep(0)
        lane.ended()
        second.cancel()
        await asyncio.wait_for(third, 1)
        assert second.cancelled() and lane.under_way == 1

    in_virtual_time(turns())


def test_a_slot_goes_to_the_lane_with_the_fewest_calls_under_way() -> None:
    async def turns() -> None:
        slots = Slots(4)
        busy, other = (lane_of(World(mix_of({"name": name})), slots) for name in ("alpha", "beta"))
        for _ in range(4):
            await busy.turn()
        waiting = [asyncio.ensure_future(lane.turn()) for lane in (busy, other, busy, other)]
        await asyncio.sleep(0)
        for under_way in ((3, 1), (2, 2)):
            busy.ended()
            await asyncio.sleep(0)
            assert (busy.under_way, other.under_way) == under_way
        for turn in waiting:
            turn.cancel()

    in_virtual_time(turns())


def test_an_answer_that_comes_together_with_the_cancellation_of_its_run_is_booked_and_its_turn_is_free() -> None:
    async def cancels(provider: Provider, request: Request) -> Answer:
        await asyncio.sleep(1)
        running[0].cancel()
        return reply(described(request.messages))

    world = World(mix_of({"name": "alpha"}), alpha=cancels)
    running: list[asyncio.Future[Any]] = []

    async def runs() -> None:
        runner = world.runner(concurrency=1)
        running.append(asyncio.ensure_future(runner.run(items_of(12))))
        await asyncio.wait(running)
        assert running[0].cancelled()
        del world.models["alpha"]
        assert len((await runner.run(items_of(60))).texts) == 60
        assert world.most_at_once[""] == 1

    in_virtual_time(runs())
    assert world.records[0].accepted == 12 and world.records[0].cost == 98_000
    assert world.booked() == sum(record.cost or 0 for record in world.records)


def test_an_answer_that_comes_together_with_the_end_of_its_provider_is_used() -> None:
    """The other call's refusal and this answer are both there before anybody is told of either."""

    async def both(provider: Provider, request: Request) -> Answer:
        await asyncio.sleep(1)
        if world.calls["alpha"] == 2 and not refused:
            refused.append(True)
            raise CallFailed(Failure.QUARANTINE, "gone")
        return reply(described(request.messages))

    refused: list[bool] = []
    world = World(mix_of({"name": "alpha"}), alpha=both)

    async def runs() -> None:
        filled = await world.runner(concurrency=2).run(items_of(60))
        assert len(filled.texts) == 12 and len(filled.unfilled) == 48

    in_virtual_time(runs())
    assert world.calls["alpha"] == 2
    assert world.booked() == 98_000, "what was answered is not charged at its worst case"


def test_a_refusal_is_asked_about_again_when_an_own_call_has_ended() -> None:
    async def reserves() -> None:
        world = World(mix_of({"name": "alpha"}), budget=1_000)
        purse = Purse(DistributedBudgetGuard(world.state, "r", "w", 1_000))
        worst = ModelUsage(1, 10, 10, 900)
        first = await purse.reserve("m", worst)
        assert first is not None
        second = asyncio.ensure_future(purse.reserve("m", worst))
        await asyncio.sleep(1)
        assert not second.done()
        await purse.settle(first, ModelUsage(1, 10, 10, 50))
        reservation = await asyncio.wait_for(second, 1)
        assert reservation is not None
        assert await purse.reserve("free", ModelUsage(1, 10, 10, 0)) is not None
        await purse.charge(reservation)
        assert await asyncio.wait_for(purse.reserve("m", worst), 1) is None, "nothing is to come"

    in_virtual_time(reserves())


def test_money_set_aside_for_whoever_is_cancelled_just_then_is_freed() -> None:
    async def reserves() -> None:
        world = World(mix_of({"name": "alpha"}), budget=1_000)
        guard = DistributedBudgetGuard(world.state, "r", "w", 1_000)
        purse = Purse(guard)
        asked = asyncio.ensure_future(purse.reserve("m", ModelUsage(1, 10, 10, 900)))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait([asked])
        assert asked.cancelled()
        assert await purse.reserve("m", ModelUsage(1, 10, 10, 900)) is not None

    in_virtual_time(reserves())
