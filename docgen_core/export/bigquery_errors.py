"""What BigQuery refuses, in one line that says what to do; and which refusals pass by themselves.

What does not belong here: Cloud Storage's refusals, which the blob store tells.
"""

from __future__ import annotations

import re

import requests
from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError, RetryError
from google.auth.exceptions import GoogleAuthError, TransportError

from docgen_core.blobs.objects import one_line
from docgen_core.errors import DocgenError, StorageFailed, UsageError
from docgen_core.export.bigquery_tables import CHANGED_MEANWHILE

CLIENT_ERRORS = (GoogleAPIError, GoogleAuthError, requests.RequestException)

_CONFLICT = re.compile(
    f"due to concurrent update|could not serialize|failed to commit|{CHANGED_MEANWHILE}", re.IGNORECASE
)
"""A transaction that met another one; nothing of it was done."""
_PLACES = re.compile(r"different locations|was not found in location|in different location", re.IGNORECASE)
_QUOTAS = ("quotaExceeded", "rateLimitExceeded", "jobRateLimitExceeded", "responseTooLarge")
_BILLING = "billingNotEnabled"


def is_conflict(error: BaseException) -> bool:
    """Whether a transaction was aborted for another one, so that it may simply be run again."""
    return isinstance(error, GoogleAPICallError) and bool(_CONFLICT.search(said(error)))


def is_absent(error: BaseException, kind: str) -> bool:
    """Whether something of the kind, such as a table or a dataset, is not there."""
    return isinstance(error, GoogleAPICallError) and error.code == 404 and f"not found: {kind}" in said(error).lower()


def said(error: BaseException) -> str:
    """The server's own words, without the request that the client puts around them."""
    for detail in getattr(error, "errors", None) or ():
        if isinstance(detail, dict) and detail.get("message"):
            return one_line(detail["message"])
    return one_line(getattr(error, "message", None) or error)


def told(error: Exception, place: str, location: str | None) -> DocgenError:
    """The error as docgen's own, naming the place `project:dataset`."""
    if isinstance(error, TransportError | RetryError | requests.RequestException):
        cause = error.cause if isinstance(error, RetryError) and error.cause else error
        if isinstance(cause, GoogleAPICallError):
            return _answered(cause, place, location)
        return StorageFailed(f"{place}: BigQuery is out of reach ({one_line(cause)}); try again when it is not")
    if isinstance(error, GoogleAuthError):
        return UsageError(
            f"{place}: {one_line(error)}; log in (gcloud auth application-default login), or name credentials"
        )
    if isinstance(error, GoogleAPICallError):
        return _answered(error, place, location)
    return StorageFailed(f"{place}: {one_line(error)}")


def _answered(error: GoogleAPICallError, place: str, location: str | None) -> DocgenError:
    words, reasons = said(error), {detail.get("reason") for detail in error.errors if isinstance(detail, dict)}
    if is_conflict(error):
        return StorageFailed(
            f"{place}: other exports changed the same tables all the time; let them end, then export again"
        )
    if is_absent(error, "dataset"):
        where = f"--location={location} " if location else "--location=EU "
        return UsageError(
            f"{place}: there is no such dataset; make it (bq {where}mk --dataset {place}), or correct the URI"
        )
    if is_absent(error, "project") or "unknown project" in words.lower():
        return UsageError(f"{place}: there is no such project, or it is not yours to see; correct the URI")
    if _PLACES.search(words):
        return UsageError(f"{place}: {words}; the staging bucket must be in the dataset's location")
    if _BILLING in reasons:
        return StorageFailed(
            f"{place}: the project has no billing, which transactions need; link a billing account to it"
        )
    if reasons & {*_QUOTAS} or error.code == 429:
        return StorageFailed(
            f"{place}: a quota of BigQuery's is used up ({words}); nothing was changed; wait, or raise it"
        )
    if error.code == 401:
        return UsageError(f"{place}: BigQuery does not accept these credentials; log in again, or correct them")
    if error.code == 403:
        return StorageFailed(f"{place}: not allowed ({words}); docs/permissions.md lists what is needed")
    # After a failure of the server's own, whether a transaction was committed is not known; a repeated export mends it.
    return StorageFailed(
        f"{place}: {words}; " + ("export again" if (error.code or 0) >= 500 else "nothing was changed")
    )
