"""Sealed runs written directly: shards, parts, root and marker, without a planner, a worker or a browser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.blobs.contract import BlobStore
from docgen_core.golden import DECIMAL, KEY_FIELDS, column
from docgen_core.runs.keys import catalogue_run_id, default_prefix, part_key, root_key, sealed_key, shard_key
from docgen_core.runs.manifest import Part, PartEntry, Root, blob_entry
from docgen_core.runs.shards import encode_shard

ORDERS = pa.schema(
    [
        *KEY_FIELDS,
        column("po_number", pa.string(), "The buyer's order number.", nullable=True),
        column("due", pa.date32(), "The day it is due; the seller's day.", nullable=True),
        column("rate", DECIMAL, "Rate, 0.19 for 19 %."),
        column("copies", pa.int32(), "Copies, where they are counted.", nullable=True),
    ]
)
NOTES = pa.schema([*KEY_FIELDS, column("text", pa.string(), "A printed note.")])

Shards = Mapping[str, Sequence[bytes]]
"""Shards by table, in the order of the units."""


def keys(run_id: str, document: int) -> dict[str, Any]:
    """The first columns of a row."""
    return {"run_id": run_id, "document_id": f"0a1b2c3d-{document:07d}", "catalogue_version": "v1", "row_key": "1"}


def case_21(run_id: str) -> list[list[dict[str, Any]]]:
    """The two unlike shards of case 21, a row each."""
    first = {"po_number": None, "due": None, "rate": Decimal("1.10"), "copies": None}
    second = {"po_number": "P1", "due": date(2025, 1, 2), "rate": Decimal("0.0042"), "copies": 3}
    return [[{**keys(run_id, 0), **first}], [{**keys(run_id, 1), **second}]]


def orders_and_notes(run_id: str, units: int = 2) -> Shards:
    """Shards of two tables: `orders` with a row of case 21 a unit, `notes` without any."""
    rows = case_21(run_id)
    orders = [[{**row, **keys(run_id, unit)} for row in rows[unit % 2]] for unit in range(units)]
    return {
        "orders": [encode_shard("orders", ORDERS, shard) for shard in orders],
        "notes": [encode_shard("notes", NOTES, []) for _ in range(units)],
    }


def seal(blobs: BlobStore, run_id: str, shards: Shards) -> Root:
    """Publish the shards as a run that is done; under an id that was sealed before, in its place."""
    prefix = default_prefix(run_id)
    units = len(next(iter(shards.values())))
    parts, totals = [], dict.fromkeys(sorted(shards), 0)
    for unit in range(units):
        entries, rows = [], {}
        for table in sorted(shards):
            data, key = shards[table][unit], shard_key(prefix, table, unit)
            blobs.put(key, data)
            entries.append(blob_entry(key, data))
            rows[table] = pq.read_metadata(pa.BufferReader(data)).num_rows
            totals[table] += rows[table]
        part = Part(run_id=run_id, unit=unit, first=unit, count=1, blobs=entries, rows=rows)
        blobs.put(part_key(prefix, unit), part.to_bytes())
        parts.append(PartEntry(unit=unit, key=part_key(prefix, unit), sha256=part.digest))
    catalogue = run_id.startswith(catalogue_run_id("0").removesuffix("0"))
    root = Root(
        run_id=run_id,
        kind="catalogue" if catalogue else "documents",
        spec_digest="0" * 64,
        plan_sha256="0" * 64,
        total_units=units,
        total_items=units,
        rows=totals,
        parts=parts,
        version=run_id.partition("-")[2] if catalogue else None,
    )
    blobs.put(root_key(prefix), root.to_bytes())
    blobs.put(sealed_key(run_id), f"{root.digest}\n".encode())
    return root
