"""What a predicted value may mean, and whether that is the golden value.

Numbers and dates are read as the document's locale writes them, or in canonical form; a value is
right when one of its readings is the golden one, exactly. Identifiers are compared by their letters
and digits, texts by their characters, white space folded. What does not belong here: which golden
value a prediction is held against (matching), and counting.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache

import pyarrow as pa
from babel.dates import get_month_names
from babel.numbers import get_decimal_symbol, get_group_symbol

from docgen_core.golden import IDENTIFIER, held_by
from docgen_core.locales import locale_of

_MINUS = "\u2010\u2011\u2012\u2013\u2014\u2212\uff0d"
_SIGNS = str.maketrans({**dict.fromkeys(_MINUS, "-"), "\u2019": "'", "\u02bc": "'"})
_RAISED = dict.fromkeys(map(ord, "\u00b9\u00b2\u00b3"))
"""Of units (m\u00b2), which is no digit of the number."""
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_AROUND = re.compile(r"(?P<before>\D*?)(?P<body>[.,\u066b]?\d(?:.*\d)?)(?P<after>\D*)", re.DOTALL)
_NO_CENTS = re.compile(r"(?<=\d)[.,:] ?-{1,2}(?=\D*$)")
"""How a price without cents is written: `5,-`, `5.—`."""
_HYPHEN = re.compile(r"(?<=[\w.])-(?=\w)")
"""Within a word beside a number; no minus."""
_YEAR_FIRST = re.compile(r"(\d{4})\D{1,3}(\d{1,2})\D{1,3}(\d{1,2})(?:[T ]\d.*|\D*)", re.DOTALL)
_YEAR_LAST = re.compile(r"(\d{1,2})\D{1,2}(\d{1,2})\D{1,2}(\d{4}|\d{1,2})\D?")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
_WORDS = re.compile(r"\d+|[^\W\d_]+")
_LINE_END = re.compile(r",?[ \t]*\n\s*")
"""Lines of an address are one, set apart by commas, to many a reader."""
_CENTURY = 2000
"""Of a year with two digits."""
_TRUE, _FALSE = frozenset(("true", "yes", "1")), frozenset(("false", "no", "0"))


class Kind(Enum):
    """How values of a column are compared."""

    NUMBER = "number"
    DATE = "date"
    FLAG = "flag"
    IDENTIFIER = "identifier"
    TEXT = "text"


def kind_of(field: pa.Field) -> Kind:
    """The kind of a golden column, from its declaration."""
    if pa.types.is_decimal(field.type) or pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
        return Kind.NUMBER
    if pa.types.is_date(field.type):
        return Kind.DATE
    if pa.types.is_boolean(field.type):
        return Kind.FLAG
    return Kind.IDENTIFIER if held_by(field) == IDENTIFIER else Kind.TEXT


def is_empty(value: object) -> bool:
    """Whether a value says nothing: none at all, white space, or not a number."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, float) and value != value)


def readings(kind: Kind, value: object, locale: str) -> frozenset[object]:
    """Everything the value may mean; two values are the same when they share a reading."""
    if kind is Kind.NUMBER:
        return frozenset(_numbers(value, locale))
    if kind is Kind.DATE:
        return frozenset(_dates(value, locale))
    if kind is Kind.FLAG:
        return frozenset(_flags(value))
    if kind is Kind.IDENTIFIER:
        return frozenset((_letters(value),))
    text = _written(value)
    return frozenset((folded(text), folded(_LINE_END.sub(", ", text))))


def folded(value: object) -> str:
    """A text with its white space folded, compatibility forms of characters as their plain ones."""
    return " ".join(unicodedata.normalize("NFKC", _written(value)).split())


def _letters(value: object) -> str:
    """The letters and digits of an identifier, in one case."""
    return "".join(char for char in unicodedata.normalize("NFKC", _written(value)).casefold() if char.isalnum())


