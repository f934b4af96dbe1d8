"""Requests to one DynamoDB table: retried with jitter, and errors said in one line.

What does not belong here: what the table holds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
)
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from docgen_core.errors import DocgenError, StateUnusable, StorageFailed, UsageError
from docgen_core.state.cloud import CALLS_AT_ONCE, PATIENCE_SECONDS, shared

ATTEMPTS = 3
"""Requests that the client makes by itself, adapting its rate to how often it is throttled. It gives up
early when all the process's calls together have failed too often; then the call is made again here."""

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
"""How long one request may take; a strong read of a full segment takes well below a second."""

_MISSING = "ResourceNotFoundException"
_REFUSED = {
    "AccessDeniedException",
    "ExpiredTokenException",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}
_PASSING = {
    "InternalServerError",
    "LimitExceededException",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    "ThrottlingException",
    "TransactionConflictException",
    "TransactionInProgressException",
}
_REASONS_PASSING = {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
"""Why a row kept a transaction from happening, if it may be otherwise a moment later."""
"""What may be otherwise a moment later, beside connections lost and answers of 5xx."""


class ConditionFailed(Exception):
    """The row is not as the condition wants it."""

    def __init__(self, retried: bool) -> None:
        self.retried = retried
        """Whether an earlier request of this call may have done the write itself."""


_ENDPOINTS = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")


def client(region: str | None) -> Any:
    """This process's client for a region. Raises `UsageError` where none is named anywhere."""
    settings = Config(
        retries={"mode": "adaptive", "total_max_attempts": ATTEMPTS},
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        max_pool_connections=4 * CALLS_AT_ONCE,
        tcp_keepalive=True,
    )
    try:
        return shared(
            ("dynamodb", region or "", *(os.environ.get(name, "") for name in _ENDPOINTS)),
            lambda: boto3.Session().client(
                "dynamodb", region_name=region or _region_of_the_platform(), config=settings
            ),
        )
    except NoRegionError:
        raise UsageError("DynamoDB needs a region: dynamodb://TABLE?region=eu-west-1, or AWS_DEFAULT_REGION") from None
    except BotoCoreError as error:
        raise UsageError(f"DynamoDB cannot be reached as AWS is set up here: {_one_line(error)}") from None


def _region_of_the_platform() -> str | None:
    """What AWS's own machines say, and its client for Python does not read; the variable that it reads wins."""
    return None if "AWS_DEFAULT_REGION" in os.environ else os.environ.get("AWS_REGION")


class Table:
    """One table, as far as rows go."""

    def __init__(self, name: str, region: str | None) -> None:
        self._name, self._region = name, region
        client(region)
        self._patiently = Retrying(
            retry=retry_if_exception(_passes),
            wait=wait_random_exponential(multiplier=0.02, max=2.0),
            stop=stop_after_delay(PATIENCE_SECONDS),
            reraise=True,
        )

    def call(self, operation: str, **request: Any) -> dict[str, Any]:
        """The answer to a request. Raises `ConditionFailed`, `StateUnusable` or `StorageFailed`."""
        return self._call(operation, request | {"TableName": self._name})

    def put_together(self, puts: Sequence[dict[str, Any]]) -> None:
        """Store rows, each on its condition, all or none. Raises as `call` does."""
        items = [{"Put": put | {"TableName": self._name}} for put in puts]
        # The same for each request of this call: the service knows a second one for the first.
        self._call("transact_write_items", {"TransactItems": items, "ClientRequestToken": uuid4().hex})

    def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        # A copy for each call: its statistics are this call's own.
        patiently = self._patiently.copy()
        try:
            answer: dict[str, Any] = patiently(getattr(client(self._region), operation), **request)
        except ClientError as error:
            if _code(error) == "ConditionalCheckFailedException" or "ConditionalCheckFailed" in _reasons(error):
                again = error.response["ResponseMetadata"].get("RetryAttempts", 0) > 0
                raise ConditionFailed(again or patiently.statistics["attempt_number"] > 1) from None
            raise explained(error, self._name, self._region) from error
        except BotoCoreError as error:
            raise explained(error, self._name, self._region) from error
        return answer


def create_table(name: str, region: str | None) -> bool:
    """Make the table, billed by request, unless it is there; True when this call did. Waits until it is ready."""
    here = client(region)
    created = True
    try:
        try:
            here.create_table(
                TableName=name,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
            )
        except ClientError as error:
            if _code(error) != "ResourceInUseException":
                raise
            created = False
        here.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
        keys = here.describe_table(TableName=name)["Table"]["KeySchema"]
    except (ClientError, BotoCoreError) as error:
        raise explained(error, name, region) from error
    if [key["AttributeName"] for key in keys] != ["pk", "sk"]:
        raise _foreign(name)
    return created


def explained(error: Exception, table: str, region: str | None) -> DocgenError:
    """The error in one line, with what to do."""
    code = _code(error)
    uri = f"dynamodb://{table}" + (f"?region={region}" if region else "")
    if code == _MISSING:
        return StateUnusable(f"there is no DynamoDB table {table!r} here; `docgen init --state {uri}` makes it")
    if code == "ValidationException" and "key" in str(error).lower():
        return _foreign(table)
    if code in _REFUSED:
        return StorageFailed(f"AWS refused a request on table {table!r} ({_one_line(error)}); see docs/permissions.md")
    if isinstance(error, NoCredentialsError | PartialCredentialsError):
        return StateUnusable("no AWS credentials are found here; set AWS_PROFILE, or a role for this machine")
    return StorageFailed(f"DynamoDB table {table!r} did not serve a request: {_one_line(error)}")


def _foreign(table: str) -> StateUnusable:
    return StateUnusable(f"DynamoDB table {table!r} is not a state store (its keys are not pk and sk); name another")


def _passes(error: BaseException) -> bool:
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if reasons := _reasons(error):
            return "ConditionalCheckFailed" not in reasons and bool(reasons & _REASONS_PASSING)
        return status >= 500 or _code(error) in _PASSING
    return isinstance(error, HTTPClientError)


def _code(error: BaseException) -> str:
    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def _reasons(error: ClientError) -> set[str]:
    """Why a transaction was cancelled, by each row's code."""
    return {str(reason.get("Code", "")) for reason in error.response.get("CancellationReasons", ())}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
