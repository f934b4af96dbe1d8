"""A finished record taken apart with whole numbers, for the check that it reconciles.

arithmetic.py computes with Decimals; here an amount is a number of minor units, and a share or a
percentage an exact fraction that is rounded once. What does not belong here: the rules (reconcile.py).
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from docgen_core.errors import RecordRefused
from docgen_core.packs.invoice.model import Invoice, Line, TaxLine

GOLDEN_PLACES = 9
"""The golden set's scale; every price, rate and quantity must fit it."""
_SCALE = 10**GOLDEN_PLACES
MOST = 10 ** (38 - GOLDEN_PLACES)
"""The golden set's decimals have 29 digits before the point."""


class Check:
    """An invoice in whole minor units, and how to refuse it."""

    def __init__(self, invoice: Invoice) -> None:
        self.invoice = invoice
        self.places = invoice.minor_units
        self.counted = [line for line in invoice.lines if line.counted]
        self.sign = -1 if invoice.amount_sign == "negative" else 1
        self.mixed = invoice.amount_sign == "mixed"

    def refuse(self, rule: str, where: str, found: object, expected: object) -> None:
        """Raise `RecordRefused` naming the rule, what stands there and what should."""
        raise RecordRefused(
            f"document {self.invoice.document_id} breaks the rule {rule}: {where} is {found}, not {expected}"
        )

    def same(self, rule: str, where: str, found: object, expected: object) -> None:
        """Refuse what is not the same."""
        if found != expected:
            self.refuse(rule, where, found, expected)

    def units(self, amount: Decimal) -> int:
        """An amount in minor units; its places were checked before."""
        return billionths(amount) // _power(GOLDEN_PLACES - self.places)

    def same_units(self, rule: str, where: str, found: Decimal, expected: int) -> None:
        """Refuse an amount that is not `expected` minor units."""
        if self.units(found) != expected:
            self.refuse(rule, where, found, Decimal((expected < 0, _digits(expected), -self.places)))

    def fraction(self, value: Fraction) -> int:
        """An exact value in minor units, half away from zero."""
        scaled = value * _power(self.places)
        return _half_up(scaled.numerator, scaled.denominator)

    def percent(self, units: int, rate: Decimal) -> int:
        """`rate` per cent of an amount in minor units, half away from zero."""
        return _half_up(units * billionths(rate), 100 * _SCALE)

    def bucket(self, tax: TaxLine) -> list[Line]:
        """The counted lines of a bucket."""
        return [line for line in self.counted if (line.tax_category, line.tax_rate) == tax.bucket]

    def buckets(self) -> list[list[TaxLine]]:
        """The tax lines of each bucket, in printed order: a new one begins with each that counts."""
        groups: list[list[TaxLine]] = []
        for tax in self.invoice.tax_lines:
            if tax.counted or not groups:
                groups.append([])
            groups[-1].append(tax)
        return groups


def _digits(number: int) -> tuple[int, ...]:
    return tuple(int(digit) for digit in str(abs(number)))


def billionths(value: Decimal) -> int:
    """A number that fits the golden set, as a whole number."""
    numerator, denominator = value.as_integer_ratio()
    return int(numerator * _SCALE // denominator)


def _power(exponent: int) -> int:
    return int(10**exponent)


def _half_up(numerator: int, denominator: int) -> int:
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return -magnitude if numerator < 0 else magnitude


def shares(units: int, weights: list[int]) -> list[int]:
    """Largest remainder, ties to the first, from the exact fractions of a minor unit.

    Where everything is below zero, the same of the opposites.
    """
    if units < 0 or any(weight < 0 for weight in weights):
        return [-part for part in shares(-units, [-weight for weight in weights])] if units else [0] * len(weights)
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [units * weight // whole for weight in weights]
    remainders = [units * weight - part * whole for weight, part in zip(weights, parts, strict=True)]
    for _ in range(units - sum(parts)):
        largest = remainders.index(max(remainders))
        parts[largest] += 1
        remainders[largest] = -1
    return parts
