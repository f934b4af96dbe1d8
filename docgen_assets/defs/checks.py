"""Checks on what was published and exported. Partitioned like their assets.

Each verifies every range by itself and names the range in what it finds. Nothing relies on a
check to keep the incomplete out: the export verifies the manifest itself.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

import dagster as dg

from docgen_assets.coverage import ASKED, Size, broken_boxes
from docgen_assets.defs.common import CATALOGUE, GOLDEN_SHARDS, TABLES, ranges_of, table
from docgen_assets.failures import said_plainly
from docgen_assets.partitions import SETTINGS, company_ranges
from docgen_assets.resources import Corpus, Places, Stores
from docgen_assets.warehouse import broken_rules, opened_sink, session
from docgen_core.state.budget import in_dollars

if TYPE_CHECKING:
    from docgen_core.runs.manifest import BlobEntry, Root, Texts
    from docgen_core.state.budget import BudgetFigures

_SHOWN = 50
"""Findings that a check lists; the number of all stands beside them."""

SAMPLED_BLOBS = 20
"""Blobs of a range that are read and hashed each time; `docgen verify --deep` reads all."""

MEASURED_DOCUMENTS = 20
"""Documents of a range that are opened for the sizes of their pages: those with the lowest digests."""

ROW_COUNT = "row_count_matches_manifest"

RECOMPUTED = ("documents", "instalments", "invoices", "line_items", "tax_lines")
"""Tables that the rules of an invoice's arithmetic ask."""


