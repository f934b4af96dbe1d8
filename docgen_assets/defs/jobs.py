"""Jobs: everything for chosen ranges, and what an operator does to a run by its id.

The run jobs work on any docgen run, also one that Dagster never started. Each does one thing that
the command line does too, and lets the store decide.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from pydantic import Field

from docgen_assets.defs.common import CATALOGUE_TABLES, ROOT, TABLES
from docgen_assets.defs.exports import WRITER_POOL, export_catalogue_tables
from docgen_assets.drain import Pool, drain, insist, refuse_closed, watch
from docgen_assets.failures import said_plainly
from docgen_assets.fleet import Workers, open_fleet, work_command
from docgen_assets.partitions import named_range
from docgen_assets.resources import Stores
from docgen_assets.warehouse import opened_sink
from docgen_core.errors import UsageError
from docgen_core.runs.keys import CATALOGUE_RUN

_LISTED = 100
"""Findings of a verification that are kept with its step."""

_TABLES = dg.AssetSelection.assets(*TABLES)

generate_corpus = dg.define_asset_job(
    "generate_corpus",
    selection=dg.AssetSelection.all(),
    description="From nothing to queryable tables for the chosen company ranges: catalogue, plan, documents with "
    "their golden shards, tables, checks. Launching it again resumes it.",
)

export_ranges = dg.define_asset_job(
    "export_ranges",
    selection=_TABLES | dg.AssetSelection.checks_for_assets(*TABLES),
    description="The tables and their checks alone, for ranges whose runs are sealed.",
)


@dg.job(
    description="The tables of a sealed catalogue version: companies, products, price bands, calls of language models."
)
def export_catalogue() -> None:
    """The one step."""
    export_catalogue_tables()


class OneRun(dg.Config):
    """A docgen run, by its id."""

    run_id: str = Field(description="Id of the docgen run, as `docgen status` lists it.")


class OnRun(Workers):
    """Workers, and the run they work on."""

    run_id: str = Field(description="Id of the docgen run, as `docgen status` lists it.")


@dg.op(
    out=dg.Out(dg.Nothing),
    pool=WRITER_POOL,
    description="Loads a sealed run's tables into the sink, replacing what it exported before.",
)
def export_one_run(context: dg.OpExecutionContext, config: OneRun, stores: Stores) -> None:
    """Export one run, whichever it is."""
    from docgen_core.export import export_run
    from docgen_core.runs.manifest import refuse_unknown

    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        refuse_unknown(here.blobs, here.state, config.run_id)
        report = export_run(config.run_id, blobs=here.blobs, sink=sink)
    context.add_output_metadata(
        {"docgen run": config.run_id, ROOT: report.root_sha256, "dagster/uri": stores.sink}
        | {f"{table} rows": rows for table, rows in sorted(report.rows.items())}
    )


@dg.job(description="Exports one sealed run, by its id, into the sink; also a run made by the command line.")
def export_run() -> None:
    """The one step."""
    export_one_run()


@dg.op(
    out=dg.Out(dg.Nothing),
    pool=WRITER_POOL,
    description="Takes the rows of a withdrawn run out of the sink. A run that is not withdrawn is refused.",
)
def remove_one_run(context: dg.OpExecutionContext, config: OneRun, stores: Stores) -> None:
    """Remove one withdrawn run's rows, and say so of each table that showed them."""
    from docgen_core.runs.keys import withdrawn_key
    from docgen_core.runs.manifest import refuse_unknown

    run_id = config.run_id
    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        refuse_unknown(here.blobs, here.state, run_id)
        if not here.blobs.exists(withdrawn_key(run_id)):
            raise UsageError(f"run {run_id!r} is not withdrawn, and its rows stay: `docgen withdraw {run_id}` first")
        held = sink.counts(run_id)
        sink.remove(run_id)
    removed = {f"{table} rows": rows for table, rows in sorted(held.items())}
    for table, key in _shown_with(context.instance, run_id):
        told = {"withdrawn": "the run was withdrawn, and its rows are out of the sink", "docgen run": run_id}
        context.log_event(dg.AssetObservation(table, partition=key, metadata={**told, "dagster/uri": stores.sink}))
    context.add_output_metadata(
        {"docgen run": run_id, "dagster/uri": stores.sink, "rows removed": sum(held.values())} | removed
    )


