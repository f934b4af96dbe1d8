"""Commands that prepare a store, steer runs and use what they made: init, pause, cancel, withdraw, gc, export."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from docgen_core.cli import console
from docgen_core.cli.options import (
    AsJson,
    Blobs,
    RunId,
    RunOrVersion,
    Sink,
    State,
    places,
    published,
    run_named,
)
from docgen_core.errors import UsageError


def init(state: State = None) -> int:
    """Make what the state store needs where it is missing: its file, its table. Safe to repeat."""
    from docgen_core.settings import load_settings
    from docgen_core.state import prepare_state

    console.note(prepare_state(load_settings(state=state).state))
    return 0


def pause(run: RunId, state: State = None, blobs: Blobs = None) -> int:
    """Stop claims; each worker finishes the unit in hand. `resume` goes on."""
    with places(state, blobs, found=True) as here:
        here.state.pause(run)
    console.note(f"run {run!r} is paused; `docgen resume {run}` goes on")
    return 0


def cancel(run: RunId, state: State = None, blobs: Blobs = None) -> int:
    """End a run for good: workers stop at their next renewal; what is done stays where it is."""
    with places(state, blobs, found=True) as here:
        here.state.cancel(run)
    console.note(f"run {run!r} is cancelled")
    return 0


def budget(
    run: RunOrVersion,
    dollars: Annotated[str, typer.Argument(metavar="DOLLARS", help="US dollars in all, from the beginning.")],
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Set what a build may spend on language models in all; its workers go by it from their next slice on."""
    from docgen_core.state.budget import in_dollars, nano_dollars
    from docgen_core.state.contract import RunKind

    cap = nano_dollars(dollars, "DOLLARS")
    with places(state, blobs, found=True) as here:
        run = run_named(here, run)
        if here.state.run(run).marker.kind is not RunKind.CATALOGUE:
            raise UsageError(f"run {run!r} makes documents, which asks no language model: a budget is a catalogue's")
        bounded = here.state.spend(run).budget is not None
        here.state.set_budget(run, cap)
    console.note(f"run {run!r} may spend ${in_dollars(cap)} in all; `docgen spend {run}` tells how it stands")
    if not bounded:
        console.note("workers that have begun without a budget go on without: stop them, and start them again")
    return 0


def lift(
    run: RunOrVersion,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Name of the provider in the mix.")],
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Let a provider be asked again that is in quarantine: its key, its quota or its model is mended."""
    with places(state, blobs, found=True) as here:
        run = run_named(here, run)
        was = here.state.lift_quarantine(run, provider)
        there = here.state.quarantined_providers(run)
    if not was:
        held = f"there are {', '.join(there)}" if there else "nobody is"
        raise UsageError(f"provider {provider!r} of run {run!r} is not in quarantine; {held}")
    console.note(f"provider {provider!r} of run {run!r} is asked again")
    return 0


def withdraw(run: RunId, state: State = None, blobs: Blobs = None, sink: Sink = None) -> int:
    """Take a sealed run back: a tombstone that every reader honours, and its rows out of the sink."""
    from docgen_core.export import open_sink
    from docgen_core.runs.withdraw import withdraw as put_tombstone
    from docgen_core.settings import load_settings

    uri = load_settings(sink=sink).sink
    with published(state, blobs) as here, closing(open_sink(uri)) as target:
        put_tombstone(run, here.blobs)
        target.remove(run)
    console.note(f"run {run!r} is withdrawn, and none of its rows are left in {uri}")
    return 0


def export(run: RunId, sink: Sink = None, as_json: AsJson = False, state: State = None, blobs: Blobs = None) -> int:
    """Load a sealed run's golden tables into a sink. Exporting again replaces, it never doubles."""
    from docgen_core.export import export_run, open_sink
    from docgen_core.runs.manifest import refuse_unknown
    from docgen_core.settings import load_settings

    uri = load_settings(sink=sink).sink
    with published(state, blobs) as here, closing(open_sink(uri)) as target:
        refuse_unknown(here.blobs, here.state, run)
        report = export_run(run, blobs=here.blobs, sink=target)
    if as_json or not console.at_terminal():
        console.result({"run": run, "sink": uri, "rows": dict(report.rows), "leftovers": report.leftovers})
    else:
        console.table(("table", "rows"), sorted(report.rows.items()), title=f"run {run} in {uri}")
    return 0


def collect_garbage(
    older_than: Annotated[
        float, typer.Option("--older-than-hours", min=0, help="Only temporary files at least this old.")
    ] = 24.0,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Also the blobs of withdrawn runs.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and leave it.")] = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Remove what no manifest names and nobody will finish: temporary files, superseded attempts."""
    from docgen_core.runs.gc import collect

    with published(state, blobs) as here:
        report = collect(here.blobs, older_than_seconds=older_than * 3600, withdrawn=withdrawn, dry_run=dry_run)
    console.result({"removed": report.removed, "bytes": report.bytes, "dry_run": dry_run, "keys": list(report.keys)})
    return 0
