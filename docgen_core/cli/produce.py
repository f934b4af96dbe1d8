"""Commands that make things: plan, work, generate, resume, catalogue build.

How a planned run is worked on from here (signals, fleets, reports) is `draining`'s.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from docgen_core.cli import console
from docgen_core.cli.draining import Stop, Voice, drain, drain_each, stopping
from docgen_core.cli.options import (
    Blobs,
    Catalogue,
    Concurrency,
    Documents,
    JsonLines,
    MaxRejected,
    Places,
    RunId,
    Seed,
    State,
    UnitSize,
    Wishes,
    Workers,
    places,
    selecting,
    unit_set,
)
from docgen_core.errors import UsageError

if TYPE_CHECKING:
    from docgen_core.llm.mix import ProviderMix
    from docgen_core.runs.plan import PlannedRun, RunRequest
    from docgen_core.runs.selection import CatalogueSpec, Selection

DEFAULT_CATALOGUE = "default"
COMPANIES, PRODUCTS, RANGE_WIDTH = 120, 24, 30
"""Of a catalogue of which nothing else is said: companies, products a company, companies to a unit."""


@selecting
def plan(
    run: RunId,
    documents: Documents = 100,
    seed: Seed = 0,
    *,
    wishes: Wishes,
    unit_size: UnitSize = None,
    tasks: Annotated[int | None, typer.Option("--tasks", min=1, help="Warn when these are too many workers.")] = None,
    catalogue: Catalogue = None,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Plan a run without working on it; planning it again changes nothing."""
    from docgen_core.runs.plan import fleet_warning

    request = _asked(run, documents, seed, wishes, unit_size)
    with places(state, blobs, catalogue=catalogue) as here:
        planned = _planned(here, request, workers=1, voice=Voice.of(False))
        marker = planned.run.marker
        if tasks and (warning := fleet_warning(marker.total_units, tasks)):
            console.note(warning)
        console.result(
            {
                "run": run,
                "created": planned.created,
                "documents": marker.total_items,
                "units": marker.total_units,
                "unit_size": marker.unit_size,
                "catalogue": marker.spec["catalogue"],
            }
        )
    return 0


