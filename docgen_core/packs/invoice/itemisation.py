"""Every call of a telephone company's month, line by line: what makes a bill run over dozens of pages.

A telephone bill lists access and services as any document does, and then the calls in order of
time, each with whom it went to, how long it took and what it costs. Numbers called are of those
that nobody has, and their last digits are covered, as such lists do.
What does not belong here: the amounts (arithmetic), and how a list is laid out (layouts).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from docgen_core.draws import Draws
from docgen_core.money import rounded
from docgen_core.packs.invoice import places
from docgen_core.packs.invoice.arithmetic import Sale
from docgen_core.packs.invoice.catalogue import content

if TYPE_CHECKING:
    from docgen_core.packs.invoice.billing import Order, Setting

MOST_SERVICES = 12
"""Lines of access and services before the calls."""
_HOW_MANY = {(60, 180): 36, (180, 420): 36, (420, 900): 18, (1_500, 1_950): 10}
"""Calls of a month, with how usual they are."""
_PRICES = {
    "local": Decimal("0.019"),
    "national": Decimal("0.029"),
    "forwarded": Decimal("0.042"),
    "conference": Decimal("0.065"),
}
"""Euros a minute, by kind of call."""
_KINDS = {"local": 44, "national": 36, "forwarded": 12, "conference": 8}
_PRICE_PLACES = 4
_LONGEST_TENTHS = 420
"""Six-second steps of the longest calls."""
_DAY_BEGINS, _DAY_MINUTES = time(7, 30), 690
_COVERED = re.compile(r"\d(?=\D*(?:\d\D*){0,2}$)")
"""The last three digits of a number."""
_MINUTE, _MINUTES_CODE = "minute", "MIN"


@cache
def _words() -> Mapping[str, Mapping[str, str]]:
    data = files("docgen_core.packs.invoice").joinpath("data/calls.toml").read_text(encoding="utf-8")
    return tomllib.loads(data)


def languages() -> tuple[str, ...]:
    """Languages that calls are told in."""
    return tuple(_words())


def with_calls(order: Order, setting: Setting, draws: Draws) -> Order:
    """The order with a month's calls in place of its sums of minutes, within the room there is."""
    kept = tuple(
        sale
        for sale in order.sales
        if sale.unit_price is not None and not sale.bands and sale.unit_code != _MINUTES_CODE
    )
    room = min(setting.most_lines, setting.lines[1] if setting.lines else setting.most_lines) - len(kept)
    if room < 1:
        return order
    if setting.lines is None:
        count = min(room, draws.integer("calls", *draws.weighted("how many calls", _HOW_MANY)))
    else:
        count = draws.integer("calls asked for", min(room, max(1, setting.lines[0] - len(kept))), room)
    calls = _calls(order, setting, count, draws)
    return replace(order, sales=(*kept, *calls))


def _calls(order: Order, setting: Setting, count: int, draws: Draws) -> tuple[Sale, ...]:
    ways = setting.ways
    jurisdiction = ways.jurisdiction
    words = _words()[jurisdiction.language]
    unit = content.language(content.language_of(jurisdiction.locale)).units[_MINUTE][0]
    scale = content.currencies()[ways.currency].scale
    prices = {
        kind: rounded(price * scale, max(_PRICE_PLACES - ways.places, ways.places)) for kind, price in _PRICES.items()
    }
    towns = places.places(jurisdiction.code)
    tax = order.sales[0].tax
    days = (order.service_to - order.service_from).days
    begun = sorted(_begins(order.service_from, days, draws.under("call", number)) for number in range(count))
    made = []
    for number, begins in enumerate(begun):
        call = draws.under("call", number)
        kind = call.weighted("kind", _KINDS)
        town = setting.treatment.place if kind == "local" else call.choice("town", towns)
        called = _COVERED.sub("X", jurisdiction.phone(call, town))
        tenths = min(call.integer("long", 1, _LONGEST_TENTHS), call.integer("long too", 1, _LONGEST_TENTHS))
        made.append(
            Sale(
                sku=None,
                description=words[kind],
                detail=f"{begins:%Y-%m-%d %H:%M} · {called}",
                quantity=Decimal(tenths) / 10,
                unit=unit,
                unit_code=_MINUTES_CODE,
                unit_price=prices[kind],
                tax=tax,
            )
        )
    return tuple(made)


def _begins(first: date, days: int, call: Draws) -> datetime:
    day = first + timedelta(days=call.integer("day", 0, days))
    return datetime.combine(day, _DAY_BEGINS) + timedelta(minutes=call.integer("minute", 0, _DAY_MINUTES))
