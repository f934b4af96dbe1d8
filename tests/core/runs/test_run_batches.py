"""A catalogue whose first round goes to the vendor in batches: built at half the price, and for nothing again."""

from __future__ import annotations

import shutil
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from fake_batches import EXPIRED, FakeBatches
from fake_provider import Body, Says
from fake_writers import writer

from docgen_core import golden
from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.llm import batches
from docgen_core.llm.mix import ProviderMix, parse_mix
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.manifest import read_root
from docgen_core.runs.outcomes import DrainEnd
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.verify import verify_run
from docgen_core.state import open_state
from docgen_core.state.budget import NANO, ModelUsage

SPEC = CatalogueSpec(companies=9, products=4, range_width=3)
RUN = "catalogue-v1"
REAL_TIME_COST = 300 * 1_000 + 200 * 2_000
"""Nano-dollars of an answer in real time; half of it in a batch."""


def mix_of(base: str) -> ProviderMix:
    """One model in batches, one in real time."""
    providers = "".join(
        f"""
  - {{name: {name}, model: openai/{name}-1, weight: 1, api_base: "{base}/v1", batch: {batch}, max_output_tokens: 2000,
     timeout_seconds: 10, price: {{input_per_million: 1, output_per_million: 2}}}}"""
        for name, batch in (("alpha", "true"), ("beta", "false"))
    )
    return parse_mix(f"providers:{providers}\nempty_reply_cap_usd: 1\n", "test")


def built(folder: Path, server: FakeBatches) -> tuple[BlobStore, ModelUsage]:
    """A whole build; its blobs and all that it has spent."""
    folder.mkdir(exist_ok=True)
    blobs = open_blobs(str(folder / "blobs"))
    with open_state(folder / "state.db") as state:
        build_catalogue_run(state, blobs, "v1", SPEC, mix=mix_of(server.base), budget=NANO)
        assert work_run(RUN, state=state, blobs=blobs, worker="w").kind is DrainEnd.COMPLETED
        spend = state.spend(RUN)
    assert spend.budget and (spend.budget.open_grants, spend.budget.overshoot) == (0, 0)
    return blobs, spend.total


def test_a_build_waits_for_its_batches_and_books_what_they_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "FIRST_POLL_SECONDS", 0.05)
    monkeypatch.setattr(batches, "LAST_POLL_SECONDS", 0.05)

    def lines(number: int, body: Body) -> Says | str:
        return writer(number, body) if number else EXPIRED

    with FakeBatches(writer, lines=lines, slow_polls=2) as server:
        blobs, spend = built(tmp_path / "first", server)
        real_time = len(server.requests)
        assert server.submissions == 3, "one for each unit"
        assert spend.cost == server.billed + real_time * REAL_TIME_COST
        rows = golden.open(RUN, blobs=blobs).table("llm_usage").to_arrow().to_pylist()
        assert sum(row["cost_usd"] for row in rows) == Decimal(spend.known_cost) / NANO
        kinds = Counter((row["batch"], row["outcome"]) for row in rows if not row["cached"])
        handed_in = sum(len(batch.lines) for batch in server.batches.values())
        assert kinds == {(True, "failed"): 3, (True, "answered"): handed_in - 3, (False, "answered"): real_time}
        texts = read_root(blobs, "catalogue/v1").texts
        assert texts and texts.written["openai/alpha-1"] and texts.unfilled == {}
        assert verify_run(RUN, blobs=blobs, deep=True).findings == ()

        shutil.copytree(tmp_path / "first" / "blobs" / "llm-cache", tmp_path / "again" / "blobs" / "llm-cache")
        blobs, spend = built(tmp_path / "again", server)
        assert (spend.cost, server.submissions, len(server.requests)) == (0, 3, real_time), "a re-run costs nothing"
        assert read_root(blobs, "catalogue/v1").texts == texts
