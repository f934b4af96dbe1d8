"""The sensor that sees finished runs, whoever made them, and asks for their tables.

It lists markers, never documents, and it never seals: sealing is the workers'. A request's run key
is the run and its root, so that nothing is asked for twice, also across restarts of the daemon.
"""

import logging
from enum import Enum
from typing import TYPE_CHECKING

import dagster as dg

from docgen_assets.defs.common import ROOT, TABLES
from docgen_assets.defs.jobs import export_catalogue, export_ranges, export_run, resume_run
from docgen_assets.markers import Cursor, walk
from docgen_assets.partitions import CompanyRange, company_ranges
from docgen_assets.resources import Places, Stores
from docgen_core.errors import DocgenError
from docgen_core.runs.keys import CATALOGUE_RUN, SEALED, withdrawn_key
from docgen_core.state.contract import RunState

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.state.contract import Run, StateStore

_log = logging.getLogger(__name__)

MAX_REQUESTS = 25
"""Requests a tick; what is left over is asked for in the next ticks."""

MAX_READ = 40
"""Markers read a tick; each may cost a read of its run's plan as well."""

WATCHED_RUNS = 20
"""Unfinished runs looked at a tick; the next tick goes on behind them."""

_PAST_EXPORTS = 100
"""Earlier materialisations of a range that are searched for a root."""

_RETRIED = {"dagster/max_retries": "5"}
"""An export may meet a sink that somebody has open: the daemon launches it again."""

_IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

_LAST_TABLE = list(TABLES)[-1]
"""A range whose last table is there has them all: one step writes them."""


class Wait(Enum):
    """An answer that is no request: look again in a later tick."""

    WAIT = "wait"


@dg.sensor(
    name="root_manifest_sensor",
    jobs=[export_catalogue, export_ranges, export_run, resume_run],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sees every sealed run, also those that the command line made, and asks for their tables: at the "
    "range where a run belongs to one, by export_catalogue or export_run otherwise. Asks for resume_run when a "
    "drained run was not sealed.",
)
def root_manifest_sensor(context: dg.SensorEvaluationContext, stores: Stores) -> dg.SensorResult:
    """One tick: new markers first, then runs that are through and were never sealed."""
    cursor = Cursor.load(context.cursor)
    with stores.opened() as here:
        requests = _for_sealed(context.instance, cursor, here)
        requests += _for_unsealed(cursor, here.state)
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "every sealed run has its tables, or is getting them",
        cursor=cursor.dump(),
    )


def _for_sealed(instance: dg.DagsterInstance, cursor: Cursor, here: Places) -> list[dg.RunRequest]:
    """Requests for runs whose marker is new, up to the tick's bounds."""
    names = (info.key.removeprefix(SEALED) for info in here.blobs.iter_keys(SEALED))
    requests: list[dg.RunRequest] = []
    for read, run_id in enumerate(walk(cursor, names)):
        if read == MAX_READ or len(requests) == MAX_REQUESTS:
            break
        try:
            answer = _answer(instance, run_id, here.blobs)
        except DocgenError as error:
            # One damaged plan, or a stranger's file among the markers, must not hide every other run.
            _log.warning("marker %r is passed over: %s", run_id, error)
            continue
        if answer is Wait.WAIT:
            cursor.again = True
        elif answer is not None:
            requests.append(answer)
    return requests


def _answer(instance: dg.DagsterInstance, run_id: str, blobs: "BlobStore") -> dg.RunRequest | Wait | None:
    """What a sealed run needs: its range's tables, an export, patience, or nothing."""
    from docgen_core.runs.manifest import sealed_digest

    digest = sealed_digest(blobs, run_id)
    run_key = f"{run_id}:{digest}"
    if digest is None or blobs.exists(withdrawn_key(run_id)):
        return None
    if instance.get_runs_count(dg.RunsFilter(tags={"dagster/run_key": run_key})):
        return None
    if run_id.startswith(CATALOGUE_RUN):
        return _for_catalogue(instance, run_id, run_key, digest)
    companies = _range_of(run_id, blobs)
    if companies is None:
        return dg.RunRequest(
            run_key=run_key,
            job_name=export_run.name,
            run_config={"ops": {"export_one_run": {"config": {"run_id": run_id}}}},
            tags={"docgen/run": run_id, **_RETRIED},
        )
    if _is_exported(instance, companies, digest):
        return None
    if _is_worked_on(instance, companies):
        return Wait.WAIT
    return dg.RunRequest(
        run_key=run_key,
        job_name=export_ranges.name,
        partition_key=companies.key,
        run_config={"resources": {"corpus": {"config": {"name": run_id.removesuffix(f"-{companies.key}")}}}},
        tags={"docgen/run": run_id, **_RETRIED},
    )


