"""Outcomes of cells, counted: by field, and by field within each slice of the documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

SLICES = ("layout", "locale", "condition")
"""Columns of `documents` that scores are told apart by."""

PLACES = 4
"""Decimal places of a published measure."""


class Outcome(StrEnum):
    """What became of one golden value, or of one predicted value that stands for none."""

    RIGHT = "right"
    WRONG = "wrong"
    """Another value was predicted."""
    MISSING = "missing"
    """Nothing was predicted."""
    SPURIOUS = "spurious"
    """A value was predicted where there is none."""
    EMPTY = "empty"
    """Nothing was predicted where there is nothing."""


@dataclass(slots=True)
class Tally:
    """Counts of one field, or of all of them."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    exact: int = 0
    """Right, and written as it is printed or in canonical form."""
    likeness: float = 0.0
    """Sum over the values that were held against each other, each from 0 to 1."""

    def add(self, outcome: Outcome, *, exact: bool, likeness: float) -> None:
        """Count one cell."""
        self.outcomes[outcome] += 1
        self.exact += exact
        self.likeness += likeness

    def merge(self, other: Tally) -> None:
        """Count what another has counted."""
        self.outcomes.update(other.outcomes)
        self.exact += other.exact
        self.likeness += other.likeness

    @property
    def scored(self) -> bool:
        """Whether there was anything to find, or anything found."""
        return any(self.outcomes[outcome] for outcome in Outcome if outcome is not Outcome.EMPTY)

    @property
    def golden(self) -> int:
        """Golden values."""
        return self.outcomes[Outcome.RIGHT] + self.outcomes[Outcome.WRONG] + self.outcomes[Outcome.MISSING]

    @property
    def predicted(self) -> int:
        """Predicted values."""
        return self.outcomes[Outcome.RIGHT] + self.outcomes[Outcome.WRONG] + self.outcomes[Outcome.SPURIOUS]

    @property
    def precision(self) -> Fraction | None:
        """Right among the predicted values; None where there are none."""
        return _ratio(self.outcomes[Outcome.RIGHT], self.predicted)

    @property
    def recall(self) -> Fraction | None:
        """Right among the golden values; None where there are none."""
        return _ratio(self.outcomes[Outcome.RIGHT], self.golden)

    @property
    def f1(self) -> Fraction | None:
        """Harmonic mean of precision and recall; None where there is neither."""
        return _ratio(2 * self.outcomes[Outcome.RIGHT], self.golden + self.predicted)

    @property
    def accuracy(self) -> Fraction | None:
        """Right, or rightly empty, among all places where there was or might have been a value."""
        right = self.outcomes[Outcome.RIGHT] + self.outcomes[Outcome.EMPTY]
        return _ratio(right, sum(self.outcomes.values()))

    def as_json(self) -> dict[str, int | float | None]:
        """Measures and counts."""
        compared = self.outcomes[Outcome.RIGHT] + self.outcomes[Outcome.WRONG]
        return {
            **{measure: published(getattr(self, measure)) for measure in MEASURES},
            **{outcome.value: self.outcomes[outcome] for outcome in Outcome},
            "exact": self.exact,
            "likeness": round(self.likeness / compared, PLACES) if compared else None,
        }


MEASURES = ("precision", "recall", "f1", "accuracy")


def _ratio(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


def published(measure: Fraction | None) -> float | None:
    """A measure as a number, cut and not rounded: 1 means every one."""
    return None if measure is None else measure * 10**PLACES // 1 / 10**PLACES


def total(tallies: Iterable[Tally]) -> Tally:
    """All of them together."""
    whole = Tally()
    for tally in tallies:
        whole.merge(tally)
    return whole


@dataclass(slots=True)
class RowCount:
    """Rows of one table."""

    golden: int = 0
    predicted: int = 0
    matched: int = 0
