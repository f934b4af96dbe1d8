"""Decimal amounts: minor units by ISO 4217, named rounding policies, shares that add up.

No float ever holds money: a float is refused where it enters. Products and sums are exact
(the context traps anything inexact); an amount is rounded once, half away from zero, where a
policy says so. What does not belong here: taxes and invoices (a pack), printing (locales).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, Inexact, InvalidOperation
from enum import StrEnum
from functools import cache, lru_cache

from babel.core import get_global

from docgen_core.errors import UsageError

_EXACT = Context(prec=120, traps=[Inexact, InvalidOperation])
_HALF_UP = Context(prec=120, rounding=ROUND_HALF_UP, traps=[InvalidOperation])
"""Decimal's ROUND_HALF_UP takes ties away from zero."""

ZERO = Decimal(0)

_MINOR_UNITS = {
    **dict.fromkeys(("BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI"), 0),
    **dict.fromkeys(("VND", "VUV", "XAF", "XOF", "XPF"), 0),
    **dict.fromkeys(("BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"), 3),
    **dict.fromkeys(("CLF", "UYW"), 4),
}
"""ISO 4217, list one. CLDR is not the source: its digits follow custom, not the standard (IQD, LAK, PKR 0)."""

_USUAL_MINOR_UNITS = 2

_NO_MINOR_UNITS = frozenset(("XAU", "XAG", "XPD", "XPT", "XBA", "XBB", "XBC", "XBD", "XDR", "XSU", "XUA", "XTS", "XXX"))
"""Metals, units of account and test codes: ISO 4217 gives them no minor unit."""


class RoundingPolicy(StrEnum):
    """Where tax is rounded. Named in every golden row, since each gives other totals."""

    PER_LINE = "per_line"
    """Each line's tax is rounded; a bucket's tax is the sum of its lines'."""
    PER_BUCKET = "per_bucket"
    """Tax is rounded once for each bucket (category and rate), on the bucket's base."""


@cache
def minor_units(currency: str) -> int:
    """Decimal places of the currency's amounts: JPY 0, EUR 2, KWD 3.

    Raises `UsageError` for what is no ISO 4217 code of a currency that has amounts.
    """
    if currency not in get_global("all_currencies") or currency in _NO_MINOR_UNITS:
        raise UsageError(f"{currency!r} is not an ISO 4217 currency with amounts; use a code such as EUR, USD or JPY")
    return _MINOR_UNITS.get(currency, _USUAL_MINOR_UNITS)


def exact(value: Decimal | int | str) -> Decimal:
    """The value as a finite Decimal, digits kept. Refuses floats and what is no number with `UsageError`."""
    if isinstance(value, bool | float) or not isinstance(value, Decimal | int | str):
        raise UsageError(f"{value!r} is a {type(value).__name__}; money is Decimal, int or text, never anything else")
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise UsageError(f"{value!r} is not a decimal number; write it like 1234.56") from None
    if not number.is_finite():
        raise UsageError(f"{value!r} is not a finite number; an amount has digits")
    return number


def times(left: Decimal, right: Decimal) -> Decimal:
    """The exact product."""
    return _EXACT.multiply(left, right)


def minus(left: Decimal, right: Decimal) -> Decimal:
    """The exact difference."""
    return _EXACT.subtract(left, right)


def percent_of(amount: Decimal, percent: Decimal) -> Decimal:
    """The exact `percent` per cent of `amount`, unrounded."""
    return _EXACT.scaleb(_EXACT.multiply(amount, percent), -2)


def total(amounts: Sequence[Decimal], places: int) -> Decimal:
    """The exact sum, with exactly `places` decimal places even when there is nothing to add."""
    result = rounded(ZERO, places)
    for amount in amounts:
        result = _EXACT.add(result, amount)
    return result


def rounded(value: Decimal, places: int) -> Decimal:
    """`value` with exactly `places` decimal places, ties away from zero; zero has no sign."""
    amount = _HALF_UP.quantize(exact(value), Decimal(1).scaleb(-places))
    return amount.copy_abs() if amount.is_zero() else amount


def quotient(value: Decimal, divisor: int, places: int) -> Decimal:
    """`value` ÷ `divisor` with exactly `places` decimal places, ties away from zero, whatever the divisor."""
    numerator, denominator = value.as_integer_ratio()
    denominator *= divisor
    units = (2 * abs(numerator) * 10**places + denominator) // (2 * denominator)
    return rounded(_EXACT.scaleb(Decimal(-units if numerator < 0 else units), -places), places)


def to_step(amount: Decimal, step: Decimal) -> Decimal:
    """The multiple of `step` nearest to `amount`, ties away from zero, in the amount's places."""
    places = max(0, -int(amount.as_tuple().exponent))
    steps = _HALF_UP.divide(amount, step).quantize(Decimal(1), rounding=ROUND_HALF_UP)
    return rounded(_EXACT.multiply(steps, step), places)


def has_places(amount: Decimal, places: int) -> bool:
    """Whether the amount carries exactly `places` decimal places and is not a negative zero."""
    negative_zero = amount.is_zero() and amount.is_signed()
    return amount.is_finite() and amount.as_tuple().exponent == -places and not negative_zero


@lru_cache(maxsize=8192)
def plain(value: Decimal, places: int = 0) -> str:
    """Canonical digits: no exponent, no zeros at the end beyond `places` decimal places, no −0."""
    kept = max(places, -int(value.normalize(_EXACT).as_tuple().exponent), 0)
    return format(rounded(value, kept), "f")


def share(amount: Decimal, weights: Sequence[Decimal], places: int) -> tuple[Decimal, ...]:
    """`amount` divided in proportion to `weights`; the parts add up to it exactly.

    Each part is cut to `places` decimal places; the minor units left over go one each to the
    largest remainders, ties to the first. Raises `UsageError` for a negative weight, for
    nothing to share over, and for an amount finer than the minor unit.
    """
    if any(weight < 0 for weight in weights):
        raise UsageError("an amount cannot be shared over negative parts")
    finest = max([0, *(-int(weight.as_tuple().exponent) for weight in weights)])
    parts = [int(_EXACT.scaleb(weight, finest)) for weight in weights]
    units = abs(_whole_units(amount, places))
    whole = sum(parts)
    if whole == 0:
        if units:
            raise UsageError(f"{amount} cannot be shared: every part is zero")
        return tuple(rounded(ZERO, places) for _ in parts)
    floors = [units * part // whole for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda i: (-(units * parts[i] % whole), i))
    for i in by_remainder[: units - sum(floors)]:
        floors[i] += 1
    sign = -1 if amount < 0 else 1
    return tuple(rounded(_EXACT.scaleb(Decimal(sign * floor), -places), places) for floor in floors)


def _whole_units(amount: Decimal, places: int) -> int:
    units = _EXACT.scaleb(exact(amount), places)
    if units != units.to_integral_value():
        raise UsageError(f"{amount} is finer than {places} decimal places; round it before it is shared")
    return int(units)
