"""Days that documents are dated on: within a window, when the sender is open, after what they bill."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from docgen_core.draws import Draws

FIRST_ISSUE = date(2023, 1, 2)
LAST_ISSUE = date(2025, 12, 31)
"""Documents are dated in this window, never by the clock."""
EARLIEST_ISSUE = date(1950, 1, 1)
LATEST_ISSUE = date(2099, 12, 31)
"""A window that is asked for lies between these."""

MonthDay = tuple[int, int]
"""A day of every year: (month, day)."""

SATURDAY_SUNDAY = frozenset((5, 6))
FRIDAY_SATURDAY = frozenset((4, 5))
"""Weekends, by `date.weekday`."""
_TILL_WEEK = (3, 3, 3, 3, 4, 6, 3)
"""How much a shop sells from Monday to Sunday, against each other."""


Window = tuple[date, date]
"""First and last day, both included."""


@dataclass(frozen=True, slots=True)
class Rest:
    """The days on which a country's offices neither work nor write."""

    holidays: frozenset[MonthDay]
    weekend: frozenset[int]

    def includes(self, day: date) -> bool:
        """Whether they rest that day."""
        return day.weekday() in self.weekend or (day.month, day.day) in self.holidays


def working_issue_date(draws: Draws, founded_year: int, rest: Rest, window: Window | None = None) -> date:
    """A working day of the window (by default the usual one), after the company's first year where it has one."""
    days = _working_window(_after(founded_year, window), rest)
    return draws.choice("issue", days or _every_day(_after(founded_year, window)))


def till_issue_date(draws: Draws, founded_year: int, closed: frozenset[MonthDay], window: Window | None = None) -> date:
    """A day of the window on which a shop is open, after the company's first year; Saturdays most."""
    days = _till_window(_after(founded_year, window), closed)
    return draws.choice("issue", days or _every_day(_after(founded_year, window)))


def first_issue(founded_year: int) -> date:
    """The first day a company can have dated a document: it takes a year to begin."""
    return date(founded_year + 1, 1, 2)


def _after(founded_year: int, window: Window | None) -> Window:
    """What of the window lies after the company's first year; all of it, where nothing does."""
    first, last = window or (FIRST_ISSUE, LAST_ISSUE)
    began = first_issue(founded_year)
    return (max(first, began), last) if began <= last else (first, last)


@lru_cache(maxsize=64)
def _working_window(window: Window, rest: Rest) -> tuple[date, ...]:
    return tuple(working_days(*window, rest))


@lru_cache(maxsize=64)
def _till_window(window: Window, closed: frozenset[MonthDay]) -> tuple[date, ...]:
    """Each open day as often as its weekday counts."""
    return tuple(
        day
        for day in _every_day(window)
        if (day.month, day.day) not in closed
        for _ in range(_TILL_WEEK[day.weekday()])
    )


def _every_day(window: Window) -> tuple[date, ...]:
    return tuple(_days(*window))


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days + 1)]


def working_day(day: date, rest: Rest) -> date:
    """The day itself, or the last working day before it."""
    while rest.includes(day):
        day -= timedelta(days=1)
    return day


def working_days(first: date, last: date, rest: Rest) -> list[date]:
    """The days on which offices work, both ends included."""
    return [day for day in _days(first, last) if not rest.includes(day)]


def month_start(day: date, months_back: int) -> date:
    """First day of the month that lies `months_back` before the day's."""
    months = day.year * 12 + day.month - 1 - months_back
    return date(months // 12, months % 12 + 1, 1)


def month_end(first: date) -> date:
    """Last day of the month."""
    return first.replace(day=monthrange(first.year, first.month)[1])
