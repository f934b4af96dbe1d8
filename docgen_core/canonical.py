"""One byte form of JSON, and one digest: what is published twice has to be equal twice.

Floats are refused, since their text is a matter of taste; so is everything JSON does not know.
What does not belong here: the shape of any document (runs/manifest.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(value: Any) -> bytes:
    """The UTF-8 bytes of `value`: keys sorted, no needless space, a newline at the end.

    Raises `TypeError` for a float, and for what JSON does not know.
    """
    _refuse_floats(value)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode() + b"\n"


def sha256_hex(data: bytes | memoryview) -> str:
    """The SHA-256 of `data` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise TypeError(f"published JSON holds no floats, found {value!r}")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"published JSON has string keys only, found {key!r}")
            _refuse_floats(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_floats(inner)
