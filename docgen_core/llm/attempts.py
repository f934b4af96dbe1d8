"""One request's way through its lane: turn, reservation, call, again after failures, and the end of each reservation.

What does not belong here: what calls say about their provider (lanes.py), and what becomes of texts (runner.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from docgen_core.errors import DocgenError
from docgen_core.llm.calls import CallFailed, Failure
from docgen_core.llm.guard import Reservation
from docgen_core.llm.items import CallOutcome, CallRecord, TextItem
from docgen_core.llm.lanes import PATIENCE_SECONDS, GivenUp, Lane, Lost
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request
from docgen_core.state.budget import ModelUsage


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items that a provider is asked for in one request."""

    provider: Provider
    items: tuple[TextItem, ...]
    round: int
    request: Request

    def failed(self, detail: str, cost: int | None, *, batch: bool = False) -> CallRecord:
        """The record of a call that gave nothing, and of what was booked for it."""
        return self._record(None, CallOutcome.FAILED, detail, cost, 0, 0, False, batch)

    def answered(
        self,
        answer: Answer,
        cost: int | None,
        accepted: int,
        rejected: int,
        *,
        cached: bool = False,
        batch: bool = False,
    ) -> CallRecord:
        """The record of an answer, and of what was booked for it."""
        outcome = CallOutcome.ANSWERED if accepted else CallOutcome.UNUSABLE
        return self._record(answer, outcome, None, cost, accepted, rejected, cached, batch)

    def _record(
        self,
        answer: Answer | None,
        outcome: CallOutcome,
        detail: str | None,
        cost: int | None,
        accepted: int,
        rejected: int,
        cached: bool,
        batch: bool,
    ) -> CallRecord:
        return CallRecord(
            provider=self.provider.name,
            model=self.provider.model,
            reported_model=answer.model if answer else None,
            items=tuple(item.id for item in self.items),
            round=self.round,
            request_digest=self.request.digest,
            request_id=answer.request_id if answer else None,
            outcome=outcome,
            detail=detail,
            accepted=accepted,
            rejected=rejected,
            input_tokens=answer.input_tokens if answer else None,
            output_tokens=answer.output_tokens if answer else None,
            cost=cost,
            cached=cached,
            batch=batch,
        )


class Attempt:
    """One chunk's way through its lane, until it is answered or given up."""

    def __init__(self, lane: Lane, chunk: Chunk, is_usable: Callable[[Answer], bool]) -> None:
        self._lane, self._chunk, self._is_usable = lane, chunk, is_usable
        self._reservation: Reservation | None = None
        self.paid: Answer | None = None
        """What has come back; its turn and its reservation last until `settle`."""

    async def answer(self) -> Answer:
        """Ask until there is an answer. Raises `GivenUp`, and what is wrong with this machine."""
        lane = self._lane
        failing_since: float | None = None
        while True:
            await lane.turn()
            began = lane.clock()
            call = asyncio.ensure_future(self._once())
            lane.begun(call)
            try:
                await call
            except CallFailed as failed:
                failing_since = began if failing_since is None else failing_since
                await self._failed(failed, began)
                if failed.timed_out or lane.clock() - failing_since > PATIENCE_SECONDS:
                    raise GivenUp(Lost.PROVIDER) from None
            except BaseException as error:
                if self.paid is None:
                    lane.ended()
                if not isinstance(error, asyncio.CancelledError) or _is_cancelled():
                    raise
                if self.paid is None:  # the lane has given it up
                    raise GivenUp(Lost.PROVIDER) from None
            if self.paid is not None:  # also where it came together with the end of its provider
                return await self._weighed(self.paid)

    @property
    def cost(self) -> int | None:
        """Nano-dollars that the answer has cost; 0 where nothing was paid, None without a price."""
        return 0 if self.paid is None else used(self._lane.provider, self._chunk.request, self.paid).cost

    async def settle(self) -> None:
        """Book what the answer has cost, once it is stored. The turn lasts until here: a death costs no more."""
        if self._reservation is not None and self.paid is not None:
            reservation, self._reservation = self._reservation, None
            self._lane.succeeded()
            actual = used(self._lane.provider, self._chunk.request, self.paid)
            await self._lane.purse.settle(reservation, actual)

    async def _once(self) -> None:
        lane, chunk = self._lane, self._chunk
        worst = lane.provider.worst_case(chunk.request.input_tokens)
        reservation = await lane.purse.reserve(lane.provider.model, worst)
        if reservation is None:
            raise GivenUp(Lost.BUDGET)
        try:
            answer = await lane.call(lane.provider, chunk.request)
        except CallFailed as failed:
            lane.on_call(chunk.failed(str(failed), worst.cost if failed.may_be_billed else 0))
            await (lane.purse.charge if failed.may_be_billed else lane.purse.cancel)(reservation)
            raise
        except DocgenError:  # no key, or no litellm: nothing was sent
            await lane.purse.cancel(reservation)
            raise
        except BaseException:
            lane.on_call(chunk.failed("given up while it was under way", worst.cost))
            await lane.purse.charge(reservation)
            raise
        self._reservation, self.paid = reservation, answer

    async def _weighed(self, answer: Answer) -> Answer:
        """Judge the answer while the turn lasts, so that no call begins after one that was too much."""
        reason = self._lane.weigh(self._chunk.request, self._is_usable(answer), self.cost or 0)
        if reason is not None and self._lane.close():
            await self._lane.banish(reason)
        return answer

    async def _failed(self, failed: CallFailed, began: float) -> None:
        lane = self._lane
        if failed.failure is Failure.TRANSIENT:
            lane.failed(failed, began)
            return
        reason = str(failed) if failed.failure is Failure.QUARANTINE else lane.refused()
        banished = reason is not None and lane.close()
        lane.ended()
        if banished and reason:
            await lane.banish(reason)
        raise GivenUp(Lost.PROVIDER if failed.failure is Failure.QUARANTINE else Lost.ITEM)


def used(provider: Provider, request: Request, answer: Answer) -> ModelUsage:
    """What an answer is booked at: its worst case where the vendor does not tell its usage."""
    if answer.input_tokens is None or answer.output_tokens is None:
        return provider.worst_case(request.input_tokens)
    return provider.used(answer.input_tokens, answer.output_tokens)


def _is_cancelled() -> bool:
    """Whether it is the running task that was cancelled, and not what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
