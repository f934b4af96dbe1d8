"""Blob stores: whole objects under keys, chosen by URI scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import MissingExtra, UsageError

SCHEMES = ("file", "gs", "memory", "s3")


def open_blobs(uri: str, client: Any = None) -> BlobStore:
    """The blob store at `uri`; nothing is asked of a cloud before the first use.

    - `file:///abs/dir`, or a bare path, which is relative to the working directory and made absolute here.
    - `s3://bucket/prefix`, perhaps with `?region=…`; needs the extra `aws`.
    - `gs://bucket/prefix`; needs the extra `gcp`.
    - `memory://name`, the same store for the same name, in this process.

    `client` is the caller's own client of the cloud; it stays the caller's to close. An S3 client
    keeps its own region, time-outs and retries. Raises `UsageError`, and `MissingExtra`.
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
    if scheme == "s3":
        return _open_s3(uri, client)
    if scheme == "gs":
        return _open_gs(uri, client)
    raise UsageError(f"blob URI {uri!r}: unknown scheme {scheme!r}; there are {', '.join(SCHEMES)}, or a bare path")


def _open_folder(uri: str, folder: Path, client: Any) -> BlobStore:
    from docgen_core.blobs.file import FileBlobStore

    _refuse_client(uri, client)
    if not uri.strip():
        raise UsageError("a blob URI cannot be empty; name a folder, or write file:///absolute/path")
    return FileBlobStore(folder)


def _open_s3(uri: str, client: Any) -> BlobStore:
    try:
        from docgen_core.blobs.s3 import S3BlobStore
    except ImportError as error:
        raise MissingExtra(f"blob URI {uri!r}", "aws") from error

    bucket, prefix, options = _split(uri, ("region",))
    return S3BlobStore(bucket, prefix, **options, client=client)


def _open_gs(uri: str, client: Any) -> BlobStore:
    try:
        from docgen_core.blobs.gs import GSBlobStore
    except ImportError as error:
        raise MissingExtra(f"blob URI {uri!r}", "gcp") from error

    bucket, prefix, _ = _split(uri, ())
    return GSBlobStore(bucket, prefix, client=client)


def _split(uri: str, known: tuple[str, ...]) -> tuple[str, str, dict[str, str]]:
    """Bucket, prefix and options. Names are taken as they stand: a `%` in one is a `%`."""
    place, _, query = uri.partition("://")[2].partition("?")
    bucket, _, prefix = place.partition("/")
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known or not value:
            there_are = f"there is {', '.join(known)}" if known else "it takes none"
            raise UsageError(f"blob URI {uri!r}: unknown or empty parameter {name!r}; {there_are}")
        if name in options:
            raise UsageError(f"blob URI {uri!r} sets {name!r} twice")
        options[name] = value
    return bucket, prefix.rstrip("/"), options


def _refuse_client(uri: str, client: Any) -> None:
    if client is not None:
        raise UsageError(f"blob URI {uri!r} takes no client")
