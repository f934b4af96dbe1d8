"""State stores: the coordination contract, chosen by URI scheme.

What does not belong here: the contract (contract.py), its rules (transitions.py, store.py), a database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from docgen_core.errors import MissingExtra, UsageError
from docgen_core.state.contract import StateStore
from docgen_core.state.primitives import Primitives
from docgen_core.state.settings import Settings, locate, read_settings, write_uri
from docgen_core.state.store import SegmentStore

Own = Mapping[str, str]
"""Settings of a URI that only its scheme has."""


@dataclass(frozen=True, slots=True)
class _Backend:
    """How a scheme's place is checked, opened and prepared, and what its settings default to."""

    resolve: Callable[[str, str], str]
    """(uri, place) → the place as another process would have to name it."""
    open: Callable[[str, Own], Primitives]
    prepare: Callable[[str, Own], str]
    """Make what `open` needs, where it is missing; says what is there now."""
    default: Settings
    own: tuple[str, ...] = ()


_TABLE = r"[A-Za-z0-9_.-]{3,255}"
_PROJECT = r"([a-z0-9.-]+:)?[a-z][a-z0-9-]*[a-z0-9]"
_DATABASE = r"\(default\)|[a-z][a-z0-9-]*[a-z0-9]"

_CLOUD_SKEW_SECONDS = 60.0
"""Machines that nobody set up together may disagree about the time by this much."""


@contextmanager
def _extra(purpose: str, extra: str) -> Iterator[None]:
    """Imports of an optional dependency. Raises `MissingExtra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("docgen_core"):
            raise
        raise MissingExtra(purpose, extra) from None


def _resolve_sqlite(uri: str, place: str) -> str:
    if not place.startswith("/"):
        raise UsageError(f"state {uri!r}: write sqlite:///absolute/path.db (three slashes), or a bare path")
    return place


def _open_sqlite(place: str, own: Own) -> Primitives:
    from docgen_core.state.sqlite import SqlitePrimitives

    return SqlitePrimitives(Path(place))


def _prepare_sqlite(place: str, own: Own) -> str:
    _open_sqlite(place, own).close()
    return f"the file {place} is a state store"


def _resolve_memory(uri: str, place: str) -> str:
    return place


def _open_memory(place: str, own: Own) -> Primitives:
    from docgen_core.state.memory import named

    return named(place)


def _prepare_memory(place: str, own: Own) -> str:
    return "memory needs no preparation"


def _resolve_dynamodb(uri: str, place: str) -> str:
    if not re.fullmatch(_TABLE, place):
        raise UsageError(
            f"state {uri!r}: write dynamodb://TABLE?region=eu-west-1, TABLE of 3 to 255 letters, digits or _.-"
        )
    return place


def _open_dynamodb(place: str, own: Own) -> Primitives:
    with _extra("a state store on DynamoDB", "aws"):
        from docgen_core.state.dynamodb import DynamoPrimitives
    return DynamoPrimitives(place, own.get("region"))


def _prepare_dynamodb(place: str, own: Own) -> str:
    with _extra("a state store on DynamoDB", "aws"):
        from docgen_core.state.dynamodb_calls import create_table
    created = create_table(place, own.get("region"))
    return f"the table {place!r} " + ("is made, billed by request" if created else "was there already")


def _resolve_firestore(uri: str, place: str) -> str:
    project, _, database = place.partition("/")
    database = database or "(default)"
    if not re.fullmatch(_PROJECT, project) or not re.fullmatch(_DATABASE, database):
        raise UsageError(f"state {uri!r}: write firestore://PROJECT/DATABASE, or firestore://PROJECT")
    return f"{project}/{database}"


def _open_firestore(place: str, own: Own) -> Primitives:
    with _extra("a state store on Firestore", "gcp"):
        from docgen_core.state.firestore import FirestorePrimitives
    project, _, database = place.partition("/")
    return FirestorePrimitives(project, database)


def _prepare_firestore(place: str, own: Own) -> str:
    with _extra("a state store on Firestore", "gcp"):
        from docgen_core.state.firestore_admin import prepare
    project, _, database = place.partition("/")
    return prepare(project, database)


_BACKENDS: Mapping[str, _Backend] = {
    "sqlite": _Backend(_resolve_sqlite, _open_sqlite, _prepare_sqlite, Settings()),
    "memory": _Backend(_resolve_memory, _open_memory, _prepare_memory, Settings()),
    "dynamodb": _Backend(
        _resolve_dynamodb, _open_dynamodb, _prepare_dynamodb, Settings(skew_seconds=_CLOUD_SKEW_SECONDS), ("region",)
    ),
    "firestore": _Backend(
        _resolve_firestore, _open_firestore, _prepare_firestore, Settings(skew_seconds=_CLOUD_SKEW_SECONDS)
    ),
}


@dataclass(frozen=True, slots=True)
class _Named:
    """What a state URI names."""

    backend: _Backend
    place: str
    own: dict[str, str]
    settings: Settings
    uri: str


def open_state(
    uri: str | Path, *, clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
) -> StateStore:
    """Open the state store a URI or a bare path (SQLite) names; a file is created where there is none.

    `clock` and `monotonic` are for tests: seconds since 1970, and seconds that never go back.
    Raises `UsageError` for a URI that cannot be read, `StateUnusable` or `StorageFailed` for a
    store that cannot be opened, `MissingExtra` where its client is not installed.
    """
    named = _named(str(uri))
    return SegmentStore(
        named.backend.open(named.place, named.own), named.settings, uri=named.uri, clock=clock, monotonic=monotonic
    )


def state_file(uri: str) -> Path | None:
    """The file that a SQLite URI or a bare path names; None for a store that is no file. Raises `UsageError`."""
    named = _named(uri)
    return Path(named.place) if named.backend is _BACKENDS["sqlite"] else None


def prepare_state(uri: str | Path) -> str:
    """Make what a state store needs, where it is missing: a file, a table. Says what is there now.

    Raises as `open_state` does.
    """
    named = _named(str(uri))
    return named.backend.prepare(named.place, named.own)


def _named(text: str) -> _Named:
    scheme, place, given = locate(text)
    if not scheme:
        if place.partition(":")[0] in _BACKENDS and ":" in place:
            raise UsageError(f"state {text!r}: write {place.partition(':')[0]}://…, or a bare path")
        scheme, place = "sqlite", str(Path(place).absolute())
    backend = _BACKENDS.get(scheme)
    if backend is None:
        raise UsageError(f"state {text!r}: no scheme {scheme!r}; there are {', '.join(_BACKENDS)}, or a bare path")
    settings = read_settings(text, given, backend.default, backend.own)
    place = backend.resolve(text, place)
    own = {name: given[name] for name in backend.own if name in given}
    return _Named(backend, place, own, settings, write_uri(scheme, place, settings, backend.default, own))
