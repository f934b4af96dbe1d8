"""The desk of a unit's batches: handed in once, looked at patiently, and every nano-dollar in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fake_batches import ERRORED, EXPIRED, MISSING, FakeBatches
from fake_provider import Says
from plain_batches import PlainBatches

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.errors import Damage, UsageError
from docgen_core.llm.batches import (
    EXPIRED_SECONDS,
    FIRST_POLL_SECONDS,
    GRANT_SECONDS,
    LAST_POLL_SECONDS,
    MONEY_SECONDS,
    BatchDesk,
    BatchLine,
    BatchPending,
)
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request, request_for
from docgen_core.state import open_state
from docgen_core.state.budget import ExpiredGrants, GrantState, ModelUsage
from docgen_core.state.contract import RunKind, RunMarker, StateStore
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

CAP = 1_000_000_000
START = 1_800_000_000.0
LINES = 3
LINE_COST = (300 * 1000 + 200 * 2000) // 2
"""Nano-dollars in a batch, at $1 and $2 a million in real time."""


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@dataclass
class Here:
    """A run with a budget, a vendor, and the time that all of it goes by."""

    loop: asyncio.Runner
    server: FakeBatches
    finds: bool = True
    """Whether the vendor lists batches with our key."""
    cap: int | None = CAP
    now: float = START
    slept: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    blobs: BlobStore = field(default_factory=MemoryBlobStore)

    def __post_init__(self) -> None:
        self.state = self.fresh_state()
        self.cache = ReplyCache(self.blobs)
        self.requests = self.asked(LINES)

    def clock(self) -> float:
        return self.now

    def asked(self, count: int) -> list[Request]:
        return [request_for(self.provider, [{"role": "user", "content": f"Describe item {n}"}]) for n in range(count)]

    def fresh_state(self) -> StateStore:
        state = SegmentStore(MemoryPrimitives(), Settings(), uri="test", clock=self.clock, monotonic=self.clock)
        state.create_run(RunMarker("r1", RunKind.CATALOGUE, "catalogue/r1", {}, "0" * 64, 9, 1, 9))
        if self.cap is not None:
            state.set_budget("r1", self.cap)
        return state

    @property
    def provider(self) -> Provider:
        told: dict[str, object] = {
            "name": "alpha",
            "model": "openai/alpha-small",
            "weight": 1,
            "api_base": f"{self.server.base}/v1",
            "max_output_tokens": 300,
            "timeout_seconds": 20,
            "batch": True,
            "price": {"input_per_million": 1, "output_per_million": 2},
        }
        return Provider.model_validate(told)

    def desk(self, worker: str = "w1", unit: int = 3) -> BatchDesk:
        async def sleep(seconds: float) -> None:
            self.slept.append(seconds)

        def clients(provider: Provider) -> PlainBatches:
            return PlainBatches(self.finds)

        return BatchDesk(
            self.blobs, self.state, "r1", unit, worker, self.cache, clients=clients, clock=self.clock, sleep=sleep
        )

    def ask(self, requests: list[Request] | None = None, worker: str = "w1") -> dict[str, BatchLine]:
        """One look."""
        wanted = self.requests if requests is None else requests
        return dict(self.loop.run(self.desk(worker).answers(self.provider, wanted)))

    def ask_on(self, worker: str = "w1") -> dict[str, BatchLine]:
        """Looks as a unit's workers take them, until there is nothing to wait for."""
        while True:
            try:
                return self.ask(worker=worker)
            except BatchPending as pending:
                self.waits.append(pending.retry_seconds)
                self.now += pending.retry_seconds

    def kept(self) -> list[Answer | None]:
        """What stands in the cache for each request."""
        return [self.loop.run(self.cache.kept(request.digest)) for request in self.requests]

    def spent(self) -> int | None:
        """All that is booked; the rest has come back."""
        spend = self.state.spend("r1")
        if spend.budget:
            assert (spend.budget.open_grants, spend.budget.reserved, spend.budget.overshoot) == (0, 0, 0)
            assert spend.budget.available == spend.budget.cap - (spend.total.cost or 0)
        return spend.total.cost

    @property
    def worst(self) -> int:
        return sum(self.provider.worst_case(request.input_tokens, batch=True).known_cost for request in self.requests)


@pytest.fixture
def here(loop: asyncio.Runner) -> Iterator[Here]:
    with FakeBatches(slow_polls=2) as server:
        yield Here(loop, server)


