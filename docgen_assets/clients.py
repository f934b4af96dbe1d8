"""Clients of stores and sinks, from Dagster's own resources, for whichever place a URI names.

Credentials, profile, project and endpoint are what those resources take from the environment; a URI
says only where. A cloud's packages are imported when a URI of its scheme is opened, never before:
a code location on folders and files loads without them. What does not belong here: state stores,
for which Dagster has no resource (the core opens its own clients).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from docgen_core.errors import MissingExtra, StorageFailed


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
        case "athena":
            yield _athena(uri)
        case _:
            yield None


@contextmanager
def _bigquery(uri: str) -> Iterator[Any]:
    with _extra(uri, "gcp"):
        from dagster_gcp import BigQueryResource

        from docgen_core.export.bigquery import BigQueryClients
    project = urlsplit(uri).netloc
    resource = BigQueryResource(project=project, location=_option(uri, "location"))
    with ExitStack() as opened:
        with _identified(uri):
            bigquery = opened.enter_context(resource.get_client())
        opened.callback(bigquery.close)
        yield BigQueryClients(bigquery=bigquery, storage=opened.enter_context(_gcs(uri, project)))


@contextmanager
def _gcs(uri: str, project: str | None) -> Iterator[Any]:
    with _extra(uri, "gcp"):
        from dagster_gcp import GCSResource
    with _identified(uri):
        client = GCSResource(project=project).get_client()
    with closing(client):
        yield client


@contextmanager
def _identified(uri: str) -> Iterator[None]:
    """Raise `StorageFailed` where Google's clients find no identity."""
    from google.auth.exceptions import GoogleAuthError

    try:
        yield
    except GoogleAuthError as error:
        raise StorageFailed(
            f"{uri}: no identity for Google Cloud ({str(error).splitlines()[0].rstrip('.')}); run "
            "`gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error


def _athena(uri: str) -> Any:
    with _extra(uri, "aws"):
        from dagster_aws.athena import AthenaClientResource

        from docgen_core.export.athena import AthenaClients
    # Dagster has no resource of Glue, and Athena's takes no region: a region in the URI is the core's to use.
    region = _option(uri, "region")
    athena = (
        None if region else AthenaClientResource(workgroup=_option(uri, "workgroup") or "primary").get_client().client
    )
    return AthenaClients(athena=athena, glue=None, s3=_s3(uri, region))


def _s3(uri: str, region: str | None) -> Any:
    with _extra(uri, "aws"):
        from dagster_aws.s3 import S3Resource

        from docgen_core.blobs.s3 import without_times
    return without_times(S3Resource(region_name=region).get_client())


@contextmanager
def _extra(uri: str, extra: str) -> Iterator[None]:
    """Raise `MissingExtra` in the place of an import that fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"URI {uri!r}", extra) from error


def _option(uri: str, name: str) -> str | None:
    return parse_qs(urlsplit(uri).query).get(name, [None])[0]
