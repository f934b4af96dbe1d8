"""Units as they are written after a quantity: `1 mese`, `5 mesi`.

A catalogue holds one form of a unit; which one a line prints follows from its quantity, by the
plural rules of the locale (CLDR) and the forms in `data/catalogue/languages`. Abbreviations have
one form. What does not belong here: which unit a product is sold by (catalogue).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache

from docgen_core import locales
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.model import Line

_FOUR = ("one", "few", "many", "other")
"""CLDR categories of the forms of a unit that has four, in order; of two, the first is that of one."""


def inflected(lines: Sequence[Line], locale: str) -> tuple[Line, ...]:
    """The lines with each unit in the form that its quantity asks for."""
    return tuple(
        line
        if line.unit is None or line.quantity is None
        else replace(line, unit=form(line.unit, line.quantity, locale))
        for line in lines
    )


def form(unit: str, quantity: Decimal, locale: str) -> str:
    """The form of `unit`, given in any of its forms, for so many of it."""
    forms = _forms(content.language_of(locale)).get(unit)
    if forms is None:
        return unit
    category = locales.plural(quantity, locale)
    return forms[_FOUR.index(category) if len(forms) == len(_FOUR) else category != "one"]


@cache
def _forms(language: str) -> dict[str, tuple[str, ...]]:
    return {word: forms for forms in content.language(language).inflected for word in forms}
