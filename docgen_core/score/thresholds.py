"""What scores must reach: `FIELD=0.95`, or `FIELD:MEASURE=0.95`; `all` is every field together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from docgen_core.errors import UsageError
from docgen_core.score.counting import MEASURES, published
from docgen_core.score.run import Scores

ALL = "all"
_USUAL = "f1"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One measure of one field, and the least it must be."""

    field: str
    measure: str
    least: Fraction

    @property
    def name(self) -> str:
        """How it is written."""
        return f"{self.field}:{self.measure}"


@dataclass(frozen=True, slots=True)
class Missed:
    """A threshold that was not reached."""

    threshold: Threshold
    found: Fraction | None

    def __str__(self) -> str:
        reached = published(self.found)
        shown = "nothing to score" if reached is None else f"{reached}"
        return f"{self.threshold.name} is {shown}, wanted {published(self.threshold.least)}"


def parse_thresholds(texts: Iterable[str]) -> tuple[Threshold, ...]:
    """Thresholds as they are written. Raises `UsageError`."""
    return tuple(_parsed(item.strip()) for text in texts for item in text.split(","))


def _parsed(text: str) -> Threshold:
    name, mark, least = text.partition("=")
    field, _, measure = name.partition(":")
    try:
        number = Decimal(least)
    except InvalidOperation:
        number = Decimal(-1)
    if not (mark and field and number.is_finite() and 0 <= number <= 1):
        raise UsageError(f"--at-least {text!r}: give FIELD=NUMBER from 0 to 1, e.g. gross_total=0.95 or all:recall=0.9")
    if (measure or _USUAL) not in MEASURES:
        raise UsageError(f"--at-least {text!r}: no measure {measure!r}; there are {', '.join(MEASURES)}")
    return Threshold(field, measure or _USUAL, Fraction(number))


def missed(scores: Scores, thresholds: Sequence[Threshold]) -> list[Missed]:
    """Those that the scores do not reach. Raises `UsageError` for a field that was not scored."""
    found: list[Missed] = []
    head = next(iter(scores.rows), "")
    for threshold in thresholds:
        name = threshold.field.removeprefix(f"{head}.")
        tally = scores.total if name == ALL else scores.fields.get(name)
        if tally is None:
            raise UsageError(
                f"--at-least {threshold.name}: no field {threshold.field!r} was scored; "
                f"there are {ALL}, {', '.join(scores.fields)}"
            )
        measure: Fraction | None = getattr(tally, threshold.measure)
        if measure is None or measure < threshold.least:
            found.append(Missed(threshold, measure))
    return found
