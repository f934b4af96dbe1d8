"""Exporting line items to DuckDB: docgen against a plain copy of the same files, and against row by row.

The plain copy is the limit: `CREATE TABLE … AS SELECT * FROM read_parquet(…)` with DuckDB's defaults, which
checks no digest and bounds no memory. Row by row is a prepared INSERT for each row in one transaction, timed on a
sample (its cost a row is constant) and scaled. Shards of the invoice pack's `line_items` are written directly, a
sealed run of them. Each contender runs in a process of its own, in turn, and its best round counts; peak memory
is that process's largest resident set, Python, Arrow and DuckDB included.

    python bench/export.py [--rows N] [--units N] [--rounds N] [--check]

--check exits with 1 when a promised figure is missed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fabricated"))

from fabricated_run import seal

from docgen_core.blobs.file import FileBlobStore
from docgen_core.packs.invoice.tables import TABLES
from docgen_core.runs.shards import COMPRESSION_LEVEL, ROW_GROUP_ROWS

TABLE = "line_items"
RUN = "bench"
LINES_A_DOCUMENT = 20
ROW_BY_ROW_SAMPLE = 5_000

PROMISED_PEAK_MB = 400
PROMISED_SHARE_OF_COPY = 0.5
PROMISED_TIMES_ROW_BY_ROW = 10

WORDS = ("steel", "bracket", "mounting", "hexagon", "bolt", "panel", "filter", "hose", "zinc", "plated", "seal")


def column(field: pa.Field, lines: np.ndarray, seeded: np.random.Generator) -> pa.Array:
    """Plausible values of one declared column for the lines of these numbers."""
    size = len(lines)
    if field.name == "run_id":
        return pa.array([RUN] * size)
    if field.name == "document_id":
        return pa.array([f"0a1b2c3d-{line // LINES_A_DOCUMENT:07d}" for line in lines.tolist()])
    if field.name in ("catalogue_version", "row_key"):
        return pa.array([f"{field.name[0]}{line % LINES_A_DOCUMENT}" for line in lines.tolist()])
    if pa.types.is_decimal(field.type):
        # A decimal128 is its unscaled integer in 16 bytes, low half first: cents, at nine places.
        halves = np.zeros((size, 2), dtype=np.int64)
        halves[:, 0] = seeded.integers(0, 10_000_000, size) * 10**7
        return pa.Array.from_buffers(field.type, size, [None, pa.py_buffer(halves.tobytes())])
    if pa.types.is_string(field.type):
        drawn = seeded.integers(0, len(WORDS), (size, 3)).tolist()
        return pa.array([f"{WORDS[a]} {WORDS[b]} {WORDS[c]}" for a, b, c in drawn])
    if pa.types.is_date(field.type):
        return pa.array(seeded.integers(19_000, 20_000, size).astype("int32")).cast(field.type)
    return pa.array(seeded.integers(0, 100, size)).cast(field.type)


def fabricate(folder: Path, rows: int, units: int) -> None:
    """A sealed run of `rows` line items in `units` shards."""
    seeded = np.random.default_rng(7)
    schema = TABLES[TABLE]
    shards = []
    for lines in np.array_split(np.arange(rows), units):
        table = pa.Table.from_arrays([column(field, lines, seeded) for field in schema], schema=schema)
        buffer = pa.BufferOutputStream()
        pq.write_table(
            table, buffer, compression="zstd", compression_level=COMPRESSION_LEVEL, row_group_size=ROW_GROUP_ROWS
        )
        shards.append(buffer.getvalue().to_pybytes())
    seal(FileBlobStore(folder), RUN, {TABLE: shards})


def shard_files(folder: Path) -> list[str]:
    return [str(path) for path in sorted((folder / "runs" / RUN / "golden" / TABLE).glob("*.parquet"))]


def by_docgen(folder: Path, target: Path) -> int:
    from docgen_core.export import export_run, open_sink

    sink = open_sink(str(target))
    return export_run(RUN, blobs=FileBlobStore(folder), sink=sink).rows[TABLE]


def by_copy(folder: Path, target: Path) -> int:
    import duckdb

    with duckdb.connect(str(target)) as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT * FROM read_parquet(?, hive_partitioning=false)", [shard_files(folder)]
        )
        return connection.execute(f"SELECT count(*) FROM {TABLE}").fetchall()[0][0]


def by_row(folder: Path, target: Path) -> int:
    import duckdb

    rows = pq.read_table(shard_files(folder)[0]).slice(0, ROW_BY_ROW_SAMPLE).to_pylist()
    with duckdb.connect(str(target)) as connection:
        connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT * FROM read_parquet(?, hive_partitioning=false) LIMIT 0",
            [shard_files(folder)],
        )
        connection.begin()
        insert = f"INSERT INTO {TABLE} VALUES ({', '.join('?' * len(TABLES[TABLE]))})"
        for row in rows:
            connection.execute(insert, list(row.values()))
        connection.commit()
    return len(rows)


CONTENDERS: dict[str, Callable[[Path, Path], int]] = {"docgen": by_docgen, "copy": by_copy, "row": by_row}


def measure(name: str, folder: Path) -> dict[str, float]:
    """One round of a contender in a process of its own: rows a second, and peak megabytes."""
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, __file__, "--round", name, str(folder), str(Path(place) / "bench.duckdb")]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def one_round(name: str, folder: str, target: str) -> None:
    started = time.perf_counter()
    rows = CONTENDERS[name](Path(folder), Path(target))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rate": rows / seconds, "peak": peak, "seconds": seconds}))


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, default=1_000_000)
    arguments.add_argument("--units", type=int, default=64)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--round", nargs=3, help=argparse.SUPPRESS)
    wanted = arguments.parse_args()
    if wanted.round:
        one_round(*wanted.round)
        return 0
    with tempfile.TemporaryDirectory() as place:
        # In a process of its own: a child's largest resident set begins with its parent's.
        making = multiprocessing.get_context("spawn").Process(
            target=fabricate, args=(Path(place), wanted.rows, wanted.units)
        )
        making.start()
        making.join()
        rounds = [{name: measure(name, Path(place)) for name in CONTENDERS} for _ in range(wanted.rounds)]
    best = {name: max(found[name]["rate"] for found in rounds) for name in CONTENDERS}
    peak = {name: max(found[name]["peak"] for found in rounds) for name in CONTENDERS}
    print(f"{wanted.rows:,} line items, {len(TABLES[TABLE])} columns, {wanted.units} shards, best of {wanted.rounds}")
    for name in CONTENDERS:
        sample = f" ({ROW_BY_ROW_SAMPLE:,} rows, {wanted.rows / best[name]:,.0f} s scaled)" if name == "row" else ""
        print(f"  {name:7} {best[name]:>12,.0f} rows/s   peak {peak[name]:>6.0f} MB{sample}")
    figures = [
        ("peak of docgen, MB", peak["docgen"], peak["docgen"] < PROMISED_PEAK_MB, f"under {PROMISED_PEAK_MB}"),
        (
            "speed of the plain copy",
            best["docgen"] / best["copy"],
            best["docgen"] >= PROMISED_SHARE_OF_COPY * best["copy"],
            f"at least {PROMISED_SHARE_OF_COPY}",
        ),
        (
            "times row by row",
            best["docgen"] / best["row"],
            best["docgen"] >= PROMISED_TIMES_ROW_BY_ROW * best["row"],
            f"at least {PROMISED_TIMES_ROW_BY_ROW}",
        ),
    ]
    for what, figure, kept, promise in figures:
        print(f"  {what}: {figure:,.2f} ({promise}) {'ok' if kept else 'MISSED'}")
    return int(wanted.check and not all(kept for _, _, kept, _ in figures))


if __name__ == "__main__":
    sys.exit(main())
