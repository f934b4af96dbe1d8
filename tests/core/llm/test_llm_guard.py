"""One worker's guard: slices, reservations, time-outs, lost answers, and what is given back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from docgen_core.errors import BudgetUnset, StorageFailed, UsageError
from docgen_core.llm.guard import REFUSED_SECONDS, SLICE_SHARE, DistributedBudgetGuard, SpendBook
from docgen_core.state.budget import GrantState, ModelUsage
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

WORST = ModelUsage(1, 400, 1000, 1_000)
ACTUAL = ModelUsage(1, 300, 500, 400)


class Bank:
    """A run on a store in memory, its time, and a connection that counts and fails on demand."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.state = SegmentStore(
            MemoryPrimitives(), Settings(), uri="test", clock=lambda: self.now, monotonic=lambda: self.now
        )
        self.state.create_run(RunMarker("r", RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
        self.calls: Counter[str] = Counter()
        self.fails: dict[str, str] = {}
        """By operation: whether its next call fails before it happens, or after."""

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            self.calls[name] += 1
            failing = self.fails.pop(name, "")
            if failing == "before":
                raise StorageFailed("out of reach")
            answer = getattr(self.state, name)(*args, **named)
            if failing == "after":
                raise StorageFailed("the answer was lost")
            return answer

        return call

    def guard(self, cap: int, worker: str = "w") -> DistributedBudgetGuard:
        return DistributedBudgetGuard(self, "r", worker, cap, clock=lambda: self.now)  # type: ignore[arg-type]


@pytest.fixture
def bank() -> Bank:
    return Bank()


def funded(bank: Bank, cap: int) -> DistributedBudgetGuard:
    bank.state.set_budget("r", cap)
    return bank.guard(cap)


def test_many_calls_go_out_of_one_slice(bank: Bank) -> None:
    guard = funded(bank, 1_000 * SLICE_SHARE * 50)
    for _ in range(500):
        reservation = guard.reserve("m", WORST)
        assert reservation is not None
        bank.now += 0.2
        guard.settle(reservation, ACTUAL)
    guard.close()
    assert bank.calls.total() < 100, "far less than one operation a call"
    told = bank.state.spend("r")
    assert told.models["m"] == ModelUsage(500, 150_000, 250_000, 200_000)
    assert told.budget is not None and (told.budget.reserved, told.budget.committed) == (0, 200_000)


def test_a_call_that_timed_out_is_charged_at_its_worst_case_and_one_never_made_not_at_all(bank: Bank) -> None:
    guard = funded(bank, 10_000)
    timed_out, never = guard.reserve("m", WORST), guard.reserve("m", WORST)
    assert timed_out and never
    guard.charge(timed_out)
    guard.cancel(never)
    guard.close()
    assert bank.state.spend("r").models == {"m": WORST}
    with pytest.raises(ValueError, match="ends once"):
        guard.settle(never, ACTUAL)


def test_a_refusal_is_remembered_for_as_dear_calls_and_not_for_cheaper_ones(bank: Bank) -> None:
    guard = funded(bank, 900)
    assert guard.reserve("m", WORST) is None
    asked = bank.calls.total()
    assert guard.reserve("m", WORST) is None
    assert bank.calls.total() == asked, "nobody was asked again"
    assert guard.reserve("m", ModelUsage(1, 1, 1, 900)) is not None
    bank.state.set_budget("r", 5_000)
    bank.now += REFUSED_SECONDS
    assert guard.reserve("m", WORST) is not None
    assert guard.declined == 2


@pytest.mark.parametrize("failing", ["before", "after"])
@pytest.mark.parametrize("name", ["open_grant", "settle_grant", "close_grant"])
def test_an_operation_that_was_not_answered_loses_no_money(bank: Bank, name: str, failing: str) -> None:
    guard = funded(bank, 2_000)
    bank.fails[name] = failing
    reservation = guard.reserve("m", WORST)
    assert reservation is not None
    guard.settle(reservation, ACTUAL)
    guard.close()
    figures = bank.state.spend("r").budget
    assert figures is not None
    assert (figures.available, figures.reserved, figures.committed) == (1_600, 0, 400)
    assert [grant.state for grant in bank.state.grants("r")] == [GrantState.CLOSED]


def test_a_grant_that_was_never_answered_is_found_again_and_used(bank: Bank) -> None:
    guard = funded(bank, 1_000)
    real = bank.state.open_grant

    def deaf(*args: Any, **named: Any) -> Any:
        real(*args, **named)
        raise StorageFailed("the answer was lost")

    bank.state.open_grant = deaf  # type: ignore[method-assign]
    with pytest.raises(StorageFailed):
        guard.reserve("m", WORST)
    bank.state.open_grant = real  # type: ignore[method-assign]
    assert guard.reserve("m", WORST) is not None, "all the money lies in the grant that was not answered"
    assert len(bank.state.grants("r")) == 1


def test_signs_of_life_keep_a_grant_and_without_them_no_call_begins_in_it(bank: Bank) -> None:
    guard, peer = funded(bank, 2_000), bank.guard(2_000, "peer")
    reservation = guard.reserve("m", WORST)
    assert reservation and guard.reserve("m", WORST)
    for _ in range(5):
        bank.now += 25
        guard.beat()
        assert bank.state.expire_grants("r") == 0
    bank.now += 61
    assert peer.reserve("m", WORST) is None
    assert {grant.state for grant in bank.state.grants("r")} == {GrantState.EXPIRED}
    guard.settle(reservation, ACTUAL)
    assert guard.reserve("m", ModelUsage(1, 1, 1, 601)) is None
    assert guard.reserve("m", ModelUsage(1, 1, 1, 600)) is not None, (
        "what its expired grant has left came back, since its owner knows"
    )


def test_the_settlement_of_a_unit_is_booked_once_whoever_brings_it(bank: Bank) -> None:
    guard = funded(bank, 10_000)
    first, second = guard.reserve("m", WORST), guard.reserve("m", WORST)
    assert first and second
    guard.settle(first, ACTUAL)
    settlement = guard.settlement()
    assert settlement is not None
    bank.state.settle_grant("r", settlement)
    guard.settle(second, ACTUAL)
    guard.beat()
    bank.state.settle_grant("r", settlement)
    guard.close()
    assert bank.state.spend("r").models == {"m": ACTUAL + ACTUAL}


def test_a_free_model_needs_no_grant_and_its_calls_are_counted(bank: Bank) -> None:
    guard = funded(bank, 0)
    free = guard.reserve("local", ModelUsage(1, 400, 1000, 0))
    assert free is not None
    guard.settle(free, ModelUsage(1, 300, 500, 0))
    bank.fails["add_spend"] = "after"
    with pytest.raises(StorageFailed):
        guard.close()
    guard.close()
    assert bank.state.spend("r").models == {"local": ModelUsage(1, 300, 500, 0)}


def test_without_a_budget_nothing_is_refused_and_unknown_costs_stay_unknown(bank: Bank) -> None:
    book = SpendBook(bank.state, "r")
    for _ in range(3):
        reservation = book.reserve("beta", ModelUsage(1, 400, 1000, 0, 1))
        assert reservation is not None
        book.settle(reservation, ModelUsage(1, 300, 500, 0, 1))
    assert book.settlement() is None
    total = bank.state.spend("r").total
    assert (total.calls, total.cost) == (3, None), "a worker that is killed later takes nothing with it"


def test_a_guard_refuses_what_it_cannot_keep(bank: Bank) -> None:
    with pytest.raises(BudgetUnset):
        bank.guard(1_000).reserve("m", WORST)
    with pytest.raises(UsageError, match="beta has none"):
        funded(bank, 10).reserve("beta", ModelUsage(1, 1, 1, 0, 1))


def test_leaving_the_context_gives_back_what_is_left(bank: Bank) -> None:
    with funded(bank, 50_000) as guard:
        reservation = guard.reserve("m", WORST)
        assert reservation is not None
        guard.settle(reservation, ACTUAL)
    figures = bank.state.spend("r").budget
    assert figures is not None and (figures.available, figures.open_grants) == (49_600, 0)