def _shown_with(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[str, str | None]]:
    """Tables, and the partition of each, whose latest materialisation was made from the run."""
    key = named_range(run_id)
    tables = CATALOGUE_TABLES if run_id.startswith(CATALOGUE_RUN) else TABLES if key else ()
    for table in tables:
        wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey(table), asset_partitions=[key] if key else None)
        for record in instance.fetch_materializations(wanted, limit=1).records:
            shown = record.asset_materialization
            if shown is not None and "docgen run" in shown.metadata and shown.metadata["docgen run"].value == run_id:
                yield table, key


@dg.job(
    description="Takes a withdrawn run's rows out of the sink, whoever exported them. withdrawn_run_sensor asks for "
    "it; launching it again is fine."
)
def remove_run() -> None:
    """The one step."""
    remove_one_run()


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Starts more workers on a run that is going and waits until they leave. Cancelling takes only these "
    "away again.",
)
def add_drain_workers(context: dg.OpExecutionContext, config: OnRun, stores: Stores) -> None:
    """Put workers on a run; whoever drains it seals it."""
    with said_plainly(), stores.opened() as here:
        config.check()
        refuse_closed(here.state, config.run_id)
        command = work_command([config.run_id], state=here.state.uri, blobs=here.blobs.uri)
        pool = Pool(config.run_id)
        watch(context, [pool], open_fleet(config.fleet, command), config.workers, here.state)
        insist(here.state, pool)


@dg.job(description="Puts N more workers on any run that is going; they leave when it is drained.")
def add_workers() -> None:
    """The one step."""
    add_drain_workers()


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Clears a pause, gives failed units their attempts back, reclaims expired ones, and drains the run.",
)
def reopen_and_drain(context: dg.OpExecutionContext, config: OnRun, stores: Stores) -> None:
    """Resume a run to its end."""
    from docgen_core.runs.drain import reopen_run
    from docgen_core.runs.manifest import refuse_withdrawn

    with said_plainly(), stores.opened() as here:
        config.check()
        here.state.run(config.run_id)
        refuse_withdrawn(here.blobs, config.run_id)
        reopened = reopen_run(here.state, config.run_id)
        context.log.info(f"{reopened.reset} failed units reset, {reopened.reclaimed} expired leases reclaimed")
        command = work_command([config.run_id], state=here.state.uri, blobs=here.blobs.uri)
        drain(context, [Pool(config.run_id)], open_fleet(config.fleet, command), config.workers, here)


@dg.job(description="Finishes a run: one that was paused, has failed units, lost its workers, or was never sealed.")
def resume_run() -> None:
    """The one step."""
    reopen_and_drain()


@dg.op(out=dg.Out(dg.Nothing), description="Cancels a run in the store; its workers stop at their next renewal.")
def cancel_one_run(context: dg.OpExecutionContext, config: OneRun, stores: Stores) -> None:
    """Cancel a run for good."""
    with said_plainly(), stores.opened() as here:
        here.state.cancel(config.run_id)
    context.log.info(f"run {config.run_id!r} is cancelled; what is done stays where it is")


@dg.job(description="Cancels a run for good. To stop only Dagster's workers, terminate the Dagster run instead.")
def cancel_run() -> None:
    """The one step."""
    cancel_one_run()


class Verify(OneRun):
    """How thoroughly to verify which run."""

    deep: bool = Field(default=True, description="Read every blob and compare its digest, not only its presence.")


@dg.op(out=dg.Out(dg.Nothing), description="Names every blob of a run that is missing, changed or foreign.")
def verify_one_run(context: dg.OpExecutionContext, config: Verify, stores: Stores) -> None:
    """Verify one run; damage fails the step."""
    from docgen_core.runs.verify import verify_run as verify

    with said_plainly(), stores.opened() as here:
        verified = verify(config.run_id, blobs=here.blobs, state=here.state, deep=config.deep)
    found: dict[str, dg.MetadataValue[Any]] = {"findings": dg.MetadataValue.int(len(verified.findings))}
    if verified.findings:
        first = verified.findings[:_LISTED]
        found["the first"] = dg.MetadataValue.md(
            "\n".join(f"- {each.kind} `{each.key}` {each.detail}" for each in first)
        )
    if not verified.ok:
        raise dg.Failure(verified.summary, metadata=found, allow_retries=False)
    context.log.info(verified.summary)
    context.add_output_metadata(found)


@dg.job(description="Verifies a run's blobs against its manifest, byte for byte.")
def verify_run() -> None:
    """The one step."""
    verify_one_run()
