"""`make demo`: two company ranges from nothing to queryable tables, through Dagster.

Everything is made by the code location's own assets and checked by the product's own commands; the
demo only chooses the ranges, waits, says where things are, and scores a simple extractor on them. With
`--prepare` it only gives Dagster its instance folder (`make ui`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from docgen_core.blobs import open_blobs
from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import DocgenError, RunUnknown
from docgen_core.runs.keys import catalogue_run_id
from docgen_core.runs.manifest import sealed_digest
from docgen_core.runs.status import run_status
from docgen_core.runs.verify import verify_run
from docgen_core.settings import Settings, load_settings
from docgen_core.state import open_state
from docgen_core.state.contract import StateStore

RANGES = ("00000-00049", "00050-00099")
RUNS = tuple(f"invoices-{key}" for key in RANGES)
TABLES = ("documents", "pages", "field_boxes", "words", "invoices", "line_items", "tax_lines", "instalments", "codes")
CATALOGUE_TABLES = ("companies", "price_tiers", "products")
DOCUMENTS_PER_RANGE = 75
CODE = ("-m", "docgen_assets.definitions")
WORKERS = 4
POLL_SECONDS = 0.5

console = Console(highlight=False)


def main() -> int:
    """Make, verify, tell. Returns the exit code."""
    home = _instance_folder()
    if "--prepare" in sys.argv:
        _make_databases()
        return 0
    settings = load_settings()
    with closing(open_blobs(settings.blobs)) as blobs, closing(open_state(settings.state)) as state:
        if all(sealed_digest(blobs, run) for run in RUNS) and _is_exported(_rows(settings)):
            console.print("The demo's two ranges are done already.")
        elif code := _materialise(state, blobs, home / "demo.log"):
            return code
        for run in RUNS:
            verification = verify_run(run, blobs=blobs, state=state, deep=True)
            console.print(f"verified: {verification.summary}", soft_wrap=True)
            if not verification.ok:
                return 1
        _tell(settings)
        _score(blobs)
    return 0


def _instance_folder() -> Path:
    home = Path(os.environ["DAGSTER_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copy(Path(__file__).with_name("dagster.yaml"), home / "dagster.yaml")
    return home


def _make_databases() -> None:
    """Once, before the web server and the daemon start together and would each make them."""
    import dagster as dg

    dg.DagsterInstance.get().dispose()


def _materialise(state: StateStore, blobs: BlobStore, log: Path) -> int:
    """Materialise every asset for the ranges, as a user would from the UI, with a bar meanwhile.

    The whole roster's catalogue first, which takes seconds: it has tables when its last range is made.
    """
    from docgen_assets.partitions import company_ranges

    keys = company_ranges.get_partition_keys()
    corpus = {
        "resources": {"corpus": {"config": {"documents_per_range": DOCUMENTS_PER_RANGE}}},
        "ops": {"golden_shards": {"config": {"workers": WORKERS}}},
    }
    chosen = f"{RANGES[0]}...{RANGES[-1]}"
    steps = (
        ("asset", "materialize", "--select", "catalogue", "--partition-range", f"{keys[0]}...{keys[-1]}"),
        ("asset", "materialize", "--select", "*", "--partition-range", chosen, "--config-json", json.dumps(corpus)),
        ("job", "execute", "-j", "export_catalogue"),
    )
    command = str(Path(sys.executable).with_name("dagster"))
    with log.open("wb") as output, _progress() as progress:
        bar = progress.add_task("catalogue → plan → documents → tables", total=DOCUMENTS_PER_RANGE * len(RUNS))
        for step in steps:
            with subprocess.Popen([command, *step, *CODE], stdout=output, stderr=subprocess.STDOUT) as dagster:
                while dagster.poll() is None:
                    time.sleep(POLL_SECONDS)
                    progress.update(bar, completed=sum(_documents_done(state, blobs, run) for run in RUNS))
            if dagster.returncode:
                break
    if dagster.returncode:
        console.print(f"Dagster could not materialise the ranges; its log is {log}, and here is its end:")
        console.print("\n".join(log.read_text(errors="replace").splitlines()[-15:]), markup=False)
        return 3
    return 0


def _progress() -> Progress:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def _documents_done(state: StateStore, blobs: BlobStore, run: str) -> int:
    try:
        return run_status(state, blobs, run).items_done
    except RunUnknown:
        return 0


def _rows(settings: Settings) -> dict[tuple[str, str], int]:
    """Rows in the sink by run and table, of the demo's runs and of the catalogue that they draw from."""
    import duckdb

    names = ", ".join(f"'{run}'" for run in (*RUNS, _catalogue_run()))
    asked = f"SELECT run_id, table_name, row_count FROM docgen_exports WHERE run_id IN ({names}) ORDER BY table_name"
    try:
        with duckdb.connect(settings.sink.removeprefix("duckdb://"), read_only=True) as tables:
            return {(run, table): count for run, table, count in tables.sql(asked).fetchall()}
    except (duckdb.IOException, duckdb.CatalogException):
        return {}