def test_a_batch_is_handed_in_once_waited_for_and_booked_at_batch_prices(here: Here) -> None:
    with pytest.raises(BatchPending) as pending:
        here.ask()
    assert pending.value.retry_seconds == FIRST_POLL_SECONDS
    (grant,) = here.state.grants("r1")
    assert (grant.state, grant.amount, grant.seconds) == (GrantState.OPEN, here.worst, GRANT_SECONDS)
    lines = here.ask_on("w2")
    assert [lines[request.digest].answer for request in here.requests] == here.kept()
    assert {(line.cost, line.detail) for line in lines.values()} == {(LINE_COST, None)}
    assert here.spent() == here.server.billed == LINES * LINE_COST
    assert here.state.spend("r1").models == {
        "openai/alpha-small": ModelUsage(LINES, LINES * 300, LINES * 200, LINES * LINE_COST)
    }
    assert here.ask() == {} and here.server.submissions == 1


def test_answers_are_told_apart_however_they_are_shuffled(here: Here) -> None:
    here.server.lines = lambda number, body: Says(text=body["messages"][0]["content"].upper())
    here.ask_on()
    assert [answer and answer.text for answer in here.kept()] == [f"DESCRIBE ITEM {n}" for n in range(LINES)]


def test_what_a_batch_does_not_answer_costs_nothing_and_is_left_to_the_real_time(here: Here) -> None:
    outcomes: list[Says | str] = [Says(), ERRORED, EXPIRED, MISSING, Says(usage=None), Says(text="", finish="length")]
    here.server.lines, here.requests = lambda number, body: outcomes[number], here.asked(len(outcomes))
    lines = here.ask_on()
    told = [lines[request.digest] for request in here.requests]
    worst = here.worst // len(outcomes)
    assert [line.cost for line in told] == [LINE_COST, 0, 0, 0, worst, LINE_COST], "unknown usage is the worst case"
    assert [line.answer is not None for line in told] == [True, False, False, False, True, True]
    assert all(line.detail for line in told[1:4])
    assert [answer is not None for answer in here.kept()] == [True, False, False, False, True, True]
    assert here.spent() == 2 * LINE_COST + worst
    assert here.ask() == {} and here.server.submissions == 1, "and is not handed in again"


@pytest.mark.parametrize(("ends", "answered"), [("failed", 0), ("expired", 1)])
def test_a_batch_that_fails_or_expires_gives_its_grant_back(here: Here, ends: str, answered: int) -> None:
    here.server.ends, here.server.lines = ends, lambda number, body: EXPIRED if number else Says()
    lines = here.ask_on()
    assert sum(line.answer is not None for line in lines.values()) == answered
    assert all(line.detail for line in lines.values() if line.answer is None)
    assert here.spent() == here.server.billed == answered * LINE_COST


def test_looks_become_rarer_and_one_that_never_ends_counts_as_expired_and_is_charged_whole(here: Here) -> None:
    here.server.ends = "never"
    for at in (0, 10, 60, 600, 2_000, 86_400, EXPIRED_SECONDS - 1):
        here.now = START + at
        with pytest.raises(BatchPending) as pending:
            here.ask()
        here.waits.append(pending.value.retry_seconds)
    assert here.waits == [FIRST_POLL_SECONDS] * 3 + [150, 500, LAST_POLL_SECONDS, LAST_POLL_SECONDS]
    here.now = START + EXPIRED_SECONDS
    lines = here.ask()
    assert {(line.answer, line.detail) for line in lines.values()} == {
        (None, "the batch has not ended, and counts as expired")
    }
    assert here.spent() == here.worst == sum(line.cost or 0 for line in lines.values())
    assert here.server.submissions == 1


def test_a_vendor_says_when_to_look_again(here: Here) -> None:
    here.server.bad_polls = [Says(429, headers={"retry-after": "120"}), Says(500)]
    here.ask_on()
    assert here.waits[:3] == [FIRST_POLL_SECONDS, 120, (FIRST_POLL_SECONDS + 120) / 4]
    assert here.spent() == here.server.billed == LINES * LINE_COST


def test_a_batch_that_the_vendor_forgot_is_charged_whole(here: Here) -> None:
    with pytest.raises(BatchPending):
        here.ask()
    here.server.batches.clear()
    assert {line.detail for line in here.ask().values()} == {"the vendor does not know the batch any more"}
    assert here.spent() == here.worst


def test_a_key_that_is_refused_ends_the_looking(here: Here) -> None:
    with pytest.raises(BatchPending):
        here.ask()
    here.server.bad_polls = [Says(401)]
    with pytest.raises(CallFailed) as refused:
        here.ask()
    assert refused.value.failure is Failure.QUARANTINE
    assert here.ask_on() and here.spent() == here.server.billed, "whoever has a key collects it"


