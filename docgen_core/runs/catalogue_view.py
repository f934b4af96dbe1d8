"""Reading a catalogue at a pin: ranges are loaded when a company of theirs is asked for.

What does not belong here: building a catalogue (catalogue.py), and what its rows mean (the pack).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import BlobMissing, Damage, RunIncomplete, UsageError
from docgen_core.packs.contract import Row
from docgen_core.runs.keys import catalogue_run_id, default_prefix, part_key, root_key, shard_table
from docgen_core.runs.manifest import (
    Part,
    PartEntry,
    Plan,
    Root,
    parse,
    read_blob,
    read_checked,
    read_part,
    read_plan,
    read_root,
    refuse_withdrawn,
)
from docgen_core.runs.shards import decode_shard
from docgen_core.runs.spec import PartsPin, Pin, RootPin

CACHED_RANGES = 64
"""Company ranges held in memory at once."""

CACHED_ROWS = 512
"""Companies' rows of one table held as they were last given: making them costs more than what is made of them."""

COMPANIES = "companies"


def open_catalogue(blobs: BlobStore, version: str, pin: Pin | None = None) -> PinnedView:
    """The catalogue as pinned, or its sealed root as it stands.

    Raises `UsageError` (no such catalogue), `RunIncomplete` (no root), `RunWithdrawn`, `Damage`.
    """
    run_id = catalogue_run_id(version)
    prefix = default_prefix(run_id)
    refuse_withdrawn(blobs, run_id)
    try:
        plan = read_plan(blobs, prefix)
    except BlobMissing:
        raise UsageError(f"no catalogue {version!r} here; `docgen catalogue build {version}` makes it") from None
    return PinnedView(blobs, version, plan, _pinned_parts(blobs, prefix, pin))


def _pinned_parts(blobs: BlobStore, prefix: str, pin: Pin | None) -> dict[int, PartEntry]:
    if isinstance(pin, PartsPin):
        return {int(unit): _find_part(blobs, prefix, int(unit), sha256) for unit, sha256 in pin.parts.items()}
    if isinstance(pin, RootPin):
        key = root_key(prefix)
        root = parse(Root, key, read_checked(blobs, key, pin.root))
    else:
        root = read_root(blobs, prefix)
    return {entry.unit: entry for entry in root.parts}


def _find_part(blobs: BlobStore, prefix: str, unit: int, sha256: str) -> PartEntry:
    """A pin names a part by its digest; its key may carry an attempt's generation."""
    stem = part_key(prefix, unit).removesuffix("json")
    for info in blobs.iter_keys(stem):
        if sha256_hex(blobs.get(info.key)) == sha256:
            return PartEntry(unit=unit, key=info.key, sha256=sha256)
    raise Damage(f"no blob under {stem!r} is the pinned part {sha256}; run `docgen verify`")


@dataclass(slots=True)
class _Range:
    """One company range: its part, and the tables of it that were read."""

    part: Part
    tables: dict[str, tuple[pa.Table, list[int]]] = field(default_factory=dict)
    """By name: the rows in company order, and the column `company_id` to find them by."""


class PinnedView:
    """A `CatalogueView` over pinned parts; every byte it reads is checked against the pin."""

    def __init__(self, blobs: BlobStore, version: str, plan: Plan, parts: dict[int, PartEntry]) -> None:
        self.version = version
        self.plan = plan
        self._blobs = blobs
        self._parts = dict(sorted(parts.items()))
        self._ranges: OrderedDict[int, _Range] = OrderedDict()
        self._rows = lru_cache(maxsize=CACHED_ROWS)(self._read_rows)

    def company_ids(self) -> Sequence[int]:
        """Ids of every pinned company, in order."""
        if len(self._parts) == self.plan.total_units:
            return range(self.plan.total_items)
        return [company for unit in self._parts for company in self.plan.unit_range(unit)]

    def company(self, company_id: int) -> Row:
        """The company's row. Raises `UsageError` for one that is not pinned."""
        (row,) = self.rows(COMPANIES, company_id)
        return row

    def rows(self, table: str, company_id: int) -> Sequence[Row]:
        """The company's rows of a catalogue table, in row order; not to be changed."""
        return self._rows(table, company_id)

    def _read_rows(self, table: str, company_id: int) -> Sequence[Row]:
        found, ids = self._table(company_id // self.plan.unit_size, table)
        first = bisect_left(ids, company_id)
        rows: list[Row] = found.slice(first, bisect_right(ids, company_id) - first).to_pylist()
        return rows

    def companies(self, within: tuple[int, int] | None = None) -> Iterator[Row]:
        """Company rows in id order, of ids `within` (both included) alone where it is given."""
        for unit in self._parts:
            ids = self.plan.unit_range(unit)
            if within is None or (ids[0] <= within[1] and within[0] <= ids[-1]):
                for row in self._table(unit, COMPANIES)[0].to_pylist():
                    if within is None or within[0] <= row["company_id"] <= within[1]:
                        yield row

    def _table(self, unit: int, name: str) -> tuple[pa.Table, list[int]]:
        held = self._range(unit)
        if name not in held.tables:
            prefix = self.plan.prefix
            entry = next((entry for entry in held.part.blobs if shard_table(prefix, entry.key) == name), None)
            if entry is None:
                raise UsageError(f"catalogue {self.version!r} has no table {name!r}")
            table = decode_shard(entry.key, read_blob(self._blobs, entry))
            held.tables[name] = (table, table.column("company_id").to_pylist())
        return held.tables[name]

    def _range(self, unit: int) -> _Range:
        if unit in self._ranges:
            self._ranges.move_to_end(unit)
            return self._ranges[unit]
        if unit not in self._parts:
            raise UsageError(f"unit {unit} of catalogue {self.version!r} is not pinned by this run")
        self._ranges[unit] = _Range(read_part(self._blobs, self._parts[unit]))
        if len(self._ranges) > CACHED_RANGES:
            self._ranges.popitem(last=False)
        return self._ranges[unit]


def refuse_missing_parts(version: str, missing: Sequence[int]) -> None:
    """Raise `RunIncomplete` when parts that a run wants to pin are not finished yet."""
    if missing:
        run_id = catalogue_run_id(version)
        raise RunIncomplete(run_id, missing, f"`docgen work {run_id}` builds them")