def _is_exported(rows: dict[tuple[str, str], int]) -> bool:
    wanted = {(run, table) for run in RUNS for table in TABLES}
    return rows.keys() >= wanted | {(_catalogue_run(), table) for table in CATALOGUE_TABLES}


def _catalogue_run() -> str:
    from docgen_assets.resources import ROSTER_VERSION

    return catalogue_run_id(ROSTER_VERSION)


def _tell(settings: Settings) -> None:
    console.print()
    console.print("[bold]Documents[/bold]")
    for run in RUNS:
        console.print(f"  {settings.blobs}/runs/{run}/documents", soft_wrap=True)
    console.print(f"[bold]Golden set[/bold]  {settings.sink}", soft_wrap=True)
    counts: Counter[str] = Counter()
    for (_, table), count in _rows(settings).items():
        counts[table] += count
    for table, count in counts.items():
        console.print(f"  {table:<12} {count:>7} rows")
    if (rate := _rate()) is not None:
        console.print(f"[bold]Speed[/bold]  {rate:.1f} documents a second with {WORKERS} workers, start-up included")
    console.print("[bold]Look[/bold]")
    console.print(f"  .venv/bin/docgen show {RUNS[0]} 3 --boxes --pictures pages/")
    console.print("  make ui    the Dagster UI that made them, on http://127.0.0.1:3000")


def _score(blobs: BlobStore) -> None:
    """Score a deliberately simple extractor (extractor.py) on the first range."""
    from extractor import extract

    from docgen_core import golden
    from docgen_core.cli.score import tell
    from docgen_core.score import score_run

    if shutil.which("pdftotext") is None:
        console.print("No pdftotext here: the simple extractor that would be scored reads with it.")
        return
    run = RUNS[0]
    keys = golden.open(run, blobs).table("documents").to_arrow().column("key").to_pylist()
    predictions = Path(os.environ["DAGSTER_HOME"]) / f"predictions-{run}.jsonl"
    with tempfile.TemporaryDirectory() as folder, predictions.open("w", encoding="utf-8") as out:
        for key in keys:
            path = Path(folder) / Path(key).name
            path.write_bytes(blobs.get(key))
            out.write(json.dumps(extract(path), ensure_ascii=False) + "\n")
    console.print()
    console.print(f"[bold]Score[/bold]  pdftotext and a few rules (deploy/extractor.py) on {run}", soft_wrap=True)
    tell(score_run(run, [predictions], blobs=blobs))
    console.print(f"  .venv/bin/docgen score {run} {os.path.relpath(predictions)} --html scores.html", soft_wrap=True)


def _rate() -> float | None:
    """Documents a second, as the drain step recorded it."""
    import dagster as dg

    with dg.DagsterInstance.get() as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("golden_shards"))
    if event is None or event.asset_materialization is None:
        return None
    recorded = event.asset_materialization.metadata.get("documents a second")
    return float(recorded.value) if recorded is not None else None  # type: ignore[arg-type]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DocgenError as error:
        console.print(f"make demo: {error}", markup=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        console.print("make demo: stopped; saying it again goes on where it was")
        sys.exit(130)
