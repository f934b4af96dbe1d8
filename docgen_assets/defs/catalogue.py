"""The asset `catalogue`: the companies of a range and what they sell, a unit of one catalogue version."""

from typing import Any

import dagster as dg
from pydantic import Field

from docgen_assets.columns import table_schema
from docgen_assets.defs.common import AS_ONE_RUN, CATALOGUE, GROUP, OWNERS, PACK, TAGS, ranges_of, version_of
from docgen_assets.drain import Pool, drain
from docgen_assets.failures import said_plainly
from docgen_assets.fleet import Workers, open_fleet, work_command
from docgen_assets.partitions import CompanyRange, company_ranges
from docgen_assets.resources import Corpus, Places, Stores


class CatalogueWorkers(Workers):
    """How the ranges of the catalogue are made. Without a language model one takes about a second."""

    workers: int = Field(
        default=1, ge=1, le=512, description="Worker processes to start. One is enough without a language model."
    )


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Plans the catalogue version if need be, starts workers on the units of the chosen ranges, and waits "
    "until the store has them done. Whoever completes the last range of the catalogue seals it.",
)
def launch_catalogue_workers(
    context: dg.AssetExecutionContext, config: CatalogueWorkers, corpus: Corpus, stores: Stores
) -> None:
    """Make the chosen ranges of the catalogue version and say what is in them."""
    from docgen_core.runs.catalogue import build_catalogue_run

    ranges = ranges_of(context.partition_keys)
    units = tuple(each.unit for each in ranges)
    with said_plainly(), stores.opened() as here:
        run_id = build_catalogue_run(here.state, here.blobs, corpus.catalogue, corpus.roster).run.run_id
        command = work_command([run_id], state=here.state.uri, blobs=here.blobs.uri, units=units)
        drain(context, [Pool(run_id, units)], open_fleet(config.fleet, command), config.workers, here)
        digests = [_described(context, each, run_id, here) for each in ranges]
    context.set_data_version(CATALOGUE, version_of(digests))


def _described(context: dg.AssetExecutionContext, companies: CompanyRange, run_id: str, here: Places) -> str:
    """Check the range's finished part, put what it holds into the metadata, and return its digest."""
    from docgen_core.errors import Damage
    from docgen_core.runs.manifest import PartEntry, read_part
    from docgen_core.runs.verify import verify_run

    unit = here.state.units(run_id, after=companies.unit - 1, limit=1)[0]
    verified = verify_run(run_id, blobs=here.blobs, state=here.state, units=(companies.unit,))
    if not verified.ok or unit.part_key is None or unit.part_sha256 is None:
        raise Damage(f"range {companies.key} of {run_id!r} is damaged; `docgen verify {run_id}` names each blob")
    part = read_part(here.blobs, PartEntry(unit=unit.index, key=unit.part_key, sha256=unit.part_sha256))
    context.add_asset_metadata(
        {
            "dagster/partition_row_count": part.rows["companies"],
            **{f"{table} rows": rows for table, rows in part.rows.items()},
            "docgen run": run_id,
            "part": unit.part_key,
            "part digest": unit.part_sha256,
        },
        asset_key=CATALOGUE,
        partition_key=companies.key,
    )
    return unit.part_sha256


@dg.config_mapping
def catalogue_workers(val: CatalogueWorkers) -> dict[str, object]:
    """The asset is configured as its one op is."""
    return {"launch_catalogue_workers": {"config": {"workers": val.workers, "fleet": val.fleet.name}}}


@dg.graph_asset(
    name="catalogue",
    description="Companies and their products, made without any key or network: one company range a partition. A "
    "range once made is final, so documents may be drawn from it while other ranges are still missing.",
    group_name=GROUP,
    owners=OWNERS,
    tags=TAGS,
    kinds={"python", "parquet"},
    code_version=PACK.version,
    metadata={"dagster/column_schema": table_schema(PACK.catalogue_tables)},
    config=catalogue_workers,
    partitions_def=company_ranges,
    backfill_policy=AS_ONE_RUN,
)
def catalogue() -> Any:
    """The graph of one op."""
    return launch_catalogue_workers()
