"""Document types, found by entry point: the core never names one.

A distribution offers a pack under the group `docgen.packs`; its name is the pack's name.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from docgen_core.errors import UsageError
from docgen_core.packs.contract import Pack

ENTRY_POINT_GROUP = "docgen.packs"


def load_pack(name: str) -> Pack:
    """The installed pack of this name. Raises `UsageError` that names the packs there are."""
    found = entry_points(group=ENTRY_POINT_GROUP)
    if name not in found.names:
        there = ", ".join(sorted(found.names)) or "none: install docgen again"
        raise UsageError(f"no pack {name!r} is installed; there is {there}")
    pack = cast(Pack, found[name].load())
    if pack.name != name:
        raise UsageError(f"the pack installed as {name!r} calls itself {pack.name!r}; its package is broken")
    return pack
