"""Clients of stores and sinks, from Dagster's own resources, for whichever place a URI names.

Credentials, profile, project and endpoint are what those resources take from the environment; a URI
says only where. A cloud's packages are imported when a URI of its scheme is opened, never before:
a code location on folders and files loads without them. What does not belong here: state stores,
for which Dagster has no resource (the core opens its own clients).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from docgen_core.errors import MissingExtra


@contextmanager
def blob_client(uri: str) -> Iterator[Any]:
    """The client that the blob store at `uri` is opened with; None for a folder."""
    match urlsplit(uri).scheme:
        case "s3":
            yield _s3(uri, _option(uri, "region"))
        case "gs":
            with _gcs(uri, None) as client:
                yield client
        case _:
            yield None


@contextmanager
def sink_client(uri: str) -> Iterator[Any]:
    """The client, or the clients, that the sink at `uri` is opened with; None for a folder."""
    match urlsplit(uri).scheme:
        case "duckdb":
            from dagster_duckdb import DuckDBResource

            yield DuckDBResource(database=unquote(urlsplit(uri).path)).get_connection
        case "parquet":
            with blob_client(uri.removeprefix("parquet://")) as client:
                yield client
        case "bigquery":
            with _bigquery(uri) as clients:
                yield clients
        case _:
            yield None


@contextmanager
def _bigquery(uri: str) -> Iterator[Any]:
    with _extra(uri, "gcp"):
        from dagster_gcp import BigQueryResource

        from docgen_core.export.bigquery import BigQueryClients
    project = urlsplit(uri).netloc
    resource = BigQueryResource(project=project, location=_option(uri, "location"))
    with resource.get_client() as bigquery, _gcs(uri, project) as storage, closing(bigquery):
        yield BigQueryClients(bigquery=bigquery, storage=storage)


@contextmanager
def _gcs(uri: str, project: str | None) -> Iterator[Any]:
    with _extra(uri, "gcp"):
        from dagster_gcp import GCSResource
    with closing(GCSResource(project=project).get_client()) as client:
        yield client


def _s3(uri: str, region: str | None) -> Any:
    with _extra(uri, "aws"):
        from dagster_aws.s3 import S3Resource
    return S3Resource(region_name=region).get_client()


@contextmanager
def _extra(uri: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtra` in the place of an import that fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"URI {uri!r}", extra) from error


def _option(uri: str, name: str) -> str | None:
    return parse_qs(urlsplit(uri).query).get(name, [None])[0]
