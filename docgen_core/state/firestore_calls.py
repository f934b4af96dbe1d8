"""Requests to one Firestore database: retried with jitter, under deadlines, errors said in one line.

What does not belong here: what the documents hold.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from google.api_core import exceptions
from google.api_core.retry import Retry
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.cloud.firestore import Client, DocumentReference, DocumentSnapshot
from google.cloud.firestore_v1.batch import WriteBatch
from google.cloud.firestore_v1.bulk_batch import BulkWriteBatch
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from docgen_core.errors import DocgenError, StateUnusable, StorageFailed
from docgen_core.state.cloud import PATIENCE_SECONDS, shared

T = TypeVar("T")

Snapshot: TypeAlias = "DocumentSnapshot[Any]"
"""A document as one read found it, or its absence."""

ANSWER_SECONDS = 10.0
"""How long one request may take; a segment of a thousand documents takes about one second."""

WRITES_A_REQUEST = 100
"""Writes that go together in one request; the service takes up to 500."""

_PASSING = (
    exceptions.Aborted,
    exceptions.ServiceUnavailable,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ResourceExhausted,
    exceptions.Cancelled,
    exceptions.Unknown,
)
"""What may be otherwise a moment later."""

_ONCE: Any = Retry(predicate=lambda error: False)
"""The client's own retries, switched off: whether to ask again is decided here. A query needs it said so."""

_REFUSED_BY_CONDITION = (exceptions.AlreadyExists, exceptions.FailedPrecondition, exceptions.NotFound)


class Write(NamedTuple):
    """A document to store under a precondition."""

    reference: DocumentReference
    data: dict[str, Any]
    stamp: Any
    """The time of the last update of the document that this one takes the place of; None: there is none yet."""


class Database:
    """One database, as far as documents go."""

    def __init__(self, project: str, database: str) -> None:
        self._project, self._name = project, database
        self._heard = 0.0
        """When the last answer came, by the monotonic clock."""
        self._patiently = Retrying(
            retry=retry_if_exception_type(_PASSING),
            wait=wait_random_exponential(multiplier=0.05, max=4.0),
            stop=stop_after_delay(PATIENCE_SECONDS),
            reraise=True,
        )
        self._call(lambda: self.client)

    @property
    def client(self) -> Client:
        """This process's client."""
        project, name, emulator = self._project, self._name, os.environ.get("FIRESTORE_EMULATOR_HOST", "")
        return shared(("firestore", project, name, emulator), lambda: Client(project=project, database=name))

    def get(self, references: Sequence[DocumentReference]) -> list[Snapshot]:
        """The documents, in the order asked for, by strong reads."""

        def read() -> dict[str, Snapshot]:
            snapshots = self.client.get_all(list(references), retry=_ONCE, timeout=ANSWER_SECONDS)
            return {snapshot.reference.path: snapshot for snapshot in snapshots}

        found = self._call(read)
        return [found[reference.path] for reference in references]

    def query(self, query: Any) -> list[Snapshot]:
        """All that a query finds, by a strong read."""
        return self._call(lambda: list(query.stream(retry=_ONCE, timeout=ANSWER_SECONDS)))

    def write(self, writes: Sequence[Write]) -> tuple[list[bool], list[int]]:
        """Which writes were stored; and positions of those refused though an earlier request may have stored them."""
        applied, doubtful = [], []
        for start in range(0, len(writes), WRITES_A_REQUEST):
            page = writes[start : start + WRITES_A_REQUEST]
            for position, (stored, doubt) in enumerate(self._call(_Writing(self, page)), start=start):
                applied.append(stored)
                if doubt:
                    doubtful.append(position)
        return applied, doubtful

    def commit(self, writes: Sequence[Write]) -> tuple[bool, bool]:
        """Store all of the documents or none: whether they are stored, and whether a refusal is in doubt, as above."""
        return self._call(_Committing(self, writes))

    def _call(self, call: Callable[[], T]) -> T:
        def attempt() -> T:
            client, api, asked = self.client, self.client._firestore_api, time.monotonic()
            try:
                answer = call()
            except exceptions.DeadlineExceeded:
                # Slow is not silent: while others get answers, to leave would cancel what they have under way.
                if self._heard < asked:
                    _leave_connection(client, api)
                raise
            except ValueError as error:
                if client._firestore_api_internal is api:
                    raise
                raise exceptions.Cancelled("another thread has left the connection") from error  # type: ignore[no-untyped-call]
            self._heard = time.monotonic()
            return answer

        try:
            return self._patiently(attempt)
        except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
            raise explained(error, self._project, self._name) from error


