"""Blobs as the objects of an S3 bucket, by boto3: `s3://bucket/prefix?region=eu-central-1`.

Credentials, profile and endpoint are boto3's own business (`AWS_PROFILE`, `AWS_ENDPOINT_URL_S3`, …).
A create-only put carries `If-None-Match: *`; S3 answers 412 when the object is there, and 409 when
another conditional write of it is under way, which is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any

import boto3
import botocore.exceptions as boto
from botocore.config import Config

from docgen_core.blobs.contract import Temporary
from docgen_core.blobs.objects import Absent, Again, ObjectStore, Page, Stat, Unmet, content_type, one_line
from docgen_core.errors import StorageFailed, UsageError

CHECKSUM = "SHA256"
"""Sent with every put and checked by S3; kept with the object and checked with every whole read."""

UPLOAD = "?uploadId="
"""Between name and id of an unfinished upload, as S3 itself addresses one."""

_ABSENT = {"404", "NoSuchKey"}
_UNMET = {"412", "PreconditionFailed"}
_BUSY = {
    *("409", "ConditionalRequestConflict", "OperationAborted"),
    *("429", "SlowDown", "TooManyRequests", "Throttling", "ThrottlingException", "RequestLimitExceeded"),
}
"""Refused before anything was done: another conditional write is under way, or there are too many requests."""
_UNANSWERED = {"InternalError", "ServiceUnavailable", "RequestTimeout", "NoSuchUpload"}
"""May have been done. An upload that is gone may have been completed by the try before."""
_CREDENTIALS = {
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"),
    *("ExpiredTokenException", "UnrecognizedClientException", "401"),
}
_REGION = {"301", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}

_NO_CREDENTIALS = (
    *(boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.ProfileNotFound),
    *(boto.NoAuthTokenError, boto.TokenRetrievalError, boto.SSOError, boto.LoginError, boto.UnknownCredentialError),
)
_NOT_SENT = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError)
_CUT_OFF = (boto.HTTPClientError, boto.IncompleteReadError, boto.FlexibleChecksumError, boto.ChecksumError)

BUSY_STATUS = (409, 429)
SERVER_ERRORS = 500
DEFAULT_TRIES = 3
"""What boto3 does where its configuration does not say."""


_TIME = re.compile(rb"<LastModified>[^<]*</LastModified>")


def without_times(client: Any) -> Any:
    """The same client, whose listings do not say when an object was written.

    Nothing here asks for that, and reading it takes botocore longer than all the rest of a listing.
    """
    client.meta.events.register("before-parse.s3.ListObjectsV2", _drop_times)
    return client


def _drop_times(response_dict: dict[str, Any], **_: Any) -> None:
    response_dict["body"] = _TIME.sub(b"", response_dict["body"])


class S3BlobStore(ObjectStore):
    """Blobs under one prefix of one bucket."""

    scheme = "s3"
    client_method = "put_object"
    client_errors = (boto.BotoCoreError, boto.ClientError)

    def __init__(self, bucket: str, prefix: str = "", *, region: str = "", **options: Any) -> None:
        super().__init__(bucket, prefix, **options)
        self._region = region
        if region:
            self.uri = f"{self.uri}?region={region}"
        self._client_retries = self._given is not None and _tries(self._given) > 1

    @classmethod
    def _client_wanted(cls) -> str:
        return "a boto3 client of S3, such as S3Resource.get_client() gives"

    def _connect(self) -> Any:
        config = Config(
            connect_timeout=self.patience.connect_seconds,
            read_timeout=self.patience.read_seconds,
            retries={"total_max_attempts": 1},
        )
        try:
            client = boto3.session.Session().client("s3", region_name=self._region or None, config=config)
        except ValueError as error:
            raise UsageError(f"{self.uri}: {one_line(error)}; correct AWS_ENDPOINT_URL_S3 or the profile") from error
        return without_times(client)

    def _write(self, name: str, data: bytes, create_only: bool) -> None:
        guard = {"IfNoneMatch": "*"} if create_only else {}
        about = {"ContentType": content_type(name), "ChecksumAlgorithm": CHECKSUM}
        if len(data) <= self.part_bytes:
            self._client.put_object(Bucket=self.bucket, Key=name, Body=data, **about, **guard)
            return
        upload = {"Bucket": self.bucket, "Key": name}
        upload["UploadId"] = self._client.create_multipart_upload(**upload, **about)["UploadId"]
        try:
            parts = [
                self._ask(partial(self._write_part, upload, number, data[start : start + self.part_bytes]))
                for number, start in enumerate(range(0, len(data), self.part_bytes), start=1)
            ]
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **guard)
        except BaseException:
            # The first error is the one to tell; what cannot be aborted now is collected later.
            with suppress(*self.client_errors):
                self._client.abort_multipart_upload(**upload)
            raise

    def _write_part(self, upload: dict[str, str], number: int, data: bytes) -> dict[str, Any]:
        given = self._client.upload_part(**upload, PartNumber=number, Body=data, ChecksumAlgorithm=CHECKSUM)
        checksum = f"Checksum{CHECKSUM}"
        kept = {checksum: given[checksum]} if checksum in given else {}
        return {"PartNumber": number, "ETag": given["ETag"], **kept}

    def _read(self, name: str) -> bytes:
        return _body(self._client.get_object(Bucket=self.bucket, Key=name))

    def _read_range(self, name: str, version: str, start: int, stop: int) -> bytes:
        span = f"bytes={start}-{stop - 1}"
        return _body(self._client.get_object(Bucket=self.bucket, Key=name, Range=span, IfMatch=version))

    def _stat(self, name: str) -> Stat:
        head = self._client.head_object(Bucket=self.bucket, Key=name)
        return Stat(int(head["ContentLength"]), str(head["ETag"]))

    def _remove(self, name: str) -> None:
        self._client.delete_object(Bucket=self.bucket, Key=name)

    def _page(self, prefix: str, after: str, delimiter: str, token: str | None, limit: int) -> Page:
        asked = {"Prefix": prefix, "StartAfter": after, "Delimiter": delimiter, "ContinuationToken": token}
        given = {name: value for name, value in asked.items() if value}
        found = self._client.list_objects_v2(Bucket=self.bucket, MaxKeys=limit, **given)
        return Page(
            tuple((entry["Key"], int(entry["Size"])) for entry in found.get("Contents", ())),
            tuple(entry["Prefix"] for entry in found.get("CommonPrefixes", ())),
            found["NextContinuationToken"] if found.get("IsTruncated") else None,
        )

    def iter_temporary(self) -> Iterator[Temporary]:
        """Uploads in parts that are under way, or whose process died; S3 keeps, and bills, what they sent."""
        marker: dict[str, str] = {}
        while True:
            page = self._ask(partial(self._uploads, marker))
            for entry in page.get("Uploads", ()):
                size = self._ask(partial(self._uploaded, entry["Key"], entry["UploadId"]))
                name = f"{entry['Key'].removeprefix(self._root)}{UPLOAD}{entry['UploadId']}"
                yield Temporary(name, size, entry["Initiated"].timestamp())
            if not page.get("IsTruncated"):
                return
            marker = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def delete_temporary(self, name: str) -> None:
        """Abort one of the uploads that `iter_temporary` gives; one that has ended is no error."""
        key, mark, upload = name.rpartition(UPLOAD)
        if not mark:
            raise UsageError(f"{self.uri}: {name!r} is no unfinished upload; those are written key{UPLOAD}id")
        self._ask(partial(self._abort, self._name(key), upload))

    def _uploads(self, marker: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = self._client.list_multipart_uploads(
            Bucket=self.bucket, Prefix=self._root, MaxUploads=self.page_keys, **marker
        )
        return found

    def _uploaded(self, name: str, upload: str) -> int:
        pages = self._client.get_paginator("list_parts").paginate(Bucket=self.bucket, Key=name, UploadId=upload)
        try:
            return sum(part["Size"] for page in pages for part in page.get("Parts", ()))
        except boto.ClientError as error:
            if _code(error) != "NoSuchUpload":
                raise
            return 0

    def _abort(self, name: str, upload: str) -> None:
        try:
            self._client.abort_multipart_upload(Bucket=self.bucket, Key=name, UploadId=upload)
        except boto.ClientError as error:
            if _code(error) != "NoSuchUpload":
                raise

    def _judge(self, error: Exception) -> Exception:
        if isinstance(error, boto.ClientError):
            return self._judge_answer(error)
        said = one_line(error)
        if isinstance(error, _NO_CREDENTIALS):
            return UsageError(f"{self.uri}: {said}; set AWS_PROFILE, or log in (aws sso login)")
        if isinstance(error, boto.SSLError) or not isinstance(error, (*_NOT_SENT, *_CUT_OFF)):
            return StorageFailed(f"{self.uri}: {said}")
        if self._client_retries:
            return StorageFailed(f"{self.uri}: {said}; its client tried again and again, so try later")
        return Again(said, lost=not isinstance(error, _NOT_SENT))

    def _judge_answer(self, error: boto.ClientError) -> Exception:
        code = _code(error)
        about = error.response.get("ResponseMetadata", {})
        status, retried = int(about.get("HTTPStatusCode", 0)), int(about.get("RetryAttempts", 0))
        said = one_line(error)
        if code in _ABSENT:
            return Absent()
        if code in _UNMET:
            return Unmet(lost=retried > 0)
        if code == "NoSuchBucket":
            return self._no_bucket()
        busy = code in _BUSY or status in BUSY_STATUS
        if busy or code in _UNANSWERED or status >= SERVER_ERRORS:
            if retried:
                return StorageFailed(f"{self.uri}: {said}; its client tried again and again, so try later")
            return Again(said, lost=not busy)
        if code in _CREDENTIALS:
            return UsageError(
                f"{self.uri}: S3 does not accept these credentials ({code}); log in again, or correct them"
            )
        if code in _REGION:
            return UsageError(f"{self.uri}: the bucket is in another region; write s3://{self.bucket}/…?region=REGION")
        if code == "RequestTimeTooSkewed":
            return StorageFailed(
                f"{self.uri}: this machine's clock is off, so S3 refuses its signatures; set it by NTP"
            )
        if status == 403:
            return StorageFailed(
                f"{self.uri}: {error.operation_name} is not allowed; docs/permissions.md lists what this identity needs"
            )
        return StorageFailed(f"{self.uri}: {said}")


def _code(error: boto.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _body(answer: dict[str, Any]) -> bytes:
    with closing(answer["Body"]) as body:
        data: bytes = body.read()
    return data


def _tries(client: Any) -> int:
    return int((client.meta.config.retries or {}).get("total_max_attempts", DEFAULT_TRIES))
