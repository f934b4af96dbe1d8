"""What a sound unit's shards must say: declared schemas, the rows its part counts, its documents once.

Used by a deep verify, on bytes whose digests are right already; what it finds is a fault of the
writer, not of the disk. What does not belong here: the meaning of golden values (a pack's checks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from docgen_core.errors import Damage
from docgen_core.golden import CORE_TABLES
from docgen_core.packs import load_pack
from docgen_core.packs.contract import Row
from docgen_core.runs.keys import document_id, is_document, shard_key, shard_table
from docgen_core.runs.manifest import BlobEntry, Part, Plan
from docgen_core.runs.shards import catalogue_schemas, decode_shard, files_digest

Complaint = tuple[str, str]
"""A key, and what is wrong with it."""


def check_unit_contents(plan: Plan, part: Part, shards: Mapping[str, bytes]) -> Iterator[Complaint]:
    """Complaints about a unit, whose shards' bytes are given by key."""
    schemas = _schemas(plan)
    tables: dict[str, pa.Table] = {}
    for name in part.rows:
        entry = _shard_of(plan, part, name)
        if entry is None:
            yield shard_key(plan.prefix, name, part.unit), f"the part counts rows of {name!r} and names no shard"
            continue
        try:
            tables[name] = decode_shard(entry.key, shards[entry.key], schemas.get(name) if schemas else None)
        except Damage as error:
            yield entry.key, str(error)
            continue
        if tables[name].num_rows != part.rows[name]:
            yield entry.key, f"{tables[name].num_rows} rows, its part counts {part.rows[name]}"
    if schemas is not None and set(part.rows) != set(schemas):
        yield shard_key(plan.prefix, "", part.unit), f"tables {sorted(part.rows)}, declared {sorted(schemas)}"
    if plan.kind == "documents" and "documents" in tables and (shard := _shard_of(plan, part, "documents")):
        yield from _check_documents(plan, part, shard.key, tables)


def _schemas(plan: Plan) -> Mapping[str, pa.Schema] | None:
    """The declared schemas; None when this installation's pack is not the run's."""
    pack = load_pack(str(plan.spec["pack"]))
    if pack.version != plan.pack_version:
        return None
    return catalogue_schemas(pack) if plan.kind == "catalogue" else {**CORE_TABLES, **pack.tables}


def _shard_of(plan: Plan, part: Part, table: str) -> BlobEntry | None:
    return next((entry for entry in part.blobs if shard_table(plan.prefix, entry.key) == table), None)


def _check_documents(plan: Plan, part: Part, key: str, tables: Mapping[str, pa.Table]) -> Iterator[Complaint]:
    """Complaints about the unit's rows of `documents`, whose shard stands under `key`, and about its files."""
    rows = tables["documents"].to_pylist()
    stream = plan.documents_spec.stream
    expected = [document_id(stream, index) for index in plan.unit_range(part.unit)]
    if [row["document_id"] for row in rows] != expected:
        yield key, f"its documents are not {expected[0]} to {expected[-1]}, each once and in order"
    files = {entry.key: entry for entry in part.blobs if is_document(plan.prefix, entry.key)}
    described: set[str] = set()
    for row, pages in _with_pages(rows, tables):
        if [page["page"] for page in pages] != list(range(1, row["pages"] + 1)):
            yield key, f"its row of {row['document_id']} says {row['pages']} pages, `pages` has others"
        found = {page["key"]: files.get(page["key"]) for page in pages}
        described.update(found)
        if not _describes(row, pages, [entry for entry in found.values() if entry is not None]):
            yield key, f"its row of {row['document_id']} does not describe the file {row['key']!r}"
    for left in sorted(files.keys() - described):
        yield left, "no row of `documents` describes it"
    known = set(expected)
    for name, table in tables.items():
        if set(table.column("run_id").unique().to_pylist()) - {plan.run_id}:
            yield shard_key(plan.prefix, name, part.unit), "rows of another run"
        if set(table.column("document_id").unique().to_pylist()) - known:
            yield shard_key(plan.prefix, name, part.unit), "rows of documents that are not this unit's"


def _with_pages(documents: Sequence[Row], tables: Mapping[str, pa.Table]) -> Iterator[tuple[Row, Sequence[Row]]]:
    """Each row of `documents` with its rows of `pages`; as one file where a run has no such table."""
    if "pages" not in tables:
        yield from ((row, [{**row, "page": n} for n in range(1, row["pages"] + 1)]) for row in documents)
        return
    by_document: dict[str, list[Row]] = {}
    for page in tables["pages"].to_pylist():
        by_document.setdefault(page["document_id"], []).append(page)
    yield from ((row, by_document.get(row["document_id"], [])) for row in documents)


def _describes(document: Row, pages: Sequence[Row], files: Sequence[BlobEntry]) -> bool:
    """Whether a row of `documents` and its rows of `pages` say what the part says of their files, in page order."""
    digests = {file.key: file.sha256 for file in files}
    return (
        bool(files)
        and all(digests.get(page["key"]) == page["sha256"] for page in pages)
        and document["key"] == files[0].key
        and document["bytes"] == sum(file.bytes for file in files)
        and document["sha256"] == files_digest([file.sha256 for file in files])
    )
