"""A runner with all its parts on a store in memory, items for it, and models that answer as they are told."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fake_writers import written

from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.llm import calls
from docgen_core.llm.breakers import Quarantine
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.guard import DistributedBudgetGuard, SpendBook
from docgen_core.llm.items import CallOutcome, CallRecord, Filled, TextItem
from docgen_core.llm.mix import Provider, ProviderMix, parse_mix
from docgen_core.llm.requests import Answer, Request
from docgen_core.llm.runner import CatalogueRunner
from docgen_core.state.budget import NANO
from docgen_core.state.contract import RunKind, RunMarker
from docgen_core.state.memory import MemoryPrimitives
from docgen_core.state.settings import Settings
from docgen_core.state.store import SegmentStore

Model = Callable[[Provider, Request], Awaitable[Answer]]


def items_of(count: int, *, companies: int = 10, language: str = "en") -> list[TextItem]:
    return [
        TextItem(
            id=f"c{number % companies:03d}-p{number:04d}",
            group=f"c{number % companies:03d}",
            language=language,
            setting="garage: spare parts",
            subject=f"Oil filter {number} mm",
            procedural=f"Filter, size {number}",
        )
        for number in range(count)
    ]


def mix_of(*providers: dict[str, Any], fallback: Sequence[tuple[str, int]] = (("procedural", 1),)) -> ProviderMix:
    """Each provider is told by its name and whatever differs from the rest."""
    common = {"weight": 1, "max_output_tokens": 2000, "timeout_seconds": 60}
    price = {"input_per_million": 0.14, "output_per_million": 0.28}
    told = {
        "providers": [
            common
            | {"model": f"openai/{provider['name']}-small"}
            | ({} if provider.get("free") else {"price": price})
            | provider
            for provider in providers
        ],
        "fallback": [{"to": to, "share": share} for to, share in fallback],
        "empty_reply_cap_usd": 0.01,
    }
    return parse_mix(json.dumps(told), "mix")


def asked_for(messages: Sequence[Any]) -> list[dict[str, str]]:
    """The lines that a prompt asks for."""
    lines: list[dict[str, str]] = json.loads(messages[1]["content"])
    return lines


def described(messages: Sequence[Any]) -> str:
    """The reply of a model that does what it is asked for, in the language that it is asked in."""
    return written({"messages": messages})


def reply(text: str, *, cut: bool = False, tokens: tuple[int, int] | None = (300, 200)) -> Answer:
    return Answer(text, cut, *(tokens or (None, None)), "vendor-name", "id-1")


async def writes(provider: Provider, request: Request) -> Answer:
    """A model that answers within a second."""
    await asyncio.sleep(1)
    return reply(described(request.messages))


async def hangs(provider: Provider, request: Request) -> Answer:
    """A model that answers nothing, until the time is over."""
    await asyncio.sleep(provider.timeout_seconds)
    raise calls.CallFailed(calls.Failure.TRANSIENT, "no answer", may_be_billed=True, timed_out=True)


def fails(failure: calls.Failure, **other: Any) -> Model:
    async def call(provider: Provider, request: Request) -> Answer:
        await asyncio.sleep(0.1)
        raise calls.CallFailed(failure, "refused", **other)

    return call


class World:
    """What the workers of one build share, and what they did."""

    def __init__(self, mix: ProviderMix, *, budget: int | None = 5 * NANO, **models: Model) -> None:
        self.mix, self.budget, self.models = mix, budget, models
        self.state = SegmentStore(MemoryPrimitives(), Settings(), uri="test")
        self.blobs = MemoryBlobStore()
        self.new_state()
        self.records: list[CallRecord] = []
        self.calls: Counter[str] = Counter()
        """By provider; those that were begun."""
        self.at_once: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self.guards: list[DistributedBudgetGuard | SpendBook] = []

    def new_state(self) -> None:
        self.state = SegmentStore(MemoryPrimitives(), Settings(), uri="test")
        self.state.create_run(RunMarker("r", RunKind.CATALOGUE, "catalogue/v", {}, "0" * 64, 1, 1, 1))
        if self.budget is not None:
            self.state.set_budget("r", self.budget)

    def runner(
        self, *, concurrency: int = 8, clock: Callable[[], float] | None = None, **other: Any
    ) -> CatalogueRunner:
        """A worker of its own, to be made in its event loop."""
        guard: DistributedBudgetGuard | SpendBook = SpendBook(self.state, "r")
        if self.budget is not None:
            guard = DistributedBudgetGuard(self.state, "r", f"w{len(self.guards)}", self.budget)
        self.guards.append(guard)
        clock = clock or asyncio.get_running_loop().time
        return CatalogueRunner(
            self.mix,
            build="v1",
            guard=guard,
            cache=ReplyCache(self.blobs),
            quarantine=Quarantine(self.state, "r", clock=clock),
            concurrency=concurrency,
            on_call=self.records.append,
            clock=clock,
            **({"call": self._call} | other),
        )

    async def fill(self, items: Sequence[TextItem], **other: Any) -> Filled:
        """One run of a worker of its own."""
        return await self.runner(**other).run(items)

    async def _call(self, provider: Provider, request: Request) -> Answer:
        self.calls[provider.name] += 1
        for name in (provider.name, ""):
            self.at_once[name] += 1
            self.most_at_once[name] = max(self.most_at_once[name], self.at_once[name])
        try:
            return await self.models.get(provider.name, writes)(provider, request)
        finally:
            for name in (provider.name, ""):
                self.at_once[name] -= 1

    def close(self) -> None:
        for guard in self.guards:
            guard.close()

    def booked(self) -> int:
        """Nano-dollars, when no reservation is open: all of the budget is spent or free."""
        self.close()
        spend = self.state.spend("r")
        if spend.budget is not None:
            assert spend.budget.reserved == 0
            assert spend.budget.available + spend.budget.committed == self.budget
        return spend.total.known_cost


def ends(filled: Filled) -> Counter[str]:
    """How items ended: by the model that wrote them, or why none did."""
    return Counter(filled.written) + Counter(str(reason) for reason in filled.unfilled.values())


def unusable_cost(records: Sequence[CallRecord]) -> tuple[int, int]:
    """Calls that gave no usable text, and what went on them."""
    costs = [record.cost or 0 for record in records if record.outcome is CallOutcome.UNUSABLE]
    return len(costs), sum(costs)
