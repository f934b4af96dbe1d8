"""State stores: the coordination contract, chosen by URI scheme.

What does not belong here: the contract (contract.py), its rules (transitions.py, store.py), a database.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from docgen_core.errors import UsageError
from docgen_core.state.contract import StateStore
from docgen_core.state.primitives import Primitives
from docgen_core.state.settings import Settings, locate, read_settings, write_uri
from docgen_core.state.store import SegmentStore


@dataclass(frozen=True, slots=True)
class _Backend:
    """How a scheme's place is checked and opened, and what its settings default to."""

    resolve: Callable[[str, str], str]
    """(uri, place) → the place as another process would have to name it."""
    open: Callable[[str], Primitives]
    default: Settings


def _resolve_sqlite(uri: str, place: str) -> str:
    if not place.startswith("/"):
        raise UsageError(f"state {uri!r}: write sqlite:///absolute/path.db (three slashes), or a bare path")
    return place


def _open_sqlite(place: str) -> Primitives:
    from docgen_core.state.sqlite import SqlitePrimitives

    return SqlitePrimitives(Path(place))


def _resolve_memory(uri: str, place: str) -> str:
    return place


def _open_memory(place: str) -> Primitives:
    from docgen_core.state.memory import named

    return named(place)


_BACKENDS: Mapping[str, _Backend] = {
    "sqlite": _Backend(_resolve_sqlite, _open_sqlite, Settings(skew_seconds=0.0)),
    "memory": _Backend(_resolve_memory, _open_memory, Settings(skew_seconds=0.0)),
}


def open_state(
    uri: str | Path, *, clock: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
) -> StateStore:
    """Open the state store a URI or a bare path (SQLite) names, creating it where there is none.

    `clock` and `monotonic` are for tests: seconds since 1970, and seconds that never go back.
    Raises `UsageError` for a URI that cannot be read, `StateUnusable` or `StorageFailed` for a
    store that cannot be opened.
    """
    text = str(uri)
    scheme, place, given = locate(text)
    if not scheme:
        if place.partition(":")[0] in _BACKENDS and ":" in place:
            raise UsageError(f"state {text!r}: write {place.partition(':')[0]}://…, or a bare path")
        scheme, place = "sqlite", str(Path(place).absolute())
    backend = _BACKENDS.get(scheme)
    if backend is None:
        raise UsageError(f"state {text!r}: no scheme {scheme!r}; there are {', '.join(_BACKENDS)}, or a bare path")
    settings = read_settings(text, given, backend.default)
    place = backend.resolve(text, place)
    return SegmentStore(
        backend.open(place),
        settings,
        uri=write_uri(scheme, place, settings, backend.default),
        clock=clock,
        monotonic=monotonic,
    )
