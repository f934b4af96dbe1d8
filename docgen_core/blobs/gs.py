"""Blobs as the objects of a Cloud Storage bucket, by google-cloud-storage: `gs://bucket/prefix`.

Credentials and endpoint are the client's own business (application default credentials,
`STORAGE_EMULATOR_HOST`). A create-only put carries `ifGenerationMatch=0`; Cloud Storage answers 412
when the object is there, and 429 when one object is written more than about once a second.
"""

from __future__ import annotations

import io
from typing import Any

import requests
from google.api_core.exceptions import GoogleAPICallError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption
from urllib3.exceptions import HTTPError

from docgen_core.blobs.objects import Absent, Again, ObjectStore, Page, Stat, Unmet, content_type, one_line
from docgen_core.errors import StorageFailed, UsageError

LISTED = "items(name,size),prefixes,nextPageToken"
"""The fields of a listing that are used."""

RATE_LIMITS = ("rateLimitExceeded", "userRateLimitExceeded")
"""Reasons of a 403 that mean what a 429 means."""

BUSY = (409, 429)
"""Refused before anything was done."""
REQUEST_TIMEOUT = 408
SERVER_ERRORS = 500


_CUT_OFF = (
    *(requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError),
    *(HTTPError, DataCorruption),
)


class GSBlobStore(ObjectStore):
    """Blobs under one prefix of one bucket."""

    scheme = "gs"
    client_method = "list_blobs"
    # A body that is cut off shows urllib3's own error, from below requests.
    client_errors = (GoogleAPICallError, GoogleAuthError, requests.RequestException, HTTPError, DataCorruption)

    @classmethod
    def _client_wanted(cls) -> str:
        return "a google.cloud.storage.Client, such as GCSResource.get_client() gives"

    def _connect(self) -> Any:
        # No request here needs a project, so none has to be configured.
        return storage.Client(project=None)

    @property
    def _call(self) -> dict[str, Any]:
        """What every request is told: this store's time-outs, and not to retry by itself."""
        return {"timeout": (self.patience.connect_seconds, self.patience.read_seconds), "retry": None}

    def _blob(self, name: str, **options: Any) -> Any:
        return self._client.bucket(self.bucket).blob(name, **options)

    def _write(self, name: str, data: bytes, create_only: bool) -> None:
        # The client sends more than 8 MB as a resumable upload, in chunks.
        self._blob(name, chunk_size=self.part_bytes).upload_from_file(
            io.BytesIO(data),
            size=len(data),
            content_type=content_type(name),
            if_generation_match=0 if create_only else None,
            **self._call,
        )

    def _read(self, name: str) -> bytes:
        data: bytes = self._blob(name).download_as_bytes(raw_download=True, single_shot_download=True, **self._call)
        return data

    def _read_range(self, name: str, version: str, start: int, stop: int) -> bytes:
        generation, _, checksum = version.partition(" ")
        span = {"start": start, "end": stop - 1, "raw_download": True, "checksum": None}
        try:
            data: bytes = self._blob(name, generation=int(generation)).download_as_bytes(**span, **self._call)
        except GoogleAPICallError as error:
            # A blob that was overwritten with its own bytes has another generation; it is still the same blob.
            if error.code != 404:
                raise
            blob = self._reloaded(name)
            if blob.crc32c != checksum:
                raise
            data = blob.download_as_bytes(**span, if_generation_match=blob.generation, **self._call)
        return data

    def _stat(self, name: str) -> Stat:
        blob = self._reloaded(name)
        return Stat(int(blob.size), f"{blob.generation} {blob.crc32c}")

    def _reloaded(self, name: str) -> Any:
        blob = self._blob(name)
        blob.reload(**self._call)
        return blob

    def _remove(self, name: str) -> None:
        self._blob(name).delete(**self._call)

    def _page(self, prefix: str, after: str, delimiter: str, token: str | None, limit: int) -> Page:
        found = self._client.list_blobs(
            self.bucket,
            prefix=prefix or None,
            start_offset=after or None,
            delimiter=delimiter or None,
            page_token=token,
            page_size=limit,
            fields=LISTED,
            **self._call,
        )
        blobs = tuple((blob.name, int(blob.size)) for blob in next(found.pages))
        return Page(blobs, tuple(sorted(found.prefixes)), found.next_page_token)

    def _judge(self, error: Exception) -> Exception:
        if isinstance(error, GoogleAPICallError):
            return self._judge_answer(error)
        said = one_line(error)
        if isinstance(error, TransportError):
            return Again(said, lost=False)
        if isinstance(error, GoogleAuthError):
            if error.retryable:
                return Again(said, lost=False)
            return UsageError(f"{self.uri}: {said}; log in (gcloud auth application-default login)")
        if isinstance(error, requests.exceptions.SSLError):
            return StorageFailed(f"{self.uri}: {said}")
        if isinstance(error, _CUT_OFF):
            return Again(said, lost=not isinstance(error, requests.ConnectTimeout))
        return UsageError(f"{self.uri}: {said}; correct STORAGE_EMULATOR_HOST (http://host:port), or unset it")

    def _judge_answer(self, error: GoogleAPICallError) -> Exception:
        code, said = int(error.code or 0), _said(error)
        if code == 404:
            return Absent()
        if code == 412:
            return Unmet()
        if code in BUSY or any(reason in error.message for reason in RATE_LIMITS):
            return Again(said, lost=False)
        if code == REQUEST_TIMEOUT or code >= SERVER_ERRORS:
            return Again(said, lost=True)
        if code == 401:
            return UsageError(
                f"{self.uri}: Cloud Storage does not accept these credentials; "
                "log in again (gcloud auth application-default login), or correct them"
            )
        if code == 403:
            return StorageFailed(f"{self.uri}: not allowed ({said}); docs/permissions.md lists what is needed")
        return StorageFailed(f"{self.uri}: {said}")


def _said(error: GoogleAPICallError) -> str:
    """The server's own message, without the request that the client puts around it."""
    try:
        return one_line(error.response.json()["error"]["message"])
    except (AttributeError, ValueError, KeyError, TypeError):
        return one_line(error.message)
