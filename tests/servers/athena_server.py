"""A server that speaks S3, Glue and Athena, for as long as the session; each test has a database of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
import pytest
from blob_servers import BUCKET, KEY_ID, MINISTACK, REGION, SECRET, _s3_bucket_made, s3_client, s3_environment
from botocore.config import Config
from standins import free_ports, installed, running

from docgen_core.export.athena import AthenaClients

DUCKDB = "duckdb==1.5.5"
"""What its Athena runs queries with."""


@dataclass
class AthenaServer:
    """A server that runs, and how a process finds it."""

    port: int
    _names: Iterator[int] = field(default_factory=itertools.count)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process needs to reach it by the clients' own variables."""
        return self.behind(self.port)

    @staticmethod
    def behind(port: int) -> Mapping[str, str]:
        """The same through another port: of something in between."""
        place = f"http://127.0.0.1:{port}"
        return {**s3_environment(port), "AWS_ENDPOINT_URL_ATHENA": place, "AWS_ENDPOINT_URL_GLUE": place}

    @cached_property
    def clients(self) -> AthenaClients:
        """Made once, since making one costs a third of a second."""

        def made(service: str) -> Any:
            return boto3.session.Session().client(
                service,
                endpoint_url=f"http://127.0.0.1:{self.port}",
                region_name=REGION,
                aws_access_key_id=KEY_ID,
                aws_secret_access_key=SECRET,
                config=Config(retries={"total_max_attempts": 2}),
            )

        return AthenaClients(made("athena"), made("glue"), s3_client(self.port))

    def new_database(self) -> str:
        """The name of an empty database of the caller's own."""
        name = f"golden_{next(self._names)}"
        self.clients.glue.create_database(DatabaseInput={"Name": name})
        return name

    def ask(self, database: str, sql: str) -> list[list[str | None]]:
        """All rows of a query as text, the columns' names first."""
        query = self.clients.athena.start_query_execution(
            QueryString=sql,
            QueryExecutionContext={"Database": database},
            ResultConfiguration={"OutputLocation": f"s3://{BUCKET}/asked/"},
        )["QueryExecutionId"]
        while True:
            status = self.clients.athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]["Status"]
            if status["State"] == "SUCCEEDED":
                break
            assert status["State"] in ("QUEUED", "RUNNING"), status["StateChangeReason"]
        pages = self.clients.athena.get_paginator("get_query_results").paginate(QueryExecutionId=query)
        rows = [row for page in pages for row in page["ResultSet"]["Rows"]]
        return [[datum.get("VarCharValue") for datum in row["Data"]] for row in rows]

    def uri(self, database: str) -> str:
        return f"athena://{database}?output=s3://{BUCKET}/{database}"


@pytest.fixture(scope="session")
def athena_ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AthenaServer]:
    """Athena by ministack, with views and partition projection beside it."""
    # Under this name, since the plain one belongs to the tests of blobs.
    place = installed(DUCKDB, MINISTACK)
    (port,) = free_ports(1)
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
    }
    client = s3_client(port)
    command = [str(place / "bin" / "python"), str(Path(__file__).with_name("athena_stand_in.py"))]
    folder = tmp_path_factory.mktemp("athena")
    with running("athena", command, folder, lambda: _s3_bucket_made(client), environment):
        yield AthenaServer(port)
