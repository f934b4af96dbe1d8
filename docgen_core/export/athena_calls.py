"""Requests to Athena and Glue: clients with bounds, queries run to their end, errors in one clear line.

Retries of single requests, throttling among them, are the clients' own. Nothing here asks the cloud
before it is called.

What does not belong here: what is asked (athena_sql.py), objects in S3 (blobs/s3.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, NamedTuple

import boto3
import botocore.exceptions as boto
from botocore.config import Config

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import DocgenError, StorageFailed, UsageError

RESULTS = "results"
"""Folder under the output of what Athena writes for queries; it is deleted when it has been read."""
TRIES = 6
CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
FIRST_WAIT_SECONDS = 0.02
LONGEST_WAIT_SECONDS = 1.0
QUERY_SECONDS = 1_800.0
"""Athena's own bound for a query, unless a quota says otherwise."""
MESSAGE_CHARACTERS = 300

CLIENT_ERRORS = (boto.BotoCoreError, boto.ClientError)

_NO_CREDENTIALS = (
    *(boto.NoCredentialsError, boto.PartialCredentialsError, boto.CredentialRetrievalError, boto.ProfileNotFound),
    *(boto.NoAuthTokenError, boto.TokenRetrievalError, boto.SSOError, boto.LoginError, boto.UnknownCredentialError),
)
_REFUSED = {
    *("UnrecognizedClientException", "InvalidClientTokenId", "ExpiredTokenException", "ExpiredToken"),
    *("InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken"),
}
_BUSY = {
    *("ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"),
    *("InternalServiceException", "InternalServerException", "OperationTimeoutException", "ServiceUnavailable"),
}
_ABSENT = "EntityNotFoundException"
_CHANGED = {"ConcurrentModificationException", "VersionMismatchException", "AlreadyExistsException"}


class AthenaClients(NamedTuple):
    """The caller's boto3 clients; each that is None is made from the environment when it is needed."""

    athena: Any = None
    glue: Any = None
    s3: Any = None


class Result(NamedTuple):
    """A query that has succeeded, and the object that its rows are in."""

    query: str
    folder: str
    name: str
    """Empty where the workgroup keeps results to itself."""


