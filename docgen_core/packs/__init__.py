"""Document types, found by entry point: the core never names one.

A distribution offers a pack under the group `docgen.packs`; its name is the pack's name. A pack
that no distribution offers is named by its place, `module:ATTRIBUTE`, and calls itself so.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import cast

from docgen_core.errors import UsageError
from docgen_core.packs.contract import Pack

ENTRY_POINT_GROUP = "docgen.packs"


def load_pack(name: str) -> Pack:
    """The pack of this name. Raises `UsageError` that names the packs there are."""
    entry = EntryPoint(name, name, ENTRY_POINT_GROUP) if ":" in name else _installed(name)
    try:
        pack = cast(Pack, entry.load())
    except (ImportError, AttributeError) as error:
        raise UsageError(f"pack {name!r} cannot be loaded: {error}") from None
    if pack.name != name:
        raise UsageError(f"the pack installed as {name!r} calls itself {pack.name!r}; its package is broken")
    return pack


def _installed(name: str) -> EntryPoint:
    found = entry_points(group=ENTRY_POINT_GROUP)
    if name not in found.names:
        there = ", ".join(sorted(found.names)) or "none: install docgen again"
        raise UsageError(f"no pack {name!r} is installed; there is {there}")
    return found[name]
