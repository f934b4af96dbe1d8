"""The code location in the clouds: its places by Dagster's own resources, what steps print in a bucket, its files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dagster as dg
import pyarrow as pa
import pytest
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from docgen_core.blobs import open_blobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from athena_server import AthenaServer
    from conftest import Location
    from warehouse_servers import BigQueryServer

REPOSITORY = Path(__file__).parents[2]
FIRST = "00000-00003"
CLOUDS = {"s3": ("s3_ministack", s3_client), "gs": ("gcs_fake", gcs_client)}
LOGS = {"s3": "logs-s3.yaml", "gs": "logs-gcs.yaml"}


class Cloud:
    """A bucket, and the environment in which the clients of this process find its server."""

    def __init__(self, scheme: str, request: pytest.FixtureRequest) -> None:
        server, connect = CLOUDS[scheme]
        found: BlobServer = request.getfixturevalue(server)
        environment: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
        for name, text in found.environment.items():
            environment.setenv(name, text)
        self.scheme, self.client = scheme, connect(found.port)
        self.folder = f"{scheme}://{BUCKET}/{uuid4().hex}"

    def holding(self, folder: Path) -> str:
        """A place in the bucket with what stands in the folder."""
        there = open_blobs(f"{self.folder}/blobs", client=self.client)
        here = open_blobs(str(folder))
        for info in here.iter_keys():
            there.put(info.key, here.get(info.key))
        return there.uri


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    return Cloud(request.param, request)


def test_blobs_and_tables_in_a_bucket(
    cloud: Cloud, made: Location, location: Location, monkeypatch: pytest.MonkeyPatch
):
    """The whole location on a bucket: what was made is exported from there to there, and the checks hold."""
    shutil.copy(made.folder / "state.db", location.folder / "state.db")
    stores = {
        "state": location.stores["state"],
        "blobs": cloud.holding(made.folder / "blobs"),
        "sink": f"parquet://{cloud.folder}/tables",
    }
    monkeypatch.setattr(type(location), "stores", property(lambda _: stores))
    result = location.run("export_ranges", FIRST, corpus={})
    assert result.success
    assert all(evaluation.passed for evaluation in result.get_asset_check_evaluations())
    exported = {info.key for info in open_blobs(f"{cloud.folder}/tables", client=cloud.client).iter_keys()}
    assert f"invoices/run_id=invoices-{FIRST}/unit-000000.parquet" in exported


def bigquery_sink(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], str]:
    server: BigQueryServer = request.getfixturevalue("bigquery_local")
    dataset = server.new_dataset()
    staging = f"gs://{server.storage.bucket}/{dataset}"
    return server.environment, f"bigquery://{server.project}/{dataset}?staging={staging}"


def athena_sink(request: pytest.FixtureRequest) -> tuple[Mapping[str, str], str]:
    server: AthenaServer = request.getfixturevalue("athena_ministack")
    database = server.new_database()
    return server.environment, f"athena://{database}?output=s3://{BUCKET}/{database}"


class TokenServer(BaseHTTPRequestHandler):
    """Gives whoever has signed anything a token, as Google's does for an hour."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"access_token": "one-hour", "expires_in": 3600, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A service account of nobody's, whose tokens come from a server here."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), TokenServer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        account = {
            "type": "service_account",
            "project_id": "docgen-test",
            "private_key": key.decode(),
            "client_email": "docgen@docgen-test.example",
            "token_uri": f"http://127.0.0.1:{server.server_port}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        yield
        server.shutdown()


WAREHOUSES = {"bigquery": bigquery_sink, "athena": athena_sink}


@pytest.mark.parametrize("warehouse", WAREHOUSES)
def test_a_range_in_a_warehouse_has_the_rows_that_duckdb_has_and_its_checks_hold(
    warehouse: str, made: Location, identity: None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    from docgen_assets.defs.common import TABLES
    from docgen_assets.warehouse import opened_sink

    environment, uri = WAREHOUSES[warehouse](request)
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    there = type(made)(made.defs, made.folder, made.instance, uri)
    result = there.run("export_ranges", FIRST, corpus={})
    assert result.success
    assert all(evaluation.passed for evaluation in result.get_asset_check_evaluations())
    run_id = f"invoices-{FIRST}"
    with opened_sink(uri) as sink, opened_sink(made.sink) as local:
        assert sink.counts(run_id) == local.counts(run_id)
        for table in TABLES:
            rows = [pa.Table.from_batches(each.fetch(table, run_id)).to_pylist() for each in (sink, local)]
            assert sorted(rows[0], key=repr) == sorted(rows[1], key=repr)


def test_nobody_in_google_cloud_is_one_line(made: Location, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    there = type(made)(made.defs, made.folder, made.instance, "bigquery://nobody/golden?staging=gs://bucket/staging")
    said = made.refusal(there.run("export_run", ops={"export_one_run": {"config": {"run_id": f"invoices-{FIRST}"}}}))
    assert "no identity for Google Cloud" in said and "gcloud auth application-default login" in said


def test_what_steps_print_goes_to_the_bucket(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The cloud's instance is the one machine's with other storage: the fragments go behind it as they stand."""

    @dg.op
    def speak() -> None:
        sys.stdout.write("a unit was rendered\n")

    @dg.job(executor_def=dg.in_process_executor)
    def speaking() -> None:
        speak()

    parts = [REPOSITORY / "deploy" / "dagster.yaml", REPOSITORY / "deploy" / "instance" / LOGS[cloud.scheme]]
    (tmp_path / "dagster.yaml").write_text("\n".join(part.read_text() for part in parts))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_LOGS_BUCKET", BUCKET)
    with dg.DagsterInstance.get() as instance:
        run_id = speaking.execute_in_process(instance=instance).run_id
    bucket = open_blobs(f"{cloud.scheme}://{BUCKET}/dagster-logs", client=cloud.client)
    (printed,) = [info.key for info in bucket.iter_keys(f"storage/{run_id}/") if info.key.endswith(".out")]
    assert bucket.get(printed).decode() == "a unit was rendered\n"


def test_dagster_cloud_yaml_is_what_its_schema_says():
    """Offline: the schema is that of the command line that deploys by it."""
    from dagster_cloud_cli.config.models import load_dagster_cloud_yaml

    declared = load_dagster_cloud_yaml((REPOSITORY / "dagster_cloud.yaml").read_text())
    (there,) = declared.locations
    assert (there.location_name, there.code_source and there.code_source.module_name) == (
        "docgen",
        "docgen_assets.definitions",
    )


@pytest.mark.parametrize("mistake", ["executable: python", "code_source: {module_name: a, package_name: b}"])
def test_a_mistake_in_dagster_cloud_yaml_would_be_found(mistake: str):
    from dagster_cloud_cli.config.models import load_dagster_cloud_yaml
    from pydantic import ValidationError

    text: Any = (REPOSITORY / "dagster_cloud.yaml").read_text()
    with pytest.raises(ValidationError):
        load_dagster_cloud_yaml(f"{text.rstrip()}\n    {mistake}\n")
