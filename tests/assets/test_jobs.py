"""What an operator does to one run by its id; each job also works on runs that Dagster never started."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import dagster as dg
import pyarrow as pa
import pytest

from docgen_core.export import open_sink
from docgen_core.state import open_state
from docgen_core.state.contract import RunState

if TYPE_CHECKING:
    from tests.assets.conftest import Location

FIRST = "00000-00003"
RUN = f"invoices-{FIRST}"


def on(run_id: str, op: str, **more: Any) -> dict[str, Any]:
    return {op: {"config": {"run_id": run_id, **more}}}


def state_of(location: Location) -> RunState:
    store = open_state(location.stores["state"])
    try:
        return store.run(RUN).state
    finally:
        store.close()


def test_more_workers_drain_and_seal_a_run_that_others_planned(planned: Location):
    result = planned.run("add_workers", ops=on(RUN, "add_drain_workers", workers=1))
    assert result.success
    assert state_of(planned) is RunState.COMPLETED


def test_a_paused_run_whose_workers_were_killed_takes_no_more_until_it_is_resumed(planned: Location):
    store = open_state(planned.stores["state"])
    assert store.claim_next_unit(RUN, "killed-minus-nine").leases
    with sqlite3.connect(planned.folder / "state.db") as database:
        # Its lease has ended, as that of any killed worker does when nobody renews it.
        database.execute("UPDATE units SET lease_expires_at = 1 WHERE run_id = ?", [RUN])
    store.pause(RUN)
    store.close()
    assert "is paused" in planned.refusal(planned.run("add_workers", ops=on(RUN, "add_drain_workers", workers=1)))
    assert planned.run("resume_run", ops=on(RUN, "reopen_and_drain", workers=1)).success
    assert state_of(planned) is RunState.COMPLETED


def failed_by_a_fault(location: Location) -> None:
    """One unit failed for a reason outside it, which is gone by now."""
    store = open_state(location.stores["state"])
    (lease,) = store.claim_next_unit(RUN, "a-worker-with-a-fault").leases
    store.fail_unit(lease, "no space left on device")
    store.close()


def test_a_unit_that_failed_is_tried_again_when_the_range_is_materialised_again(planned: Location):
    failed_by_a_fault(planned)
    assert planned.run("generate_corpus", FIRST, corpus={"documents_per_range": 2}).success
    assert state_of(planned) is RunState.COMPLETED


def test_a_unit_that_fails_every_time_fails_the_step_naming_it_and_what_to_do(
    planned: Location, monkeypatch: pytest.MonkeyPatch
):
    """Its attempts are used up (two, in the state URI); the others are kept, and nothing counts as materialised."""
    monkeypatch.setenv("DOCGEN_CHROMIUM", "/bin/false")
    result = planned.run("generate_corpus", FIRST, corpus={"documents_per_range": 2}, selection=["golden_shards"])
    said = planned.refusal(result)
    assert RUN in said and "re-execute" in said
    assert not planned.instance.fetch_materializations(dg.AssetKey("golden_shards"), limit=1).records


def test_cancelling_ends_a_run_for_good(planned: Location):
    assert planned.run("cancel_run", ops=on(RUN, "cancel_one_run")).success
    assert state_of(planned) is RunState.CANCELLED


def test_verifying_names_damage(damageable: Location):
    assert damageable.run("verify_run", ops=on(RUN, "verify_one_run")).success
    shard = next((damageable.folder / "blobs" / "runs" / RUN / "golden" / "invoices").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    result = damageable.run("verify_run", ops=on(RUN, "verify_one_run"))
    assert RUN in damageable.refusal(result)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    assert shard.name in str(failed.step_failure_data.user_failure_data.metadata["the first"])


def test_exporting_one_run_puts_its_counts_in_the_metadata(made: Location):
    result = made.run("export_run", ops=on(RUN, "export_one_run"))
    assert result.success
    (output,) = [
        event.step_output_data for event in result.all_events if event.event_type is dg.DagsterEventType.STEP_OUTPUT
    ]
    assert output.metadata["documents rows"].value == 3


@pytest.mark.parametrize("run_id", ["no-such-run", "Up/../there"])
@pytest.mark.parametrize(
    ("job", "op"),
    [
        ("export_run", "export_one_run"),
        ("remove_run", "remove_one_run"),
        ("add_workers", "add_drain_workers"),
        ("resume_run", "reopen_and_drain"),
        ("cancel_run", "cancel_one_run"),
        ("verify_run", "verify_one_run"),
    ],
)
def test_an_unknown_run_is_refused_by_name_in_one_line(made: Location, job: str, op: str, run_id: str):
    ended = made.run(job, ops=on(run_id, op))
    refused = made.refusal(ended)
    assert run_id in refused and "\n" not in refused
    launched = made.instance.get_run_by_id(ended.run_id)
    assert launched and launched.tags["dagster/max_retries"] == "0", "the daemon would launch it again"


def test_collecting_says_what_would_go_and_then_what_went_and_why(damageable: Location):
    blobs = damageable.folder / "blobs"
    (document,) = list(blobs.rglob("*.pdf"))[:1]
    withdrawn = blobs / "withdrawn" / RUN
    withdrawn.parent.mkdir()
    withdrawn.write_text("withdrawn\n")

    def collected(**config: Any) -> dict[str, Any]:
        result = damageable.run("collect_garbage", ops={"collect_one_store": {"config": config}})
        (output,) = [event.step_output_data for event in result.all_events if event.is_successful_output]
        return {name: value.value for name, value in output.metadata.items()}

    assert collected()["removed"] == 0
    would = collected(withdrawn=True, dry_run=True)
    assert document.exists() and would["would be removed"] > 18
    went = collected(withdrawn=True)
    assert not document.exists() and withdrawn.exists()
    assert went["removed"] == would["would be removed"] and went["bytes"] == went["withdrawn, bytes"] > 0
    assert document.name in str(went["the first"])


def held(sink_uri: str) -> dict[str, list[pa.RecordBatch]]:
    """Every row that the sink has of the run, by table."""
    with closing(open_sink(sink_uri)) as sink:
        return {table: list(sink.fetch(table, RUN)) for table in sink.counts(RUN)}


@pytest.mark.parametrize("sink", ["golden.duckdb", "golden"])
def test_commands_export_the_run_while_dagster_does_and_no_row_is_double(damageable: Location, sink: str):
    damageable.sink = str(damageable.folder / sink)
    blobs = damageable.stores["blobs"]
    command = [sys.executable, "-m", "docgen_core.cli", "export", RUN, "--blobs", blobs, "--sink", damageable.sink]
    exported = partial(damageable.run, "export_run", ops=on(RUN, "export_one_run"))
    assert exported().success
    alone = held(damageable.sink)
    begun, over = threading.Event(), threading.Event()

    def commands() -> int:
        """One after another, until Dagster has done with its own."""
        count = 0
        while not (count and over.is_set()):
            begun.set()
            subprocess.run(command, check=True, capture_output=True)
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(commands)
        begun.wait()
        results = [exported() for _ in range(3)]
        over.set()
        assert others.result() >= 1
    assert all(result.success for result in results)
    assert held(damageable.sink) == alone
