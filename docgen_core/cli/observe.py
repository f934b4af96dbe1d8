"""Commands that look and change nothing: status, failures, spend, verify, show."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docgen_core.cli import console
from docgen_core.cli.options import AsJson, Blobs, RunId, RunOrVersion, State, places, published, run_named
from docgen_core.errors import UsageError

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.golden import GoldenRun, GoldenTable
    from docgen_core.state.budget import ModelUsage, Spend

POLL_SECONDS = 1.0
FAILURES_PAGE = 1_000
PICTURE_DPI = 100


def status(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="One run; without it, all there are.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the run is over.")] = False,
    as_json: AsJson = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """How runs stand: units by state, documents, expired leases, whether the root is there."""
    from docgen_core.runs.status import iter_status, run_status

    if wait and run is None:
        raise UsageError("--wait needs the run to wait for: docgen status RUN --wait")
    with places(state, blobs, found=True) as here:
        if run is None:
            found = list(iter_status(here.state, here.blobs))
        else:
            current = run_status(here.state, here.blobs, run)
            while wait and not current.over:
                time.sleep(POLL_SECONDS)
                current = run_status(here.state, here.blobs, run)
            found = [current]
    if as_json or not console.at_terminal():
        console.result({"runs": [item.as_json() for item in found]} if run is None else found[0].as_json())
    else:
        columns = ("run", "state", "documents", "units", "pending", "running", "done", "failed", "root")
        console.table(columns, [item.as_row() for item in found])
    return found[0].exit_code if wait else 0


def failures(run: RunId, as_json: AsJson = False, state: State = None, blobs: Blobs = None) -> int:
    """Failed units with their attempts and the last error; exit 3 when there are any."""
    from docgen_core.state.contract import Unit, UnitState

    failed: list[Unit] = []
    with places(state, blobs, found=True) as here:
        here.state.run(run)
        while page := here.state.units(
            run, {UnitState.FAILED}, after=failed[-1].index if failed else -1, limit=FAILURES_PAGE
        ):
            failed.extend(page)
    if as_json:
        console.result(
            {
                "run": run,
                "failures": [{"unit": unit.index, "attempts": unit.attempts, "error": unit.error} for unit in failed],
            }
        )
    else:
        console.table(("unit", "attempts", "error"), [(unit.index, unit.attempts, unit.error) for unit in failed])
        if failed:
            console.note(f"`docgen resume {run}` tries them again once the cause is mended")
    return 3 if failed else 0


def spend(run: RunOrVersion, as_json: AsJson = False, state: State = None, blobs: Blobs = None) -> int:
    """What a run has spent on language models: calls, tokens and cost by model, and how its budget stands."""
    with places(state, blobs, found=True) as here:
        run = run_named(here, run)
        spent = here.state.spend(run)
        quarantined = here.state.quarantined_providers(run)
    if as_json:
        console.result(spend_as_json(run, spent, quarantined))
        return 0
    if spent.models:
        columns = ("model", "calls", "input tokens", "output tokens", "cost")
        total = [("total", spent.total)] if len(spent.models) > 1 else []
        console.table(columns, [_spend_row(model, used) for model, used in [*spent.models.items(), *total]])
    else:
        console.note(f"run {run!r} has spent nothing on language models")
    if (budget := spent.budget) is not None:
        parts = {name: getattr(budget, name) for name in ("cap", "available", "reserved", "committed", "overshoot")}
        console.note("budget: " + ", ".join(f"{name} {dollars(nano)}" for name, nano in parts.items()))
    for provider, reason in quarantined.items():
        console.note(f"{provider} is in quarantine: {reason}")
    return 0


def _spend_row(model: str, used: ModelUsage) -> tuple[object, ...]:
    cost = dollars(used.known_cost)
    if used.cost is None:
        cost = f"unknown for {used.unpriced_calls} of {used.calls} calls, the others {cost}"
    return (model, used.calls, used.input_tokens, used.output_tokens, cost)


def dollars(nano: int) -> str:
    """Nano-dollars for people, exact."""
    from docgen_core.state.budget import in_dollars

    return f"${in_dollars(nano)}"


def spend_as_json(run: str, spent: Spend, quarantined: Mapping[str, str]) -> dict[str, object]:
    """Everything, in whole nano-dollars; a cost that is not known is null, never 0."""
    return {
        "run": run,
        "complete": spent.total.cost is not None,
        "total": _usage_as_json(spent.total),
        "models": {model: _usage_as_json(used) for model, used in spent.models.items()},
        "budget": None if spent.budget is None else asdict(spent.budget),
        "quarantined": dict(quarantined),
    }


def _usage_as_json(used: ModelUsage) -> dict[str, object]:
    return {"cost": used.cost, **asdict(used)}


def verify(
    run: RunId,
    deep: Annotated[bool, typer.Option("--deep", help="Read every blob and check its digest and its rows.")] = False,
    as_json: AsJson = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """Compare what is published with the manifests. Exit 1 for damage, each finding named."""
    from docgen_core.runs.verify import verify_run

    with published(state, blobs) as here:
        verification = verify_run(run, blobs=here.blobs, state=here.state, deep=deep)
    if as_json:
        console.result(verification.as_json())
        return 0 if verification.ok else 1
    for finding in verification.findings:
        console.table((), [(finding.kind, finding.key, finding.detail)])
    console.note(verification.summary)
    return 0 if verification.ok else 1


def show(
    run: RunId,
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="Document id, or its number in the run.")],
    boxes: Annotated[bool, typer.Option("--boxes", help="Also every printed fragment with its page and box.")] = False,
    pictures: Annotated[
        Path | None, typer.Option("--pictures", help="Write the pages there as PNG, boxes drawn.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    state: State = None,
    blobs: Blobs = None,
) -> int:
    """A document's golden rows, read from the sealed shards of its unit."""
    from docgen_core.runs.manifest import refuse_unknown

    with published(state, blobs) as here:
        refuse_unknown(here.blobs, here.state, run)
        if pictures is not None:
            _make_folder(pictures)
        document_id, opened = _opened_at(here.blobs, run, document)
        tables = {name: _rows_of(opened.table(name), document_id) for name in opened.tables}
        if not tables["documents"]:
            raise UsageError(f"run {run!r} has no document {document!r}; `docgen show {run} 0` is its first")
        if pictures is not None:
            _draw(here.blobs, tables, pictures, document_id)
    if not boxes:
        tables.pop("field_boxes")
    if as_json or not console.at_terminal():
        console.result(tables)
        return 0
    for name, rows in tables.items():
        _print_rows(name, rows)
    return 0


