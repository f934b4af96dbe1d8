"""Batches: one request to a vendor for all of a unit's calls of a provider, at the vendor's batch price.

A batch outlives its worker. It is handed in at most once, whatever happens: the intent is created
before anything is asked of the vendor, and the vendor's id is stored before anybody waits. Its
grant lives as long as it does, and is settled and closed by whoever collects. Decision 14 says what
happens in each moment of death. What does not belong here: how vendors' batches are spoken to
(batch_clients.py), how records look (batch_records.py), and which items are asked of whom (runner.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import BudgetUnset, GrantUnknown
from docgen_core.llm.batch_clients import BatchClient, Line, client_for
from docgen_core.llm.batch_records import BatchRecord, Intent, Outcome, Placing, Settled, Worst
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request
from docgen_core.state.budget import GrantState, ModelUsage, Settlement
from docgen_core.state.budget_contract import BudgetStore

WINDOW_SECONDS = 86_400
"""Within which a vendor wants to be done."""
EXPIRED_SECONDS = WINDOW_SECONDS + 86_400
"""After so long a batch that has not ended counts as expired: some vendors end none by themselves."""
GRANT_SECONDS = float(EXPIRED_SECONDS + 3_600)
"""A batch's grant outlives it."""
FIRST_POLL_SECONDS = 30.0
LAST_POLL_SECONDS = 600.0
POLL_SHARE = 4
"""Between looks passes a quarter of the batch's age."""
GRANT_PREFIX = "batch-"
FREE_SHARE = 4
"""One part in so many of the money that is free is left to calls in real time, however many batches there are."""
MONEY_SECONDS = 120.0
"""Between looks whether others' batches have given money back."""
SUBMIT_ATTEMPTS = 3
SUBMIT_PAUSE_SECONDS = 5.0
LONGEST_SUBMIT_PAUSE = 60.0
"""A vendor that asks for more gets no batch."""
GIVE_UP_SECONDS = 900.0
"""An intent without an id is nobody's work any more after so long: handing in takes at most eight minutes."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class BatchPending(Exception):
    """The vendor works on a batch: the unit is to be released, and looked at again later."""

    def __init__(self, provider: str, retry_seconds: float) -> None:
        super().__init__(f"the batch at {provider} is under way; look again in {retry_seconds:.0f} s")
        self.provider, self.retry_seconds = provider, retry_seconds


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One request of a batch that was settled just now: a row of `llm_usage` but for what its text was worth."""

    answer: Answer | None
    """Stands in the `ReplyCache` too; None when the batch gave none, and the request is to be made in real time."""
    detail: str | None
    """Why there is none, in one line without any key."""
    cost: int | None
    """Nano-dollars that were booked for it, at batch prices; None where the model has no price."""


class Batches(Protocol):
    """What a runner asks of a unit's desk."""

    async def answers(self, provider: Provider, requests: Sequence[Request]) -> Mapping[str, BatchLine]:
        """The lines that were settled by this very call, by the requests' digests; all money is booked already.

        Submits what is not in the `ReplyCache` where nobody has submitted for this unit and provider
        before. After it, whatever a batch has answered (now or ever) is in the `ReplyCache`; what is
        not there is to be asked in real time, in the same round: lines that failed, a batch that was
        refused, and a grant that was. Lines may be among them that are not asked for any more. Where
        others' batches hold the money, it is waited for.

        Without requests nothing is handed in or waited for: a batch of somebody before is collected
        if it has ended. Raises `BatchPending`; `CallFailed` with `Failure.QUARANTINE` where the
        vendor refuses us; `UsageError` where the environment has no key; and `StorageFailed`.
        """
        ...


