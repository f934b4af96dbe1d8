"""When a provider is asked: pace, pauses, quarantine; case 13 with real calls."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from fake_provider import FakeProvider, Says
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.errors import StorageFailed
from docgen_core.llm import calls
from docgen_core.llm.breakers import FIRST_PAUSE, LONGEST_PAUSE, UNUSABLE_STREAK, Pace, Quarantine, UnusableReplies
from docgen_core.llm.guard import DistributedBudgetGuard
from docgen_core.llm.mix import ProviderMix, parse_mix
from docgen_core.llm.replies import read_reply
from docgen_core.llm.requests import request_for
from docgen_core.llm.routing import route
from docgen_core.state.budget import NANO
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_failure_halves_the_pace_and_answers_bring_it_back() -> None:
    clock = Clock()
    pace = Pace(8, clock=clock)
    for _ in range(8):
        pace.begin()
    assert pace.begins_in() is None
    for _ in range(8):
        pace.failed()
    assert pace.begins_in() == FIRST_PAUSE, "eight that fail together are one failure"
    clock.now += FIRST_PAUSE
    pace.begin()
    assert pace.begins_in() is None, "one call alone is tried first"
    pace.succeeded()
    assert pace.limit == 4
    for _ in range(60):
        pace.begin()
        pace.succeeded()
    assert pace.limit == 8


def test_pauses_double_and_end() -> None:
    clock = Clock()
    pace = Pace(2, clock=clock)
    pauses = []
    for _ in range(9):
        pace.begin()
        pace.failed()
        pause = pace.begins_in()
        assert pause is not None
        pauses.append(pause)
        clock.now += pause
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, LONGEST_PAUSE]


def test_a_vendors_wish_closes_the_gate_for_all_lanes() -> None:
    clock = Clock()
    pace = Pace(4, clock=clock)
    pace.begin()
    pace.begin()
    pace.failed(retry_after=30)
    pace.succeeded()
    assert pace.begins_in() == 30
    with pytest.raises(ValueError, match="no call may begin"):
        pace.begin()


@given(st.lists(st.sampled_from(["begin", "good", "bad", "wish", "ended", "wait"]), max_size=60))
@settings(max_examples=100, deadline=None)
def test_there_are_never_more_calls_than_the_pace_allows_and_a_pause_always_ends(acts: list[str]) -> None:
    clock = Clock()
    pace = Pace(5, clock=clock)
    for act in acts:
        if act == "begin" and pace.begins_in() == 0:
            pace.begin()
        elif act == "wait":
            clock.now += 10
        elif pace.under_way and act != "begin":
            {"good": pace.succeeded, "bad": pace.failed, "wish": lambda: pace.failed(20), "ended": pace.ended}[act]()
        assert 0 <= pace.under_way <= 5 and 1 <= pace.limit <= 5
    while pace.under_way:
        pace.ended()
    clock.now += LONGEST_PAUSE
    assert pace.begins_in() == 0


def test_a_streak_of_unusable_replies_ends_a_free_model_too() -> None:
    replies = UnusableReplies(cap=NANO)
    told = [replies.add(0) for _ in range(UNUSABLE_STREAK - 1)]
    replies.usable()
    told += [replies.add(0) for _ in range(UNUSABLE_STREAK)]
    assert [bool(reason) for reason in told] == [False] * (2 * UNUSABLE_STREAK - 2) + [True]


def state_with(cap: int) -> SegmentStore:
    state = SegmentStore(MemoryPrimitives(), Settings(), uri="test")
    state.create_run(RunMarker("r", RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
    state.set_budget("r", cap)
    return state


def test_quarantine_is_known_to_workers_that_start_later_and_soon_to_all() -> None:
    state, clock = state_with(NANO), Clock()
    early = Quarantine(state, "r", clock=clock)
    assert early.reasons() == {}
    Quarantine(state, "r", clock=clock).add("alpha", "invalid key")
    assert Quarantine(state, "r", clock=clock).reasons() == {"alpha": "invalid key"}
    clock.now += 20
    assert early.reasons() == {"alpha": "invalid key"}
    state.lift_quarantine("r", "alpha")
    clock.now += 20
    assert early.reasons() == {}


def test_a_quarantine_that_the_store_did_not_take_holds_here_and_is_written_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, clock = state_with(NANO), Clock()
    quarantine = Quarantine(state, "r", clock=clock)
    assert quarantine.reasons() == {}

    def deaf(*_: object) -> None:
        raise StorageFailed("out of reach")

    with monkeypatch.context() as patch:
        patch.setattr(state, "quarantine_providers", deaf)
        with pytest.raises(StorageFailed):
            quarantine.add("alpha", "invalid key")
        assert quarantine.reasons() == {"alpha": "invalid key"}
    clock.now += 20
    assert quarantine.reasons() == state.quarantined_providers("r") == {"alpha": "invalid key"}


MIX = """
providers:
  - name: alpha
    model: openai/alpha-small
    weight: 1
    api_base: {base}/v1
    max_output_tokens: 2000
    timeout_seconds: 20
    price: {{input_per_million: 0.14, output_per_million: 0.28}}
fallback: [{{to: procedural, share: 1}}]
empty_reply_cap_usd: 0.01
"""


class OneByOne:
    """A worker that asks for its items one after the other, with all the parts in place."""

    def __init__(self, state: SegmentStore, mix: ProviderMix) -> None:
        self.mix, self.quarantine = mix, Quarantine(state, "r")
        self.guard = DistributedBudgetGuard(state, "r", "w", 5 * NANO)
        self.unusable = UnusableReplies(mix.empty_reply_cap)
        self.texts: Counter[str] = Counter()

    async def write(self, item: str) -> None:
        chosen = route(self.mix, "v1", item, unusable=self.quarantine.reasons())
        if chosen == "procedural":
            self.texts["procedural"] += 1
            return
        provider = self.mix.provider(chosen)
        request = request_for(provider, [{"role": "user", "content": f"Name item {item}"}])
        reservation = self.guard.reserve(chosen, provider.worst_case(request.input_tokens))
        assert reservation is not None
        answer = await calls.call(provider, request)
        assert answer.input_tokens is not None and answer.output_tokens is not None
        used = provider.used(answer.input_tokens, answer.output_tokens)
        self.guard.settle(reservation, used)
        items = read_reply(answer.text, cut=answer.cut).items
        self.texts[chosen if items else "procedural"] += 1
        if not items and (reason := self.unusable.add(used.known_cost)):
            self.quarantine.add(chosen, reason)


def test_case_13_paid_empty_replies_are_booked_capped_and_end_the_model() -> None:
    state = state_with(5 * NANO)

    async def work(server: FakeProvider) -> OneByOne:
        worker = OneByOne(state, parse_mix(MIX.format(base=server.base), "mix"))
        for item in range(100):
            await worker.write(str(item))
        worker.guard.close()
        return worker

    async def both() -> tuple[OneByOne, OneByOne]:
        first, second = await work(server), await work(server)
        await calls.close()
        return first, second

    empty = Says(text="", usage=(300, 2000))
    with FakeProvider(lambda number, body: Says(**{**vars(empty), "finish": ["length", "stop"][number % 2]})) as server:
        first, second = asyncio.run(both())
    assert len(server.requests) == 17
    assert first.texts == second.texts == {"procedural": 100}
    booked = state.spend("r").models["alpha"]
    assert (booked.calls, booked.cost) == (17, 17 * 602_000)
    (reason,) = state.quarantined_providers("r").values()
    assert reason == "17 replies without a usable text cost $0.010234, the cap is $0.010000"
