"""The table `llm_usage`: a row for each call of a language model, and each answer out of the cache.

It says what a build has asked, paid and got, attempt by attempt. What does not belong here: what
stands in the root (manifest.py), and the budget's own books (state/).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from docgen_core.golden import CATALOGUE_KEY_FIELDS, DECIMAL, column
from docgen_core.llm.items import CallRecord
from docgen_core.state.budget import NANO
from docgen_core.state.contract import Lease

LLM_USAGE = "llm_usage"

SCHEMA = pa.schema(
    [
        *CATALOGUE_KEY_FIELDS,
        column("unit", pa.int32(), "Unit of the build: a company range."),
        column("generation", pa.int64(), "Of the unit's lease; a higher one is a later attempt."),
        column("attempt", pa.int32(), "Attempt at the unit, from 1."),
        column("call", pa.int32(), "From 1 within the attempt, in the order of their ends."),
        column("provider", pa.string(), "Name of the provider in the mix."),
        column("model", pa.string(), "Model as the mix names it; prices go by it."),
        column("reported_model", pa.string(), "Model as the vendor names it.", nullable=True),
        column("item", pa.string(), "Items that were asked for: COMPANY/PRODUCT, separated by spaces."),
        column("items", pa.int32(), "How many they are."),
        column("round", pa.int32(), "From 0; what was missing or turned down is asked for again in the next."),
        column("outcome", pa.string(), "answered, unusable (an answer without a usable text) or failed."),
        column("detail", pa.string(), "Why it failed.", nullable=True),
        column("accepted", pa.int32(), "Texts that passed the gates."),
        column("rejected", pa.int32(), "Texts that were turned down."),
        column("input_tokens", pa.int64(), "As the vendor counts them.", nullable=True),
        column("output_tokens", pa.int64(), "As the vendor counts them.", nullable=True),
        column("cost_usd", DECIMAL, "US dollars booked here; 0 out of the cache, none without a price.", nullable=True),
        column("cached", pa.bool_(), "Whether the answer came out of the cache."),
        column("batch", pa.bool_(), "Whether it was asked for in a batch."),
        column("request_digest", pa.string(), "SHA-256 of the request: the answer's name in the cache."),
        column("request_id", pa.string(), "The vendor's id of the answer.", nullable=True),
    ]
)


def usage_rows(
    *, run_id: str, catalogue_version: str, lease: Lease, calls: Sequence[CallRecord]
) -> list[dict[str, Any]]:
    """The rows of one attempt at a unit, which the lease was for."""
    return [
        {
            "run_id": run_id,
            "catalogue_version": catalogue_version,
            "unit": lease.index,
            "generation": lease.generation,
            "attempt": lease.attempt,
            "call": number,
            "provider": call.provider,
            "model": call.model,
            "reported_model": call.reported_model,
            "item": " ".join(call.items),
            "items": len(call.items),
            "round": call.round,
            "outcome": call.outcome.value,
            "detail": call.detail,
            "accepted": call.accepted,
            "rejected": call.rejected,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "cost_usd": None if call.cost is None else Decimal(call.cost) / NANO,
            "cached": call.cached,
            "batch": call.batch,
            "request_digest": call.request_digest,
            "request_id": call.request_id,
        }
        for number, call in enumerate(calls, start=1)
    ]
