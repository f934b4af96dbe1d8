"""The code location in the clouds: its places by Dagster's own resources, what steps print in a bucket, its files."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dagster as dg
import pytest
from blob_servers import BUCKET, BlobServer, gcs_client, s3_client

from docgen_core.blobs import open_blobs

if TYPE_CHECKING:
    from conftest import Location

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
