"""A real webserver and daemon, over GraphQL: what an operator asks for ends in rows, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from fake_provider import FakeProvider
from fake_writers import writer

from docgen_core.state import open_state
from docgen_core.state.contract import RunState, UnitState

if TYPE_CHECKING:
    from tests.e2e.deployment.conftest import Deployment

ALL_RANGES = tuple(f"{first:05d}-{first + 3:05d}" for first in range(0, 40, 4))
RANGES = ALL_RANGES[:4]
COMPANIES_A_RANGE = 4
ASSETS = ("catalogue", "run_plan", "golden_shards", "invoices", "line_items", "tax_lines", "field_boxes", "documents")
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "docgen"}
KEY = "deployment-value-of-a-key"
CALL_COST = Decimal("0.0013")
"""US dollars: 300 tokens in at 1 a million, 200 out at 5."""
MANY = 5_000
"""Documents that no test waits for."""

pytestmark = pytest.mark.timeout(900)

Rows = Callable[[str], list[tuple[Any, ...]]]

ENDED = {"SUCCESS", "FAILURE", "CANCELED"}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(writer) as server:
        yield server


@pytest.fixture(scope="module")
def environment(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One model for whoever does not say otherwise, a budget, and the model's key."""
    mix = tmp_path_factory.mktemp("mix") / "mix.yaml"
    mix.write_text(
        f"""
providers:
  - {{name: alpha, model: openai/alpha-1, weight: 1, api_base: "{provider.base}/v1", api_key_env: ALPHA_KEY,
     max_output_tokens: 2000, timeout_seconds: 10, price: {{input_per_million: 1, output_per_million: 5}}}}
empty_reply_cap_usd: 0.01
"""
    )
    return {"DOCGEN_MIX": str(mix), "DOCGEN_BUDGET_USD": "1", "ALPHA_KEY": KEY}


def config(**corpus: Any) -> dict[str, Any]:
    """Procedural texts, and two workers on the documents."""
    return {
        "ops": {"catalogue": {"config": {"mix": ""}}, "golden_shards": {"config": {"workers": 2}}},
        "resources": {"corpus": {"config": corpus}},
    }


