"""The catalogue asset with language models: what its pages tell, what its checks find, its tables."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from fake_provider import FakeProvider, Says
from fake_writers import writer, written

from docgen_core.state import open_state

if TYPE_CHECKING:
    from tests.assets.conftest import Location

    Written = tuple[Location, FakeProvider, dg.ExecuteInProcessResult]
FIRST, LAST = "00000-00003", "00008-00009"
RUN = "catalogue-roster"


@pytest.fixture(scope="module")
def written_by_models(locations: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    """A location whose whole catalogue a model has written; for tests that change nothing."""
    with (
        locations(tmp_path_factory.mktemp("texts")) as location,
        FakeProvider(writer) as provider,
    ):
        yield location, provider, build(location, provider, FIRST, LAST)


@pytest.fixture
def changeable(written_by_models: Written, copies: Any, tmp_path: Path) -> Iterator[tuple[Location, FakeProvider]]:
    """A copy of it, to be damaged."""
    location, provider, _ = written_by_models
    with copies(location, tmp_path) as opened:
        yield opened, provider


def models(folder: Path, server: FakeProvider, **more: Any) -> dict[str, Any]:
    """The configuration of the catalogue's workers: one model at this server, a budget of a dollar."""
    file = folder / "mix.yaml"
    file.write_text(
        f"""
providers:
  - {{name: alpha, model: openai/alpha-1, weight: 1, api_base: "{server.base}/v1", max_output_tokens: 2000,
     timeout_seconds: 10, price: {{input_per_million: 1, output_per_million: 5}}}}
empty_reply_cap_usd: 0.01
"""
    )
    return {"catalogue": {"config": {"mix": str(file), "budget_usd": "1", **more}}}


def build(location: Location, server: FakeProvider, *keys: str, **more: Any) -> dg.ExecuteInProcessResult:
    ops = models(location.folder, server, **more)
    return location.run("generate_corpus", *keys, ops=ops, selection=["catalogue"])


def metadata_of(location: Location, key: str) -> dict[str, Any]:
    found = location.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey("catalogue"), asset_partitions=[key]), limit=1
    )
    (record,) = found.records
    assert record.asset_materialization is not None
    return {name: value.value for name, value in record.asset_materialization.metadata.items()}


def test_a_range_tells_who_wrote_its_texts_and_what_the_build_has_spent(written_by_models: Written):
    location, provider, result = written_by_models
    assert result.success
    told = metadata_of(location, FIRST)
    assert told["texts"] == told["texts by models"] == 32 and told["texts by model"] == {"openai/alpha-1": 32}
    assert told["texts turned down"] == 0 and told["budget of the whole build (USD)"] == "1.00"
    assert told["procedural texts"] == 0 and "procedural texts by reason" not in told
    assert told["calls of the whole build so far"] == len(provider.requests)
    spent = told["spent by the whole build so far (USD)"]
    assert 0 < float(told["cost of the range's answers, cached or not (USD)"]) < float(spent) < 1


def test_checks_that_pass_show_what_they_looked_at(written_by_models: Written):
    _, _, result = written_by_models
    checks = {(each.check_name, each.partition): each for each in result.get_asset_check_evaluations()}
    assert all(each.passed for each in checks.values())
    assert {name for name, _ in checks} == {"budget_kept", "ranges_complete", "texts_accepted"}
    figures = {
        key: {name: value.value for name, value in each.metadata.items() if name != "findings"}
        for key, each in checks.items()
    }
    assert figures["texts_accepted", FIRST] == {
        "texts by models": 32,
        "texts turned down": 0,
        "limit (per cent)": 50,
    }
    assert figures["texts_accepted", None]["texts by models"] == 80
    money = {name: Decimal(figures["budget_kept", LAST][f"{name} (USD)"]) for name in ("spent", "set aside", "left")}
    assert money["spent"] > 0 and money["set aside"] == 0 and sum(money.values()) == 1


def test_a_sealed_catalogue_comes_as_tables_and_again_with_the_same_rows(written_by_models: Written):
    location, provider, _ = written_by_models
    for _ in range(2):
        result = location.run("export_catalogue")
        assert result.success
        events = result.get_asset_materialization_events()
        made = {event.asset_key.to_user_string() for event in events if event.asset_key}
        assert made == {"companies", "products", "price_tiers", "llm_usage"}
        assert location.query("SELECT count(*), count(DISTINCT company_id) FROM companies") == [(10, 10)]
        assert location.query("SELECT count(*) FROM products WHERE written_by = 'openai/alpha-1'") == [(80,)]
        assert location.query("SELECT count(*), sum(cost_usd) > 0 FROM llm_usage") == [(len(provider.requests), True)]


def test_a_cost_above_the_budget_fails_its_check(changeable: tuple[Location, FakeProvider]):
    location, provider = changeable
    with open_state(location.stores["state"]) as state:
        spent = state.spend(RUN).total
        state.set_budget(RUN, spent.known_cost)
        state.add_spend(RUN, "a bill that came late", {"openai/alpha-1": spent})
    ops = models(location.folder, provider)
    del ops["catalogue"]["config"]["budget_usd"]
    result = location.run("generate_corpus", FIRST, ops=ops, selection=["catalogue"])
    found = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
    assert found == {"budget_kept": False, "ranges_complete": True, "texts_accepted": True}


def test_a_missing_blob_of_a_range_is_found(changeable: tuple[Location, FakeProvider]):
    location, provider = changeable
    next((location.folder / "blobs").rglob("golden/products/unit-000000.*.parquet")).unlink()
    assert "damaged" in location.refusal(build(location, provider, FIRST))


def test_texts_that_are_turned_down_fail_the_check(location: Location):
    with FakeProvider(lambda number, body: Says(text=written(body, text=lambda name: f"{name} – buy now!"))) as poor:
        result = build(location, poor, FIRST, max_rejected_percent=100)
    found = {each.check_name: each for each in result.get_asset_check_evaluations()}
    assert found["budget_kept"].passed and not found["texts_accepted"].passed
    assert "marketing" in str(found["texts_accepted"].metadata["the first"].value)


def test_a_catalogue_that_is_not_sealed_has_no_tables_yet(location: Location):
    assert "catalogue-roster" in location.refusal(location.run("export_catalogue"))
    assert location.run("generate_corpus", FIRST, selection=["catalogue"]).success
    assert "catalogue-roster" in location.refusal(location.run("export_catalogue"))


def test_no_model_is_asked_without_its_key_and_the_step_says_which(location: Location, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with FakeProvider(writer) as provider:
        ops = models(location.folder, provider)
        file = Path(ops["catalogue"]["config"]["mix"])
        file.write_text(file.read_text().replace("weight: 1,", "weight: 1, api_key_env: NO_SUCH_KEY,"))
        refused = location.refusal(location.run("generate_corpus", FIRST, ops=ops, selection=["catalogue"]))
        assert "NO_SUCH_KEY" in refused and not provider.requests