def work(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Runs to drain, one after the other.")],
    workers: Workers = 1,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Leave when nothing is left to claim.")] = False,
    units: Annotated[
        str | None, typer.Option("--units", metavar="1,4-7", help="Work on these units only.", show_default=False)
    ] = None,
    until_stdin_closes: Annotated[
        bool, typer.Option("--until-stdin-closes", help="Stop, handing leases back, when standard input ends.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but what goes wrong.")] = False,
    as_json: JsonLines = False,
    concurrency: Concurrency = None,
    max_rejected_percent: MaxRejected = None,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Drain planned runs: claim, generate, render, publish. Any number of workers, anywhere."""
    within = unit_set(units)
    with places(state, blobs, found=True, concurrency=concurrency, max_rejected_percent=max_rejected_percent) as here:
        for run in runs:
            here.state.run(run)
        with stopping(until_stdin_closes) as stop:
            voice = Voice.of(as_json, quiet=quiet, in_fleet=until_stdin_closes)
            return drain_each(here, runs, workers, stop, voice, wait=not no_wait, within=within)


@selecting
def generate(
    run: RunId,
    documents: Documents = 100,
    workers: Workers = 1,
    seed: Seed = 0,
    *,
    wishes: Wishes,
    unit_size: UnitSize = None,
    catalogue: Catalogue = None,
    as_json: JsonLines = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Plan a run and drain it. The same command again resumes it, and ends at once when it is done."""
    request = _asked(run, documents, seed, wishes, unit_size)
    voice = Voice.of(as_json)
    with places(state, blobs, catalogue=catalogue) as here, stopping() as stop:
        planned = _planned(here, request, workers, voice)
        for warning in planned.warnings:
            console.note(warning)
        if planned.created:
            _tell_growth(here, run)
        return drain(here, run, workers, stop, voice)


def _tell_growth(here: Places, run: str) -> None:
    """Say what a run takes over from another one of the same documents."""
    from docgen_core.runs.growth import earlier_run
    from docgen_core.runs.keys import default_prefix
    from docgen_core.runs.manifest import read_plan

    planned = read_plan(here.blobs, default_prefix(run))
    earlier = earlier_run(planned, here.state, here.blobs)
    if earlier is not None:
        shared = min(earlier.documents, planned.total_items)
        console.note(f"run {run!r}: its first {shared} documents are taken over from run {earlier.run_id!r}")


def resume(
    run: RunId,
    workers: Workers = 1,
    as_json: JsonLines = False,
    concurrency: Concurrency = None,
    max_rejected_percent: MaxRejected = None,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Clear a pause, give failed units their attempts back, reclaim expired ones, and drain."""
    from docgen_core.runs.drain import reopen_run

    with (
        places(state, blobs, found=True, concurrency=concurrency, max_rejected_percent=max_rejected_percent) as here,
        stopping() as stop,
    ):
        reopened = reopen_run(here.state, run)
        console.note(f"run {run!r}: {reopened.reset} failed units reset, {reopened.reclaimed} expired leases reclaimed")
        return drain(here, run, workers, stop, Voice.of(as_json))


def build_catalogue(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Name of the catalogue version.")],
    companies: Annotated[int, typer.Option("--companies", min=1, max=10_000_000)] = COMPANIES,
    products: Annotated[int, typer.Option("--products", min=1, max=1_000, help="Products a company.")] = PRODUCTS,
    range_width: Annotated[int, typer.Option("--range", min=1, max=10_000, help="Companies to a unit.")] = RANGE_WIDTH,
    mix: Annotated[
        str | None,
        typer.Option(
            "--mix",
            metavar="FILE|PRESET",
            help="Language models that write the descriptions: a YAML file, or cheap, balanced, best.  [DOCGEN_MIX]",
            show_default=False,
        ),
    ] = None,
    budget_usd: Annotated[
        str | None,
        typer.Option(
            "--budget-usd",
            metavar="DOLLARS",
            help="What all workers together may spend.  [DOCGEN_BUDGET_USD]",
            show_default=False,
        ),
    ] = None,
    concurrency: Concurrency = None,
    max_rejected_percent: MaxRejected = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would ask and cost at most; spend nothing.")
    ] = False,
    seed: Seed = 0,
    workers: Workers = 1,
    as_json: JsonLines = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Build a catalogue version: a run over company ranges, without a key or, with --mix, written by models."""
    from docgen_core.llm.mix import load_mix
    from docgen_core.runs.catalogue import build_catalogue_run
    from docgen_core.runs.keys import check_name
    from docgen_core.runs.selection import CatalogueSpec
    from docgen_core.settings import load_settings
    from docgen_core.state.budget import nano_dollars
    from docgen_core.state.contract import RunState

    said = load_settings(mix=mix, budget_usd=budget_usd)
    spec = CatalogueSpec(companies=companies, products=products, range_width=range_width, seed=seed)
    models = load_mix(said.mix) if said.mix else None
    budget = None if said.budget_usd is None else nano_dollars(said.budget_usd, "--budget-usd")
    if models is None and (budget is not None or dry_run):
        raise UsageError("--budget-usd and --dry-run are about language models: name them with --mix")
    if dry_run and models is not None:
        return _preview(version, spec, models, budget, as_json)
    check_name(version, "catalogue version")
    if models is not None:
        models.require_keys()
    with (
        places(state, blobs, concurrency=concurrency, max_rejected_percent=max_rejected_percent) as here,
        stopping() as stop,
    ):
        planned = build_catalogue_run(here.state, here.blobs, version, spec, mix=models, budget=budget)
        priced = models is not None and any(provider.price for provider in models.providers)
        if priced and planned.run.state is RunState.RUNNING and here.state.spend(planned.run.run_id).budget is None:
            console.note("no --budget-usd is given: nothing bounds what these models may cost")
        code = drain(here, planned.run.run_id, workers, stop, Voice.of(as_json))
        if models is not None and not as_json:
            _tell_texts(here, planned.run.run_id)
        return code


def _tell_texts(here: Places, run_id: str) -> None:
    """Who wrote the texts of a sealed build, in a few lines."""
    from docgen_core.runs.keys import default_prefix, root_key
    from docgen_core.runs.manifest import read_root

    if not here.blobs.exists(root_key(default_prefix(run_id))):
        return
    texts = read_root(here.blobs, default_prefix(run_id)).texts
    if texts is None:
        return
    written = ", ".join(f"{model} {count}" for model, count in texts.written.items()) or "no model"
    console.note(f"texts: {texts.filled} of {texts.items} by models ({written}), {texts.turned_down} turned down")
    if texts.unfilled:
        why = ", ".join(f"{count} {_WHY[reason]}" for reason, count in texts.unfilled.items())
        console.note(f"procedural texts: {why}")
    console.note(f"`docgen spend {run_id}` tells what it cost")


_WHY = {
    "routed": "by the fallback pool",
    "rejected": "since what models wrote was turned down",
    "budget": "since the budget was used up",
    "unavailable": "since no provider was left",
}


def _preview(version: str, spec: CatalogueSpec, mix: ProviderMix, budget: int | None, as_json: bool) -> int:
    from docgen_core.runs.preview import preview_texts

    if budget is not None:
        mix.require_prices()
    found = preview_texts(version, spec, mix, budget)
    if as_json or not console.at_terminal():
        console.result(found.as_json())
        return 0
    columns = ("model", "texts", "calls", "input tokens", "output tokens at most", "cost at most")
    console.table(columns, [row.as_row() for row in found.models])
    for line in found.notes:
        console.note(line)
    return 0


def _build(here: Places, version: str, spec: CatalogueSpec, workers: int, stop: Stop, voice: Voice) -> int:
    from docgen_core.runs.catalogue import build_catalogue_run

    planned = build_catalogue_run(here.state, here.blobs, version, spec)
    return drain(here, planned.run.run_id, workers, stop, voice)


def _asked(run: str, documents: int, seed: int, wishes: Wishes, unit_size: int | None) -> RunRequest:
    """The request, its catalogue still open. What could be planned on none is refused before a store is made."""
    from docgen_core.runs.plan import RunRequest, check_request

    request = RunRequest(
        run_id=run, documents=documents, seed=seed, selection=wishes.selection(), catalogue="", unit_size=unit_size
    )
    check_request(request)
    return request


def _planned(here: Places, request: RunRequest, workers: int, voice: Voice) -> PlannedRun:
    from docgen_core.runs.plan import create_run

    version = (
        here.settings.catalogue
        or _catalogue_in_use(here, request.run_id)
        or _any_catalogue(here, request.selection, workers, voice)
    )
    return create_run(here.state, here.blobs, replace(request, catalogue=version), workers=workers)


def _catalogue_in_use(here: Places, run: str) -> str | None:
    """The catalogue a planned run pins: a newer one must not make its resumption a conflict."""
    from docgen_core.errors import RunUnknown

    try:
        pinned = here.state.run(run).marker.spec.get("catalogue")
    except RunUnknown:
        return None
    return str(pinned["version"]) if isinstance(pinned, dict) else None


def _any_catalogue(here: Places, selection: Selection, workers: int, voice: Voice) -> str:
    """The newest catalogue; where there is none, a small one that is built for the purpose."""
    from docgen_core.runs.catalogue import newest_catalogue
    from docgen_core.runs.selection import CatalogueSpec

    version = newest_catalogue(here.state, here.blobs)
    if version is None:
        spec = CatalogueSpec(companies=COMPANIES, products=PRODUCTS, range_width=RANGE_WIDTH)
        _refuse_in_vain(selection, spec)
        console.note(f"no catalogue here yet: building a small one, {DEFAULT_CATALOGUE!r}, first")
        with stopping() as stop:
            code = _build(here, DEFAULT_CATALOGUE, spec, workers, stop, voice)
        if code:
            raise typer.Exit(code)
        version = DEFAULT_CATALOGUE
    return version


def _refuse_in_vain(selection: Selection, spec: CatalogueSpec) -> None:
    """A selection that the catalogue could not serve is refused before it is built."""
    from docgen_core.packs import load_pack
    from docgen_core.runs.plan import serving

    pack = load_pack(spec.pack)
    companies = (pack.catalogue_rows(spec, company)["companies"] for company in range(spec.companies))
    serving(pack, selection, chain.from_iterable(companies))
