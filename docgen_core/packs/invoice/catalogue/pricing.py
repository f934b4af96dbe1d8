"""What a product costs: a base price by its attributes, moved to a price that people ask.

Exact decimal arithmetic under a context of its own, so that no caller's context can move a price.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal

from docgen_core.packs.invoice.catalogue.content import Band

_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_FINEST_PLACES = 9
"""Places of the golden set's decimals; no product of factors needs more."""
_QUANTITY_DIGITS = 2
"""Significant digits of a quantity or band limit moved into a local unit."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A price as it is asked, with the decimal places it is quoted with."""

    price: Decimal
    places: int


def product_of(factors: Iterable[Decimal]) -> Decimal:
    """The factors multiplied, exact to well below any price step."""
    result = Decimal(1)
    for factor in factors:
        result = _EXACT.multiply(result, factor)
    return result


def ask(amount: Decimal, bands: Sequence[Band], minor_units: int) -> Asked:
    """The customary price nearest to `amount`; a dearer amount never asks less.

    At least one step of its band, and at least what the band below asks at its limit.
    """
    index = next(i for i, band in enumerate(bands) if band.limit is None or amount < band.limit)
    band = bands[index]
    steps = _EXACT.divide(amount, band.step).to_integral_value(ROUND_HALF_UP)
    price = max(_EXACT.multiply(steps, band.step) - band.less, band.step - band.less)
    if index and (limit := bands[index - 1].limit) is not None:
        price = max(price, limit - bands[index - 1].less)
    places = max(minor_units, _places(band.step), _places(band.less))
    return Asked(price.quantize(Decimal(1).scaleb(-places), context=_EXACT), places)


def in_local_unit(quantity: Decimal, holds: Decimal) -> Decimal:
    """A metric quantity as a plain number of local units that each hold `holds`; 0 stays 0."""
    if holds == 1 or not quantity:
        return quantity
    moved = _EXACT.divide(quantity, holds)
    rounded = moved.quantize(Decimal(1).scaleb(moved.adjusted() - _QUANTITY_DIGITS + 1), context=_EXACT)
    return rounded.quantize(Decimal(1), context=_EXACT) if rounded == rounded.to_integral_value() else rounded


def quantities_in(quantity: tuple[Decimal, Decimal, Decimal], holds: Decimal) -> tuple[Decimal, Decimal, Decimal]:
    """(min, max, step) in local units: people buy as round a number of pounds as of kilograms."""
    smallest, largest, step = quantity
    if holds == 1:
        return quantity
    low, high = (
        max(Decimal(1), _EXACT.divide(limit, _EXACT.multiply(holds, step)).to_integral_value(ROUND_HALF_UP)) * step
        for limit in (smallest, largest)
    )
    return low, high, step


def _places(step: Decimal) -> int:
    exponent = step.normalize(_EXACT).as_tuple().exponent
    return min(_FINEST_PLACES, max(0, -int(exponent)))
