"""How a golden column of the invoice is declared. What does not belong here: the columns (tables.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa


class Digits(Enum):
    """How a decimal is written in canonical form."""

    AMOUNT = "amount"
    """Exactly the currency's minor units."""
    PRICE = "price"
    """At least the currency's minor units, and every digit the price has beyond them."""
    NUMBER = "number"
    """No needless zero: quantities, rates."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column and where its value stands."""

    field: pa.Field
    get: Callable[[Any], Any]
    digits: Digits | None = None
