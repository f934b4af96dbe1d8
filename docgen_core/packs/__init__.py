"""Document types, found by entry point (group `docgen.packs`) or named as `module:ATTRIBUTE`.

What does not belong here: any document type, and what one must offer (contract.py).
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from docgen_core.errors import UsageError

if TYPE_CHECKING:
    from docgen_core.packs.contract import Pack

GROUP = "docgen.packs"
"""Entry point group that an installed pack registers in."""


@cache
def load_pack(name: str) -> Pack:
    """The pack of this name, or at `module:ATTRIBUTE`. Raises `UsageError` naming the packs there are."""
    module, colon, attribute = name.partition(":")
    try:
        found: Pack = getattr(import_module(module), attribute) if colon else _installed(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"pack {name!r} cannot be loaded: {error}") from None
    return found


def _installed(name: str) -> Pack:
    for entry in entry_points(group=GROUP, name=name):
        found: Pack = entry.load()
        return found
    known = ", ".join(sorted({entry.name for entry in entry_points(group=GROUP)}))
    raise UsageError(f"no pack {name!r}; there are {known or 'none'}, or module:ATTRIBUTE")
