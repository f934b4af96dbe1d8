"""A desk killed at each step, and another one that comes after it: handed in once, collected once, billed once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from dying_desk import STEPS, Midwife, requests_of
from fake_batches import FakeBatches

from docgen_core.blobs import open_blobs
from docgen_core.llm.batches import BatchDesk
from docgen_core.llm.cache import ReplyCache
from docgen_core.llm.mix import Price, Provider
from docgen_core.state import open_state
from docgen_core.state.contract import RunKind, RunMarker

CAP = 1_000_000_000
START = 1_800_000_000
"""Seconds since 1970, on the desks' clock."""
LINES = 2
ALL, NONE = "all", "none"
BILLED, WORST, NOTHING = "billed", "worst", "nothing"

# By step: batches handed in, answers that the successor has, what is spent. With a list of batches, and without.
SAME = (1, ALL, BILLED)
OUTCOMES = {
    "before the intent": (SAME, SAME),
    "before the grant": ((0, NONE, NOTHING), (0, NONE, NOTHING)),
    "before it is handed in": ((0, NONE, NOTHING), (0, NONE, WORST)),
    "before the id is stored": (SAME, (1, NONE, WORST)),
}


@pytest.fixture(scope="module")
def midwife() -> Iterator[Midwife]:
    with Midwife() as running:
        yield running


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("model", ["openai/alpha-small", "anthropic/alpha-small"])
def test_whoever_comes_after_a_death_hands_in_nothing_again_and_books_what_was_billed(
    midwife: Midwife, tmp_path: Path, full_figures: bool, model: str, step: str
) -> None:
    finds = model.startswith("openai")
    submissions, answered, spent = OUTCOMES.get(step, (SAME, SAME))[0 if finds else 1]
    state_uri, blobs_uri = f"sqlite://{tmp_path}/state.db", f"file://{tmp_path}/blobs"
    with FakeBatches(slow_polls=1) as server, open_state(state_uri) as state:
        provider = Provider(
            name="alpha",
            model=model,
            weight=Decimal(1),
            api_base=f"{server.base}/v1",
            max_output_tokens=300,
            timeout_seconds=20,
            batch=True,
            price=Price(input_per_million=server.price[0], output_per_million=server.price[1]),
        )
        state.create_run(RunMarker("r1", RunKind.CATALOGUE, "catalogue/r1", {}, "0" * 64, 9, 1, 9))
        state.set_budget("r1", CAP)
        work = {
            "provider": provider.model_dump(mode="json"),
            "blobs": blobs_uri,
            "state": state_uri,
            "run": "r1",
            "count": LINES,
            "real": full_figures,  # vendors' libraries take seconds to load
        }
        assert midwife.run(worker="first", start=START, step=step, **work) == -signal.SIGKILL
        assert server.submissions == (0 if step in STEPS[:3] else 1)
        assert midwife.run(worker="second", start=START + 60, step=None, **work) == 0

        requests, blobs = requests_of(provider, LINES), open_blobs(blobs_uri)
        cache = ReplyCache(blobs)
        kept = [asyncio.run(cache.kept(request.digest)) for request in requests]
        there, budget = state.spend("r1"), state.spend("r1").budget

        assert server.submissions == submissions
        assert [answer is not None for answer in kept] == [answered == ALL] * LINES
        worst = sum(provider.worst_case(request.input_tokens, batch=True).known_cost for request in requests)
        assert server.billed == (LINES * server.bill(server.lines(0, {})) if answered == ALL else 0)  # type: ignore[arg-type]
        assert there.total.cost == {BILLED: server.billed, WORST: worst, NOTHING: 0}[spent]
        assert budget and (budget.open_grants, budget.reserved, budget.overshoot) == (0, 0, 0)
        assert budget.available == CAP - (there.total.cost or 0)

        # Whoever comes third has nothing to do.
        polls = server.polls
        assert asyncio.run(BatchDesk(blobs, state, "r1", 3, "third", cache).answers(provider, requests)) == {}
        assert (server.submissions, server.polls, state.spend("r1")) == (submissions, polls, there)