class BatchDesk:
    """The batches of one unit, for one worker. Belongs to the event loop of its `ReplyCache`."""

    def __init__(
        self,
        blobs: BlobStore,
        state: BudgetStore,
        run_id: str,
        unit: int,
        worker: str,
        cache: ReplyCache,
        *,
        clients: Callable[[Provider], BatchClient] = client_for,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`clock` is wall time: records are compared with it by other machines."""
        self._blobs, self._state, self._run_id, self._unit, self._worker = blobs, state, run_id, unit, worker
        self._cache, self._clients, self._clock, self._sleep = cache, clients, clock, sleep

    async def answers(self, provider: Provider, requests: Sequence[Request]) -> Mapping[str, BatchLine]:
        """See `Batches.answers`."""
        record = BatchRecord(self._blobs, self._run_id, self._unit, provider.name)
        try:
            intent = await asyncio.to_thread(record.intent)
            if intent is None:
                return await self._begun(provider, record, requests)
            if await asyncio.to_thread(record.outcome):
                return {}
            placing = await asyncio.to_thread(record.placing) or await self._recovered(provider, record, intent)
            return await self._ended(provider, record, intent, placing)
        except BatchPending:
            if requests:
                raise
            return {}

    # Handing in ---------------------------------------------------------------------------

    async def _begun(
        self, provider: Provider, record: BatchRecord, requests: Sequence[Request]
    ) -> Mapping[str, BatchLine]:
        by_digest = {request.digest: request for request in requests}
        kept = await asyncio.gather(*map(self._cache.kept, by_digest))
        wanted = {digest: by_digest[digest] for digest, answer in zip(by_digest, kept, strict=True) if answer is None}
        if not wanted:
            return {}
        provider.key()  # Without one nothing is begun.
        client = self._clients(provider)
        intent = self._intent(provider, wanted)
        if not await asyncio.to_thread(self._fits, intent):
            raise BatchPending(provider.name, MONEY_SECONDS)
        placing = await _to_its_end(self._placed(provider, client, record, intent, wanted))
        if placing.batch:
            raise BatchPending(provider.name, FIRST_POLL_SECONDS)
        return await self._ended(provider, record, intent, placing)

    def _intent(self, provider: Provider, requests: Mapping[str, Request]) -> Intent:
        worst = {ours: provider.worst_case(request.input_tokens, batch=True) for ours, request in requests.items()}
        return Intent(
            grant=f"{GRANT_PREFIX}{uuid4().hex}",
            run_id=self._run_id,
            worker=self._worker,
            model=provider.model,
            at=int(self._clock()),
            requests={
                ours: Worst(input_tokens=used.input_tokens, output_tokens=used.output_tokens, cost=used.cost)
                for ours, used in worst.items()
            },
        )

    async def _placed(
        self,
        provider: Provider,
        client: BatchClient,
        record: BatchRecord,
        intent: Intent,
        requests: Mapping[str, Request],
    ) -> Placing:
        """Intent, grant, submission, id: in this order, and nothing of it twice."""
        if not await asyncio.to_thread(record.begin, intent):
            raise BatchPending(provider.name, FIRST_POLL_SECONDS)
        if await asyncio.to_thread(self._granted, intent):
            placing = await self._submitted(provider, client, intent, requests)
        else:
            placing = Placing(at=intent.at, reason="the budget could not carry the batch")
        if placing is None:
            return await self._recovered(provider, record, intent, over=True)
        stands = await asyncio.to_thread(record.place, placing)
        if placing.batch and stands.batch != placing.batch:
            _log.warning("the batch %s was given up before it was handed in, and is charged whole", placing.batch)
            await asyncio.to_thread(self._book, intent, intent.worst, sequence=2)
        return stands

    def _fits(self, intent: Intent) -> bool:
        """Whether the batch is the only one, or leaves its share to others; else their batches will give money back."""
        if not intent.worst.known_cost or (budget := self._state.spend(self._run_id).budget) is None:
            return True
        open_grants = self._state.grants(self._run_id, {GrantState.OPEN})
        others = sum(grant.held for grant in open_grants if grant.id.startswith(GRANT_PREFIX))
        free = budget.available + others
        return not others or others + intent.worst.known_cost <= free - free // FREE_SHARE

    def _granted(self, intent: Intent) -> bool:
        """Whether the money is set aside; without a budget, or a price, there is none to set aside."""
        if not (amount := intent.worst.known_cost):
            return True
        try:
            grant = self._state.open_grant(self._run_id, intent.worker, amount, intent.grant, seconds=GRANT_SECONDS)
        except BudgetUnset:
            return True
        return grant is not None

    async def _submitted(
        self, provider: Provider, client: BatchClient, intent: Intent, requests: Mapping[str, Request]
    ) -> Placing | None:
        """Hand it in, again where the vendor has surely not begun; None when nobody knows whether it has."""
        for attempt in range(1, SUBMIT_ATTEMPTS + 1):
            try:
                return Placing(at=int(self._clock()), batch=await client.submit(provider, requests, intent.grant))
            except CallFailed as failed:
                if failed.may_be_billed:
                    return None
                pause = failed.retry_after or SUBMIT_PAUSE_SECONDS
                final = failed.failure is not Failure.TRANSIENT or attempt == SUBMIT_ATTEMPTS
                if final or pause > LONGEST_SUBMIT_PAUSE:
                    return Placing(at=int(self._clock()), reason=str(failed))
                await self._sleep(pause)
        raise AssertionError("the last attempt returns")

    async def _recovered(
        self, provider: Provider, record: BatchRecord, intent: Intent, *, over: bool = False
    ) -> Placing:
        """The placing of an intent that nobody has placed. `over`: its worker has ended the attempt itself.

        Raises `BatchPending` while it may still be handed in.
        """
        client = self._clients(provider)
        age = self._clock() - intent.at
        over = over or age >= GIVE_UP_SECONDS
        try:
            finds, found = client.finds, await self._asked(provider, age, client.find(provider, intent.grant))
        except _Gone:
            finds, found = False, None
        if found:
            placing = Placing(at=intent.at, batch=found)
        elif not over or (finds and age < GIVE_UP_SECONDS):
            raise BatchPending(provider.name, _between_polls(age))
        elif finds:
            placing = Placing(at=int(self._clock()), reason="the batch never came to the vendor")
        else:
            charged = await asyncio.to_thread(self._may_be_billed, intent)
            placing = Placing(at=int(self._clock()), reason="nobody knows the batch's id", charged=charged)
        return await asyncio.to_thread(record.place, placing)

    def _may_be_billed(self, intent: Intent) -> bool:
        """Whether it may have been handed in: where there is a budget, its grant was opened before that."""
        if self._state.spend(self._run_id).budget is None:
            return True
        return any(grant.id == intent.grant for grant in self._state.grants(self._run_id))

    # Collecting ---------------------------------------------------------------------------

    async def _ended(
        self, provider: Provider, record: BatchRecord, intent: Intent, placing: Placing
    ) -> Mapping[str, BatchLine]:
        """The lines of the batch, in the cache and booked. Raises `BatchPending` while it has not ended."""
        if placing.batch is None:
            reason, charged = placing.reason, placing.charged
            lines: Mapping[str, Line] = {}
        else:
            lines, reason, charged = await self._collected(provider, placing.batch, placing.at)
        for ours, line in lines.items():
            if ours in intent.requests and line.answer is not None:
                await self._cache.keep(ours, line.answer)
        used = {
            ours: _used(provider, lines.get(ours), worst, charged) for ours, worst in sorted(intent.requests.items())
        }
        await asyncio.to_thread(self._book, intent, sum(used.values(), ModelUsage()))
        settled = {ours: _settled(lines.get(ours), used[ours], reason) for ours in used}
        written = {
            ours: Settled(answered=line.answer is not None, cost=line.cost, detail=line.detail)
            for ours, line in settled.items()
        }
        await asyncio.to_thread(record.end, Outcome(at=int(self._clock()), lines=written))
        called = placing.batch is not None or charged
        return settled if called else {}

    async def _collected(
        self, provider: Provider, batch: str, since: int
    ) -> tuple[Mapping[str, Line], str | None, bool]:
        """The lines, why others are missing, and whether those may be billed."""
        client = self._clients(provider)
        age = self._clock() - since
        try:
            status = await self._asked(provider, age, client.status(provider, batch))
            if status.ended:
                lines = await self._asked(provider, age, client.collect(provider, status))
                return lines, status.detail or "the batch's results hold no such line", False
        except _Gone:
            return {}, "the vendor does not know the batch any more", True
        except BatchPending:
            if age < EXPIRED_SECONDS:
                raise
        if age < EXPIRED_SECONDS:
            raise BatchPending(provider.name, _between_polls(age))
        return {}, "the batch has not ended, and counts as expired", True

    async def _asked(self, provider: Provider, age: float, asked: Awaitable[T]) -> T:
        """The vendor's answer. Raises `BatchPending` where there is none now, and `CallFailed` where we are refused."""
        try:
            return await asked
        except CallFailed as failed:
            if failed.status == 404:
                raise _Gone from None
            if failed.failure is Failure.QUARANTINE:
                raise
            raise BatchPending(provider.name, max(failed.retry_after or 0.0, _between_polls(age))) from None

    def _book(self, intent: Intent, used: ModelUsage, sequence: int = 1) -> None:
        """Settle and close the batch's grant; what it used without one is booked as it is."""
        usage = {intent.model: used}
        try:
            self._state.settle_grant(self._run_id, Settlement(intent.grant, sequence, usage))
            self._state.close_grant(self._run_id, intent.grant)
        except GrantUnknown:
            if used != ModelUsage():
                self._state.add_spend(self._run_id, intent.grant, usage)


class _Gone(Exception):
    """The vendor knows no such batch."""


def _between_polls(age: float) -> float:
    return min(max(age / POLL_SHARE, FIRST_POLL_SECONDS), LAST_POLL_SECONDS)


def _used(provider: Provider, line: Line | None, worst: Worst, charged: bool) -> ModelUsage:
    """What a line is booked with: its worst case where nobody knows what it cost."""
    if line is None or line.answer is None:
        return worst.usage if charged else ModelUsage()
    answer = line.answer
    if answer.input_tokens is None or answer.output_tokens is None:
        return worst.usage
    return provider.used(answer.input_tokens, answer.output_tokens, batch=True)


def _settled(line: Line | None, used: ModelUsage, reason: str | None) -> BatchLine:
    if line is not None and line.answer is not None:
        return BatchLine(line.answer, None, used.cost)
    return BatchLine(None, (line.detail if line else None) or reason, used.cost)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """The work's result. A cancellation waits for it: what is handed in has to be written down."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()
        raise
