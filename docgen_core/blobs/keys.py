"""What a blob key may look like, the same for every store.

A key is relative and '/'-separated, and nothing in it can lead out of the root: no empty, `.` or
`..` segment, no backslash, no control character. The first segment `.tmp` belongs to the stores.
"""

from __future__ import annotations

import unicodedata

from docgen_core.errors import UsageError

TEMPORARY = ".tmp"
"""First segment under which a store may keep files that are being written."""

MAX_KEY_BYTES = 1_024
"""The limit of the large object stores, in UTF-8."""

MAX_SEGMENT_BYTES = 255
"""The limit of the usual file systems, in UTF-8."""


def check_key(key: str) -> str:
    """The key itself. Raises `UsageError` when it is none."""
    if not key:
        raise UsageError("a blob key cannot be empty")
    return _checked(key, key.split("/"))


def check_prefix(prefix: str) -> str:
    """The prefix itself: the beginning of a key, perhaps in the middle of a segment.

    Raises `UsageError` when no key can begin like this.
    """
    if not prefix:
        return prefix
    *folders, started = prefix.split("/")
    return _checked(prefix, [*folders, started] if started else folders)


def _checked(key: str, segments: list[str]) -> str:
    for segment in segments:
        if segment in ("", ".", ".."):
            raise UsageError(f"blob key {key!r} has the segment {segment!r}; keys are relative, like 'runs/r1/x'")
        if "\\" in segment or any(unicodedata.category(char) in ("Cc", "Cs") for char in segment):
            raise UsageError(f"blob key {key!r} has a backslash or a control character")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise UsageError(f"blob key {key!r} has a segment of more than {MAX_SEGMENT_BYTES} bytes")
    if segments[0] == TEMPORARY:
        raise UsageError(f"blob key {key!r} begins with {TEMPORARY!r}, which the store keeps for itself")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise UsageError(f"blob key {key[:40]!r}… is longer than {MAX_KEY_BYTES} bytes")
    return key
