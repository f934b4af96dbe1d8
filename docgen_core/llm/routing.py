"""Which provider writes which item: a stable choice by weight, and another where that one is unusable.

Weighted rendezvous hashing: each provider has a ticket of its own for an item, and the best ticket
wins, so that a changed weight moves items to or from that provider only. What does not belong
here: why a provider is unusable, and what is asked of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from decimal import Context, Decimal

from docgen_core.llm.mix import PROCEDURAL, ProviderMix

_EXACT = Context(prec=24)
"""Logarithms are rounded alike on every machine, which those of floats are not."""
_SPAN = 2**256


def route(mix: ProviderMix, build: str, item: str, round_: int = 0, *, unusable: Collection[str] = ()) -> str:
    """The provider's name for an item in a round, or `procedural`.

    The share of an unusable provider (in quarantine, over its cap) goes by a second hash over the
    fallback pool, less those that are unusable; where nobody is left, to `procedural`.
    """
    told = f"{build}|{item}|{round_}"
    chosen = rendezvous({provider.name: provider.weight for provider in mix.providers}, told)
    if chosen not in unusable:
        return chosen
    pool = {member.to: member.share for member in mix.fallback if member.to not in unusable}
    return rendezvous(pool, f"fallback|{told}") if pool else PROCEDURAL


def rendezvous(weights: Mapping[str, Decimal], told: str) -> str:
    """One of the names, each in proportion to its weight, the same for the same text."""
    return max(weights, key=lambda name: (_ticket(told, name, weights[name]), name))


def _ticket(told: str, name: str, weight: Decimal) -> Decimal:
    """Exponentially distributed with mean 1/weight, negated: the first to arrive is the largest."""
    digest = hashlib.sha256(f"{told}|{name}".encode()).digest()
    uniform = _EXACT.divide(Decimal(int.from_bytes(digest, "big") + 1), Decimal(_SPAN + 1))
    return _EXACT.divide(_EXACT.ln(uniform), weight)
