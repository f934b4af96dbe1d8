"""How a value may be written: numbers and dates by the locale or in canonical form, and nothing in between."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core import locales
from docgen_core.score.readings import Kind, readings

LOCALES = ("de-DE", "de-CH", "en-US", "en-IN", "es-MX", "fr-FR", "ja-JP", "pl-PL", "pt-BR", "sv-SE", "tr-TR")


@pytest.mark.parametrize(
    ("text", "locale", "number"),
    [
        ("1.234,56", "de-DE", "1234.56"),
        ("1.234,56 €", "de-DE", "1234.56"),
        ("1234.56", "de-DE", "1234.56"),
        ("1 234,56", "fr-FR", "1234.56"),
        ("1\u202f234,56\u00a0€", "fr-FR", "1234.56"),
        ("12,34,567.89", "en-IN", "1234567.89"),
        ("1’234.50", "de-CH", "1234.5"),
        ("1'234.50", "de-CH", "1234.5"),
        ("￥１，２３４", "ja-JP", "1234"),
        ("1,234円", "ja-JP", "1234"),
        ("−5.00", "en-US", "-5"),
        ("–5.00 €", "en-US", "-5"),
        ("12.5 m²", "en-US", "12.5"),
        ("1'250.— CHF", "de-CH", "1250"),
        ("€ 5,-", "nl-NL", "5"),
        ("5:- kr", "sv-SE", "5"),
        ("Total (EUR) 5.00 (net)", "en-US", "5"),
        ("(EUR 5.00)", "en-US", "-5"),
        ("Std.-Satz 5,00", "de-DE", "5"),
        ("€-5,00", "de-DE", "-5"),
        ("7 m³", "de-DE", "7"),
        ("(5.00)", "en-US", "-5"),
        ("5.00-", "en-US", "-5"),
        ("-$5.00", "en-US", "-5"),
        ("%20", "tr-TR", "20"),
        ("19 %", "de-DE", "19"),
        (".5", "en-US", "0.5"),
        ("KWD 1.250", "en-US", "1.25"),
    ],
)
def test_numbers_are_read_as_the_locale_writes_them(text: str, locale: str, number: str) -> None:
    assert Decimal(number) in readings(Kind.NUMBER, text, locale)


@pytest.mark.parametrize(
    ("text", "locale"),
    [
        ("1,234.56", "de-DE"),
        ("1.234,56", "en-US"),
        ("1.23.456", "de-DE"),
        ("12,34,567.89", "en-US"),
        ("1 234.56", "en-US"),
        ("12 of 15", "en-US"),
        ("1:23", "en-US"),
        ("--5", "en-US"),
        ("no number", "en-US"),
        ("", "en-US"),
    ],
)
def test_what_the_locale_does_not_write_is_no_number(text: str, locale: str) -> None:
    assert readings(Kind.NUMBER, text, locale) == frozenset()


def test_a_text_that_has_two_meanings_has_both() -> None:
    assert readings(Kind.NUMBER, "1.234", "de-DE") == {Decimal(1234), Decimal("1.234")}
    assert readings(Kind.NUMBER, "1.234", "en-US") == {Decimal("1.234")}


@settings(deadline=None, max_examples=60)
@given(st.decimals(-(10**9), 10**9, places=2, allow_nan=False), st.sampled_from(LOCALES))
def test_what_docgen_writes_is_read_back(number: Decimal, locale: str) -> None:
    value = abs(number) if number == 0 else number
    assert value in readings(Kind.NUMBER, locales.amount(value, locale, 2), locale)
    assert value in readings(Kind.NUMBER, locales.money(value, "EUR", locale), locale)
    assert value in readings(Kind.NUMBER, str(value), locale)


@pytest.mark.parametrize(
    ("text", "locale"),
    [
        ("2024-03-05", "de-DE"),
        ("20240305", "de-DE"),
        ("05.03.2024", "de-DE"),
        ("5.3.24", "de-DE"),
        ("Dienstag, 5. März 2024", "de-DE"),
        ("03/05/2024", "en-US"),
        ("Mar 5, 2024", "en-US"),
        ("05/03/2024", "en-GB"),
        ("5 mars 2024", "fr-FR"),
        ("5 de marzo de 2024", "es-MX"),
        ("2024年3月5日", "ja-JP"),
        ("2024/03/05", "ja-JP"),
        ("2024. 3. 5.", "ko-KR"),
        ("24. 3. 5.", "ko-KR"),
        ("5-Mar-24", "en-IN"),
        (datetime(2024, 3, 5, 12), "de-DE"),  # noqa: DTZ001  a day has no zone
        (date(2024, 3, 5), "de-DE"),
    ],
)
def test_dates_are_read_as_the_locale_writes_them(text: object, locale: str) -> None:
    assert readings(Kind.DATE, text, locale) == {date(2024, 3, 5)}


@pytest.mark.parametrize("text", ["31.02.2024", "03.05", "March", "2024", "05.03.2024 06.03.2024", True])
def test_what_is_no_day_has_no_reading(text: object) -> None:
    assert readings(Kind.DATE, text, "de-DE") == frozenset()


def test_identifiers_are_their_letters_and_digits() -> None:
    assert readings(Kind.IDENTIFIER, "DE56 9129-7214", "de-DE") == readings(Kind.IDENTIFIER, "de5691297214", "de-DE")
    assert readings(Kind.IDENTIFIER, Decimal("4510086924.0"), "de-DE") == {"4510086924"}
    assert readings(Kind.IDENTIFIER, 4510086924.0, "de-DE") == readings(Kind.IDENTIFIER, "4510086924", "de-DE")
    assert readings(Kind.IDENTIFIER, "R-1", "de-DE") != readings(Kind.IDENTIFIER, "R-7", "de-DE")


def test_a_year_that_stands_first_may_have_two_digits() -> None:
    assert date(2024, 3, 5) in readings(Kind.DATE, "24/03/05", "ja-JP")
    assert date(2024, 3, 5) not in readings(Kind.DATE, "24/03/05", "de-DE")


def test_flags_are_words() -> None:
    assert readings(Kind.FLAG, "True", "de-DE") == readings(Kind.FLAG, True, "de-DE") == {True}
    assert readings(Kind.FLAG, "perhaps", "de-DE") == frozenset()
