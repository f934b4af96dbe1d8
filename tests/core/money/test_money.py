"""Decimal money: minor units, rounding, shares that add up, and no float anywhere."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core import money
from docgen_core.errors import UsageError

PLACES = st.integers(0, 4)


@pytest.mark.parametrize(
    ("currency", "places"),
    [("EUR", 2), ("USD", 2), ("JPY", 0), ("KRW", 0), ("KWD", 3), ("IQD", 3), ("LAK", 2), ("HUF", 2), ("CLF", 4)],
)
def test_minor_units_are_those_of_iso_4217_not_of_custom(currency: str, places: int) -> None:
    assert money.minor_units(currency) == places


@pytest.mark.parametrize("code", ["EURO", "eur", "", "XYZ", "XAU", "XXX"])
def test_what_is_no_currency_with_amounts_is_refused(code: str) -> None:
    with pytest.raises(UsageError, match="ISO 4217"):
        money.minor_units(code)


@pytest.mark.parametrize("value", [1.5, float("nan"), True, None, b"1"])
def test_only_decimals_whole_numbers_and_text_become_money(value: object) -> None:
    with pytest.raises(UsageError, match="never anything else"):
        money.exact(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["1,50", "", "abc", "NaN", "Infinity", Decimal("-Infinity")])
def test_text_that_is_no_finite_number_is_refused(value: str | Decimal) -> None:
    with pytest.raises(UsageError, match="number"):
        money.exact(value)


def test_rounding_a_float_is_refused_too() -> None:
    with pytest.raises(UsageError, match="float"):
        money.rounded(2.5, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        ("4.545", 2, "4.55"),
        ("-4.545", 2, "-4.55"),
        ("5557.5", 0, "5558"),
        ("2.5", 0, "3"),
        ("0.4999999", 0, "0"),
        ("-0.004", 2, "0.00"),
        ("1E+3", 2, "1000.00"),
    ],
)
def test_ties_go_away_from_zero_and_zero_has_no_sign(value: str, places: int, expected: str) -> None:
    assert str(money.rounded(Decimal(value), places)) == expected


def test_products_and_sums_are_exact_beyond_the_thread_context() -> None:
    big, fine = Decimal("12345678901234567890123456789.123456789"), Decimal("0.000000001")
    with localcontext() as context:
        context.prec = 3
        assert money.total([big, fine], 9) == Decimal("12345678901234567890123456789.123456790")
        assert str(money.times(big, fine)) == "12345678901234567890.123456789123456789"
        assert money.minus(big, fine) == Decimal("12345678901234567890123456789.123456788")


def test_the_sum_of_nothing_has_the_currencys_places() -> None:
    assert str(money.total([], 2)) == "0.00"


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        ("4.500000000", 0, "4.5"),
        ("4.500000000", 2, "4.50"),
        ("19", 0, "19"),
        ("1E+3", 0, "1000"),
        ("0E-9", 0, "0"),
        ("-0.00", 2, "0.00"),
        ("0.000000001", 2, "0.000000001"),
    ],
)
def test_canonical_digits_have_no_exponent_and_no_needless_zeros(value: str, places: int, expected: str) -> None:
    assert money.plain(Decimal(value), places) == expected


def test_the_left_over_cent_goes_to_the_first_of_equal_remainders() -> None:
    shares = money.share(Decimal("1.00"), [Decimal("10.01")] * 3, 2)
    assert shares == (Decimal("0.34"), Decimal("0.33"), Decimal("0.33"))


def test_left_over_cents_go_to_the_largest_remainders() -> None:
    shares = money.share(Decimal("0.10"), [Decimal(1), Decimal(1), Decimal(4)], 2)
    assert shares == (Decimal("0.02"), Decimal("0.02"), Decimal("0.06"))
    # Exact parts 1.67, 1.67 and 6.67 cents: all remainders are equal, the two cents go to the first two.


def test_sharing_refuses_what_has_no_exact_answer() -> None:
    with pytest.raises(UsageError, match="every part is zero"):
        money.share(Decimal("0.01"), [Decimal(0), Decimal(0)], 2)
    with pytest.raises(UsageError, match="negative"):
        money.share(Decimal("0.01"), [Decimal(1), Decimal(-1)], 2)
    with pytest.raises(UsageError, match="finer"):
        money.share(Decimal("0.015"), [Decimal(1)], 2)


def test_nothing_is_shared_over_nothing() -> None:
    assert money.share(Decimal("0.00"), [], 2) == ()
    assert money.share(Decimal("0.00"), [Decimal(0)], 2) == (Decimal("0.00"),)


@settings(deadline=None)
@given(
    places=PLACES,
    units=st.integers(-(10**15), 10**15),
    weights=st.lists(st.decimals(0, 10**9, allow_nan=False, places=3), min_size=1, max_size=12),
)
def test_shares_add_up_and_none_is_a_unit_off(places: int, units: int, weights: list[Decimal]) -> None:
    amount, whole = Decimal(units).scaleb(-places), sum(weights)
    if whole == 0:
        return
    shares = money.share(amount, weights, places)
    assert sum(shares) == amount
    unit = Decimal(1).scaleb(-places)
    for part, weight in zip(shares, weights, strict=True):
        assert money.has_places(part, places)
        assert abs(part * whole - amount * weight) < unit * whole


@settings(deadline=None)
@given(places=PLACES, value=st.decimals(-(10**12), 10**12, allow_nan=False, places=9))
def test_rounding_is_to_the_nearest_amount(places: int, value: Decimal) -> None:
    amount = money.rounded(value, places)
    assert money.has_places(amount, places)
    assert abs(amount - value) <= Decimal("0.5").scaleb(-places)
