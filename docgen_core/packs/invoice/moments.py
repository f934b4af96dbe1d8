"""When a product can be sold: the months of its family, and the season or weekday that its name says.

A winter menu is not served in May, nor Tuesday's dish on a Friday. What does not belong here: on
which days a document's lines are (billing).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import lru_cache

from docgen_core.packs.contract import Row
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.jurisdictions import Jurisdiction

_WEEKDAYS: Mapping[str, frozenset[int]] = {
    "monday": frozenset({0}),
    "tuesday": frozenset({1}),
    "wednesday": frozenset({2}),
    "thursday": frozenset({3}),
    "friday": frozenset({4}),
    "saturday": frozenset({5}),
    "sunday": frozenset({6}),
    "weekend": frozenset({5, 6}),
}
"""Values of axes that say a day, as `date.weekday` counts them."""
_SEASONS: Mapping[str, frozenset[int]] = {
    "spring": frozenset({3, 4, 5}),
    "summer": frozenset({6, 7, 8}),
    "autumn": frozenset({9, 10, 11}),
    "winter": frozenset({12, 1, 2}),
}
_HALVES: Mapping[str, frozenset[int]] = {
    "summer": frozenset(range(4, 10)),
    "winter": frozenset({10, 11, 12, 1, 2, 3}),
}
"""Months north of the equator, where there are four seasons, and where a tariff has two."""


def fits(product: Row, business_type: str, jurisdiction: Jurisdiction, first: date, last: date) -> bool:
    """Whether the product can be sold between two days, both included."""
    niche, family = product.get("niche", ""), product.get("family", "")
    if not jurisdiction.in_season(content.months(business_type).get((niche, family), ()), last.month):
        return False
    language = content.language_of(jurisdiction.locale)
    months, weekdays = _said(product.get("name", ""), niche, family, business_type, language)
    shift = 6 if jurisdiction.southern else 0
    if months and not {(day.month - 1 + shift) % 12 + 1 for day in (first, last)} & months:
        return False
    days = range(min(7, (last - first).days + 1))
    return not weekdays or any((first + timedelta(days=day)).weekday() in weekdays for day in days)


@lru_cache(maxsize=8192)
def _said(
    name: str, niche: str, family: str, business_type: str, language: str
) -> tuple[frozenset[int], frozenset[int]]:
    """The months and the weekdays that a name says; empty where it says none."""
    kind = content.business_types().get(business_type)
    families = kind.niches.get(niche, ()) if kind else ()
    months, weekdays = frozenset[int](), frozenset[int]()
    for each in families:
        if each.name != family:
            continue
        printed = content.texts(language, business_type)[niche, family].axes
        for axis, values in each.axes.items():
            keys = [value.value for value in values]
            seasons = _SEASONS if "spring" in keys else _HALVES
            for key, word in zip(keys, printed[axis], strict=True):
                if word and word.casefold() in name.casefold():
                    months |= seasons.get(key, frozenset())
                    weekdays |= _WEEKDAYS.get(key, frozenset())
    return months, weekdays