def _opened_at(blobs: BlobStore, run: str, document: str) -> tuple[str, GoldenRun]:
    """The document's id, and the golden set of its unit alone. Ids end in the document's number."""
    from docgen_core.export.reader import open_run
    from docgen_core.golden import GoldenRun
    from docgen_core.runs.keys import default_prefix, document_id
    from docgen_core.runs.manifest import read_plan, read_root

    prefix = default_prefix(run)
    read_root(blobs, prefix)
    plan = read_plan(blobs, prefix)
    if plan.kind != "documents":
        raise UsageError(f"run {run!r} built a catalogue; show a document of a documents run")
    number = document.rpartition("-")[2]
    if not number.isdecimal() or int(number) >= plan.total_items:
        raise UsageError(
            f"run {run!r} has no document {document!r}: give a number from 0 to {plan.total_items - 1}, or an id"
        )
    opened = GoldenRun(open_run(run, blobs, units={int(number) // plan.unit_size}))
    wanted = document if "-" in document else document_id(plan.documents_spec.stream, int(number))
    return wanted, opened


def _rows_of(table: GoldenTable, document_id: str) -> list[dict[str, object]]:
    import pyarrow.compute as pc

    rows: list[dict[str, object]] = []
    for batch in table.batches():
        rows += batch.filter(pc.equal(batch.column("document_id"), document_id)).to_pylist()
    return rows


def _print_rows(name: str, rows: list[dict[str, object]]) -> None:
    """One row as name and value, several as a table without the columns that are empty throughout."""
    if len(rows) == 1:
        pairs = [(column, _plain(value)) for column, value in rows[0].items() if value is not None]
        console.table((name, "value"), pairs)
    elif rows:
        hidden = {"run_id", "document_id", "catalogue_version", "row_key"}
        columns = [c for c in rows[0] if c not in hidden and any(row[c] is not None for row in rows)]
        console.table(columns, [[_plain(row[c]) for c in columns] for row in rows], title=name)


def _plain(value: object) -> object:
    """Decimals without the nine places of their column, coordinates to a hundredth of a point."""
    from decimal import Decimal

    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return f"{value:.2f}" if isinstance(value, float) else value


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"--pictures {folder}: something that is not a folder is in its way; name another") from None


def _draw(blobs: BlobStore, tables: dict[str, list[dict[str, object]]], folder: Path, document_id: str) -> None:
    """The pages as pictures, each box outlined."""
    from docgen_core.render.pictures import outlined_pages

    files = [blobs.get(str(key)) for key in dict.fromkeys(page["key"] for page in tables["pages"])]
    sizes = [(float(str(page["width"])), float(str(page["height"]))) for page in tables["pages"]]
    quads = [
        (int(str(box["page"])), tuple(float(str(box[f"{axis}{i}"])) for i in range(4) for axis in "xy"))
        for box in tables["field_boxes"]
    ]
    for number, png in enumerate(outlined_pages(files, quads, sizes=sizes, dpi=PICTURE_DPI), start=1):
        target = folder / f"{document_id}-page-{number}.png"
        target.write_bytes(png)
        console.note(f"wrote {target}")
