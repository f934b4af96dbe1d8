"""Building a catalogue: `docgen catalogue build` with one worker against drawing everything and writing it at once.

The plain way is the least that has to be done: draw each company's rows, make one table of all of
each kind, and write it to Parquet. It plans nothing, claims nothing, can lose everything and cannot go on; what
docgen takes longer is what those cost, and what it takes less memory is what ranges are worth. Both
write the same rows, which is looked at. CPU is that of the whole process tree; memory is the largest sum of
resident sets over the tree, looked at fifty times a second.

    python bench/catalogue.py [--companies N] [--products N] [--range N] [--check]

--check exits with 1 when a promised figure is missed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from docgen_core.packs.invoice.catalogue import CATALOGUE_TABLES, catalogue_rows
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.shards import COMPRESSION_LEVEL, ROW_GROUP_ROWS

VERSION = "bench"
LOOK_SECONDS = 0.02
MB = 2**20

PROMISED_PEAK_MB = 500
PROMISED_SHARE_OF_PLAIN = 0.7


@dataclass(frozen=True)
class Cost:
    """What a process and its children have cost."""

    cpu: float
    """Seconds."""
    peak: float
    """MB."""


def measured(command: list[str]) -> Cost:
    """The command's cost; raises what it ends with."""
    before = os.times()
    peak = 0
    with tempfile.TemporaryFile() as told:
        process = psutil.Popen(command, stdout=told, stderr=subprocess.STDOUT)
        while process.poll() is None:
            peak = max(peak, tree_bytes(process))
            time.sleep(LOOK_SECONDS)
        if process.returncode:
            told.seek(0)
            raise SystemExit(told.read().decode())
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Cost(cpu, peak / MB)


def tree_bytes(process: psutil.Process) -> int:
    """Resident sets of a process and its descendants; of those that have just gone, nothing."""
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.Error:
        pass
    return total


def docgen_way(spec: CatalogueSpec, place: Path) -> list[str]:
    sizes = ("--companies", spec.companies, "--products", spec.products, "--range", spec.range_width, "--workers", 1)
    stores = ("--state", place / "state.db", "--blobs", place / "blobs")
    return [sys.executable, "-m", "docgen_core.cli", "catalogue", "build", VERSION, *map(str, (*sizes, *stores))]


def plain_way(spec: CatalogueSpec, place: Path) -> list[str]:
    return [sys.executable, __file__, "--plain", str(place), str(spec.companies), str(spec.products)]


def write_plainly(place: Path, spec: CatalogueSpec) -> None:
    rows: dict[str, list[dict]] = {table: [] for table in CATALOGUE_TABLES}
    for company_id in range(spec.companies):
        for table, of_company in catalogue_rows(spec, company_id).items():
            rows[table].extend(of_company)
    for table, schema in CATALOGUE_TABLES.items():
        pq.write_table(
            pa.Table.from_pylist(rows[table], schema),
            place / f"{table}.parquet",
            compression="zstd",
            compression_level=COMPRESSION_LEVEL,
            row_group_size=ROW_GROUP_ROWS,
        )


def same_rows(built: Path, plain: Path) -> bool:
    """Whether both have written the same tables; shards come in the order of their units."""
    for table, schema in CATALOGUE_TABLES.items():
        shards = sorted((built / "blobs" / "catalogue" / VERSION / "golden" / table).glob("*.parquet"))
        if ds.dataset(shards, schema=schema).to_table() != pq.read_table(plain / f"{table}.parquet"):
            return False
    return True


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--companies", type=int, default=10_000)
    arguments.add_argument("--products", type=int, default=24)
    arguments.add_argument("--range", type=int, default=50, help="companies to a unit")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--plain", nargs=3, help=argparse.SUPPRESS)
    wanted = arguments.parse_args()
    if wanted.plain:
        place, companies, products = wanted.plain
        write_plainly(Path(place), CatalogueSpec(companies=int(companies), products=int(products)))
        return 0
    spec = CatalogueSpec(companies=wanted.companies, products=wanted.products, range_width=wanted.range)
    with tempfile.TemporaryDirectory() as name:
        built, plain = Path(name) / "built", Path(name) / "plain"
        built.mkdir()
        plain.mkdir()
        cost = {"docgen": measured(docgen_way(spec, built)), "plain": measured(plain_way(spec, plain))}
        same = same_rows(built, plain)
    print(f"{spec.companies:,} companies of {spec.products} products, {spec.range_width} to a unit")
    for way, figures in cost.items():
        rate = spec.companies / figures.cpu
        print(f"  {way:7} {rate:>6,.0f} companies a CPU second, {figures.cpu:,.1f} s; peak {figures.peak:,.0f} MB")
    peak, share = cost["docgen"].peak, cost["plain"].cpu / cost["docgen"].cpu
    promises = [
        ("peak of docgen, MB", peak, peak < PROMISED_PEAK_MB, f"under {PROMISED_PEAK_MB}"),
        ("speed of the plain way", share, share >= PROMISED_SHARE_OF_PLAIN, f"at least {PROMISED_SHARE_OF_PLAIN}"),
        ("times less memory than the plain way", cost["plain"].peak / peak, True, "no promise"),
        ("both wrote the same rows", same, same, "always"),
    ]
    for what, figure, kept, promise in promises:
        print(f"  {what}: {figure:,.2f} ({promise}) {'ok' if kept else 'MISSED'}")
    return int(wanted.check and not all(kept for _, _, kept, _ in promises))


if __name__ == "__main__":
    sys.exit(main())
