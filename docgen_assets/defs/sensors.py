"""The sensors that see what others did: finished runs, whose tables they ask for, and withdrawn ones, to be removed.

They list markers, never documents, and never seal: sealing is the workers'. A request's run key is
the run and its root (or its tombstone), so that nothing is asked for twice, also across restarts of
the daemon. What a tick may ask of the blob store is rationed.
"""

import json
import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Self

import dagster as dg
from pydantic import TypeAdapter

from docgen_assets.defs.common import ROOT, TABLES
from docgen_assets.defs.jobs import export_catalogue, export_ranges, export_run, remove_run, resume_run
from docgen_assets.failures import MAX_RETRIES
from docgen_assets.markers import Sweep
from docgen_assets.partitions import CompanyRange, named_range
from docgen_assets.ration import RationedBlobs, RationUsedUp
from docgen_assets.resources import Stores
from docgen_core.errors import DocgenError
from docgen_core.runs.keys import CATALOGUE_RUN, SEALED, WITHDRAWN, is_name, withdrawn_key
from docgen_core.state.contract import RunState

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.state.contract import Run, StateStore

_log = logging.getLogger(__name__)

REQUESTS_FOR_SEALED = 75
"""Requests that a tick sends to the blob store for sealed runs at most: up to 21 list a window of markers, and a new
marker costs two, or four where its name is a range's."""

REQUESTS_FOR_WITHDRAWN = 22
"""Of the other sensor: a window's listing. Both together stay below 100 a tick, whatever they find."""

MAX_REQUESTS = 25
"""Runs that a tick asks for; what is left over is asked for in the next ticks."""

WATCHED_RUNS = 20
"""Unfinished runs looked at a tick; the next tick goes on behind them."""

_PAST_EXPORTS = 100
"""Earlier materialisations of a table that are searched for a root."""

_RETRIED = {MAX_RETRIES: "5"}
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


@dataclass
class Cursor:
    """What earlier ticks of a sensor knew."""

    markers: Sweep = field(default_factory=Sweep)
    unfinished_after: str = ""
    """Unfinished runs were looked at up to this one."""
    drained: list[str] = field(default_factory=list)
    """Runs that were seen drained and not sealed once: their workers may be about to."""

    @classmethod
    def load(cls, text: str | None) -> Self:
        """The cursor as it was dumped; a fresh one for none, or for that of another version."""
        try:
            content = json.loads(text or "{}")
            return TypeAdapter(cls).validate_python({**content, "markers": Sweep.of(content["markers"])})
        except (ValueError, LookupError, TypeError, AttributeError):
            # Nothing is lost with a cursor: run keys keep anything from being asked for twice.
            return cls()

    def dump(self) -> str:
        """The cursor as text."""
        return json.dumps({**asdict(self), "markers": self.markers.as_json()}, separators=(",", ":"))


@dg.sensor(
    name="root_manifest_sensor",
    jobs=[export_catalogue, export_ranges, export_run, resume_run],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sees every sealed run, also those that the command line made, and asks for their tables: at the "
    "range where a run belongs to one, by export_catalogue or export_run otherwise. Asks for resume_run when a "
    "drained run was not sealed. A tick sends a bounded number of requests, so many new runs take several.",
)
def root_manifest_sensor(context: dg.SensorEvaluationContext, stores: Stores) -> dg.SensorResult:
    """One tick: new markers first, then runs that are through and were never sealed."""
    cursor = Cursor.load(context.cursor)
    with stores.opened() as here:
        blobs = RationedBlobs(here.blobs, REQUESTS_FOR_SEALED)
        requests = _for_new(cursor.markers, SEALED, blobs, lambda run_id: _answer(context.instance, run_id, blobs))
        requests += _for_unsealed(cursor, here.state)
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "every sealed run has its tables, or is getting them",
        cursor=cursor.dump(),
    )


