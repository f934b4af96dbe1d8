"""Servers that speak a warehouse's protocol, for as long as the session. Each makes its own room in a test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from blob_servers import BlobServer
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from standins import free_ports, installed, running

LOCAL_BIGQUERY = "local-bigquery==0.3.2"
BIGQUERY_PYTHON = "3.13"
"""The only Python it takes."""
DUCKDB = "1.5.5"
EXTENSIONS = ("ducklake", "spatial", "httpfs", "icu")
"""What it would otherwise download from the network when it starts."""
PROJECT = "docgen-test"


@dataclass(frozen=True)
class BigQueryServer:
    """A server that runs, and how a process finds it and the bucket it reads from."""

    port: int
    storage: BlobServer
    project: str = PROJECT
    _names: Iterator[int] = field(default_factory=itertools.count)
    _unused: list[str] = field(default_factory=list)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to reach both by the clients' own variables."""
        return {**self.storage.environment, "BIGQUERY_EMULATOR_HOST": f"http://127.0.0.1:{self.port}"}

    def client(self) -> Any:
        options = {"api_endpoint": f"http://127.0.0.1:{self.port}"}
        return bigquery.Client(project=self.project, credentials=AnonymousCredentials(), client_options=options)

    def new_dataset(self) -> str:
        """The name of an empty dataset of the caller's own."""
        if self._unused:
            return self._unused.pop()
        name = f"tables_{next(self._names)}"
        self.client().create_dataset(name)
        return name

    def forget(self, dataset: str) -> None:
        """Delete it and all results of queries: the server looks through all that there is at each request."""
        client = self.client()
        if not list(client.list_tables(dataset)):
            self._unused.append(dataset)
            return
        client.delete_dataset(dataset, delete_contents=True, not_found_ok=True)
        for job in list(client.list_jobs()):
            if job.job_type == "query":
                client.delete_job_metadata(job)


def _answers(port: int) -> bool:
    try:
        found = requests.get(f"http://127.0.0.1:{port}/bigquery/v2/projects/{PROJECT}/datasets", timeout=5)
    except requests.RequestException:
        return False
    return found.ok


@pytest.fixture(scope="session")
def bigquery_local(gcs_fake: BlobServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BigQueryServer]:
    """BigQuery by local-bigquery, on DuckDB: its transactions are real ones, over all tables."""
    extensions = [f"duckdb-extension-{name}=={DUCKDB}" for name in EXTENSIONS]
    place = installed(
        LOCAL_BIGQUERY, f"duckdb=={DUCKDB}", f"duckdb-extensions=={DUCKDB}", *extensions, python=BIGQUERY_PYTHON
    )
    folder = tmp_path_factory.mktemp("bigquery")
    # Extensions are found under the home folder: they go to one of the server's own.
    script = (
        "import sys, duckdb_extensions as found; "
        f"[found.import_extension(name) for name in {EXTENSIONS}]; "
        "from local_bigquery.cli import main; main(sys.argv[1:])"
    )
    port, grpc_port = free_ports(2)
    command = [
        *(str(place / "bin" / "python"), "-c", script, "--host", "127.0.0.1", "--port", str(port)),
        *("--grpc-port", str(grpc_port), "--project", PROJECT, "--data-dir", str(folder / "data"), "serve"),
    ]
    environment = {**gcs_fake.environment, "HOME": str(folder)}
    with running(LOCAL_BIGQUERY, command, folder, lambda: _answers(port), environment):
        server = BigQueryServer(port, gcs_fake)
        _shown_the_bucket(server)
        yield server


def _shown_the_bucket(server: BigQueryServer) -> None:
    """Let it make its secret for Cloud Storage, which two first loads at once would both try to make."""
    client, dataset = server.client(), server.new_dataset()
    with suppress(GoogleAPICallError):
        client.load_table_from_uri(f"gs://{server.storage.bucket}/none", f"{dataset}.none").result()
    server.forget(dataset)
