"""The assets `run_plan` and `golden_shards`: what is to be made of a range, and its making."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import dagster as dg

from docgen_assets.columns import shard_lineage, table_schema
from docgen_assets.defs.common import (
    AS_ONE_RUN,
    CATALOGUE,
    GOLDEN_SHARDS,
    GROUP,
    OWNERS,
    PACK,
    ROOT,
    RUN_PLAN,
    TABLES,
    TAGS,
    place_of,
    ranges_of,
    version_of,
)
from docgen_assets.drain import Pool, drain
from docgen_assets.failures import said_plainly
from docgen_assets.fleet import Workers, open_fleet, work_command
from docgen_assets.partitions import CompanyRange, company_ranges
from docgen_assets.plots import units_over_time
from docgen_assets.preview import THUMBNAILS, contact_sheet
from docgen_assets.resources import Corpus, Places, Stores
from docgen_core.errors import PlanConflict
from docgen_core.runs.keys import root_key

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.runs.manifest import Root
    from docgen_core.runs.plan import PlannedRun


@dg.asset(
    name=RUN_PLAN.to_python_identifier(),
    deps=[CATALOGUE],
    description="The recorded plan of a range's run, CORPUS-RANGE: how many documents, of which kind, drawn from which "
    "part of the catalogue. Planning again changes nothing; another specification under the same corpus name is "
    "refused.",
    group_name=GROUP,
    owners=OWNERS,
    tags=TAGS,
    kinds={"python"},
    code_version=PACK.version,
    partitions_def=company_ranges,
    backfill_policy=AS_ONE_RUN,
)
def run_plan(context: dg.AssetExecutionContext, corpus: Corpus, stores: Stores) -> dg.MaterializeResult[None]:
    """Plan the run of each chosen range."""
    with said_plainly(), stores.opened() as here:
        plans = [(each, _planned(corpus, each, here)) for each in ranges_of(context.partition_keys)]
    for companies, planned in plans:
        for warning in planned.warnings:
            context.log.warning(warning)
        marker = planned.run.marker
        context.add_asset_metadata(
            {
                "docgen run": marker.run_id,
                "documents": marker.total_items,
                "units": marker.total_units,
                "documents a unit": marker.unit_size,
                "specification": dg.MetadataValue.json(dict(marker.spec)),
                "specification digest": marker.spec_digest,
                "planned": "now" if planned.created else "before; unchanged",
            },
            partition_key=companies.key,
        )
    return dg.MaterializeResult(data_version=version_of([planned.run.marker.spec_digest for _, planned in plans]))


def _planned(corpus: Corpus, companies: CompanyRange, here: Places) -> "PlannedRun":
    from docgen_core.runs.plan import create_run

    try:
        return create_run(here.state, here.blobs, corpus.request(companies))
    except PlanConflict as conflict:
        raise dg.Failure(
            f"corpus {corpus.name!r} has other documents for range {companies.key} already "
            f"({'; '.join(conflict.differences)}): give this corpus another name, or configure it as it was",
            allow_retries=False,
        ) from None


@dg.op(
    ins={RUN_PLAN.to_python_identifier(): dg.In(dg.Nothing)},
    out=dg.Out(dg.Nothing),
    description="Starts leaderless drain workers on the runs of the chosen ranges, all as one pool, and waits until "
    "the store has every unit done and each run is sealed. Cancelling stops the workers; they hand their units back.",
)
def launch_drain_workers(context: dg.AssetExecutionContext, config: Workers, corpus: Corpus, stores: Stores) -> None:
    """Drain the runs of the chosen ranges; fail before anything incomplete counts as materialised."""
    ranges = ranges_of(context.partition_keys)
    with said_plainly(), stores.opened() as here:
        config.check()
        pools = [Pool(corpus.run_id(each)) for each in ranges]
        command = work_command([pool.run_id for pool in pools], state=here.state.uri, blobs=here.blobs.uri)
        drained = drain(context, pools, open_fleet(config.fleet, command), config.workers, here)
        roots = [here.root(corpus.run_id(each)) for each in ranges]
        if drained.items:
            context.add_output_metadata(
                {
                    "documents a second": round(drained.items / drained.seconds, 2),
                    "documents made now": drained.items,
                    "workers": config.workers,
                    "units over time": units_over_time(drained.progress, drained.units),
                }
            )
        for companies, root in zip(ranges, roots, strict=True):
            context.add_asset_metadata(_described(root, here), asset_key=GOLDEN_SHARDS, partition_key=companies.key)
    context.set_data_version(GOLDEN_SHARDS, version_of([root.digest for root in roots]))


def _described(root: "Root", here: Places) -> dict[str, object]:
    """What an operator wants to know of a sealed run."""
    prefix = here.state.run(root.run_id).marker.prefix
    return {
        "dagster/partition_row_count": root.rows["documents"],
        "dagster/uri": f"{here.blobs.uri}/{prefix}",
        "docgen run": root.run_id,
        ROOT: root.digest,
        "root manifest": place_of(here.blobs.uri, root_key(prefix)),
        "files": place_of(here.blobs.uri, prefix),
        "documents": root.total_items,
        "units": root.total_units,
        **{f"{table} rows": rows for table, rows in root.rows.items()},
        "first pages": dg.MetadataValue.md(contact_sheet(_first_documents(here.blobs, root, f"{prefix}/documents/"))),
    }


def _first_documents(blobs: "BlobStore", root: "Root", folder: str) -> Iterator[bytes]:
    """The first documents of the run, from its parts, so that what is shown is what was sealed."""
    from docgen_core.render.pictures import FIRST_PAGE_ENDINGS
    from docgen_core.runs.manifest import iter_parts, read_blob

    files = (entry for part in iter_parts(blobs, root) for entry in part.blobs if entry.key.startswith(folder))
    for entry in islice((each for each in files if each.key.endswith(FIRST_PAGE_ENDINGS)), THUMBNAILS):
        yield read_blob(blobs, entry)


@dg.config_mapping
def drain_workers(val: Workers) -> dict[str, object]:
    """The asset is configured as its one op is."""
    return {"launch_drain_workers": {"config": {"workers": val.workers, "fleet": val.fleet.name}}}


@dg.graph_asset(
    name=GOLDEN_SHARDS.to_python_identifier(),
    ins={RUN_PLAN.to_python_identifier(): dg.AssetIn(dagster_type=dg.Nothing)},
    description="The documents of a range and their golden set as Parquet shards, sealed by a root manifest. "
    "Materialising again goes on where it stopped; what is done is never made twice.",
    group_name=GROUP,
    owners=OWNERS,
    tags=TAGS,
    kinds={"python", "chromium", "parquet"},
    code_version=PACK.version,
    metadata={
        "dagster/column_schema": table_schema(TABLES),
        "dagster/column_lineage": shard_lineage(TABLES, CATALOGUE),
    },
    config=drain_workers,
    partitions_def=company_ranges,
    backfill_policy=AS_ONE_RUN,
)
def golden_shards(run_plan: None) -> Any:
    """The graph of one op."""
    return launch_drain_workers(run_plan)