def launch(deployment: Deployment, job: str, run_config: dict[str, Any], key: str | None = None) -> str:
    """Launch a job; for `__ASSET_JOB` every asset, as "Materialize all" does."""
    selector: dict[str, Any] = {**REPOSITORY, "jobName": job}
    if job == "__ASSET_JOB":
        selector["assetSelection"] = [{"path": [asset]} for asset in ASSETS]
    answer = deployment.ask(
        """mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
            __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
            ... on RunConfigValidationInvalid { errors { message } } } }""",
        params={
            "selector": selector,
            "runConfigData": run_config,
            "executionMetadata": {"tags": [{"key": "dagster/partition", "value": key}] if key else []},
        },
    )["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return str(answer["run"]["runId"])


def status(deployment: Deployment, run_id: str) -> str:
    answer = deployment.ask("query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }", id=run_id)
    return str(answer["runOrError"]["status"])


def ended(deployment: Deployment, run_id: str) -> str:
    return str(
        deployment.until(f"run {run_id} to end", lambda: (found := status(deployment, run_id)) in ENDED and found)
    )


def complaints(deployment: Deployment, run_id: str) -> list[str]:
    """What failed in a run, for the message of a failing test."""
    answer = deployment.ask(
        """query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
            ... on ExecutionStepFailureEvent { stepKey error { message } failureMetadata { description } }
            ... on RunFailureEvent { message error { message } } } } } }""",
        id=run_id,
    )
    return [str(event) for event in answer["logsForRun"]["events"] if event]


def succeeds(deployment: Deployment, run_id: str) -> None:
    assert ended(deployment, run_id) == "SUCCESS", complaints(deployment, run_id)


def companies(rows: Rows, run_id: str) -> set[int]:
    return {company for (company,) in rows(f"SELECT DISTINCT company_id FROM invoices WHERE run_id = '{run_id}'")}


def test_materialise_all_and_a_backfill_leave_invoices_of_exactly_those_companies(deployment: Deployment, rows: Rows):
    succeeds(deployment, launch(deployment, "__ASSET_JOB", config(documents_per_range=6), RANGES[1]))
    of_the_corpus = "FROM invoices WHERE starts_with(run_id, 'invoices-')"
    assert rows(f"SELECT DISTINCT run_id {of_the_corpus}") == [(f"invoices-{RANGES[1]}",)]
    others = [RANGES[0], RANGES[2], RANGES[3]]
    for run_id in backfilled(deployment, ASSETS, others, config(documents_per_range=6)):
        succeeds(deployment, run_id)
    counted = rows(f"SELECT run_id, count(*) {of_the_corpus} GROUP BY run_id ORDER BY run_id")
    assert counted == [(f"invoices-{key}", 6) for key in RANGES]
    for first, key in zip(range(0, 16, COMPANIES_A_RANGE), RANGES, strict=True):
        assert companies(rows, f"invoices-{key}") <= set(range(first, first + COMPANIES_A_RANGE))


def backfilled(
    deployment: Deployment, assets: Sequence[str], ranges: Sequence[str], run_config: dict[str, Any]
) -> list[str]:
    """The runs of a backfill, once it has launched them all and ended."""
    launched = deployment.ask(
        """mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
            __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }""",
        params={
            "assetSelection": [{"path": [asset]} for asset in assets],
            "partitionNames": list(ranges),
            "runConfigData": run_config,
        },
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    backfill_id = launched["backfillId"]

    def look() -> list[str] | None:
        answer = deployment.ask(
            """query ($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill {
                status error { message } runs(limit: 20) { runId } } } }""",
            id=backfill_id,
        )["partitionBackfillOrError"]
        assert answer["error"] is None, answer
        return [run["runId"] for run in answer["runs"]] if answer["status"].startswith("COMPLETED") else None

    found: list[str] = deployment.until(f"backfill {backfill_id} to end", look)
    assert found
    return found


def metadata_of(deployment: Deployment, key: str) -> dict[str, str]:
    """What the catalogue's latest materialisation of a range tells, as text."""
    answer = deployment.ask(
        """query ($key: String!) { assetNodeOrError(assetKey: {path: ["catalogue"]}) { ... on AssetNode {
            assetMaterializations(partitions: [$key], limit: 1) { metadataEntries { label
                ... on TextMetadataEntry { text } ... on IntMetadataEntry { text: intRepr }
                ... on JsonMetadataEntry { text: jsonString } } } } } }""",
        key=key,
    )
    (latest,) = answer["assetNodeOrError"]["assetMaterializations"]
    return {entry["label"]: entry["text"] for entry in latest["metadataEntries"]}


def checks_of(deployment: Deployment, key: str) -> dict[str, str]:
    """How the catalogue's checks ended at a range."""
    return {
        check: execution["status"]
        for check in ("ranges_complete", "texts_accepted", "budget_kept")
        for execution in deployment.ask(
            """query ($check: String!, $key: String!) { assetCheckExecutions(
                assetKey: {path: ["catalogue"]}, checkName: $check, partition: $key, limit: 1) { status } }""",
            check=check,
            key=key,
        )["assetCheckExecutions"]
    }


def test_a_backfill_of_a_catalogue_by_models_is_one_pool_and_ends_in_tables(
    deployment: Deployment, provider: FakeProvider, rows: Rows
):
    """Nothing but the catalogue's version is configured: models, budget and key are the environment's."""
    version = {"resources": {"corpus": {"config": {"catalogue": "written"}}}}
    (run_id,) = backfilled(deployment, ["catalogue"], ALL_RANGES, version)
    succeeds(deployment, run_id)
    for key in ALL_RANGES:
        told, checks = metadata_of(deployment, key), checks_of(deployment, key)
        assert told["texts by models"] == "32" and "openai/alpha-1" in told["texts by model"]
        assert told["budget of the whole build (USD)"] == "1.00"
        assert checks == {"budget_kept": "SUCCEEDED", "ranges_complete": "SUCCEEDED", "texts_accepted": "SUCCEEDED"}
    asked = len(provider.requests)

    def exported() -> list[tuple[Any, ...]]:
        return rows("SELECT table_name, row_count FROM docgen_exports WHERE run_id = 'catalogue-written' ORDER BY 1")

    tables = dict(deployment.until("the sensor to export the sealed catalogue", exported))
    assert tables.keys() == {"companies", "products", "price_tiers", "llm_usage"}
    assert tables["companies"] == 40 and tables["products"] == 320 and tables["llm_usage"] == asked
    assert rows("SELECT DISTINCT written_by FROM products WHERE run_id = 'catalogue-written'") == [("openai/alpha-1",)]
    assert rows("SELECT sum(cost_usd) FROM llm_usage WHERE run_id = 'catalogue-written'")[0][0] == asked * CALL_COST


def test_a_run_of_the_command_line_alone_is_exported_by_the_sensor(deployment: Deployment, rows: Rows):
    deployment.docgen("generate", "by-hand", "--documents", "2", "--seed", "9")

    def look() -> list[tuple[Any, ...]]:
        return rows("SELECT row_count FROM docgen_exports WHERE run_id = 'by-hand' AND table_name = 'documents'")

    assert deployment.until("the sensor to export by-hand", look) == [(2,)]
    assert rows("SELECT count(*) FROM documents WHERE run_id = 'by-hand'") == [(2,)]


def working(deployment: Deployment) -> list[psutil.Process]:
    """The workers, once every one of them is up and holds a unit."""

    def look() -> list[psutil.Process] | None:
        with_units = [unit for unit in held(deployment) if unit.state is UnitState.RUNNING]
        workers = deployment.workers()
        return workers if len(workers) >= 2 and len(with_units) >= 2 else None

    found: list[psutil.Process] = deployment.until("two workers at work", look)
    return found


def held(deployment: Deployment) -> list[Any]:
    """Units that somebody has a lease on, in any run."""
    state = open_state(deployment.state)
    try:
        runs = state.list_runs((RunState.RUNNING, RunState.PAUSED, RunState.FINALIZING))
        return [unit for run in runs for unit in state.units(run.run_id, (UnitState.RUNNING,))]
    finally:
        state.close()


def family(workers: list[psutil.Process]) -> list[psutil.Process]:
    """The workers and everything they started: browsers."""
    return [*workers, *(child for worker in workers for child in worker.children(recursive=True))]


def none_is_left(processes: list[psutil.Process]) -> bool:
    return not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_cancelled_run_leaves_no_worker_and_no_lease(deployment: Deployment):
    chosen = config(name="cancelled", documents_per_range=MANY)
    run_id = launch(deployment, "generate_corpus", chosen, RANGES[0])
    processes = family(working(deployment))
    deployment.ask(
        "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }",
        id=run_id,
    )
    assert ended(deployment, run_id) == "CANCELED"
    deployment.until("every worker and browser to be gone", lambda: none_is_left(processes), patience=30)
    assert deployment.workers() == []
    assert held(deployment) == []
    finish(deployment, f"cancelled-{RANGES[0]}")


def test_a_killed_step_process_leaves_no_worker_and_no_lease(deployment: Deployment):
    chosen = config(name="killed", documents_per_range=MANY)
    run_id = launch(deployment, "generate_corpus", chosen, RANGES[1])
    workers = working(deployment)
    processes = family(workers)
    (step,) = {worker.ppid() for worker in workers}
    os.kill(step, signal.SIGKILL)
    deployment.until("every worker and browser to be gone", lambda: none_is_left(processes), patience=30)
    assert deployment.workers() == []
    assert held(deployment) == []
    assert ended(deployment, run_id) == "FAILURE"
    finish(deployment, f"killed-{RANGES[1]}")


def finish(deployment: Deployment, run_id: str) -> None:
    """End the docgen run for good, so that no later test meets it; until now it could have gone on."""
    state = open_state(deployment.state)
    try:
        assert state.run(run_id).state is RunState.RUNNING
        state.cancel(run_id)
    finally:
        state.close()
