"""The blob stores that the contract suite runs on. A new scheme is one more line in STORES."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.blobs.memory import MemoryBlobStore

STORES: dict[str, Callable[[Path], BlobStore]] = {
    "memory": lambda folder: MemoryBlobStore(),
    "file": lambda folder: FileBlobStore(folder / "blobs"),
}


@pytest.fixture(params=STORES)
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return STORES[request.param](tmp_path)
