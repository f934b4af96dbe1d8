"""Checks on what was published and exported. Partitioned like their assets.

A check inside a run over several ranges is recorded once, so each verifies every range by itself
and names the range in what it finds. Nothing relies on a check to keep the incomplete out: the
export verifies the manifest itself.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import dagster as dg

from docgen_assets.defs.common import GOLDEN_SHARDS, TABLES, ranges_of
from docgen_assets.failures import said_plainly
from docgen_assets.partitions import company_ranges
from docgen_assets.resources import Corpus, Places, Stores
from docgen_assets.warehouse import broken_rules, row_counts, session

_SHOWN = 50
"""Findings that a check lists; the number of all stands beside them."""

ROW_COUNT = "row_count_matches_manifest"


@dg.asset_check(
    asset=GOLDEN_SHARDS,
    name="manifest_complete",
    partitions_def=company_ranges,
    description="Every part of each range's run is there without a gap, every blob it names is there, and the root "
    "manifest is the one that the state store's digests give.",
)
def manifest_complete(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Verify the runs of the chosen ranges."""
    with said_plainly(), stores.opened() as here:
        findings = [
            {"range": each.key, "run": corpus.run_id(each), **finding}
            for each in ranges_of(context.partition_keys)
            for finding in _damage(corpus.run_id(each), here)
        ]
    return _result(findings, "`docgen verify RUN --deep` names every blob; withdraw the run, or restore what is named")


def _damage(run_id: str, here: Places) -> Iterator[dict[str, object]]:
    """What is wrong with a run's blobs, and with its root against the store."""
    from docgen_core.runs.manifest import sealed_digest
    from docgen_core.runs.verify import verify_run

    verified = verify_run(run_id, blobs=here.blobs, state=here.state)
    for finding in verified.findings:
        if finding.kind != "leftover":
            yield {"kind": str(finding.kind), "key": finding.key, "detail": finding.detail}
    held, sealed = here.state.run(run_id).root_digest, sealed_digest(here.blobs, run_id)
    if held is None or held != sealed:
        yield {"kind": "mismatch", "key": f"sealed/{run_id}", "detail": f"the store holds {held}, the marker {sealed}"}


@dg.asset_check(
    asset="invoices",
    name="golden_arithmetic",
    partitions_def=company_ranges,
    description="Recomputes every exported invoice in SQL, from its lines, rates and rounding policy, to the minor "
    "unit. Independent of the code that made the invoices.",
)
def golden_arithmetic(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Recompute the exported invoices of the chosen ranges."""
    with said_plainly(), session(stores.sink, TABLES) as connection:
        findings = [
            {"range": each.key, **{name: str(value) for name, value in broken.items()}}
            for each in ranges_of(context.partition_keys)
            for broken in broken_rules(connection, corpus.run_id(each))
        ]
    return _result(findings, "the exported rows are not what the documents say: materialise the tables of the range")


@dg.multi_asset_check(
    name="row_counts",
    specs=[
        dg.AssetCheckSpec(
            ROW_COUNT,
            asset=table,
            partitions_def=company_ranges,
            description="The sink holds as many rows of each range's run as its root manifest counts.",
        )
        for table in TABLES
    ],
    can_subset=True,
)
def row_counts_match(
    context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores
) -> Iterator[dg.AssetCheckResult]:
    """Count the exported rows of the chosen ranges against their manifests."""
    ranges = ranges_of(context.partition_keys)
    with said_plainly(), stores.opened() as here, session(stores.sink, TABLES) as connection:
        promised = {each.key: _promised(corpus.run_id(each), here) for each in ranges}
        held = {each.key: row_counts(connection, TABLES, corpus.run_id(each)) for each in ranges}
    for key in context.selected_asset_check_keys:
        table = key.asset_key.to_user_string()
        findings = [
            {"range": each.key, "promised": promised[each.key][table], "in the sink": held[each.key][table]}
            for each in ranges
            if promised[each.key][table] != held[each.key][table]
        ]
        yield _result(findings, "materialise the tables of the range again", check=key)


def _promised(run_id: str, here: Places) -> Mapping[str, int]:
    from docgen_core.runs.manifest import read_root

    return read_root(here.blobs, here.state.run(run_id).marker.prefix).rows


def _result(
    findings: Sequence[Mapping[str, object]], what_to_do: str, *, check: dg.AssetCheckKey | None = None
) -> dg.AssetCheckResult:
    """Passed without findings; else the first of them as a table, and what to do. `check` names it among several."""
    shown = {"the first": _table(findings[:_SHOWN])} if findings else {}
    return dg.AssetCheckResult(
        passed=not findings,
        check_name=check.name if check else None,
        asset_key=check.asset_key if check else None,
        description=f"{len(findings)} findings: {what_to_do}" if findings else None,
        metadata={"findings": len(findings), **shown},
    )


def _table(rows: Iterable[Mapping[str, object]]) -> dg.TableMetadataValue:
    records = [dg.TableRecord({name: str(value) for name, value in row.items()}) for row in rows]
    return dg.MetadataValue.table(
        records, dg.TableSchema([dg.TableColumn(name) for name in records[0].data] if records else [])
    )
