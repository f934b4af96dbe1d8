"""Numbers and dates as a locale writes them; nothing is rounded on the way."""

from __future__ import annotations

from datetime import date
from decimal import Decimal, localcontext

import pytest

from docgen_core import locales
from docgen_core.errors import UsageError


@pytest.mark.parametrize(
    ("value", "currency", "locale", "expected"),
    [
        ("1234567.50", "EUR", "de-DE", "1.234.567,50\u00a0€"),
        ("1234567.50", "USD", "en-US", "$1,234,567.50"),
        ("1234568", "JPY", "ja-JP", "\uffe51,234,568"),
        ("0.00", "EUR", "de-DE", "0,00\u00a0€"),
        ("-3.00", "EUR", "de-DE", "-3,00\u00a0€"),
        ("1.250", "KWD", "en-US", "KWD\u00a01.250"),
    ],
)
def test_money_is_written_with_all_minor_units(value: str, currency: str, locale: str, expected: str) -> None:
    assert locales.money(Decimal(value), currency, locale) == expected


@pytest.mark.parametrize(("value", "currency"), [("1.5", "EUR"), ("1.555", "EUR"), ("10.0", "JPY"), ("-0.00", "USD")])
def test_an_amount_with_other_places_is_refused_not_rounded(value: str, currency: str) -> None:
    with pytest.raises(UsageError, match="decimal places"):
        locales.money(Decimal(value), currency, "en-US")
    with pytest.raises(UsageError, match="decimal places"):
        locales.amount(Decimal(value), "en-US", 0 if currency == "JPY" else 2)


def test_a_price_finer_than_the_currency_keeps_its_digits() -> None:
    assert locales.price(Decimal("4.5"), "ja-JP", 0) == "4.5"
    assert locales.price(Decimal("4.500000000"), "ja-JP", 0) == "4.5"
    assert locales.price(Decimal("0.00025"), "de-DE", 2) == "0,00025"
    assert locales.price(Decimal(12), "de-DE", 2) == "12,00"
    assert locales.price(Decimal("1234.000000001"), "en-US", 2) == "1,234.000000001"


@pytest.mark.parametrize(
    ("value", "locale", "expected"),
    [
        ("1250.500", "de-DE", "1.250,5"),
        ("10", "en-US", "10"),
        ("100000", "ja-JP", "100,000"),
        ("0.25", "de-DE", "0,25"),
    ],
)
def test_quantities_have_no_needless_zeros(value: str, locale: str, expected: str) -> None:
    assert locales.number(Decimal(value), locale) == expected


@pytest.mark.parametrize(
    ("rate", "locale", "expected"),
    [("19", "de-DE", "19\u00a0%"), ("8.250", "en-US", "8.25%"), ("10", "ja-JP", "10%"), ("0", "en-US", "0%")],
)
def test_rates_are_given_in_per_cent(rate: str, locale: str, expected: str) -> None:
    assert locales.percent(Decimal(rate), locale) == expected


def test_long_amounts_lose_no_digit_whatever_the_threads_context() -> None:
    value = Decimal("12345678901234567890123456789.01")
    with localcontext() as context:
        context.prec = 5
        assert locales.amount(value, "en-US", 2) == "12,345,678,901,234,567,890,123,456,789.01"


@pytest.mark.parametrize(
    ("locale", "style", "expected"),
    [
        ("de-DE", "dd.MM.y", "05.03.2024"),
        ("de-DE", "long", "5. März 2024"),
        ("en-US", "medium", "Mar 5, 2024"),
        ("ja-JP", "y年M月d日", "2024年3月5日"),
    ],
)
def test_dates_follow_a_style_or_a_pattern(locale: str, style: str, expected: str) -> None:
    assert locales.date_text(date(2024, 3, 5), locale, style) == expected


@pytest.mark.parametrize("name", ["xx-YY", "de_DE", "", "german"])
def test_an_unknown_locale_is_named_with_the_form_to_use(name: str) -> None:
    with pytest.raises(UsageError, match="de-DE"):
        locales.number(Decimal(1), name)


def test_a_date_style_that_shows_no_date_is_refused() -> None:
    with pytest.raises(UsageError, match="date style"):
        locales.date_text(date(2024, 3, 5), "de-DE", "hh")
