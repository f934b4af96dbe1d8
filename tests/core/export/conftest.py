"""A blob store of files for the exports of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return FileBlobStore(tmp_path / "blobs")
