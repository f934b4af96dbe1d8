"""Blob stores: whole objects under keys, chosen by URI scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import UsageError

SCHEMES = ("file", "memory")


def open_blobs(uri: str, client: Any = None) -> BlobStore:
    """The blob store at `uri`: `file:///abs/dir`, a bare path, or `memory://name`.

    A bare path is relative to the working directory and made absolute here. `client` is the
    caller's own client of the store, for the schemes that have one. Raises `UsageError`.
    """
    scheme, separator, _ = uri.partition("://")
    if not separator:
        return _open_folder(uri, Path(uri).expanduser(), client)
    if scheme == "file":
        parts = urlsplit(uri)
        if parts.netloc or parts.query or parts.fragment:
            raise UsageError(f"blob URI {uri!r}: a folder is written file:///absolute/path, with three slashes")
        return _open_folder(uri, Path(unquote(parts.path)), client)
    if scheme == "memory":
        from docgen_core.blobs.memory import MemoryBlobStore

        _refuse_client(uri, client)
        return MemoryBlobStore.named(uri)
    raise UsageError(f"blob URI {uri!r}: unknown scheme {scheme!r}; there are {', '.join(SCHEMES)}, or a bare path")


def _open_folder(uri: str, folder: Path, client: Any) -> BlobStore:
    from docgen_core.blobs.file import FileBlobStore

    _refuse_client(uri, client)
    if not uri.strip():
        raise UsageError("a blob URI cannot be empty; name a folder, or write file:///absolute/path")
    return FileBlobStore(folder)


def _refuse_client(uri: str, client: Any) -> None:
    if client is not None:
        raise UsageError(f"blob URI {uri!r} takes no client")