@dg.sensor(
    name="withdrawn_run_sensor",
    jobs=[remove_run],
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Sees every withdrawn run, whoever withdrew it, and asks for remove_run, which takes its rows out of "
    "the sink; once each, whoever exported it. A tick sends a bounded number of requests.",
)
def withdrawn_run_sensor(context: dg.SensorEvaluationContext, stores: Stores) -> dg.SensorResult:
    """One tick: tombstones that are new."""
    cursor = Cursor.load(context.cursor)
    with stores.opened() as here:
        blobs = RationedBlobs(here.blobs, REQUESTS_FOR_WITHDRAWN)
        requests = _for_new(cursor.markers, WITHDRAWN, blobs, lambda run_id: _removal(context.instance, run_id))
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else "no run was withdrawn since the last tick",
        cursor=cursor.dump(),
    )


def _for_new(
    sweep: Sweep, markers: str, blobs: "BlobStore", answer: Callable[[str], dg.RunRequest | Wait | None]
) -> list[dg.RunRequest]:
    """Requests for runs whose marker is new, up to the tick's bounds."""

    def names(after: str) -> Iterator[str]:
        found = blobs.iter_keys(markers, after=f"{markers}{after}" if after else "")
        return (info.key.removeprefix(markers) for info in found)

    walk, found = sweep.due(names)
    # What a desktop or a browser of buckets left there names no run.
    run_ids = [name for name in found if is_name(name)]
    requests: list[dg.RunRequest] = []
    try:
        for run_id in walk.new(run_ids):
            if len(requests) == MAX_REQUESTS:
                break
            try:
                needed = answer(run_id)
            except DocgenError as error:
                # One damaged plan must not hide every other run.
                _log.warning("marker %r is passed over: %s", run_id, error)
                continue
            if needed is Wait.WAIT:
                walk.again = True
            elif needed is not None:
                requests.append(needed)
    except RationUsedUp:
        # The run it happened at comes again in the next tick, first.
        pass
    return requests


def _removal(instance: dg.DagsterInstance, run_id: str) -> dg.RunRequest | None:
    """What a withdrawn run needs, unless it was asked for before."""
    run_key = f"withdrawn:{run_id}"
    if instance.get_runs_count(dg.RunsFilter(tags={"dagster/run_key": run_key})):
        return None
    return dg.RunRequest(
        run_key=run_key,
        job_name=remove_run.name,
        run_config={"ops": {"remove_one_run": {"config": {"run_id": run_id}}}},
        tags={"docgen/run": run_id, **_RETRIED},
    )


def _answer(instance: dg.DagsterInstance, run_id: str, blobs: "BlobStore") -> dg.RunRequest | Wait | None:
    """What a sealed run needs: its range's tables, an export, patience, or nothing."""
    from docgen_core.runs.manifest import sealed_digest

    digest = sealed_digest(blobs, run_id)
    run_key = f"{run_id}:{digest}"
    if digest is None or instance.get_runs_count(dg.RunsFilter(tags={"dagster/run_key": run_key})):
        return None
    if blobs.exists(withdrawn_key(run_id)):
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
    here = dg.AssetRecordsFilter(asset_key=dg.AssetKey(_LAST_TABLE), asset_partitions=[companies.key])
    if _is_exported(instance, here, digest):
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
    if _is_exported(instance, dg.AssetRecordsFilter(asset_key=dg.AssetKey("companies")), digest):
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

    key = named_range(run_id)
    if key is None or not blobs.exists(f"{default_prefix(run_id)}/plan.json"):
        return None
    companies = CompanyRange.of(key)
    drawn_from = read_plan(blobs, default_prefix(run_id)).documents_spec.selection.companies
    return companies if drawn_from == (companies.first, companies.last) else None


def _is_exported(instance: dg.DagsterInstance, table: dg.AssetRecordsFilter, digest: str) -> bool:
    """Whether the table was materialised from this root before, by whomever."""
    found = instance.fetch_materializations(table, limit=_PAST_EXPORTS)
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