# Handing in -----------------------------------------------------------------------------


def test_without_the_money_there_is_no_batch(here: Here) -> None:
    here.cap = here.worst - 1
    here.state = here.fresh_state()
    assert here.ask() == {} and here.ask() == {}
    assert (here.server.submissions, here.spent(), here.state.grants("r1")) == (0, 0, [])


def test_a_batch_waits_for_the_money_that_others_hold_and_leaves_some_to_the_real_time(here: Here) -> None:
    here.cap = here.worst * 5 // 2
    here.state = here.fresh_state()

    def ask(unit: int) -> float:
        with pytest.raises(BatchPending) as pending:
            here.loop.run(here.desk(unit=unit).answers(here.provider, here.asked(unit + LINES)[unit:]))
        return pending.value.retry_seconds

    assert [ask(3), ask(6), ask(6)] == [FIRST_POLL_SECONDS, MONEY_SECONDS, MONEY_SECONDS]
    assert here.server.submissions == 1, "two would leave a fifth of what is free"
    here.server.slow_polls = 0
    assert here.loop.run(here.desk(unit=3).answers(here.provider, []))
    assert ask(6) == FIRST_POLL_SECONDS and here.server.submissions == 2


def test_without_a_budget_what_a_batch_cost_is_booked_once(here: Here) -> None:
    here.cap = None
    here.state = here.fresh_state()
    here.ask_on()
    assert here.spent() == here.server.billed == LINES * LINE_COST


def test_a_vendor_that_is_busy_is_asked_again_and_gets_no_batch_when_it_stays_so(here: Here) -> None:
    here.server.bad_creations = [Says(429, headers={"retry-after": "9"}), Says(503)]
    here.ask_on()
    assert (here.slept, here.server.submissions) == ([9.0, 5.0], 1)
    assert here.spent() == here.server.billed > 0


@pytest.mark.parametrize("refusals", [[Says(429)] * 3, [Says(429, headers={"retry-after": "600"})], [Says(400)]])
def test_a_batch_that_is_refused_costs_nothing_and_is_not_handed_in_later(here: Here, refusals: list[Says]) -> None:
    here.server.bad_creations = list(refusals)
    assert here.ask() == {} and here.ask(worker="w2") == {}
    assert (here.server.submissions, here.spent(), here.server.bad_creations) == (0, 0, [])


@pytest.mark.parametrize("finds", [True, False])
def test_an_answer_that_gets_lost_while_handing_in_leads_to_no_second_batch(here: Here, finds: bool) -> None:
    here.finds = finds
    here.server.bad_creations = [Says(breaks=True)]
    lines = here.ask_on()
    assert here.server.submissions == 1
    if finds:
        assert here.spent() == here.server.billed == LINES * LINE_COST, "the batch was found again"
    else:
        assert here.spent() == here.worst == sum(line.cost or 0 for line in lines.values())
        assert {line.detail for line in lines.values()} == {"nobody knows the batch's id"}


def test_a_batch_that_a_vendor_lists_late_is_found_when_it_does(here: Here) -> None:
    here.server.bad_creations, here.server.forgets_metadata = [Says(breaks=True)], True
    for _ in range(3):
        with pytest.raises(BatchPending):
            here.ask()
        here.now += FIRST_POLL_SECONDS
    here.server.forgets_metadata = False
    here.ask_on("w2")
    assert here.server.submissions == 1 and here.spent() == here.server.billed == LINES * LINE_COST


def test_a_batch_that_is_handed_in_after_it_was_given_up_is_charged_whole(here: Here) -> None:
    """A worker that sleeps between its intent and handing in; meanwhile another one has given the batch up."""
    opened = here.state.open_grant

    def opens_and_sleeps(*args: Any, **named: Any) -> Any:
        grant = opened(*args, **named)
        here.now += 10_000
        assert asyncio.run(here.desk("w2").answers(here.provider, here.requests)) == {}
        assert here.spent() == 0
        return grant

    here.state.open_grant = opens_and_sleeps  # type: ignore[method-assign]
    assert here.ask() == {}
    assert here.server.submissions == 1 and here.spent() == here.worst


def test_only_what_no_answer_is_kept_for_is_handed_in(here: Here) -> None:
    kept = Answer("Known", False, 1, 1, "alpha", "chat-0")
    here.loop.run(here.cache.keep(here.requests[0].digest, kept))
    here.ask_on()
    assert set(here.server.batches["batch-1"].lines) == {request.digest for request in here.requests[1:]}
    assert here.kept()[0] == kept
    for unit, state in ((4, here.state), (3, here.fresh_state())):
        here.state = state
        assert here.loop.run(here.desk(unit=unit).answers(here.provider, here.requests)) == {}
    assert here.server.submissions == 1 and here.spent() == 0, "a re-run costs nothing"


