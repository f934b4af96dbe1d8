"""The blob stores that the contract suite runs on. A new scheme is one more line in STORES."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blob_servers import BlobServer, gcs_client, s3_client

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.blobs.gs import GSBlobStore
from docgen_core.blobs.memory import MemoryBlobStore
from docgen_core.blobs.s3 import S3BlobStore

SMALL = {"page_keys": 3, "part_bytes": 5 << 20}
"""Pages so small that the suite's listings have many; parts of the least size that S3 takes."""

_numbers = itertools.count()
"""A prefix of its own for each test: all use one bucket."""


@pytest.fixture(scope="session")
def ministack_client(s3_ministack: BlobServer) -> Any:
    return s3_client(s3_ministack.port)


@pytest.fixture(scope="session")
def gcs_fake_client(gcs_fake: BlobServer) -> Any:
    return gcs_client(gcs_fake.port)


def _s3(request: pytest.FixtureRequest) -> BlobStore:
    client = request.getfixturevalue("ministack_client")
    return S3BlobStore(BlobServer.bucket, f"tests/{next(_numbers)}", client=client, **SMALL)


def _gs(request: pytest.FixtureRequest) -> BlobStore:
    client = request.getfixturevalue("gcs_fake_client")
    return GSBlobStore(BlobServer.bucket, f"tests/{next(_numbers)}", client=client, **SMALL)


def _file(request: pytest.FixtureRequest) -> BlobStore:
    folder: Path = request.getfixturevalue("tmp_path")
    return FileBlobStore(folder / "blobs")


STORES: dict[str, Callable[[pytest.FixtureRequest], BlobStore]] = {
    "memory": lambda request: MemoryBlobStore(),
    "file": _file,
    "s3": _s3,
    "gs": _gs,
}


@pytest.fixture(params=STORES)
def blobs(request: pytest.FixtureRequest) -> BlobStore:
    return STORES[request.param](request)
