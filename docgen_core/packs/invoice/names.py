"""Invented company names with their legal form, and the web address that goes with them.

Names are put together from parts of no meaning (`data/names`), so that no natural person and,
as far as composition can make sure, no real company is named. Domains end in `.example`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from docgen_core.draws import Draws
from docgen_core.packs.invoice.places import name_parts

GENERAL_TRADE = "general"
"""What companies are called whose business type has no words of its own."""


@dataclass(frozen=True, slots=True)
class CompanyName:
    """A company's name."""

    full: str
    """With its legal form, as registered."""
    monogram: str
    """One or two characters for a logo."""
    form: str
    """GmbH, Inc., 株式会社, …"""
    domain: str


def company_name(locale: str, business_type: str, draws: Draws, niche: str = "") -> CompanyName:
    """An invented name as companies have them in `locale` (`de-DE`), that fits the business type and its niche."""
    parts = name_parts(locale)
    trade = draws.choice("trade", _trades(parts, business_type, niche))
    head, tail = draws.choice("head", parts["heads"]), draws.choice("tail", parts["tails"])
    form = draws.weighted("form", parts.get("forms_of", {}).get(business_type) or parts["forms"])
    if parts.get("readings"):
        return _with_readings(head, tail, trade, form)
    stem = head + (tail[1:] if head[-1].lower() == tail[0] else tail)
    monogram = stem[0] + trade[0].upper() if draws.chance("two letters", 600) else stem[0]
    short = parts.get("short_names_per_mille", 0)
    words = [stem] if draws.chance("no trade", short) else [stem, trade]
    spoken = reversed(words) if parts.get("trade_first") else words
    return CompanyName(f"{' '.join(spoken)} {form}", monogram, form, _domain(words, draws, locale))


def _trades(parts: Mapping[str, Any], business_type: str, niche: str) -> Sequence[str]:
    """What such companies call their trade: the niche's own words, else the type's, else those of any company."""
    kinds: Mapping[str, Sequence[str]] = parts["trades"]
    own: Sequence[str] | None = parts["niches"].get(niche)
    return own or kinds.get(business_type) or kinds[GENERAL_TRADE]


def _with_readings(head: str, tail: str, trade: str, form: str) -> CompanyName:
    """Names of parts with a reading each (`瑞 zui`); the form (`_` is a space) stands before or after them."""
    (head, head_reading), (tail, tail_reading), (trade, trade_reading) = (
        part.split(" ") for part in (head, tail, trade)
    )
    legal, position = form.split(" ")
    name = head + tail + trade
    legal = legal.replace("_", " ")
    full = legal + name if position == "before" else name + legal
    return CompanyName(full, head, legal.strip(), f"{head_reading}{tail_reading}-{trade_reading}.example")


def _domain(words: list[str], draws: Draws, locale: str) -> str:
    slugs = [_slug(word.lower().translate(_GERMAN) if locale.startswith("de") else word) for word in words]
    kept = slugs if draws.chance("long domain", 650) else slugs[:1]
    return f"{'-'.join(kept)}.example"


_GERMAN = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
_TRANSCRIBED = str.maketrans({"ł": "l", "ø": "o", "ı": "i", "đ": "d"})
"""Letters that are no base letter with a mark; of those, a host name has the base letter."""


def _slug(text: str) -> str:
    """Letters and digits of a host name, words set apart by hyphens."""
    transcribed = text.lower().translate(_TRANSCRIBED)
    ascii_only = unicodedata.normalize("NFKD", transcribed).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")
