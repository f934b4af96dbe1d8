"""From items to texts: each item is asked for where its hash sends it, until it has a text or a reason for none.

A run goes in passes. In each, every pending item is routed, what goes to one provider is asked for in
chunks, all at once, and then the replies are judged in the order of the items, whichever came first.
What does not belong here: one provider's calls (lanes.py), prompts (prompts.py), what becomes of the
texts (runs/).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from docgen_core.errors import StorageFailed, UsageError
from docgen_core.llm import calls
from docgen_core.llm.attempts import Attempt, Chunk, used
from docgen_core.llm.batches import Batches, BatchLine, BatchPending
from docgen_core.llm.breakers import Quarantine
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.guard import DistributedBudgetGuard, SpendBook
from docgen_core.llm.items import CallOutcome, CallRecord, Filled, TextItem, Unfilled
from docgen_core.llm.job import Job, Pending, Told, is_usable
from docgen_core.llm.lanes import Call, GivenUp, Lane, Slots
from docgen_core.llm.mix import PROCEDURAL, Provider, ProviderMix
from docgen_core.llm.prompts import requests_for
from docgen_core.llm.purse import Purse, ended
from docgen_core.llm.requests import Answer
from docgen_core.llm.routing import route

T = TypeVar("T")

_log = logging.getLogger(__name__)


class CatalogueRunner:
    """Fills items with texts of a mix's models. Lives as long as its worker, in one event loop.

    What it learns of providers (pace, hanging, unusable replies) holds from run to run.
    """

    def __init__(
        self,
        mix: ProviderMix,
        *,
        build: str,
        guard: DistributedBudgetGuard | SpendBook,
        cache: ReplyCache,
        quarantine: Quarantine,
        concurrency: int,
        on_call: Callable[[CallRecord], None],
        call: Call = calls.call,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`concurrency` calls at once at most, over all providers. Raises `UsageError` for a budget without prices."""
        if concurrency < 1:
            raise UsageError(f"a worker makes at least one call at once, not {concurrency}")
        if not isinstance(guard, SpendBook):
            mix.require_prices()
        self._mix, self._build, self._cache, self._quarantine = mix, build, cache, quarantine
        self._on_call = on_call
        slots, purse = Slots(concurrency), Purse(guard)
        self._lanes = {
            provider.name: Lane(
                provider,
                slots=slots,
                purse=purse,
                quarantine=quarantine,
                empty_reply_cap=mix.empty_reply_cap,
                call=call,
                on_call=on_call,
                clock=clock,
            )
            for provider in mix.providers
        }

    async def run(self, items: Sequence[TextItem], *, desk: Batches | None = None) -> Filled:
        """A text, or the reason for none, for each item; `desk` brings first requests to vendors in batches.

        Raises `BatchPending` once all that needs no batch was asked for, `StorageFailed`, and
        `UsageError` where this machine has no key. Whatever happens, also when it is cancelled, each
        call is recorded and no reservation stays open.
        """
        job = Job(items, self._mix, self._on_call)
        try:
            while job.pending:
                await self._learn_quarantine()
                if batch := await self._pass(job, self._route(job), desk):
                    raise batch
                desk = None
        finally:
            job.record_rest()
        return job.filled

    async def _learn_quarantine(self) -> None:
        try:
            reasons = await asyncio.to_thread(self._quarantine.reasons)
        except StorageFailed as failed:
            _log.warning("what others have quarantined is not known: %s", failed)
            return
        for name, lane in self._lanes.items():
            lane.quarantined = name in reasons

    # Routing ------------------------------------------------------------------------------

    def _route(self, job: Job) -> list[Chunk]:
        """The chunks of a pass; items that nobody is to be asked for get their reason.

        A provider that is known not to answer is routed to all the same: the cache may hold what it
        said before. Items that it was given up for make chunks of their own, so that the requests of
        the others are those of a build in which it answered.
        """
        groups: dict[tuple[str, str, int, str], list[TextItem]] = defaultdict(list)
        for waiting in list(job.pending.values()):
            item = waiting.item
            own = self._routed(waiting, ())
            chosen = own if own not in waiting.lost else self._routed(waiting, waiting.lost)
            if chosen == PROCEDURAL:
                job.end(waiting, self._reason(waiting))
            else:
                groups[own, chosen, waiting.round, item.language].append(item)
        found: list[Chunk] = []
        for (_, chosen, round_, _), group in groups.items():
            provider = self._mix.provider(chosen)
            found += [Chunk(provider, part, round_, asked) for part, asked in requests_for(provider, group, round_)]
        return found

    def _routed(self, waiting: Pending, unusable: Collection[str]) -> str:
        return route(self._mix, self._build, waiting.item.id, waiting.round, unusable=unusable)

    def _reason(self, waiting: Pending) -> Unfilled:
        """Why an item is left to the procedural text."""
        if self._routed(waiting, waiting.lost - waiting.too_dear) != PROCEDURAL:
            return Unfilled.BUDGET
        # The pool may give an item to the procedural text; with nobody left that is no choice of it.
        if all(lane.quarantined or name in waiting.lost for name, lane in self._lanes.items()):
            return Unfilled.UNAVAILABLE
        return Unfilled.ROUTED

    # Asking -------------------------------------------------------------------------------

    async def _pass(self, job: Job, chunks: Sequence[Chunk], desk: Batches | None) -> BatchPending | None:
        """Ask for all chunks at once, then judge the replies in the order of the chunks."""
        now: list[Chunk] = []
        by_batch: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in chunks:
            brought = desk is not None and chunk.provider.batch and not self._lanes[chunk.provider.name].quarantined
            (by_batch[chunk.provider.name] if brought else now).append(chunk)
        work: list[Coroutine[Any, Any, list[Told] | BatchPending]] = [self._ask_all(job, now)]
        if desk is not None:
            batching = [provider for provider in self._mix.providers if provider.batch]
            work += [self._ask_by_batch(job, desk, provider, by_batch[provider.name]) for provider in batching]
        outcomes = await _together(work)
        told = {each.place: each for outcome in outcomes if isinstance(outcome, list) for each in outcome}
        for chunk in chunks:
            if chunk.items[0].id in told:
                job.take(told[chunk.items[0].id])
        pending = [outcome for outcome in outcomes if isinstance(outcome, BatchPending)]
        return min(pending, key=lambda batch: batch.retry_seconds, default=None)

    async def _ask_by_batch(
        self, job: Job, desk: Batches, provider: Provider, chunks: Sequence[Chunk]
    ) -> list[Told] | BatchPending:
        """What comes of one provider's chunks: in its batch where they are in one, or else in real time.

        Also without any chunk: somebody before may have handed in a batch that has ended by now.
        """
        lane = self._lanes[provider.name]
        lines: Mapping[str, BatchLine] = {}
        try:
            lines = await desk.answers(provider, [chunk.request for chunk in chunks])
        except BatchPending as pending:
            return pending
        except CallFailed as failed:
            if failed.failure is Failure.QUARANTINE and lane.close():
                await lane.banish(str(failed))
        for digest in lines.keys() - {chunk.request.digest for chunk in chunks}:
            self._on_call(_unasked(provider, digest, lines[digest]))
        collected: list[Told] = []
        for chunk in chunks:
            line = lines.get(chunk.request.digest)
            if line is not None and line.answer is not None:
                collected.append(told := Told(chunk, line.answer, cost=line.cost, batch=True))
                job.answered(told, line.answer)
            elif line is not None:
                self._on_call(chunk.failed(line.detail or "no answer in the batch", line.cost, batch=True))
        there = {told.place for told in collected}
        for told in collected:
            if told.answer is not None:
                await self._weigh(told.chunk, told.answer, told.cost or 0)
        return collected + await self._ask_all(job, [chunk for chunk in chunks if chunk.items[0].id not in there])

    async def _ask_all(self, job: Job, chunks: Sequence[Chunk]) -> list[Told]:
        return await _together([self._ask(job, chunk) for chunk in chunks])

    async def _ask(self, job: Job, chunk: Chunk) -> Told:
        """What comes of one chunk: out of the cache, or from the provider."""
        attempt = Attempt(self._lanes[chunk.provider.name], chunk, lambda answer: is_usable(chunk, answer))
        try:
            fetched = await self._cache.fetch(chunk.request, attempt.answer)
        except GivenUp as given_up:
            return Told(chunk, lost=given_up.why)
        finally:
            if attempt.paid is not None:
                job.answered(Told(chunk, attempt.paid, cost=attempt.cost), attempt.paid)
                await attempt.settle()
        told = Told(chunk, fetched.answer, cost=attempt.cost, cached=fetched.paid is None)
        job.answered(told, fetched.answer)
        if told.cached:
            await self._weigh(chunk, fetched.answer, used(chunk.provider, chunk.request, fetched.answer).known_cost)
        return told

    async def _weigh(self, chunk: Chunk, answer: Answer, cost: int) -> None:
        """Count a reply that no call was made for here: it says as much about its provider."""
        lane = self._lanes[chunk.provider.name]
        reason = lane.weigh(chunk.request, is_usable(chunk, answer), cost)
        if reason is not None and lane.close():
            await lane.banish(reason)


def _unasked(provider: Provider, digest: str, line: BatchLine) -> CallRecord:
    """The record of a batch's line that no item asks for any more."""
    answer = line.answer
    return CallRecord(
        provider=provider.name,
        model=provider.model,
        reported_model=answer.model if answer else None,
        items=(),
        round=0,
        request_digest=digest,
        request_id=answer.request_id if answer else None,
        outcome=CallOutcome.UNUSABLE if answer else CallOutcome.FAILED,
        detail=line.detail,
        accepted=0,
        rejected=0,
        input_tokens=answer.input_tokens if answer else None,
        output_tokens=answer.output_tokens if answer else None,
        cost=line.cost,
        cached=False,
        batch=True,
    )


async def _together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all give, in order. At the first error the others are cancelled, and all have ended when this ends."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            await ended(task)
