"""Batches: one request to a vendor for all of a unit's calls of a provider, at the vendor's batch price.

What does not belong here: how vendors' batches are spoken to (batch_clients.py), and which items
are asked of whom (runner.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request


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
        refused, and a grant that was. Raises `BatchPending`, and `CallFailed` with
        `Failure.QUARANTINE` where the vendor refuses us.
        """
        ...
