"""Python values to an Arrow column, by the declared type alone: exact, or refused.

Columns are laid out here, buffer by buffer, rather than by `pyarrow.array`: that coerces (an int
into a decimal, a datetime into a date), and it imports pandas where there is one, which costs a
worker more than a second of CPU before its first document.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Buffers = list[pa.Buffer]
"""A column's buffers behind its validity."""

DECIMAL_BYTES = 16
EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()


def column_array(kind: pa.DataType, values: Sequence[Any], *, nullable: bool) -> pa.Array:
    """The values as an array of the type. Raises `ValueError` for a value that is not of it."""
    layout = next((layout for is_kind, *layout in _KINDS if is_kind(kind)), None)
    if layout is None:
        raise ValueError(f"no golden column can be of type {kind}")
    python, fill, lay_out = layout
    for value in values:
        if value is None and nullable:
            continue
        # Exact types: bool is an int and datetime a date to isinstance, and neither is meant.
        if type(value) is not python and not (python is str and isinstance(value, str)):
            raise ValueError(f"{'nullable' if nullable else 'not null'}, and the record has {value!r}")
    valid = [value is not None for value in values]
    validity = None if all(valid) else pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    filled = [fill if value is None else value for value in values]
    return pa.Array.from_buffers(kind, len(filled), [validity, *lay_out(kind, filled)])


def _texts(kind: pa.DataType, values: list[str]) -> Buffers:
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    if ends[-1] > np.iinfo(np.int32).max:
        raise ValueError("more than 2 GiB of text in one shard; use smaller units")
    return [pa.py_buffer(ends.astype("<i4").tobytes()), pa.py_buffer(b"".join(encoded))]


def _booleans(kind: pa.DataType, values: list[bool]) -> Buffers:
    return [pa.py_buffer(np.packbits(np.array(values, dtype=bool), bitorder="little").tobytes())]


def _integers(kind: pa.DataType, values: list[int]) -> Buffers:
    sign = "i" if pa.types.is_signed_integer(kind) else "u"
    return [pa.py_buffer(np.array(values, dtype=f"<{sign}{kind.bit_width // 8}").tobytes())]


def _floats(kind: pa.DataType, values: list[float]) -> Buffers:
    return [pa.py_buffer(np.array(values, dtype=f"<f{kind.bit_width // 8}").tobytes())]


def _decimals(kind: pa.DataType, values: list[Decimal]) -> Buffers:
    return [pa.py_buffer(b"".join(_scaled(kind, value) for value in values))]


def _scaled(kind: pa.DataType, value: Decimal) -> bytes:
    scale, precision = int(kind.scale), int(kind.precision)
    numerator, denominator = value.as_integer_ratio()
    scaled: int
    scaled, rest = divmod(numerator * 10**scale, denominator)
    if rest or abs(scaled) >= 10**precision:
        raise ValueError(f"{value} does not fit {precision} digits, {scale} of them behind the point")
    return scaled.to_bytes(DECIMAL_BYTES, "little", signed=True)


def _dates(kind: pa.DataType, values: list[datetime.date]) -> Buffers:
    days = [value.toordinal() - EPOCH_ORDINAL for value in values]
    return [pa.py_buffer(np.array(days, dtype="<i4").tobytes())]


_KINDS: tuple[tuple[Callable[[pa.DataType], bool], type, Any, Callable[..., Buffers]], ...] = (
    (pa.types.is_string, str, "", _texts),
    (pa.types.is_boolean, bool, False, _booleans),
    (pa.types.is_integer, int, 0, _integers),
    (pa.types.is_floating, float, 0.0, _floats),
    (pa.types.is_decimal128, Decimal, Decimal(0), _decimals),
    (pa.types.is_date32, datetime.date, datetime.date(1970, 1, 1), _dates),
)
"""Arrow types of golden columns: the test, the Python type, what stands under a null, the layout."""