class Warehouse:
    """Athena and Glue of one region, with one database."""

    def __init__(
        self, database: str, output: str, blobs: BlobStore, *, workgroup: str, region: str, clients: AthenaClients
    ) -> None:
        self.database = database
        self._results, self._blobs = f"{output}/{RESULTS}/", blobs
        self._workgroup, self._region = workgroup, region
        self._given = clients
        self.place = f"athena://{database}"

    @cached_property
    def glue(self) -> Any:
        """Client of Glue."""
        return self._given.glue or self._connected("glue")

    @cached_property
    def athena(self) -> Any:
        """Client of Athena."""
        return self._given.athena or self._connected("athena")

    @cached_property
    def _session(self) -> Any:
        # One for both, since it keeps what it has read of AWS's descriptions.
        return boto3.session.Session()

    def _connected(self, service: str) -> Any:
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
        )
        try:
            return self._session.client(service, region_name=self._region or None, config=config)
        except ValueError as error:
            raise UsageError(f"{self.place}: {_said(error)}; correct the endpoint or the region") from error

    def run(self, sql: str, *, sleep: Callable[[float], None] = time.sleep) -> Result:
        """Run the statement to its end. Raises `StorageFailed` with Athena's reason where it fails."""
        asked: dict[str, Any] = {"QueryString": sql, "QueryExecutionContext": {"Database": self.database}}
        if self._workgroup:
            asked["WorkGroup"] = self._workgroup
        # A workgroup that enforces its own place goes by that; where the rows are is asked afterwards.
        asked["ResultConfiguration"] = {"OutputLocation": self._results}
        with self.errors_told():
            query = self.athena.start_query_execution(**asked)["QueryExecutionId"]
            try:
                execution = self._ended(query, sleep)
            except BaseException:
                with suppress(*CLIENT_ERRORS):
                    self.athena.stop_query_execution(QueryExecutionId=query)
                raise
        status = execution["Status"]
        if status["State"] != "SUCCEEDED":
            reason = " ".join(status.get("StateChangeReason", "").split())[:MESSAGE_CHARACTERS].rstrip(".")
            raise StorageFailed(f"{self.place}: Athena's query {query} {status['State'].lower()}: {_advised(reason)}")
        folder, _, name = execution.get("ResultConfiguration", {}).get("OutputLocation", "").rpartition("/")
        return Result(query, folder, name)

    def forget(self, result: Result) -> None:
        """Take away what Athena wrote for a query, where that is in the sink's own folder."""
        if result.name and f"{result.folder}/" == self._results:
            # Nobody reads it any more: what cannot be deleted does no harm.
            with suppress(DocgenError):
                for name in (result.name, f"{result.name}.metadata"):
                    self._blobs.delete(f"{RESULTS}/{name}")

    def define(self, sql: str) -> None:
        """Run a statement that gives no rows."""
        self.forget(self.run(sql))

    def _ended(self, query: str, sleep: Callable[[float], None]) -> dict[str, Any]:
        pause, deadline = FIRST_WAIT_SECONDS, time.monotonic() + QUERY_SECONDS
        while True:
            execution: dict[str, Any] = self.athena.get_query_execution(QueryExecutionId=query)["QueryExecution"]
            if execution["Status"]["State"] not in ("QUEUED", "RUNNING"):
                return execution
            if time.monotonic() > deadline:
                raise StorageFailed(
                    f"{self.place}: Athena's query {query} has not ended after {QUERY_SECONDS / 60:.0f} minutes; "
                    "see what else the workgroup runs, then try again"
                )
            sleep(pause)
            pause = min(pause * 1.5, LONGEST_WAIT_SECONDS)

    def few_rows(self, sql: str) -> list[list[str | None]]:
        """The rows of a query that has no more than a page of them, as text."""
        result = self.run(sql)
        with self.errors_told():
            found = self.athena.get_query_results(QueryExecutionId=result.query)["ResultSet"]["Rows"]
        self.forget(result)
        return [[datum.get("VarCharValue") for datum in row["Data"]] for row in found[1:]]

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """Errors of the clients, as what they mean to a user."""
        try:
            yield
        except CLIENT_ERRORS as error:
            raise self._judged(error) from error

    def _judged(self, error: Exception) -> DocgenError:
        said, here = _said(error), f" in {self._region}" if self._region else ""
        if isinstance(error, _NO_CREDENTIALS):
            return UsageError(f"{self.place}: {said}; set AWS_PROFILE, or log in (aws sso login)")
        if isinstance(error, boto.NoRegionError):
            return UsageError(f"{self.place}: no region is named; add &region=REGION, or set AWS_DEFAULT_REGION")
        if not isinstance(error, boto.ClientError):
            return StorageFailed(f"{self.place}: {said}; see that the region{here} is right, and try again")
        code = code_of(error)
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in _REFUSED:
            return UsageError(f"{self.place}: AWS does not accept these credentials ({code}); log in again")
        if "AccessDenied" in code or status == 403:
            return StorageFailed(
                f"{self.place}: {error.operation_name} is not allowed; "
                "docs/permissions.md lists what this identity needs"
            )
        if code == _ABSENT and "atabase" in said:
            return self.no_database()
        if code in _CHANGED:
            return StorageFailed(f"{self.place}: others keep changing the same tables ({code}); export again")
        if code in _BUSY or status == 429 or status >= 500:
            return StorageFailed(f"{self.place}: {said}; its client tried {TRIES} times, so try later")
        if code == "ResourceNumberLimitExceededException":
            return StorageFailed(f"{self.place}: a quota of Glue is used up ({said}); have it raised")
        if "orkGroup" in said:
            return UsageError(f"{self.place}: {said}; name a workgroup that there is: &workgroup=NAME")
        return StorageFailed(f"{self.place}: {said}")

    def no_database(self) -> UsageError:
        """What to say where there is no such database."""
        here = f" in {self._region}" if self._region else " in the region that AWS is set to here"
        return UsageError(
            f"{self.place}: there is no database {self.database!r}{here}; make it (CREATE DATABASE {self.database}), "
            "or correct the name or &region="
        )


def code_of(error: Exception) -> str:
    """The code in an answer of AWS; empty for what is none."""
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, boto.ClientError) else ""


def is_absent(error: Exception) -> bool:
    """Whether Glue has no such table or database."""
    return code_of(error) == _ABSENT


def is_changed(error: Exception) -> bool:
    """Whether somebody else changed the table meanwhile."""
    return code_of(error) in _CHANGED


def _advised(reason: str) -> str:
    low = reason.lower()
    if "access denied" in low or "not authorized" in low or "insufficient" in low:
        return f"{reason}; docs/permissions.md lists what this identity needs"
    if "exhausted" in low or "throttl" in low or "slow down" in low or "internal" in low:
        return f"{reason}; try again later"
    return reason or "no reason was given"


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:MESSAGE_CHARACTERS].rstrip(".")
