"""Days that documents are dated on: within a window, when the sender is open, after what they bill."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Collection
from datetime import date, timedelta
from functools import lru_cache

from docgen_core.draws import Draws

FIRST_ISSUE = date(2023, 1, 2)
LAST_ISSUE = date(2025, 12, 31)
"""Documents are dated in this window, never by the clock."""

MonthDay = tuple[int, int]
"""A day of every year: (month, day)."""

_SATURDAY = 5
_TILL_WEEK = (3, 3, 3, 3, 4, 6, 3)
"""How much a shop sells from Monday to Sunday, against each other."""


def working_issue_date(draws: Draws, founded_year: int, holidays: frozenset[MonthDay]) -> date:
    """A working day of the window, after the company's first year."""
    return draws.choice("issue", _working_window(_first_issue(founded_year), holidays))


def till_issue_date(draws: Draws, founded_year: int, closed: frozenset[MonthDay]) -> date:
    """A day of the window on which a shop is open, after the company's first year; Saturdays most."""
    return draws.choice("issue", _till_window(_first_issue(founded_year), closed))


def _first_issue(founded_year: int) -> date:
    return max(FIRST_ISSUE, date(min(founded_year + 1, LAST_ISSUE.year), 1, 2))


@lru_cache(maxsize=64)
def _working_window(first: date, holidays: frozenset[MonthDay]) -> tuple[date, ...]:
    return tuple(working_days(first, LAST_ISSUE, holidays))


@lru_cache(maxsize=64)
def _till_window(first: date, closed: frozenset[MonthDay]) -> tuple[date, ...]:
    """Each open day as often as its weekday counts."""
    return tuple(
        day
        for day in _days(first, LAST_ISSUE)
        if (day.month, day.day) not in closed
        for _ in range(_TILL_WEEK[day.weekday()])
    )


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def working_day(day: date, holidays: Collection[MonthDay]) -> date:
    """The day itself, or the last working day before a weekend or holiday."""
    while day.weekday() >= _SATURDAY or (day.month, day.day) in holidays:
        day -= timedelta(days=1)
    return day


def working_days(first: date, last: date, holidays: Collection[MonthDay]) -> list[date]:
    """Monday to Friday but for holidays, both ends included."""
    return [day for day in _days(first, last) if working_day(day, holidays) == day]


def month_start(day: date, months_back: int) -> date:
    """First day of the month that lies `months_back` before the day's."""
    months = day.year * 12 + day.month - 1 - months_back
    return date(months // 12, months % 12 + 1, 1)


def month_end(first: date) -> date:
    """Last day of the month."""
    return first.replace(day=monthrange(first.year, first.month)[1])
