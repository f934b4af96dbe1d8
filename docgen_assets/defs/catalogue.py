"""The asset `catalogue`: the companies of a range and what they sell, a unit of one catalogue version."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import dagster as dg
from pydantic import Field

from docgen_assets.columns import table_schema
from docgen_assets.defs.common import AS_ONE_RUN, CATALOGUE, GROUP, OWNERS, PACK, TAGS, ranges_of, version_of
from docgen_assets.drain import Pool, drain
from docgen_assets.failures import said_plainly
from docgen_assets.fleet import Workers, open_fleet, work_command
from docgen_assets.partitions import SETTINGS, CompanyRange, company_ranges
from docgen_assets.resources import Corpus, Places, Stores
from docgen_core.state.budget import in_dollars

if TYPE_CHECKING:
    from docgen_core.runs.manifest import Texts

NOT_KNOWN = "not known: a model has no price"


class CatalogueWorkers(Workers):
    """How the ranges of the catalogue are made. Without a language model one takes about a second."""

    bounds: ClassVar[dict[str, tuple[int, int]]] = {
        **Workers.bounds,
        "concurrency": (1, 1_000),
        "max_rejected_percent": (0, 100),
    }

    workers: int = Field(default=1, description="Worker processes to start. One is enough without a language model.")
    mix: str | None = Field(
        default=SETTINGS.mix,
        description="Language models that write the descriptions: a mix file, or cheap, balanced, best (DOCGEN_MIX). "
        "Empty: procedural texts. A catalogue version keeps its first mix. Keys come from the environment.",
    )
    budget_usd: str | None = Field(
        default=SETTINGS.budget_usd,
        description="US dollars that the whole catalogue may cost, over all ranges and workers, e.g. 5 or 0.25 "
        "(DOCGEN_BUDGET_USD). When it is used up, texts stay procedural. Means nothing without a mix.",
    )
    concurrency: int = Field(
        default=SETTINGS.concurrency,
        description="Calls of language models at once, in each worker (DOCGEN_CONCURRENCY).",
    )
    max_rejected_percent: int = Field(
        default=SETTINGS.max_rejected_percent,
        description="A range fails when more of its models' texts are turned down (DOCGEN_MAX_REJECTED_PERCENT).",
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
    from docgen_core.llm.mix import load_mix
    from docgen_core.runs.catalogue import build_catalogue_run
    from docgen_core.runs.plan import check_request
    from docgen_core.state.budget import nano_dollars

    ranges = ranges_of(context.partition_keys)
    units = tuple(each.unit for each in ranges)
    with said_plainly(), stores.opened() as here:
        config.check()
        check_request(corpus.request(ranges[0]))  # what the plan would refuse is not to cost a catalogue first
        mix = load_mix(config.mix) if config.mix else None
        if mix:
            mix.require_keys()  # as its workers will have to, each in its own log only
        budget = nano_dollars(config.budget_usd, "budget_usd") if mix and config.budget_usd else None
        planned = build_catalogue_run(here.state, here.blobs, corpus.catalogue, corpus.roster, mix=mix, budget=budget)
        run_id = planned.run.run_id
        command = work_command(
            [run_id],
            state=here.state.uri,
            blobs=here.blobs.uri,
            units=units,
            concurrency=config.concurrency if mix else None,
            max_rejected_percent=config.max_rejected_percent if mix else None,
        )
        drain(context, [Pool(run_id, units)], open_fleet(config.fleet, command), config.workers, here)
        build = _build_so_far(run_id, here)
        digests = [_described(context, each, corpus, here, build) for each in ranges]
    context.set_data_version(CATALOGUE, version_of(digests))


def _described(
    context: dg.AssetExecutionContext, companies: CompanyRange, corpus: Corpus, here: Places, build: dict[str, object]
) -> str:
    """Check the range's finished part, put what it holds into the metadata, and return its digest.

    `build` is how the whole build stands; it is told where models wrote.
    """
    from docgen_core.errors import Damage
    from docgen_core.runs.verify import verify_run

    part = here.catalogue_part(corpus.catalogue, companies)
    if not verify_run(part.run_id, blobs=here.blobs, state=here.state, units=(companies.unit,)).ok:
        raise Damage(f"range {companies.key} is damaged; `docgen verify {part.run_id}` names each blob")
    context.add_asset_metadata(
        {
            "dagster/partition_row_count": part.rows["companies"],
            **{f"{table} rows": rows for table, rows in part.rows.items()},
            **(_written(part.texts) | build if part.texts else {}),
            "docgen run": part.run_id,
            "part digest": part.digest,
        },
        asset_key=CATALOGUE,
        partition_key=companies.key,
    )
    return part.digest


def _written(texts: "Texts") -> dict[str, object]:
    """Who wrote the range's texts, and what was turned down. A breakdown is told where its count is not 0."""
    rejected = {model: dict(rules) for model, rules in texts.rejected.items()}
    answers = texts.answers.values()
    known = not any(each.unpriced_calls for each in answers)
    counts: dict[str, tuple[int, str, Mapping[str, object]]] = {
        "texts by models": (texts.filled, "texts by model", dict(texts.written)),
        "procedural texts": (sum(texts.unfilled.values()), "procedural texts by reason", dict(texts.unfilled)),
        "texts turned down": (texts.turned_down, "texts turned down by model and rule", rejected),
    }
    told: dict[str, object] = {"texts": texts.items}
    for name, (count, by, breakdown) in counts.items():
        told |= {name: count} | ({by: dg.MetadataValue.json(breakdown)} if count else {})
    cost = in_dollars(sum(each.cost for each in answers)) if known else NOT_KNOWN
    return told | {"cost of the range's answers, cached or not (USD)": cost}


def _build_so_far(run_id: str, here: Places) -> dict[str, object]:
    """How the whole build's money stands, all ranges together, and whom it does not ask any more."""
    spent, quarantined = here.state.spend(run_id), here.state.quarantined_providers(run_id)
    total = spent.total
    told: dict[str, object] = {
        "calls of the whole build so far": total.calls,
        "spent by the whole build so far (USD)": in_dollars(total.known_cost) if total.cost is not None else NOT_KNOWN,
    }
    if spent.budget is not None:
        told["budget of the whole build (USD)"] = in_dollars(spent.budget.cap)
    if quarantined:
        told["providers in quarantine"] = dg.MetadataValue.json(dict(quarantined))
    return told


@dg.config_mapping
def catalogue_workers(val: CatalogueWorkers) -> dict[str, object]:
    """The asset is configured as its one op is."""
    config = {name: value for name, value in val.model_dump().items() if value is not None}
    return {"launch_catalogue_workers": {"config": {**config, "fleet": val.fleet.name}}}


@dg.graph_asset(
    name="catalogue",
    description="Companies and their products: one company range a partition, made without any key or network, or "
    "with descriptions by language models under one budget. A range once made is final, so documents may be drawn "
    "from it while other ranges are still missing.",
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
