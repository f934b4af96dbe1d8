"""The parsers of options: what they read, each once and in order; what they refuse is told in test_cli_refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.cli.options import company_range, listed, selection_of, unit_set, weights
from docgen_core.errors import UsageError


def test_lists_repeat_or_have_commas_and_keep_their_order() -> None:
    assert listed(["de-DE,en-US", " ja-JP ", "de-DE", ","]) == ("de-DE", "en-US", "ja-JP")
    assert listed(None) == ()


def test_weights_are_one_unless_they_are_given() -> None:
    assert weights(["clean=3,light_scan=1"]) == {"clean": 3, "light_scan": 1}
    assert weights(["light_scan"]) == {"light_scan": 1}
    assert weights(None) == {"clean": 1}


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.integers(1, 10**6), min_size=1))
def test_weights_are_read_as_they_are_written(wanted: dict[str, int]) -> None:
    assert weights([",".join(f"{name}={weight}" for name, weight in wanted.items())]) == wanted


@settings(deadline=None)
@given(st.text(max_size=8))
def test_a_weight_is_a_whole_number_or_refused(text: str) -> None:
    try:
        parsed = weights([f"clean={text}"])
    except UsageError as error:
        assert "the weight must be a whole number from 1" in str(error)
    else:
        assert all(type(weight) is int and weight >= 1 for weight in parsed.values())


@settings(deadline=None)
@given(st.sets(st.integers(0, 999_999), min_size=1, max_size=40))
def test_units_are_read_as_they_are_written(units: set[int]) -> None:
    assert unit_set(",".join(map(str, units))) == units


def test_units_come_in_ranges() -> None:
    assert unit_set("0-2, 7,5-5") == {0, 1, 2, 5, 7}
    assert unit_set(None) is None


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_company_ranges_hold_both_ends(one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert company_range(f"{first}-{last}") == (first, last)
    assert company_range(None) is None


def test_flags_become_a_selection() -> None:
    chosen = selection_of(["de-DE,ja-JP"], ["DE"], None, ["grocery_retail"], ["light_scan"], "3-9")
    assert chosen.model_dump() == {
        "locales": ("de-DE", "ja-JP"),
        "jurisdictions": ("DE",),
        "layouts": (),
        "business_types": ("grocery_retail",),
        "conditions": {"light_scan": 1},
        "companies": (3, 9),
    }


@pytest.mark.parametrize("range_", ["", "-", "1-", "-1", "a-b", "1-2-3", "1–2"])
def test_a_company_range_that_is_none_is_refused(range_: str) -> None:
    with pytest.raises(UsageError, match="give FIRST-LAST"):
        company_range(range_)
