"""The one partition set: ranges of company ids, as wide as a unit of the catalogue build.

Every asset has it, so that one selection of keys means the same companies from the catalogue to
the exported tables. Read from the settings once, when the code location loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import dagster as dg

from docgen_core.runs.selection import CatalogueSpec
from docgen_core.settings import load_settings

_KEY_DIGITS = 5
"""Fewest digits of a company id in a key; keys sort as their ranges do for up to 100,000 companies."""

_KEY = re.compile(r"(\d{5,})-(\d{5,})")


@dataclass(frozen=True, slots=True)
class CompanyRange:
    """Companies `first` to `last`, both included."""

    first: int
    last: int

    @property
    def key(self) -> str:
        """The partition key, e.g. `00050-00099`."""
        return f"{self.first:0{_KEY_DIGITS}d}-{self.last:0{_KEY_DIGITS}d}"

    @property
    def unit(self) -> int:
        """The unit of the roster's build that makes this range."""
        return self.first // ROSTER.range_width

    @classmethod
    def of(cls, key: str) -> CompanyRange:
        """The range that a partition key names. Raises `ValueError` for anything else."""
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{key!r} is no company range such as '00000-00049'")
        return cls(int(match[1]), int(match[2]))


def _ranges(roster: CatalogueSpec) -> Iterable[CompanyRange]:
    for first in range(0, roster.companies, roster.range_width):
        yield CompanyRange(first, min(first + roster.range_width, roster.companies) - 1)


SETTINGS = load_settings()
"""What the `DOCGEN_*` variables said when the code location loaded."""

ROSTER = CatalogueSpec(companies=SETTINGS.companies, products=SETTINGS.products, range_width=SETTINGS.range_width)
"""The catalogue that the ranges are cut from."""

company_ranges = dg.StaticPartitionsDefinition([each.key for each in _ranges(ROSTER)])


def named_range(run_id: str) -> str | None:
    """The partition key that a run's name ends in, as `Corpus.run_id` gives it."""
    return next((key for key in company_ranges.get_partition_keys() if run_id.endswith(f"-{key}")), None)
