"""One asset a golden table: the rows of a range, in the sink, ready to be queried."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from docgen_assets.columns import table_lineage, table_schema
from docgen_assets.defs.common import (
    AS_ONE_RUN,
    CATALOGUE,
    CATALOGUE_TABLES,
    GOLDEN_SHARDS,
    GROUP,
    OWNERS,
    PACK,
    ROOT,
    TABLES,
    TAGS,
    ranges_of,
    version_of,
)
from docgen_assets.failures import said_plainly
from docgen_assets.partitions import SETTINGS, company_ranges
from docgen_assets.plots import plots_of
from docgen_assets.resources import Corpus, Stores
from docgen_assets.warehouse import opened_sink, preview
from docgen_core.export import SCHEMES, split_uri
from docgen_core.runs.usage import LLM_USAGE

if TYPE_CHECKING:
    import pyarrow as pa

WRITER_POOL = "duckdb_writer"
"""Steps that write the sink queue here. Only a throttle: the sink has a lock of its own."""

_KINDS = {"table"} | ({split_uri(SETTINGS.sink)[0]} & set(SCHEMES))
"""What the graph shows of a table: where it is. A sink that there is not is for the step to refuse."""

_DESCRIPTIONS = {
    "invoices": "One row a document: parties, dates, terms and totals, as printed.",
    "line_items": "One row a printed line, with quantity, price, discounts and tax.",
    "tax_lines": "One row a tax on a bucket of a document.",
    "instalments": "One row a part of the amount due with a day of its own.",
    "codes": "One row a bar or matrix code on a page: what a reader decodes, and what it is for.",
    "documents": "One row a file: where it is, how it looks, its digest.",
    "pages": "One row a page: the file it is in, its size in points and pixels, its resolution.",
    "field_boxes": "One row a printed fragment: which golden value stands where on which page.",
    "words": "One row a word of a page, with its box and its golden value; where the corpus asks for words.",
}

_CATALOGUE_DESCRIPTIONS = {
    "companies": "One row a company of the sealed catalogue: country, language, currency, line of business.",
    "products": "One row a product: name, description and who wrote it, codes, unit, price, tax.",
    "price_tiers": "One row a band of a graduated price.",
    LLM_USAGE: "One row a call of a language model: model, tokens, cost, items, unit, attempt.",
}


def _specs(
    tables: Mapping[str, "pa.Schema"], source: dg.AssetKey, descriptions: Mapping[str, str]
) -> list[dg.AssetSpec]:
    """An asset for each table that is loaded from `source`."""
    return [
        dg.AssetSpec(
            key=table,
            deps=[source],
            description=descriptions[table],
            group_name=GROUP,
            owners=OWNERS,
            tags=TAGS,
            kinds=_KINDS,
            code_version=PACK.version,
            metadata={
                "dagster/column_schema": table_schema({table: schema}),
                "dagster/column_lineage": table_lineage(table, schema, source),
                "dagster/table_name": table,
            },
        )
        for table, schema in tables.items()
    ]


_SPECS = _specs(TABLES, GOLDEN_SHARDS, _DESCRIPTIONS)

CATALOGUE_SPECS = _specs(CATALOGUE_TABLES, CATALOGUE, _CATALOGUE_DESCRIPTIONS)
"""They belong to a whole version, which is exported when its last range is made: so a job writes them, which the sensor
asks for, and "Materialize all" on some of the ranges leaves them alone."""


@dg.op(
    out=dg.Out(dg.Nothing),
    pool=WRITER_POOL,
    description="Loads the sealed catalogue version into the sink, whole: a catalogue is sealed when its last range is "
    "made. Exporting again replaces it. Calls of language models are there where models wrote it.",
)
def export_catalogue_tables(context: dg.OpExecutionContext, corpus: Corpus, stores: Stores) -> None:
    """Export the catalogue that the corpus draws from, and say so of each of its tables."""
    from docgen_core.export import export_run
    from docgen_core.runs.keys import catalogue_run_id

    run_id = catalogue_run_id(corpus.catalogue)
    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        root = here.root(run_id)
        report = export_run(run_id, blobs=here.blobs, sink=sink)
        plots = plots_of(run_id, here.blobs)
        for table, rows in report.rows.items():
            made = dg.AssetMaterialization(
                table,
                metadata={
                    "dagster/row_count": rows,
                    "dagster/uri": stores.sink,
                    "docgen run": run_id,
                    ROOT: root.digest,
                    "first rows": preview(sink, table, run_id),
                    **plots.get(table, {}),
                },
                tags={"dagster/data_version": root.digest},
            )
            context.log_event(made)


@dg.multi_asset(
    name="export_tables",
    specs=_SPECS,
    pool=WRITER_POOL,
    description="Loads the sealed golden shards of the chosen ranges into the sink. Exporting again replaces the "
    "range's rows, it never doubles them; a range that is not sealed, or is damaged, is refused.",
    partitions_def=company_ranges,
    backfill_policy=AS_ONE_RUN,
)
def golden_tables(
    context: dg.AssetExecutionContext, corpus: Corpus, stores: Stores
) -> Iterator[dg.MaterializeResult[None]]:
    """Export the run of each chosen range, all tables of a run at once."""
    from docgen_core.export import export_run

    ranges = ranges_of(context.partition_keys)
    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        roots = [here.root(corpus.run_id(each)) for each in ranges]
        reports = [export_run(root.run_id, blobs=here.blobs, sink=sink) for root in roots]
        for companies, root, report in zip(ranges, roots, reports, strict=True):
            plots = plots_of(root.run_id, here.blobs)
            for table in TABLES:
                context.add_asset_metadata(
                    {
                        "dagster/partition_row_count": report.rows[table],
                        "dagster/uri": stores.sink,
                        "docgen run": root.run_id,
                        ROOT: root.digest,
                        "first rows": preview(sink, table, root.run_id),
                        **plots.get(table, {}),
                    },
                    asset_key=table,
                    partition_key=companies.key,
                )
    version = version_of([root.digest for root in roots])
    for table in TABLES:
        yield dg.MaterializeResult(asset_key=table, data_version=version)
