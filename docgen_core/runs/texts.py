"""The texts of a catalogue's unit, written by language models under the fleet's budget.

One `Writers` for a worker's whole work on a build: it holds the worker's slices of the budget, its
cache and its knowledge of providers from unit to unit. What does not belong here: how models are
asked (llm/), and what a unit publishes (unit.py).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import RecordRefused
from docgen_core.llm import calls
from docgen_core.llm.batches import BatchDesk
from docgen_core.llm.breakers import Quarantine
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.gates import Field, check_text
from docgen_core.llm.guard import DistributedBudgetGuard, SpendBook
from docgen_core.llm.items import CallOutcome, CallRecord, Filled, TextItem
from docgen_core.llm.mix import ProviderMix, parse_mix
from docgen_core.runs.manifest import Answers, Plan, Texts
from docgen_core.state.budget import ModelUsage, Settlement
from docgen_core.state.contract import StateStore

CHECK_SECONDS = 0.5
"""Between two looks whether the unit is still ours."""
SOURCE = "of this run"

Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """How a worker asks language models; nothing of it decides what a text may be."""

    concurrency: int = 8
    """Calls at once."""
    max_rejected_percent: int = 50
    """A unit fails when more of its models' texts are turned down."""


class Writers:
    """The language models of one build, as one worker asks them. Use from one thread; `close` at the end."""

    def __init__(
        self, plan: Plan, mix: ProviderMix, state: StateStore, blobs: BlobStore, worker: str, settings: WriterSettings
    ) -> None:
        # A procedural build, and every run of documents, never needs it.
        from docgen_core.llm.runner import CatalogueRunner

        self._plan, self._mix, self._settings = plan, mix, settings
        self._state, self._blobs, self._worker = state, blobs, worker
        self._cache = ReplyCache(blobs)
        self._calls: list[CallRecord] = []
        budget = state.spend(plan.run_id).budget
        with ExitStack() as held:
            self._loop = held.enter_context(asyncio.Runner())
            self._guard: DistributedBudgetGuard | SpendBook
            if budget is None:
                self._guard = SpendBook(state, plan.run_id)
                held.callback(self._guard.close)
            else:
                self._guard = held.enter_context(DistributedBudgetGuard(state, plan.run_id, worker, budget.cap))
            self._runner = CatalogueRunner(
                mix,
                build=plan.run_id,
                guard=self._guard,
                cache=self._cache,
                quarantine=Quarantine(state, plan.run_id),
                concurrency=settings.concurrency,
                on_call=self._calls.append,
            )
            held.callback(lambda: self._loop.run(calls.close()))
            self._held = held.pop_all()

    @classmethod
    def open(
        cls, plan: Plan, state: StateStore, blobs: BlobStore, worker: str, settings: WriterSettings
    ) -> Writers | None:
        """The writers of a planned build; None where its texts are procedural.

        Raises `UsageError` where the environment lacks a provider's key, or a budget a model's price.
        """
        spec = plan.catalogue_spec
        if spec.mix is None:
            return None
        mix = parse_mix(spec.mix, SOURCE)
        mix.require_keys()
        if state.spend(plan.run_id).budget is not None:
            mix.require_prices()
        return cls(plan, mix, state, blobs, worker, settings)

    def fill(self, unit: int, items: Sequence[TextItem], check: Check) -> Filled:
        """What models wrote for a unit's items; `check` is asked all the while, and what it raises ends the calls.

        Raises `BatchPending` when a vendor's batch is waited for.
        """
        self._calls.clear()
        filled = self._loop.run(self._fill(unit, items, check))
        for item in items:
            kept = item.id not in filled.texts
            if kept and (rule := check_text(item.procedural, item.language, Field.DESCRIPTION)) is not None:
                raise RecordRefused(f"item {item.id}: its procedural text is turned down ({rule}): {item.procedural!r}")
        return filled

    @property
    def calls(self) -> Sequence[CallRecord]:
        """What was asked for the unit in hand, also when it ended before its end."""
        return self._calls

    def audit(self, items: Sequence[TextItem], filled: Filled) -> Texts:
        """The unit's provenance and audit, as its part tells them.

        Raises `RecordRefused` when more texts were turned down than the settings allow.
        """
        rejected: dict[str, dict[str, int]] = {}
        for (model, rule), count in filled.rejected.items():
            rejected.setdefault(model, {})[rule.value] = count
        texts = Texts(
            items=len(items),
            written=dict(filled.written),
            rounds=dict(Counter(str(text.round) for text in filled.texts.values())),
            unfilled=dict(Counter(reason.value for reason in filled.unfilled.values())),
            rejected=rejected,
            answers=self._answers(),
        )
        if not texts.accepted_within(self._settings.max_rejected_percent):
            worst = ", ".join(f"{model} {rule.value} {n}" for (model, rule), n in filled.rejected.most_common(3))
            judged = texts.turned_down + texts.filled
            raise RecordRefused(
                f"{texts.turned_down} of {judged} texts of models were turned down ({worst}), "
                f"the limit is {self._settings.max_rejected_percent} per cent; choose other models for a new version, "
                "or raise --max-rejected-percent and resume"
            )
        return texts

    def settlement(self) -> Settlement | None:
        """What the budget is to book with the unit."""
        return self._guard.settlement()

    def close(self) -> None:
        """Settle what was spent, give back what is left, close connections."""
        self._held.close()

    async def _fill(self, unit: int, items: Sequence[TextItem], check: Check) -> Filled:
        desk = BatchDesk(self._blobs, self._state, self._plan.run_id, unit, self._worker, self._cache)
        task = asyncio.ensure_future(self._runner.run(items, desk=desk))
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=CHECK_SECONDS)
                check()
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _answers(self) -> dict[str, Answers]:
        """What the answers are worth, each once, whether they were paid for here or came out of the cache."""
        used: dict[str, ModelUsage] = {}
        seen: set[str] = set()
        for call in self._calls:
            if call.outcome is CallOutcome.FAILED or call.request_digest in seen or not call.items:
                continue
            seen.add(call.request_digest)
            provider = self._mix.provider(call.provider)
            known = call.input_tokens is not None and call.output_tokens is not None
            # Not by who brought it: out of the cache an answer is worth what it was.
            by_batch = provider.batch is not None and call.round == 0
            one = provider.used(call.input_tokens or 0, call.output_tokens or 0, batch=by_batch)
            one = one if known else ModelUsage(1, unpriced_calls=1)
            used[call.model] = used.get(call.model, ModelUsage()) + one
        return {
            model: Answers(
                calls=each.calls,
                input_tokens=each.input_tokens,
                output_tokens=each.output_tokens,
                cost=each.known_cost,
                unpriced_calls=each.unpriced_calls,
            )
            for model, each in used.items()
        }
