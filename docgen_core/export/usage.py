"""What a build asked of language models, as a table beside the catalogue's: a shard for each unit.

Its files are named by no manifest, since what was spent is no part of what was made: every attempt
that recorded its calls is taken, the sealed one and those before it. What does not belong here: the
catalogue's own tables (reader.py).
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import Damage
from docgen_core.export.contract import Shard
from docgen_core.runs.keys import USAGE, is_usage, unit_of
from docgen_core.runs.shards import decode_shard
from docgen_core.runs.usage import SCHEMA


class UsageRecords:
    """The recorded attempts of one build, or of some of its units."""

    def __init__(self, blobs: BlobStore, prefix: str, units: Collection[int] | None) -> None:
        self._blobs = blobs
        self._keys: dict[int, list[str]] = {}
        for info in blobs.iter_keys(f"{prefix}/{USAGE}/"):
            unit = unit_of(prefix, info.key)
            if unit is not None and is_usage(prefix, info.key) and (units is None or unit in units):
                self._keys.setdefault(unit, []).append(info.key)

    def __bool__(self) -> bool:
        return bool(self._keys)

    def rows(self) -> int:
        """Calls in all."""
        return sum(self._table(unit).num_rows for unit in self._keys)

    def shards(self) -> Iterator[Shard]:
        """One shard a unit, its attempts by generation. Raises `Damage` naming a file that cannot be read."""
        for unit, keys in sorted(self._keys.items()):
            buffer = io.BytesIO()
            pq.write_table(self._table(unit), buffer, compression="zstd")
            data = buffer.getvalue()
            yield Shard(unit, keys[0], sha256_hex(data), data, pq.ParquetFile(pa.BufferReader(data)))

    def _table(self, unit: int) -> pa.Table:
        return pa.concat_tables([self._read(key) for key in self._keys[unit]]).sort_by(
            [("generation", "ascending"), ("call", "ascending")]
        )

    def _read(self, key: str) -> pa.Table:
        try:
            return decode_shard(key, self._blobs.get(key), SCHEMA)
        except Damage as damage:
            advice = "it holds records of calls only: delete it, and `docgen spend` still tells the sums"
            raise Damage(f"{damage}; {advice}") from None