def _for_catalogue(instance: dg.DagsterInstance, run_id: str, run_key: str, digest: str) -> dg.RunRequest | None:
    """The export of a sealed catalogue, unless its tables were made from this root before."""
    found = instance.fetch_materializations(dg.AssetKey("companies"), limit=_PAST_EXPORTS)
    known = (record.asset_materialization for record in found.records)
    if any(each is not None and ROOT in each.metadata and each.metadata[ROOT].value == digest for each in known):
        return None
    version = run_id.removeprefix(CATALOGUE_RUN)
    return dg.RunRequest(
        run_key=run_key,
        job_name=export_catalogue.name,
        run_config={"resources": {"corpus": {"config": {"catalogue": version}}}},
        tags={"docgen/run": run_id, **_RETRIED},
    )


def _range_of(run_id: str, blobs: "BlobStore") -> CompanyRange | None:
    """The partition that the run belongs to: its name says so, and its plan draws from just that range."""
    from docgen_core.runs.keys import default_prefix
    from docgen_core.runs.manifest import read_plan

    key = next((key for key in company_ranges.get_partition_keys() if run_id.endswith(f"-{key}")), None)
    if key is None or not blobs.exists(f"{default_prefix(run_id)}/plan.json"):
        return None
    companies = CompanyRange.of(key)
    drawn_from = read_plan(blobs, default_prefix(run_id)).documents_spec.selection.companies
    return companies if drawn_from == (companies.first, companies.last) else None


def _is_exported(instance: dg.DagsterInstance, companies: CompanyRange, digest: str) -> bool:
    """Whether the range's tables were materialised from this root before, by whomever."""
    found = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(_LAST_TABLE), asset_partitions=[companies.key]),
        limit=_PAST_EXPORTS,
    )
    known = (record.asset_materialization for record in found.records)
    return any(each is not None and ROOT in each.metadata and each.metadata[ROOT].value == digest for each in known)


def _is_worked_on(instance: dg.DagsterInstance, companies: CompanyRange) -> bool:
    """Whether a Dagster run that is going covers the range: it may be about to write the tables itself."""
    for run in instance.get_runs(dg.RunsFilter(statuses=_IN_PROGRESS)):
        first = run.tags.get("dagster/partition") or run.tags.get("dagster/asset_partition_range_start")
        last = run.tags.get("dagster/partition") or run.tags.get("dagster/asset_partition_range_end")
        if first and last and first <= companies.key <= last:
            return True
    return False


def _for_unsealed(cursor: Cursor, state: "StateStore") -> list[dg.RunRequest]:
    """Requests for runs that were found drained and not sealed twice, a tick or more apart."""
    after = cursor.unfinished_after
    runs = state.list_runs((RunState.RUNNING, RunState.FINALIZING), after=after, limit=WATCHED_RUNS)
    until = runs[-1].run_id if len(runs) == WATCHED_RUNS else ""
    drained = [run for run in runs if _is_drained(run, state)]
    stuck = [run for run in drained if run.run_id in cursor.drained]
    not_looked_at = [each for each in cursor.drained if each <= after or (until and each > until)]
    cursor.drained = not_looked_at + [run.run_id for run in drained if run not in stuck]
    cursor.unfinished_after = until
    return [
        dg.RunRequest(
            run_key=f"resume:{run.run_id}:{run.epoch}",
            job_name=resume_run.name,
            run_config={"ops": {"reopen_and_drain": {"config": {"run_id": run.run_id, "workers": 1}}}},
            tags={"docgen/run": run.run_id},
        )
        for run in stuck
    ]


def _is_drained(run: "Run", state: "StateStore") -> bool:
    if run.state is RunState.FINALIZING:
        return True
    progress = state.progress(run.run_id)
    return run.planned and progress.done == progress.total
