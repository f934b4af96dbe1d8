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

from docgen_core.golden import CORE_TABLES
from docgen_core.packs import load_pack
from docgen_core.state import open_state
from docgen_core.state.contract import RunState, UnitState

if TYPE_CHECKING:
    from tests.e2e.deployment.conftest import Deployment

ALL_RANGES = tuple(f"{first:05d}-{first + 3:05d}" for first in range(0, 40, 4))
COMPANIES_A_RANGE = 4
ASSETS = ("catalogue", "run_plan", "golden_shards", *load_pack("invoice").tables, *CORE_TABLES)
REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "docgen"}
KEY = "deployment-value-of-a-key"
CALL_COST = Decimal("0.0013")
"""US dollars: 300 tokens in at 1 a million, 200 out at 5."""
MANY = 5_000
"""Documents that no test waits for."""
SOME = 30
"""Documents, each a unit, of which some are done when their step is killed."""

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
            ... on InvalidSubsetError { message } ... on RunConfigValidationInvalid { errors { message } } } }""",
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


def test_materialise_all_leaves_invoices_of_exactly_the_chosen_companies(deployment: Deployment, rows: Rows):
    chosen = config(name="one", documents_per_range=4)
    succeeds(deployment, launch(deployment, "__ASSET_JOB", chosen, ALL_RANGES[1]))
    assert rows("SELECT DISTINCT run_id FROM invoices WHERE starts_with(run_id, 'one-')") == [(f"one-{ALL_RANGES[1]}",)]
    assert companies(rows, f"one-{ALL_RANGES[1]}") <= {4, 5, 6, 7}


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


def test_one_backfill_over_ten_ranges_ends_in_invoices_of_exactly_their_companies(
    deployment: Deployment, provider: FakeProvider, rows: Rows
):
    """From nothing, a catalogue by models first: models, budget and key are the environment's."""
    chosen = {
        "ops": {"golden_shards": {"config": {"workers": 1}}},
        "resources": {"corpus": {"config": {"name": "ten", "catalogue": "written", "documents_per_range": 2}}},
    }
    (run_id,) = backfilled(deployment, ASSETS, ALL_RANGES, chosen)
    succeeds(deployment, run_id)
    counted = rows("SELECT run_id, count(*) FROM invoices WHERE starts_with(run_id, 'ten-') GROUP BY ALL ORDER BY ALL")
    assert counted == [(f"ten-{key}", 2) for key in ALL_RANGES]
    for first, key in zip(range(0, 40, COMPANIES_A_RANGE), ALL_RANGES, strict=True):
        assert companies(rows, f"ten-{key}") <= set(range(first, first + COMPANIES_A_RANGE))
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


def test_a_run_of_the_command_line_alone_is_exported_by_the_sensor_and_leaves_when_withdrawn(
    deployment: Deployment, rows: Rows
):
    deployment.docgen("generate", "by-hand", "--documents", "2", "--seed", "9")

    def look() -> list[tuple[Any, ...]]:
        return rows("SELECT row_count FROM docgen_exports WHERE run_id = 'by-hand' AND table_name = 'documents'")

    assert deployment.until("the sensor to export by-hand", look) == [(2,)]
    assert rows("SELECT count(*) FROM documents WHERE run_id = 'by-hand'") == [(2,)]
    # Into a sink of its own, so that nobody but the sensor takes the rows out of this one.
    deployment.docgen("withdraw", "by-hand", "--sink", "elsewhere.duckdb")
    deployment.until("the sensor to have by-hand removed", lambda: not look())
    assert rows("SELECT count(*) FROM documents WHERE run_id = 'by-hand'") == [(0,)]


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
    run_id = launch(deployment, "generate_corpus", chosen, ALL_RANGES[0])
    processes = family(working(deployment))
    deployment.ask(
        "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }",
        id=run_id,
    )
    assert ended(deployment, run_id) == "CANCELED"
    deployment.until("every worker and browser to be gone", lambda: none_is_left(processes))
    assert deployment.workers() == []
    assert held(deployment) == []
    finish(deployment, f"cancelled-{ALL_RANGES[0]}")


def test_a_killed_step_process_leaves_no_worker_and_no_lease_and_a_retry_resumes(deployment: Deployment, rows: Rows):
    run_id = launch(deployment, "generate_corpus", config(name="killed", documents_per_range=SOME), ALL_RANGES[1])
    workers = working(deployment)
    before = deployment.until("the first units to be done", lambda: attempts(deployment, f"killed-{ALL_RANGES[1]}"))
    processes = family(workers)
    (step,) = {worker.ppid() for worker in workers}
    os.kill(step, signal.SIGKILL)
    deployment.until("every worker and browser to be gone", lambda: none_is_left(processes))
    assert deployment.workers() == []
    assert held(deployment) == []
    assert ended(deployment, run_id) == "FAILURE"
    assert len(before) < SOME
    succeeds(deployment, retried(deployment, run_id))
    after = attempts(deployment, f"killed-{ALL_RANGES[1]}")
    assert {unit: after[unit] for unit in before} == before, "what was done is not made again"
    assert rows(f"SELECT count(*) FROM documents WHERE run_id = 'killed-{ALL_RANGES[1]}'") == [(SOME,)]


def attempts(deployment: Deployment, run_id: str) -> dict[int, int]:
    """The generation in which each finished unit was done."""
    state = open_state(deployment.state)
    try:
        return {unit.index: unit.generation for unit in state.units(run_id, (UnitState.DONE,))}
    finally:
        state.close()


def retried(deployment: Deployment, run_id: str) -> str:
    """What "Re-execute from failure" launches."""
    answer = deployment.ask(
        """mutation ($params: ReexecutionParams!) { launchRunReexecution(reexecutionParams: $params) {
            __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }""",
        params={"parentRunId": run_id, "strategy": "FROM_FAILURE"},
    )["launchRunReexecution"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    return str(answer["run"]["runId"])


def finish(deployment: Deployment, run_id: str) -> None:
    """End the docgen run for good, so that no later test meets it; until now it could have gone on."""
    state = open_state(deployment.state)
    try:
        assert state.run(run_id).state is RunState.RUNNING
        state.cancel(run_id)
    finally:
        state.close()
