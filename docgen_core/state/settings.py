"""What a state URI sets, and how it is read. What does not belong here: which schemes there are.

Forms: `scheme://place?lease_seconds=60&max_attempts=5&skew_seconds=0`, or a bare path (SQLite).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from docgen_core.errors import UsageError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


@dataclass(frozen=True, slots=True)
class Settings:
    """Stored with each run when it is created (lease, attempts), or this process's own (skew)."""

    lease_seconds: float = 60.0
    """A claim or renewal holds this long. A run keeps the value it was created with."""
    max_attempts: int = 5
    """Attempts at a unit before it is FAILED. A run keeps the value it was created with."""
    skew_seconds: float = 0.0
    """How far the clocks of two machines may be apart before a live lease could look expired."""


class Location(NamedTuple):
    """A state URI in its parts."""

    scheme: str
    """Empty for a bare path."""
    place: str
    """What follows the scheme, unquoted; for SQLite a path."""
    settings: dict[str, str]


def locate(uri: str) -> Location:
    """Split a state URI. Raises `UsageError` for a query that cannot be read."""
    head, mark, query = uri.partition("?")
    scheme = _SCHEME.match(head)
    place = head[scheme.end() :] if scheme else head
    if not place:
        raise UsageError(f"state {uri!r} names no place; e.g. .docgen/state.db or sqlite:///srv/docgen/state.db")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if mark else []
    except ValueError:
        raise UsageError(f"state {uri!r}: settings look like ?lease_seconds=60&max_attempts=5") from None
    settings = dict(pairs)
    if len(settings) < len(pairs):
        raise UsageError(f"state {uri!r} sets something twice")
    return Location(scheme[1].lower() if scheme else "", unquote(place) if scheme else place, settings)


_NAMES = ("lease_seconds", "max_attempts", "skew_seconds")


def read_settings(uri: str, given: dict[str, str], default: Settings, also: Collection[str] = ()) -> Settings:
    """The settings a URI gives, the scheme's defaults elsewhere; `also` names those it has beside them.

    Raises `UsageError` naming the bad one.
    """
    unknown = sorted(given.keys() - {*_NAMES, *also})
    if unknown:
        *first, last = (*also, *_NAMES)
        raise UsageError(f"state {uri!r}: no setting {unknown[0]!r}; there are {', '.join(first)} and {last}")
    return Settings(
        lease_seconds=_seconds(uri, given, "lease_seconds", default.lease_seconds, zero=False),
        max_attempts=_attempts(uri, given, default.max_attempts),
        skew_seconds=_seconds(uri, given, "skew_seconds", default.skew_seconds, zero=True),
    )


def write_uri(scheme: str, place: str, settings: Settings, default: Settings, own: Mapping[str, str] = {}) -> str:
    """The URI that `locate` and `read_settings` read back as this; `own` are the scheme's own settings."""
    changed = (name for name in _NAMES if getattr(settings, name) != getattr(default, name))
    query = {**own, **{name: str(getattr(settings, name)) for name in changed}}
    return f"{scheme}://{quote(place)}" + (f"?{urlencode(query)}" if query else "")


def _seconds(uri: str, given: dict[str, str], name: str, default: float, *, zero: bool) -> float:
    if name not in given:
        return default
    try:
        value = float(given[name])
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        wanted = "0 or more" if zero else "more than 0"
        raise UsageError(f"state {uri!r}: {name} is a number of seconds, {wanted}, not {given[name]!r}")
    return value


def _attempts(uri: str, given: dict[str, str], default: int) -> int:
    text = given.get("max_attempts", str(default))
    if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
        raise UsageError(f"state {uri!r}: max_attempts is a whole number, 1 or more, not {text!r}")
    return int(text)
