"""Export: from a run's golden shards to tables, through one sink contract, chosen by URI."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from docgen_core.errors import MissingExtra, UsageError
from docgen_core.export.contract import GoldenSink, Shard
from docgen_core.export.run import ExportReport, export_run

__all__ = ["SCHEMES", "ExportReport", "GoldenSink", "Shard", "export_run", "open_sink"]

SCHEMES = ("athena", "bigquery", "duckdb", "parquet")
DUCKDB_SUFFIX = ".duckdb"


def open_sink(uri: str, client: Any = None) -> GoldenSink:
    """The sink at `uri`; nothing is written before the first export.

    - `duckdb:///abs/file.duckdb`, or a bare path ending in `.duckdb`; parameters `memory_mb` and
      `wait_seconds`. `client` is a function that gives a connection, or a context manager around
      one, such as `DuckDBResource.get_connection`.
    - `parquet:///abs/dir`, any other bare path, or `parquet://` before a blob URI
      (`parquet://gs://bucket/dir`). `client` goes to the blob store.
    - `bigquery://project/dataset?staging=gs://bucket/prefix`, perhaps with `&location=EU`; needs the extra
      `gcp`. `client` is a `BigQueryClients`. Nothing is asked of the cloud before the first use.
    - `athena://database?output=s3://bucket/prefix`, perhaps with `&workgroup=…` and `&region=…`; needs the extra
      `aws`. `client` is an `AthenaClients`. Nothing is asked of the cloud before the first use.

    A bare path is relative to the working directory and made absolute here. Raises `UsageError`,
    and `MissingExtra` where a warehouse's client is not installed.
    """
    scheme, place = split_uri(uri)
    bare = place == uri
    if scheme not in SCHEMES:
        raise UsageError(
            f"sink URI {uri!r}: unknown scheme {scheme!r}; there are {', '.join(SCHEMES)}, "
            f"or a bare path (a file if it ends in {DUCKDB_SUFFIX}, else a folder of Parquet files)"
        )
    if scheme == "athena":
        return _open_athena(uri, place, client)
    if scheme == "bigquery":
        return _open_bigquery(uri, place, client)
    if not place.strip("/ "):
        raise UsageError(f"sink URI {uri!r} names no place; write duckdb:///abs/file.duckdb or parquet:///abs/dir")
    if scheme == "duckdb":
        return _open_duckdb(uri, place, client, bare=bare)
    return _open_parquet(uri, place, client, bare=bare)


def split_uri(uri: str) -> tuple[str, str]:
    """The scheme of a sink's URI, or what a bare path stands for, and the place. An unknown one is no error here."""
    scheme, separator, place = uri.partition("://")
    if separator:
        return scheme, place
    return ("duckdb" if uri.partition("?")[0].lower().endswith(DUCKDB_SUFFIX) else "parquet"), uri


def _open_parquet(uri: str, place: str, client: Any, *, bare: bool) -> GoldenSink:
    from docgen_core.blobs import open_blobs
    from docgen_core.export.parquet import ParquetSink

    if "://" in place:
        return ParquetSink(open_blobs(place, client))
    if "?" in place:
        raise UsageError(
            f"sink URI {uri!r}: a folder of Parquet files takes no parameters; a file ends in {DUCKDB_SUFFIX}"
        )
    if not bare and not place.startswith("/"):
        raise UsageError(f"sink URI {uri!r}: a folder is written parquet:///absolute/path, with three slashes")
    return ParquetSink(open_blobs(place if bare else unquote(place), client))


def _open_duckdb(uri: str, place: str, client: Any, *, bare: bool) -> GoldenSink:
    from docgen_core.export.duckdb import DuckDBSink

    if client is not None and not callable(client):
        raise UsageError(f"sink URI {uri!r}: its client is a function that gives a connection, such as get_connection")
    name, _, query = place.partition("?")
    path = Path(name).expanduser().absolute() if bare else Path(unquote(name))
    if not path.is_absolute():
        raise UsageError(f"sink URI {uri!r}: a file is written duckdb:///absolute/path, with three slashes")
    return DuckDBSink(path, client=client, **_limits(uri, query))


_PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]*")
_DATASET = re.compile(r"[A-Za-z0-9_]{1,1024}")
_STAGING = re.compile(r"gs://[^/?]+(/[^?]*)?")
_BIGQUERY = "bigquery://project/dataset?staging=gs://bucket/prefix"


def _open_bigquery(uri: str, place: str, client: Any) -> GoldenSink:
    try:
        from docgen_core.export.bigquery import BigQueryClients, BigQuerySink
    except ImportError as error:
        raise MissingExtra(f"sink URI {uri!r}", "gcp") from error

    if client is not None and not isinstance(client, BigQueryClients):
        raise UsageError(f"sink URI {uri!r}: its client is a BigQueryClients(bigquery, storage)")
    path, _, query = place.partition("?")
    project, _, dataset = path.strip("/").partition("/")
    if not _PROJECT.fullmatch(project) or not _DATASET.fullmatch(dataset):
        raise UsageError(f"sink URI {uri!r} names no project and dataset; write {_BIGQUERY}")
    given = _given(uri, query, ("staging", "location"))
    staging = given.pop("staging", "").rstrip("/")
    if not _STAGING.fullmatch(staging):
        raise UsageError(f"sink URI {uri!r} needs a bucket to stage shards in; write {_BIGQUERY}")
    return BigQuerySink(project, dataset, staging=staging, location=given.get("location"), clients=client)


_DATABASE = re.compile(r"[a-z0-9_]{1,255}")
_OUTPUT = re.compile(r"s3://[^/?]+(/[^?]*)?")
_ATHENA = "athena://database?output=s3://bucket/prefix"


def _open_athena(uri: str, place: str, client: Any) -> GoldenSink:
    try:
        from docgen_core.export.athena import AthenaClients, AthenaSink
    except ImportError as error:
        raise MissingExtra(f"sink URI {uri!r}", "aws") from error

    if client is not None and not isinstance(client, AthenaClients):
        raise UsageError(f"sink URI {uri!r}: its client is an AthenaClients(athena, glue, s3)")
    path, _, query = place.partition("?")
    database = path.rstrip("/")
    if not _DATABASE.fullmatch(database):
        raise UsageError(f"sink URI {uri!r} names no database (small letters, digits and _); write {_ATHENA}")
    given = _given(uri, query, ("output", "workgroup", "region"))
    output = given.pop("output", "").rstrip("/")
    if not _OUTPUT.fullmatch(output):
        raise UsageError(f"sink URI {uri!r} needs a place for its files; write {_ATHENA}")
    return AthenaSink(
        database,
        output=output,
        workgroup=given.get("workgroup", ""),
        region=given.get("region", ""),
        clients=client,
    )


def _given(uri: str, query: str, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of a warehouse's URI. Raises `UsageError` for one that is unknown or empty."""
    given = _pairs(uri, query)
    if wrong := sorted(name for name, value in given.items() if name not in known or not value):
        raise UsageError(f"sink URI {uri!r}: unknown or empty parameter {wrong[0]!r}; there are {', '.join(known)}")
    return given


def _pairs(uri: str, query: str) -> dict[str, str]:
    """Parameters by name. Raises `UsageError` for one that is given twice."""
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(given := dict(pairs)) < len(pairs):
        raise UsageError(f"sink URI {uri!r} sets something twice")
    return given


_PARAMETERS: dict[str, tuple[Callable[[str], int | float], str, int, int]] = {
    "memory_mb": (int, "a whole number", 64, 1_000_000),
    "wait_seconds": (float, "a number", 0, 86_400),
}
"""Of a DuckDB sink: how each is read, what it is, and its least and greatest value."""


def _limits(uri: str, query: str) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    for name, text in _pairs(uri, query).items():
        if name not in _PARAMETERS:
            raise UsageError(f"sink URI {uri!r}: unknown parameter {name!r}; there are {', '.join(_PARAMETERS)}")
        read, what, least, greatest = _PARAMETERS[name]
        try:
            limits[name] = read(text)
        except ValueError:
            raise UsageError(f"sink URI {uri!r}: {name} is {what}, not {text!r}") from None
        if not least <= limits[name] <= greatest:
            raise UsageError(f"sink URI {uri!r}: {name} is between {least} and {greatest}, not {text}")
    return limits
