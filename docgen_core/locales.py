"""Numbers, money, percentages and dates as a locale writes them, by Babel.

It formats, it never rounds: an amount with more digits than its currency has is refused, a
price or quantity is printed with every digit it has. Spaces are those of the locale's own data
(U+00A0, U+202F); the bundled faces cover them. What does not belong here: words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, localcontext
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.dates import format_date
from babel.numbers import NumberPattern, parse_pattern

from docgen_core.errors import UsageError
from docgen_core.money import has_places, minor_units

_MOST_PLACES = 9
"""Digits after the mark that the golden set holds (decimal(38, 9))."""

_ENOUGH = Context(prec=60)

_LETTER_BESIDE_DIGIT = re.compile(r"(?<=[A-Z])(?=\d)|(?<=\d)(?=[A-Z])")
_NO_BREAK_SPACE = "\u00a0"
"""CLDR sets a currency's letters apart from the digits (KWD 1.250); Babel does not."""

_THREES = re.compile(r"(?<=\d)(?=(?:\d{3})+(?!\d))")
_APOSTROPHE = "\u2019"

_NAMED_STYLES = ("short", "medium", "long", "full")


@lru_cache(maxsize=64)
def locale_of(name: str) -> Locale:
    """The CLDR locale of a BCP 47 name such as `de-DE`. Raises `UsageError` for one there is not."""
    try:
        return Locale.parse(name, sep="-")
    except (UnknownLocaleError, ValueError):
        raise UsageError(f"unknown locale {name!r}; write it like de-DE, en-US or ja-JP") from None


@lru_cache(maxsize=256)
def _decimal_pattern(locale: str, least: int, most: int) -> NumberPattern:
    """The locale's way to group and mark, with at least `least` and at most `most` places."""
    return _with_places(locale_of(locale).decimal_formats[None], least, most)


@lru_cache(maxsize=256)
def _money_pattern(locale: str, places: int) -> NumberPattern:
    return _with_places(locale_of(locale).currency_formats["standard"], places, places)


@lru_cache(maxsize=64)
def _percent_pattern(locale: str) -> NumberPattern:
    """The percent pattern for a rate that is already in per cent."""
    pattern = _with_places(locale_of(locale).percent_formats[None], 0, _MOST_PLACES)
    pattern.scale = 0
    return pattern


def _with_places(source: NumberPattern, least: int, most: int) -> NumberPattern:
    """A copy of the locale's pattern (Babel shares its own) with other places."""
    pattern = parse_pattern(source.pattern)
    pattern.frac_prec = (least, most)
    return pattern


@lru_cache(maxsize=8192)  # the same rates, quantities and sums come again and again; equal numbers are written alike
def _write(pattern: NumberPattern, value: Decimal, locale: str, currency: str | None = None) -> str:
    apostrophe = _marks(locale).group == "'"
    with localcontext(_ENOUGH):  # Babel works in the thread's context, which rounds at 28 digits
        text = str(
            pattern.apply(
                value,
                locale_of(locale),
                currency=currency,
                currency_digits=False,
                decimal_quantization=False,
                group_separator=not apostrophe,
            )
        )
    return _grouped(text, _marks(locale).decimal) if apostrophe else text


def _grouped(text: str, decimal_mark: str) -> str:
    """The whole digits in threes, as the Swiss write them: Babel takes their apostrophes for quotation marks."""
    whole, mark, rest = text.partition(decimal_mark)
    return f"{_THREES.sub(_APOSTROPHE, whole)}{mark}{rest}"


@dataclass(frozen=True, slots=True)
class _Marks:
    group: str
    decimal: str


@lru_cache(maxsize=64)
def _marks(locale: str) -> _Marks:
    symbols = locale_of(locale).number_symbols["latn"]
    return _Marks(symbols["group"], symbols["decimal"])


def amount(value: Decimal, locale: str, places: int) -> str:
    """An amount without its currency: `1.234,50`. Raises `UsageError` when it has not exactly `places`."""
    _refuse_other_places(value, places)
    return _write(_decimal_pattern(locale, places, places), value, locale)


def money(value: Decimal, currency: str, locale: str) -> str:
    """An amount with its currency's sign: `1.234,50 €`, `$1,234.50`, `￥1,235`.

    Raises `UsageError` when it has not exactly the currency's minor units.
    """
    places = minor_units(currency)
    _refuse_other_places(value, places)
    written = _write(_money_pattern(locale, places), value, locale, currency)
    return _LETTER_BESIDE_DIGIT.sub(_NO_BREAK_SPACE, written)


def price(value: Decimal, locale: str, places: int) -> str:
    """A unit price without its currency: at least `places` decimal places, and all it has."""
    return _write(_decimal_pattern(locale, places, max(places, _MOST_PLACES)), value, locale)


def number(value: Decimal, locale: str) -> str:
    """A quantity, with all its digits and no needless zeros: `1.250,5`."""
    return _write(_decimal_pattern(locale, 0, _MOST_PLACES), value, locale)


def plural(value: Decimal, locale: str) -> str:
    """The CLDR plural category of a quantity, negative ones too: `one` for 1 and -1 in most languages."""
    written = abs(value)
    return locale_of(locale).plural_form(int(written) if written == int(written) else written.normalize())


def percent(rate: Decimal, locale: str) -> str:
    """A rate that is given in per cent: `19 %`, `8.25%`."""
    return _write(_percent_pattern(locale), rate, locale)


def date_text(value: date, locale: str, style: str) -> str:
    """A date in Babel's `short`, `medium`, `long` or `full`, or by an LDML pattern such as `dd.MM.y`."""
    if style not in _NAMED_STYLES and not any(letter in style for letter in "yMd"):
        raise UsageError(f"{style!r} is no date style; use short, medium, long or an LDML pattern such as dd.MM.y")
    return str(format_date(value, format=style, locale=locale_of(locale)))


def _refuse_other_places(value: Decimal, places: int) -> None:
    if not has_places(value, places):
        raise UsageError(
            f"{value} is not an amount with {places} decimal places; round it by a policy before it is printed"
        )