def test_nothing_is_begun_without_a_key(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ALPHA_KEY", raising=False)
    keyed = here.provider.model_copy(update={"api_key_env": "ALPHA_KEY"})
    with pytest.raises(UsageError, match="ALPHA_KEY"):
        here.loop.run(here.desk().answers(keyed, here.requests))
    assert here.state.grants("r1") == []
    here.ask_on()
    assert here.server.submissions == 1


def test_two_desks_that_race_hand_in_one_batch(loop: asyncio.Runner, tmp_path: Path) -> None:
    with FakeBatches() as server:
        here = Here(loop, server, blobs=open_blobs(f"file://{tmp_path}/blobs"))
        with open_state(f"sqlite://{tmp_path}/state.db") as state:
            state.create_run(RunMarker("r1", RunKind.CATALOGUE, "catalogue/r1", {}, "0" * 64, 9, 1, 9))
            state.set_budget("r1", CAP)
            here.state = state

            async def race() -> list[object]:
                asked = (here.desk(f"w{n}").answers(here.provider, here.requests) for n in range(4))
                return await asyncio.gather(*asked, return_exceptions=True)

            pending = loop.run(race())
            assert all(isinstance(outcome, BatchPending) for outcome in pending)
            assert server.submissions == 1 and len(state.grants("r1")) == 1
            here.now += 60
            collected = [outcome for outcome in loop.run(race()) if isinstance(outcome, dict) and outcome]
            assert collected, "who collects at the same time books the same"
            assert here.spent() == server.billed == LINES * LINE_COST


def test_a_desk_that_is_cancelled_writes_the_id_down_first(here: Here) -> None:
    here.finds = False

    async def cancelled() -> None:
        asking = asyncio.create_task(here.desk().answers(here.provider, here.requests))  # type: ignore[arg-type, var-annotated]
        while not here.state.grants("r1"):
            await asyncio.sleep(0.001)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    here.loop.run(cancelled())
    assert here.server.submissions == 1
    polls = here.server.polls
    here.ask_on("w2")
    assert here.server.polls == polls + 3 and here.spent() == here.server.billed == LINES * LINE_COST


# Collecting what others began --------------------------------------------------------------


def test_without_requests_nothing_is_waited_for_but_what_has_ended_is_collected(here: Here) -> None:
    assert here.ask([]) == {} and here.server.submissions == 0
    with pytest.raises(BatchPending):
        here.ask()
    looked = [here.ask([]) for _ in range(3)]
    assert [len(lines) for lines in looked] == [0, 0, LINES]
    assert here.spent() == here.server.billed == LINES * LINE_COST


def test_lines_that_nobody_asks_for_any_more_are_booked_and_kept_all_the_same(here: Here) -> None:
    with pytest.raises(BatchPending):
        here.ask()
    here.server.slow_polls = 0
    assert len(here.ask(here.requests[:1])) == LINES
    assert None not in here.kept() and here.spent() == LINES * LINE_COST


@pytest.mark.parametrize("policy", ExpiredGrants)
def test_a_grant_that_expired_is_settled_to_what_the_batch_cost_when_it_is_collected(
    here: Here, policy: ExpiredGrants
) -> None:
    here.state.set_budget("r1", CAP, expired_grants=policy)
    with pytest.raises(BatchPending):
        here.ask()
    here.now += GRANT_SECONDS + 600
    assert here.state.expire_grants("r1") == 1
    figures = here.state.spend("r1").budget
    assert figures and figures.charged == (here.worst if policy is ExpiredGrants.CHARGED else 0)
    here.server.slow_polls = 0
    assert len(here.ask(worker="w2")) == LINES
    assert here.spent() == here.server.billed == LINES * LINE_COST


def test_a_batch_of_a_run_whose_state_was_lost_is_booked_as_spend(here: Here) -> None:
    with pytest.raises(BatchPending):
        here.ask()
    here.state = here.fresh_state()
    here.ask_on()
    assert here.spent() == here.server.billed == LINES * LINE_COST
    assert None not in here.kept()


def test_a_record_that_cannot_be_read_is_told_and_nothing_is_done(here: Here) -> None:
    with pytest.raises(BatchPending):
        here.ask()
    here.blobs.put("llm-cache/batches/r1/unit-000003/alpha/placing.json", b"{}")
    with pytest.raises(Damage, match=r"llm-cache/batches/r1/unit-000003/alpha") as damage:
        here.ask()
    assert "\n" not in str(damage.value)