@dg.asset_check(
    asset=GOLDEN_SHARDS,
    name="manifest_complete",
    partitions_def=company_ranges,
    description="Every part of each range's run is there without a gap, every blob it names is there in its size, the "
    "root manifest is the one that the state store's digests give; and of each range a sample of blobs, drawn by the "
    "root's digest, is read and hashed.",
)
def manifest_complete(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Verify the runs of the chosen ranges."""
    hashed: dict[str, int] = {}
    found: dict[str, list[dict[str, object]]] = {}
    with said_plainly(), stores.opened() as here:
        for each in ranges_of(context.partition_keys):
            found[each.key] = list(_damage(corpus.run_id(each), here))
            # What the manifests say cannot be sampled where they are not whole themselves.
            drawn = [] if found[each.key] else _sample(here, here.root(corpus.run_id(each)))
            found[each.key] += _changed(drawn, here)
            hashed[each.key] = len(drawn)
    return _report(
        context,
        found,
        "`docgen verify RUN --deep` names each blob: restore it, or `docgen withdraw RUN`",
        figures=lambda keys: {"blobs read and hashed": sum(hashed[key] for key in keys)},
    )


def _damage(run_id: str, here: Places) -> Iterator[dict[str, object]]:
    """What is wrong with a run's blobs, and with its root against the store."""
    from docgen_core.runs.manifest import sealed_digest

    yield from _damaged_blobs(run_id, here)
    held, sealed = here.state.run(run_id).root_digest, sealed_digest(here.blobs, run_id)
    if held is None or held != sealed:
        yield {"kind": "mismatch", "key": f"sealed/{run_id}", "detail": f"the store holds {held}, the marker {sealed}"}


def _sample(here: Places, root: "Root") -> "list[BlobEntry]":
    """Some blobs of a run, the same ones for the same root, and none favoured."""
    from docgen_core.canonical import sha256_hex
    from docgen_core.runs.manifest import iter_parts

    def drawn(entry: "BlobEntry") -> str:
        return sha256_hex(f"{root.digest}/{entry.key}".encode())

    return nsmallest(SAMPLED_BLOBS, (blob for part in iter_parts(here.blobs, root) for blob in part.blobs), key=drawn)


def _changed(entries: "Iterable[BlobEntry]", here: Places) -> Iterator[dict[str, object]]:
    """Those whose bytes are not what their part says."""
    from docgen_core.errors import Damage
    from docgen_core.runs.manifest import read_blob

    for entry in entries:
        try:
            read_blob(here.blobs, entry)
        except Damage as damage:
            yield {"kind": "changed", "key": entry.key, "detail": str(damage)}


def _damaged_blobs(run_id: str, here: Places, units: Collection[int] | None = None) -> Iterator[dict[str, object]]:
    """What is wrong with the blobs of a run, or of some of its units."""
    from docgen_core.runs.verify import verify_run

    for finding in verify_run(run_id, blobs=here.blobs, state=here.state, units=units).findings:
        if finding.kind != "leftover":
            yield {"kind": str(finding.kind), "key": finding.key, "detail": finding.detail}


@dg.asset_check(
    asset=CATALOGUE,
    name="ranges_complete",
    partitions_def=company_ranges,
    description="Every blob of each range's part is there, and it is the part that the state store recorded.",
)
def ranges_complete(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Verify the chosen ranges of the catalogue."""
    from docgen_core.runs.keys import catalogue_run_id

    run_id = catalogue_run_id(corpus.catalogue)
    with said_plainly(), stores.opened() as here:
        ranges = ranges_of(context.partition_keys)
        found = {each.key: list(_damaged_blobs(run_id, here, (each.unit,))) for each in ranges}
    return _report(context, found, f"`docgen verify {run_id} --deep` names each blob: restore it")


@dg.asset_check(
    asset=CATALOGUE,
    name="texts_accepted",
    partitions_def=company_ranges,
    description="Of the texts that language models wrote for each range, not more were turned down than the limit "
    "allows (DOCGEN_MAX_REJECTED_PERCENT). Passes where no model wrote any.",
)
def texts_accepted(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Look at the audit of the chosen ranges."""
    from docgen_core.runs.manifest import Texts

    limit = SETTINGS.max_rejected_percent
    with said_plainly(), stores.opened() as here:
        audits = {
            each.key: here.catalogue_part(corpus.catalogue, each).texts for each in ranges_of(context.partition_keys)
        }
    found = {
        key: [] if texts is None or texts.accepted_within(limit) else list(_turned_down(texts))
        for key, texts in audits.items()
    }

    def figures(keys: Collection[str]) -> dict[str, object]:
        texts = Texts.sum_of(each for key in keys if (each := audits[key]) is not None)
        return {"texts by models": texts.filled, "texts turned down": texts.turned_down, "limit (per cent)": limit}

    what_to_do = f"more than {limit} per cent were turned down: choose other models for a new version"
    return _report(context, found, what_to_do, figures=figures)


def _turned_down(texts: "Texts") -> Iterator[dict[str, object]]:
    for model, rules in texts.rejected.items():
        for rule, count in rules.items():
            yield {"model": model, "rule": rule, "texts": count, "accepted": texts.written.get(model, 0)}


@dg.asset_check(
    asset=CATALOGUE,
    name="budget_kept",
    partitions_def=company_ranges,
    description="What the whole build has spent on language models, and has reserved, lies within its budget. Passes "
    "where there is none.",
)
def budget_kept(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Ask the state store how the budget stands: one for all ranges."""
    from docgen_core.runs.keys import catalogue_run_id

    with said_plainly(), stores.opened() as here:
        budget = here.state.spend(catalogue_run_id(corpus.catalogue)).budget
    findings: list[dict[str, object]] = []
    if budget is not None and budget.overshoot:
        findings = [{"budget": in_dollars(budget.cap), "over it": in_dollars(budget.overshoot)}]
    found = {each.key: findings for each in ranges_of(context.partition_keys)}
    what_to_do = "the models cost more than their prices in the mix say: correct the mix's prices"
    return _report(context, found, what_to_do, figures=lambda _: _account(budget) if budget else {})


def _account(budget: "BudgetFigures") -> dict[str, object]:
    """Where the budget is."""
    parts = {"budget": budget.cap, "spent": budget.committed, "set aside": budget.reserved, "left": budget.available}
    return {f"{name} (USD)": in_dollars(nano) for name, nano in parts.items()}


@dg.asset_check(
    asset="invoices",
    name="golden_arithmetic",
    partitions_def=company_ranges,
    description="Recomputes every exported invoice in SQL, from its lines, rates and rounding policy, to the minor "
    "unit. Independent of the code that made the invoices.",
)
def golden_arithmetic(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Recompute the exported invoices of the chosen ranges."""
    found = {}
    with said_plainly(), opened_sink(stores.sink) as sink:
        for each in ranges_of(context.partition_keys):
            with session(sink, corpus.run_id(each), RECOMPUTED) as connection:
                found[each.key] = broken_rules(connection, corpus.run_id(each))
    return _report(context, found, "the exported rows are not what the documents say: materialise the tables again")


@dg.asset_check(
    asset="field_boxes",
    name="box_coverage",
    partitions_def=company_ranges,
    description="Every exported golden value that a layout has to print has its box, every box says its golden value, "
    "whole, and stands inside its page. In SQL; the sizes of the pages are those of some documents of each range.",
)
def box_coverage(context: dg.AssetCheckExecutionContext, corpus: Corpus, stores: Stores) -> dg.AssetCheckResult:
    """Ask the exported tables of the chosen ranges for values without a box, and boxes out of place."""
    found, measured = {}, {}
    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        for each in ranges_of(context.partition_keys):
            run_id = corpus.run_id(each)
            with session(sink, run_id, ASKED) as connection:
                pdfs = "SELECT document_id, key, sha256 FROM documents WHERE key LIKE '%.pdf'"
                drawn = f"{pdfs} ORDER BY sha256 LIMIT {MEASURED_DOCUMENTS}"
                pages = dict(_page_sizes(here, connection.execute(drawn).fetchall()))
                found[each.key] = broken_boxes(connection, run_id, pages)
            measured[each.key] = len(pages)
    return _report(
        context,
        found,
        "materialise the tables again; if it stays, `docgen verify RUN --deep` says whether the documents are sound",
        figures=lambda keys: {"documents whose pages were measured": sum(measured[key] for key in keys)},
    )


def _page_sizes(here: Places, documents: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, list[Size]]]:
    """The pages of each document in points. A damaged file is for `manifest_complete` to find."""
    import pypdfium2

    from docgen_core.errors import Damage
    from docgen_core.runs.manifest import read_checked

    for document_id, key, sha256 in documents:
        try:
            file = pypdfium2.PdfDocument(read_checked(here.blobs, key, sha256))
        except Damage:
            continue
        with closing(file):
            yield document_id, [page.get_size() for page in file]


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
    with said_plainly(), stores.opened() as here, opened_sink(stores.sink) as sink:
        promised = {each.key: here.root(corpus.run_id(each)).rows for each in ranges}
        held = {each.key: sink.counts(corpus.run_id(each)) for each in ranges}
    for check in context.selected_asset_check_keys:
        name = check.asset_key.to_user_string()
        found = {
            key: [{"promised": promised[key][name], "in the sink": held[key].get(name, 0)}]
            if promised[key][name] != held[key].get(name)
            else []
            for key in promised
        }
        yield _report(context, found, "launch the job export_ranges for the range: it replaces the rows", check=check)


def _report(
    context: dg.AssetCheckExecutionContext,
    found: Mapping[str, Sequence[Mapping[str, object]]],
    what_to_do: str,
    *,
    check: dg.AssetCheckKey | None = None,
    figures: Callable[[Collection[str]], Mapping[str, object]] = lambda _: {},
) -> dg.AssetCheckResult:
    """The result over all ranges; `found` holds each range's findings. `check` names it where a step has several.

    `figures` tells what was looked at in some ranges, also where nothing is wrong.

    Dagster records one result a step, and without a partition where the run is one over a span of
    them, be it of a single one as in a backfill over one range: so each range's own is recorded as
    well, and the range does not stand there as skipped.
    """
    name = check or next(iter(context.selected_asset_check_keys))
    if "dagster/partition" not in context.op_execution_context.run.tags:
        for key, findings in found.items():
            told = _told({key: findings}, what_to_do, figures([key]))
            evaluation = dg.AssetCheckEvaluation(name.asset_key, name.name, partition=key, **told)
            # Taken by `log_event`, and not in its annotation.
            context.op_execution_context.log_event(evaluation)  # type: ignore[arg-type]
    return dg.AssetCheckResult(
        asset_key=name.asset_key, check_name=name.name, **_told(found, what_to_do, figures(found))
    )


def _told(
    found: Mapping[str, Sequence[Mapping[str, object]]], what_to_do: str, figures: Mapping[str, object]
) -> dict[str, Any]:
    """Whether it passed; else the first findings as a table, and what to do."""
    rows = [{"range": key, **finding} for key, findings in found.items() for finding in findings]
    return {
        "passed": not rows,
        "description": f"{len(rows)} finding{'s' * (len(rows) > 1)}: {what_to_do}" if rows else None,
        "metadata": {"findings": len(rows), **figures, **({"the first": table(rows[:_SHOWN])} if rows else {})},
    }