def _leave_connection(client: Client, api: Any) -> None:
    """Have the client's next request open a connection of its own; what others have under way is cancelled.

    One connection carries all requests, and gRPC keeps it until its own probes find it dead, if it
    has any: longer than a call is tried again. The client has no public way to be rid of it; a second
    client would be given the same connection.
    """
    transport = api.transport
    if client._firestore_api_internal is api:
        client._firestore_api_internal = None
        transport.close()


class _Writing:
    """Writes on their way: called until each of them has its answer."""

    def __init__(self, database: Database, writes: Sequence[Write]) -> None:
        self._database, self._writes = database, writes
        self._stored: dict[int, bool] = {}
        self._asked = False
        self._doubtful: set[int] = set()

    def __call__(self) -> list[tuple[bool, bool]]:
        """Of each write, whether it was stored, and whether a refusal is in doubt. Raises what may pass."""
        open_ = [position for position in range(len(self._writes)) if position not in self._stored]
        again, self._asked = self._asked, True
        batch = BulkWriteBatch(self._database.client)
        for position in open_:
            _add(self._database, batch, self._writes[position])
        answer = batch.commit(retry=_ONCE, timeout=ANSWER_SECONDS)
        for position, status in zip(open_, answer.status, strict=True):
            if not status.code:
                self._stored[position] = True
                continue
            refused = exceptions.from_grpc_status(status.code, status.message)  # type: ignore[no-untyped-call]
            if isinstance(refused, _REFUSED_BY_CONDITION):
                self._stored[position] = False
                if again:
                    self._doubtful.add(position)
            else:
                passing = refused
        if len(self._stored) < len(self._writes):
            raise passing
        return [(self._stored[position], position in self._doubtful) for position in range(len(self._writes))]


class _Committing:
    """Writes that go together or not at all: called until there is an answer."""

    def __init__(self, database: Database, writes: Sequence[Write]) -> None:
        self._database, self._writes = database, writes
        self._asked = False

    def __call__(self) -> tuple[bool, bool]:
        """Whether they were stored, and whether a refusal is in doubt. Raises what may pass."""
        again, self._asked = self._asked, True
        batch = self._database.client.batch()
        for write in self._writes:
            _add(self._database, batch, write)
        try:
            batch.commit(retry=_ONCE, timeout=ANSWER_SECONDS)
        except (exceptions.AlreadyExists, exceptions.FailedPrecondition):
            return False, again
        return True, False


def _add(database: Database, batch: WriteBatch | BulkWriteBatch, write: Write) -> None:
    if write.stamp is None:
        batch.create(write.reference, write.data)
    else:
        option = database.client.write_option(last_update_time=write.stamp)
        batch.update(write.reference, write.data, option=option)


def explained(error: Exception, project: str, database: str) -> DocgenError:
    """The error in one line, with what to do."""
    place, reason = f"Firestore database {database!r} of project {project!r}", " ".join(str(error).split())
    if isinstance(error, exceptions.NotFound):
        return StateUnusable(
            f"there is no {place}; make it, where it shall stay: gcloud firestore databases create "
            f"--project={project} --database={database!r} --location=eur3, and then `docgen init`"
        )
    if isinstance(error, exceptions.PermissionDenied | exceptions.Unauthenticated):
        return StorageFailed(f"{place} refused a request ({reason}); see docs/permissions.md")
    if isinstance(error, DefaultCredentialsError):
        return StateUnusable("no Google credentials are found here; `gcloud auth application-default login` makes some")
    return StorageFailed(f"{place} did not serve a request: {reason}")
