"""The parsers of options: what they read, each once and in order; what they refuse is told in test_cli_refusals."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.cli.options import unit_set


@settings(deadline=None)
@given(st.sets(st.integers(0, 999_999), min_size=1, max_size=40))
def test_units_are_read_as_they_are_written(units: set[int]) -> None:
    assert unit_set(",".join(map(str, units))) == units


def test_units_come_in_ranges() -> None:
    assert unit_set("0-2, 7,5-5") == {0, 1, 2, 5, 7}
    assert unit_set(None) is None