def _written(value: object) -> str:
    """A value as text: a whole float is what a table without integers makes of a number."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and str(value).endswith(".0"):
        return str(value).removesuffix(".0")
    return value.isoformat() if isinstance(value, date) else str(value)


def _flags(value: object) -> Iterator[bool]:
    said = str(value).strip().casefold()
    if said in _TRUE:
        yield True
    if said in _FALSE:
        yield False


# Numbers -----------------------------------------------------------------------------------


def _numbers(value: object, locale: str) -> Iterator[Decimal]:
    if isinstance(value, bool | date):
        return
    if isinstance(value, int | Decimal | float):
        number = Decimal(str(value))
        if number.is_finite():
            yield number
        return
    found = _AROUND.fullmatch(_NO_CENTS.sub("", _digits(str(value)).strip()))
    if found is None:
        return
    before, after = (_HYPHEN.sub("", found[name]) for name in ("before", "after"))
    if _odd(before) or _odd(after):
        return
    negative = "-" in before + after or (before.count("(") > before.count(")") and ")" in after)
    for digits in {_localised(found["body"], locale), _canonical(found["body"])} - {None}:
        yield -Decimal(str(digits)) if negative else Decimal(str(digits))


def _digits(text: str) -> str:
    """The text with its digits as ASCII, one kind of minus, apostrophe and space."""
    plain = unicodedata.normalize("NFKC", text.translate(_RAISED)).translate(_SIGNS)
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in plain)


def _odd(around: str) -> bool:
    """Whether something stands beside a number that is neither its currency, unit or sign."""
    return around.count("-") > 1 or any(char in ":/\\#" for char in around)


def _canonical(body: str) -> str | None:
    return body if _PLAIN.fullmatch(body) else None


def _localised(body: str, locale: str) -> str | None:
    """The digits of a number as the locale groups and marks it."""
    group, mark, sizes = _marks(locale)
    whole, marked, fraction = body.partition(mark)
    whole = " ".join(whole.split()) if group == " " else whole
    groups = whole.split(group)
    sound = all(part.isascii() and part.isdigit() for part in groups) or (groups == [""] and bool(fraction))
    if not sound or (marked and not (fraction.isascii() and fraction.isdigit())):
        return None
    if len(groups) > 1:
        last, others = sizes
        if len(groups[-1]) != last or len(groups[0]) > others or any(len(part) != others for part in groups[1:-1]):
            return None
    return f"{''.join(groups) or '0'}.{fraction or '0'}"


@lru_cache(maxsize=64)
def _marks(locale: str) -> tuple[str, str, tuple[int, int]]:
    """The locale's mark between groups, its decimal mark, and the size of the last group and of the others."""
    known = locale_of(locale)
    group, mark = _digits(get_group_symbol(known)), _digits(get_decimal_symbol(known))
    return " " if group.isspace() else group, mark, known.decimal_formats[None].grouping


# Dates -------------------------------------------------------------------------------------


def _dates(value: object, locale: str) -> Iterator[date]:
    if isinstance(value, datetime):
        yield value.date()
    elif isinstance(value, date):
        yield value
    elif isinstance(value, str | int):
        text = _digits(str(value)).strip()
        for year, month, day in _parts(text, locale):
            try:
                yield date(year, month, day)
            except ValueError:
                continue


def _parts(text: str, locale: str) -> Iterator[tuple[int, int, int]]:
    if found := _YEAR_FIRST.fullmatch(text) or _COMPACT.fullmatch(text):
        yield int(found[1]), int(found[2]), int(found[3])
    elif found := _YEAR_LAST.fullmatch(text):
        yield from _ordered(found[1], found[2], found[3], _order(locale))
    else:
        yield from _named(text, locale)


def _ordered(first: str, second: str, third: str, order: str) -> Iterator[tuple[int, int, int]]:
    """A date of three numbers, the year of two digits or last."""
    if order == "yMd" and len(first) == 2 and len(third) < 4:
        yield _CENTURY + int(first), int(second), int(third)
    if len(third) > 1 and order != "Mdy":
        yield _year(third), int(second), int(first)
    if len(third) > 1 and order != "dMy":
        yield _year(third), int(first), int(second)


def _year(digits: str) -> int:
    return int(digits) + (_CENTURY if len(digits) == 2 else 0)


def _named(text: str, locale: str) -> Iterator[tuple[int, int, int]]:
    """A date whose month has a name."""
    words = _WORDS.findall(text.casefold())
    numbers = [word for word in words if word.isdigit()]
    months = [month for word in words if (month := _months(locale).get(word)) is not None]
    if len(numbers) == 2 and len(months) == 1:
        day, year = sorted(numbers, key=len)
        yield _year(year), months[0], int(day)


@lru_cache(maxsize=64)
def _months(locale: str) -> dict[str, int]:
    known = locale_of(locale)
    return {
        name.rstrip(".").casefold(): month
        for context in ("format", "stand-alone")
        for width in ("wide", "abbreviated")
        for month, name in get_month_names(width, context=context, locale=known).items()
    }


@lru_cache(maxsize=64)
def _order(locale: str) -> str:
    """Day, month and year as the locale has them. Where the year is first, a date that ends in it may be either."""
    pattern = locale_of(locale).date_formats["short"].pattern
    return "".join(sorted("dMy", key=pattern.find))
