"""Numbers of documents, orders and customers.

A run does not know its length, and a document does not know its neighbours. A document number is
therefore the day it is issued, in the company's own notation, and a slot that differs for every
document of a run: numbers are unique within a company, and increase with the date.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from docgen_core.draws import Draws

_SLOTS = 10_000
_SLOT_STEPS = (3_137, 4_519, 6_151, 7_283, 8_861)
"""Coprime to 10,000: multiplying by one visits every slot once."""

_OPENS, _CLOSES = (7, 10), (19, 22)
"""Hours between which a shop opens, and closes."""

_FIRST_DAY = date(2009, 1, 1)
"""Day 0 of running numbers."""


def document_number(company: Draws, prefixes: Sequence[str], kind: str, issued: date, index: int) -> str:
    """Number of document `index`, in the notation and with the one of `prefixes` that the company's draws decide.

    Each ten thousand documents of a run use up the slots; later ones carry the count of that
    at the end (`RE-2024-0717341-2`), as numbers of a second till or branch do.
    """
    prefix = company.choice(f"{kind} prefix", prefixes)
    body = company.choice(f"{kind} notation", _NOTATIONS)(issued, f"{_slot(company, index):04d}")
    lap = index // _SLOTS
    return f"{prefix}{body}-{lap}" if lap else f"{prefix}{body}"


def till_time(company: Draws, index: int) -> str:
    """Time of the sale (`HH:MM`) within the shop's hours, later for a higher number of the same day."""
    opens, closes = company.integer("opens", *_OPENS), company.integer("closes", *_CLOSES)
    hour, minute = divmod(opens * 60 + _slot(company, index) * (closes - opens) * 60 // _SLOTS, 60)
    return f"{hour:02d}:{minute:02d}"


def _slot(company: Draws, index: int) -> int:
    step, start = company.choice("slot step", _SLOT_STEPS), company.integer("slot start", 0, _SLOTS - 1)
    return (index * step + start) % _SLOTS


def _running(issued: date, slot: str) -> str:
    if issued < _FIRST_DAY:
        return _by_day(issued, slot)
    return f"{(issued - _FIRST_DAY).days}{slot}"


def _within_year(issued: date, slot: str) -> str:
    return f"{issued.year}-{issued.timetuple().tm_yday:03d}{slot}"


def _within_month(issued: date, slot: str) -> str:
    return f"{issued:%y%m}-{issued.day:02d}{slot}"


def _by_day(issued: date, slot: str) -> str:
    return f"{issued:%Y%m%d}-{slot}"


_NOTATIONS = (_running, _within_year, _within_month, _by_day)


def customer_number(company: Draws, relation: Draws) -> str:
    """The buyer's number with the seller: the seller decides the notation, the relation the number."""
    prefix = company.choice("customer prefix", ("", "", "K", "C-", "D"))
    digits = company.integer("customer digits", 5, 6)
    return f"{prefix}{relation.integer('customer number', 10 ** (digits - 1), 10**digits - 1)}"


def order_number(relation: Draws, draws: Draws, issued: date) -> str | None:
    """The buyer's order, in the buyer's notation; some buyers give none."""
    notation = relation.weighted("order notation", {"none": 26, "PO": 26, "sap": 22, "year": 26})
    if notation == "none":
        return None
    number = draws.integer("order", 0, 99_999)
    if notation == "PO":
        return f"PO-{number + 100_000}"
    return f"45{number + 10_000_000}" if notation == "sap" else f"{issued.year}-{number:05d}"
