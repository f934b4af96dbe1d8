"""Days that documents are dated on: within a window, on working days, after what they bill."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta

from docgen_core.draws import Draws

FIRST_ISSUE = date(2023, 1, 2)
LAST_ISSUE = date(2025, 12, 31)
"""Documents are dated in this window, never by the clock."""

_SATURDAY = 5


def issue_date(draws: Draws, founded_year: int) -> date:
    """A working day of the window, after the company's first year."""
    first = max(FIRST_ISSUE, date(min(founded_year + 1, LAST_ISSUE.year), 1, 2))
    day = first + timedelta(days=draws.integer("issue", 0, (LAST_ISSUE - first).days))
    return working_day(day)


def working_day(day: date) -> date:
    """The day itself, or the Friday before a weekend."""
    return day - timedelta(days=max(0, day.weekday() - _SATURDAY + 1))


def month_start(day: date, months_back: int) -> date:
    """First day of the month that lies `months_back` before the day's."""
    months = day.year * 12 + day.month - 1 - months_back
    return date(months // 12, months % 12 + 1, 1)


def month_end(first: date) -> date:
    """Last day of the month."""
    return first.replace(day=monthrange(first.year, first.month)[1])


def working_days(first: date, last: date) -> list[date]:
    """Monday to Friday, both ends included."""
    days = [first + timedelta(days=i) for i in range((last - first).days + 1)]
    return [day for day in days if day.weekday() < _SATURDAY]
