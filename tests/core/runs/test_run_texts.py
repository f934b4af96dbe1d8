"""Catalogues that language models write: shards, audit, spend, and what a re-run costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fake_provider import Body, FakeProvider, Says
from fake_writers import sentence_of, writer, written

from docgen_core import golden
from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import PlanConflict, UsageError
from docgen_core.llm.mix import ProviderMix, parse_mix
from docgen_core.runs.catalogue import build_catalogue_run, open_catalogue
from docgen_core.runs.drain import work_run
from docgen_core.runs.gc import collect
from docgen_core.runs.manifest import Root, read_root
from docgen_core.runs.outcomes import DrainEnd, DrainOutcome
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.preview import preview_texts
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.texts import WriterSettings
from docgen_core.runs.verify import FindingKind, verify_run
from docgen_core.state import open_state
from docgen_core.state.budget import NANO
from docgen_core.state.contract import StateStore

SPEC = CatalogueSpec(companies=12, products=4, range_width=6)
RUN = "catalogue-v1"
KEY = "WRITERS_TEST_KEY"
PRICE = "price: {input_per_million: 1, output_per_million: 5}"
CALL_COST = 300 * 1_000 + 200 * 5_000
"""Nano-dollars of one answer of the fake provider."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEY, "test-value-of-a-key")
    return "test-value-of-a-key"


def mix_of(base: str, *, price: str = PRICE, fallback: str = "") -> ProviderMix:
    """Two models at one server, two thirds and one third."""
    providers = "".join(
        f"""
  - {{name: {name}, model: openai/{name}-1, weight: {weight}, api_base: "{base}/v1", api_key_env: {KEY},
     max_output_tokens: 2000, timeout_seconds: 10, {price}}}"""
        for name, weight in (("alpha", 2), ("beta", 1))
    )
    return parse_mix(f"providers:{providers}\nfallback: [{fallback}]\nempty_reply_cap_usd: 1\n", "test")


