"""The one parser of what a user wishes of a run, be it in flags, in a YAML file or in Dagster's configuration.

A wish has the name of its flag. Its value is what the flag takes, or the list, mapping or number
that a YAML file may write instead. What does not belong here: whether a wish can be granted (the
pack says so when the run is planned).
"""

from __future__ import annotations

import difflib
import re
import reprlib
from calendar import monthrange
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from docgen_core.errors import UsageError
from docgen_core.runs.selection import MOST_WEAR, OUTPUTS, Selection

_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PER_MILLE = Decimal(1000)
_MOST_DIGITS = 18
"""Of a whole number: those that are longer are a slip."""
_MOST_BITS = 256


def listed(value: object) -> tuple[str, ...]:
    """Names of a repeatable wish, commas split, each once, in alphabetical order: the same wish is the same run."""
    items = value if isinstance(value, list | tuple) else (value,)
    found = {item.strip() for each in items for item in _text(each).split(",")} - {""}
    if not found:
        raise ValueError("it names nothing; leave it out to mean all")
    return tuple(sorted(found))


def weights(value: object) -> dict[str, int]:
    """`name` or `name=weight`, or a mapping of them, weights being whole numbers from 1."""
    if isinstance(value, Mapping):
        items: Iterable[tuple[str, str]] = [(_text(name), _text(weight)) for name, weight in value.items()]
    else:
        items = [
            (name, weight if mark else "1") for name, mark, weight in (item.partition("=") for item in listed(value))
        ]
    found: dict[str, int] = {}
    for name, weight in ((name.strip(), weight.strip()) for name, weight in items):
        number = _whole(weight)
        if not number:
            raise ValueError(f"{name}={weight}: the weight must be a whole number from 1, e.g. {name}=3")
        if found.setdefault(name, number) != number:
            raise ValueError(f"{name} has two weights, {found[name]} and {number}")
    return found


def companies(value: object) -> dict[str, Any]:
    """`FIRST-LAST`, both included, or how many of the companies that fit."""
    first, last = _range(value, "give FIRST-LAST with FIRST not above LAST, e.g. 0-49, or how many, e.g. 20", one=None)
    if last is not None:
        return {"companies": (first, last)}
    if first == 0:
        raise ValueError("give FIRST-LAST, e.g. 0-49, or how many companies, 1 or more")
    return {"company_count": first}


def issued(value: object) -> tuple[date, date]:
    """`FROM..TO`, both included, each a day, a month or a year; one of them alone is that whole time."""
    first, mark, last = _text(value).partition("..")
    start, end = _days(first)[0], _days(last if mark else first)[1]
    if start > end:
        raise ValueError("FROM is after TO; give FROM..TO, e.g. 2024-01-01..2024-06-30 or 2023..2024")
    return start, end


def _days(text: str) -> tuple[date, date]:
    """First and last day of a year, a month or a day."""
    found = _DAY.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        year, month, day = int(found[1]), found[2], found[3]
        if month is None:
            return date(year, 1, 1), date(year, 12, 31)
        if day is None:
            return date(year, int(month), 1), date(year, int(month), monthrange(year, int(month))[1])
        return (exactly := date(year, int(month), int(day))), exactly
    except ValueError:
        raise ValueError(f"{text!r} is no day; give FROM..TO, e.g. 2024-01-01..2024-06-30 or 2023..2024") from None


def line_items(value: object) -> tuple[int, int]:
    """`FEWEST-MOST`, both included, or exactly how many."""
    reason = "give FEWEST-MOST from 1, e.g. 3-40, or one number"
    fewest, most = _range(value, reason, one="same")
    if fewest < 1 or most is None:
        raise ValueError(reason)
    return fewest, most


def _range(value: object, reason: str, *, one: str | None) -> tuple[int, int | None]:
    """`A-B` with A not above B, or A alone, which is A to A where `one` says `same`."""
    found = _RANGE.fullmatch(_text(value).strip())
    first, last = (_whole(found[1]), _whole(found[2] or found[1])) if found else (None, None)
    if found is None or first is None or last is None or first > last:
        raise ValueError(reason)
    return first, last if found[2] or one == "same" else None


def company_ids(value: object) -> tuple[int, ...]:
    """Company ids, each once, in order."""
    numbers = {_whole(name) for name in listed(value)}
    if None in numbers:
        raise ValueError("give company ids, e.g. 3,17")
    return tuple(sorted(number for number in numbers if number is not None))


def per_mille(value: object) -> int:
    """A share from 0 to 1, in thousandths."""
    try:
        thousandths = Decimal(_text(value).strip()) * _PER_MILLE
    except ArithmeticError:
        thousandths = Decimal(-1)
    if not (thousandths.is_finite() and 0 <= thousandths <= _PER_MILLE and thousandths == int(thousandths)):
        raise ValueError("give a share from 0 to 1 with at most three decimal places, e.g. 0.05")
    return int(thousandths)


