"""What every asset of the corpus shares: its group, owners, partitions, versions of several roots, tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from docgen_assets.partitions import CompanyRange
from docgen_core.golden import CORE_TABLES
from docgen_core.packs import load_pack
from docgen_core.runs.shards import catalogue_schemas
from docgen_core.runs.usage import LLM_USAGE
from docgen_core.runs.usage import SCHEMA as USAGE_SCHEMA

PACK = load_pack("invoice")

GROUP = "corpus"
OWNERS = ["team:documents"]
TAGS = {"docgen/pack": PACK.name}

CATALOGUE = dg.AssetKey("catalogue")
RUN_PLAN = dg.AssetKey("run_plan")
GOLDEN_SHARDS = dg.AssetKey("golden_shards")

ROOT = "root digest"
"""Metadata of a materialised range: SHA-256 of the root manifest it was made from."""

AS_ONE_RUN = dg.BackfillPolicy.single_run()
"""All ranges of a backfill come as one run, so that their units are one pool to the workers."""

TABLES = {**PACK.tables, **CORE_TABLES}
"""Every golden table of a document."""

CATALOGUE_TABLES = {**catalogue_schemas(PACK), LLM_USAGE: USAGE_SCHEMA}
"""Every table of a catalogue; the calls of language models only where there were any."""


def ranges_of(keys: Iterable[str]) -> list[CompanyRange]:
    """The ranges of a run, in order of company id."""
    return sorted((CompanyRange.of(key) for key in keys), key=lambda each: each.first)


def version_of(digests: Sequence[str]) -> dg.DataVersion:
    """The data version of what came of these roots: the root's digest, or one over several.

    Dagster gives all ranges of a single-run backfill one data version; each range's own digest
    is in its metadata.
    """
    if len(digests) == 1:
        return dg.DataVersion(digests[0])
    return dg.DataVersion(hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest())


def table(rows: Sequence[Mapping[str, object]]) -> dg.TableMetadataValue:
    """Rows, at least one, as a table that people read."""
    records = [dg.TableRecord({name: str(value) for name, value in row.items()}) for row in rows]
    return dg.MetadataValue.table(records, dg.TableSchema([dg.TableColumn(name) for name in rows[0]]))


def place_of(store: str, key: str) -> dg.MetadataValue[Any]:
    """A link to what stands under a key of a blob store: a path, or the page of the cloud's console."""
    scheme, _, place = store.partition("://")
    match scheme:
        case "s3":
            bucket, _, prefix = place.partition("?")[0].partition("/")
            there = "/".join(part for part in (prefix, key) if part)
            return dg.MetadataValue.url(f"https://s3.console.aws.amazon.com/s3/buckets/{bucket}?prefix={there}")
        case "gs":
            return dg.MetadataValue.url(f"https://console.cloud.google.com/storage/browser/{place}/{key}")
        case _:
            return dg.MetadataValue.path(f"{place}/{key}")