class Desk:
    """A state store and blobs, and builds in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blobs: BlobStore = open_blobs(str(folder / "blobs"))
        self.state: StateStore = open_state(folder / "state.db")

    def build(
        self, mix: ProviderMix, *, budget: int | None = NANO, spec: CatalogueSpec = SPEC, **settings: int
    ) -> DrainOutcome:
        build_catalogue_run(self.state, self.blobs, "v1", spec, mix=mix, budget=budget)
        return work_run(
            RUN,
            state=self.state,
            blobs=self.blobs,
            worker="w",
            writing=WriterSettings(**settings) if settings else None,
        )

    @property
    def root(self) -> Root:
        return read_root(self.blobs, "catalogue/v1")

    def texts(self) -> dict[str, Any]:
        told = self.root.texts
        assert told is not None
        return told.model_dump()

    def products(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = golden.open(RUN, blobs=self.blobs).table("products").to_arrow().to_pylist()
        return rows

    def usage(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = golden.open(RUN, blobs=self.blobs).table("llm_usage").to_arrow().to_pylist()
        return rows


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def provider() -> Iterator[Callable[..., FakeProvider]]:
    """Start a provider with a script."""
    started: list[FakeProvider] = []

    def start(script: Callable[[int, Body], Says] | Says = writer) -> FakeProvider:
        started.append(FakeProvider(script).__enter__())
        return started[-1]

    yield start
    for each in started:
        each.__exit__(None, None, None)


def test_models_write_every_description_and_nothing_else(desk: Desk, provider: Any) -> None:
    server = provider()
    assert desk.build(mix_of(server.base)).kind is DrainEnd.COMPLETED
    plain = open_state(desk.folder / "plain.db")
    build_catalogue_run(plain, desk.blobs, "plain", SPEC)
    work_run("catalogue-plain", state=plain, blobs=desk.blobs, worker="w")
    procedural = golden.open("catalogue-plain", blobs=desk.blobs).table("products").to_arrow().to_pylist()
    ours = {"run_id", "catalogue_version", "description", "written_by"}
    for mine, theirs in zip(desk.products(), procedural, strict=True):
        assert {k: v for k, v in mine.items() if k not in ours} == {k: v for k, v in theirs.items() if k not in ours}
        assert mine["description"] != theirs["description"]
        assert " ".join(mine["name"].split()) in mine["description"], "spaces of a reply are plain ones"
        assert mine["written_by"] in {"openai/alpha-1", "openai/beta-1"}
    assert verify_run(RUN, blobs=desk.blobs, state=desk.state, deep=True).findings == ()


def test_the_root_tells_who_wrote_what_and_what_it_is_worth(desk: Desk, provider: Any) -> None:
    server = provider()
    desk.build(mix_of(server.base))
    told, written_by = desk.texts(), Counter(row["written_by"] for row in desk.products())
    assert told["items"] == 48 and told["unfilled"] == {} and told["rejected"] == {}
    assert told["written"] == dict(written_by) and set(written_by) == {"openai/alpha-1", "openai/beta-1"}
    assert told["rounds"] == {"0": 48}
    calls = {model: answers["calls"] for model, answers in told["answers"].items()}
    assert sum(calls.values()) == len(server.requests)
    assert {model: answers["cost"] for model, answers in told["answers"].items()} == {
        model: count * CALL_COST for model, count in calls.items()
    }
    assert desk.root.version == "v1"


def test_every_call_is_a_row_and_the_budget_knows_the_same(desk: Desk, provider: Any) -> None:
    server = provider()
    desk.build(mix_of(server.base))
    rows, spent = desk.usage(), desk.state.spend(RUN)
    assert len(rows) == len(server.requests) == spent.total.calls
    assert sum(row["cost_usd"] for row in rows) == Decimal(spent.total.known_cost) / NANO
    assert spent.budget is not None and spent.budget.reserved == 0 and spent.budget.open_grants == 0
    assert spent.budget.available + spent.budget.committed == NANO
    assert sorted(" ".join(row["item"] for row in rows).split()) == sorted(
        f"{company}/{product}" for company in range(12) for product in range(1, 5)
    )
    assert {row["reported_model"] for row in rows} == {"alpha-1-0901", "beta-1-0901"}


def test_the_same_build_in_a_fresh_store_with_the_same_cache_asks_nobody(desk: Desk, provider: Any) -> None:
    server = provider()
    mix = mix_of(server.base)
    desk.build(mix)
    asked, sealed, products = len(server.requests), desk.root, desk.products()
    again = Desk(desk.folder / "again")
    for info in desk.blobs.iter_keys("llm-cache/"):
        again.blobs.put(info.key, desk.blobs.get(info.key))
    again.build(mix)
    assert len(server.requests) == asked
    assert again.products() == products and again.root == sealed, "down to the digest of every shard"
    assert {row["cached"] for row in again.usage()} == {True} and again.state.spend(RUN).total.known_cost == 0
    assert sum(row["cost_usd"] for row in again.usage()) == 0


def test_what_is_turned_down_stays_procedural_and_is_counted(desk: Desk, provider: Any) -> None:
    def some_marketing(number: int, body: Body) -> Says:
        poor, sentence = iter(range(100)), sentence_of(body)
        return Says(
            text=written(
                body, text=lambda name: f"{name} – buy now!" if next(poor) % 4 == 0 else sentence.format(name=name)
            )
        )

    desk.build(mix_of(provider(some_marketing).base), max_rejected_percent=100)
    told, rows = desk.texts(), desk.products()
    kept = [row for row in rows if row["written_by"] == "procedural"]
    assert len(kept) == told["unfilled"].get("rejected", 0) and told["items"] == 48
    assert sum(told["written"].values()) == 48 - len(kept)
    assert {rule for rules in told["rejected"].values() for rule in rules} == {"marketing"}
    assert not any("buy now" in row["description"] for row in rows)


def test_too_many_rejections_fail_the_unit_and_a_higher_limit_takes_the_cached_answers(
    desk: Desk, provider: Any
) -> None:
    server = provider(lambda number, body: Says(text=written(body, text=lambda name: f"Amazing deal: {name}!")))
    mix = mix_of(server.base)
    assert desk.build(mix).kind is DrainEnd.DRAINED_WITH_FAILURES
    failed = desk.state.units(RUN)
    assert all("texts of models were turned down" in (unit.error or "") for unit in failed)
    assert "--max-rejected-percent" in (failed[0].error or "")
    assert not desk.blobs.exists("catalogue/v1/manifest.json")
    asked = len(server.requests)
    desk.state.reset_failed_units(RUN)
    assert desk.build(mix, max_rejected_percent=100).kind is DrainEnd.COMPLETED
    assert len(server.requests) == asked
    assert {row["written_by"] for row in desk.products()} == {"procedural"}


def test_with_every_provider_dead_the_build_is_procedural_and_says_so(desk: Desk, provider: Any) -> None:
    dead = provider(Says(status=401, error={"message": "invalid key", "code": "invalid_api_key"}))
    assert desk.build(mix_of(dead.base, fallback="{to: procedural, share: 1}")).kind is DrainEnd.COMPLETED
    assert desk.texts()["unfilled"] == {"unavailable": 48} and desk.texts()["written"] == {}
    assert set(desk.state.quarantined_providers(RUN)) == {"alpha", "beta"}
    budget = desk.state.spend(RUN).budget
    assert budget is not None and budget.overshoot == 0 and budget.reserved == 0


def test_a_budget_for_some_of_the_calls_fills_some_and_the_build_is_complete(desk: Desk, provider: Any) -> None:
    server = provider()
    preview = preview_texts("v1", SPEC, mix_of(server.base), NANO)
    assert preview.covered_percent == 100 and preview.ceiling is not None and not server.requests
    assert desk.build(mix_of(server.base), budget=preview.ceiling // 8).kind is DrainEnd.COMPLETED
    told, spent = desk.texts(), desk.state.spend(RUN)
    assert told["unfilled"].get("budget", 0) > 0 and sum(told["written"].values()) > 0
    assert spent.budget is not None and spent.budget.overshoot == 0
    assert spent.total.known_cost <= preview.ceiling // 8


def test_a_preview_counts_what_the_build_then_asks(desk: Desk, provider: Any) -> None:
    server = provider()
    mix = mix_of(server.base)
    preview = preview_texts("v1", SPEC, mix)
    desk.build(mix)
    assert sum(model.calls for model in preview.models) == len(server.requests) and preview.texts == 48
    assert preview.ceiling is not None and preview.ceiling >= desk.state.spend(RUN).total.known_cost


def test_without_a_budget_a_model_without_a_price_runs_and_its_cost_is_unknown(desk: Desk, provider: Any) -> None:
    server = provider()
    with pytest.raises(UsageError, match="alpha-1"):
        build_catalogue_run(desk.state, desk.blobs, "v1", SPEC, mix=mix_of(server.base, price="batch: false"), budget=1)
    desk.build(mix_of(server.base, price="batch: false"), budget=None)
    assert desk.state.spend(RUN).total.cost is None
    assert {row["cost_usd"] for row in desk.usage()} == {None}


def test_no_key_is_told_before_anything_is_asked_and_no_key_is_ever_written(
    desk: Desk, provider: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = provider()
    monkeypatch.delenv(KEY)
    with pytest.raises(UsageError, match=KEY):
        desk.build(mix_of(server.base))
    assert not server.requests and desk.state.progress(RUN).running == 0
    monkeypatch.setenv(KEY, key)
    desk.build(mix_of(server.base))
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {key}"}
    for file in (path for path in desk.folder.rglob("*") if path.is_file()):
        assert key.encode() not in file.read_bytes(), file


def test_another_mix_under_the_same_version_is_refused(desk: Desk, provider: Any) -> None:
    server = provider()
    desk.build(mix_of(server.base))
    with pytest.raises(PlanConflict, match="mix"):
        build_catalogue_run(
            desk.state, desk.blobs, "v1", SPEC, mix=mix_of(server.base, fallback="{to: beta, share: 1}")
        )


def test_documents_are_drawn_from_it_without_any_key(
    desk: Desk, provider: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.build(mix_of(provider().base))
    monkeypatch.delenv(KEY)
    planned = create_run(desk.state, desk.blobs, RunRequest("r1", 3, 0, Selection(), "v1"))
    assert planned.created
    assert open_catalogue(desk.blobs, "v1").rows("products", 0)[0]["written_by"].startswith("openai/")


def test_an_attempt_that_was_superseded_is_a_leftover_and_its_calls_are_kept(desk: Desk, provider: Any) -> None:
    server = provider()
    mix = mix_of(server.base)
    build_catalogue_run(desk.state, desk.blobs, "v1", SPEC, mix=mix, budget=NANO)
    lease = desk.state.claim_next_unit(RUN, "dead", limit=1).leases[0]
    for key in (
        f"catalogue/v1/golden/products/unit-{lease.index:06d}.g{lease.generation}.parquet",
        f"catalogue/v1/manifest/unit-{lease.index:06d}.g{lease.generation}.json",
    ):
        desk.blobs.put(key, b"of an attempt that died")
    desk.state.release(lease)
    desk.build(mix)
    found = verify_run(RUN, blobs=desk.blobs, state=desk.state, deep=True)
    assert found.ok and [finding.kind for finding in found.findings] == [FindingKind.LEFTOVER] * 2
    assert set(collect(desk.blobs).keys) == {finding.key for finding in found.findings}
    assert desk.usage() and verify_run(RUN, blobs=desk.blobs, state=desk.state, deep=True).findings == ()