def wear(value: object) -> int:
    """A whole number from 0 to 100."""
    number = _whole(_text(value).strip())
    if number is None or number > MOST_WEAR:
        raise ValueError(f"give a whole number from 0 (as new) to {MOST_WEAR}")
    return number


def output(value: object) -> str:
    """One of the kinds of files there are."""
    if value not in OUTPUTS:
        raise ValueError(f"there are {', '.join(OUTPUTS)}")
    return str(value)


def flag(value: object) -> bool:
    """True or false, as YAML writes them."""
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _whole(text: str) -> int | None:
    """A whole number from 0, in plain digits; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _text(value: object) -> str:
    """A value as it would stand in a flag."""
    if isinstance(value, bool) or value is None:  # `NO` for Norway, an empty place
        raise ValueError("YAML reads it as true, false or nothing; put it in quotes")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError("the number is too long")
    if isinstance(value, str) and not value.strip().isprintable():
        raise ValueError("it holds characters that cannot be printed")
    if isinstance(value, int | str | Decimal | date):
        return str(value)
    raise ValueError("write a name, a number or a list of them")


_PARSERS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "locale": ("locales", listed),
    "jurisdiction": ("jurisdictions", listed),
    "layout": ("layouts", listed),
    "business-type": ("business_types", listed),
    "condition": ("conditions", weights),
    "companies": ("", companies),
    "company": ("company_ids", company_ids),
    "currency": ("currencies", listed),
    "issued": ("issued", issued),
    "line-items": ("line_items", line_items),
    "credit-notes": ("credit_notes", per_mille),
    "tax-mix": ("tax_mix", weights),
    "wear": ("wear", wear),
    "output": ("output", output),
    "labels": ("labels", flag),
    "words": ("words", flag),
    "anachronism": ("anachronism", flag),
}
"""By the name of the flag: the field of a selection (a parser without one names its own), and the parser."""

WISHES = tuple(_PARSERS)


def selection_from(wishes: Mapping[str, object], source: str = "") -> Selection:
    """The selection that the wishes make. A wish of None, and an empty list or mapping, say nothing.

    `source` names the file they stand in, for messages; without one they are flags. Raises `UsageError`
    with the value, what is wrong with it, and what there is.
    """
    fields: dict[str, Any] = {}
    for name, value in wishes.items():
        field, parse = _PARSERS[_known(name, source)]
        if value is None or value == [] or value == {}:
            continue
        try:
            parsed = parse(value)
        except ValueError as wrong:
            place = f"{source}, {name}" if source else f"--{name}"
            raise UsageError(f"{place} {_shown(value)}: {wrong}") from None
        fields.update({field: parsed} if field else parsed)
    return Selection(**{name: value for name, value in fields.items() if value not in ((), {})})


def read_wishes(path: str) -> dict[str, object]:
    """The wishes of a YAML file, under the names of the flags. Raises `UsageError`."""
    from docgen_core.exact_yaml import read_yaml  # flags alone need no YAML

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read the selection {path!r} ({reason})") from None
    found = read_yaml(text, f"selection {path!r}")
    if not isinstance(found, dict):
        raise UsageError(f"selection {path!r} holds no wishes such as `locale: [de-DE, ja-JP]`; {_THERE_ARE}")
    wishes: dict[str, object] = {}
    for name, value in found.items():
        if (wish := _known(name, _named(path))) in wishes:
            raise UsageError(f"{_named(path)}: {wish!r} stands there twice")
        wishes[wish] = value
    return wishes


def selection_of(flags: Mapping[str, object], file: str | None = None) -> Selection:
    """The selection of the flags that were given, which win over those of a YAML file."""
    given = {name: value for name, value in flags.items() if value not in (None, [], False)}
    if file is None:
        return selection_from(given)
    wishes = read_wishes(file)
    selection_from(wishes, _named(file))
    selection_from(given)
    return selection_from({**wishes, **given}, _named(file))


def _named(path: str) -> str:
    return f"selection {path!r}"


_THERE_ARE = f"there are {', '.join(WISHES)}"


def _known(name: object, source: str) -> str:
    wish = str(name).replace("_", "-")
    if wish not in _PARSERS:
        near = difflib.get_close_matches(wish, WISHES, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"{source or 'selection'}: no wish {name!r}; {meant}{_THERE_ARE}")
    return wish


def _shown(value: object) -> str:
    """The value as it was written, or the beginning of it."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = ",".join(value)
    return _SHORT.repr(str(value) if isinstance(value, Decimal | date) else value)


class _Short(reprlib.Repr):
    """What stands in an error's one line, however long and deep it is."""

    def repr_int(self, x: int, level: int) -> str:
        return super().repr_int(x, level) if x.bit_length() <= _MOST_BITS else self.repr_str(hex(x), level)


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring = 2, 100
