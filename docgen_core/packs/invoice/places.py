"""Towns with their postcodes, and addresses in the form of the country's post.

Town and postcode belong together (public facts); the street or quarter is put together from
invented parts. Japanese codes end in 0000, the code of a municipality's unlisted quarters, so an
invented quarter contradicts nothing.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any

from docgen_core.draws import Draws

_DATA = files("docgen_core.packs.invoice").joinpath("data")


@dataclass(frozen=True, slots=True)
class Place:
    """A town, and what follows from it."""

    postcode: str
    city: str
    region: str
    """State, Land or prefecture."""
    facts: Mapping[str, str]
    """The country's further columns: register court, area code, local tax rate."""


def table(path: str) -> list[dict[str, str]]:
    """Rows of a tab-separated data file under `data/`, by the names in its first line."""
    text = _DATA.joinpath(path).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


@cache
def places(country: str) -> tuple[Place, ...]:
    """The towns of a country (`DE`), in the data file's order."""
    return tuple(
        Place(row.pop("postcode"), row.pop("city"), row.pop("region"), row)
        for row in table(f"places/{country.lower()}.tsv")
    )


@cache
def regions(country: str) -> Mapping[str, tuple[Place, ...]]:
    """The towns of a country by region."""
    grouped: dict[str, list[Place]] = {}
    for place in places(country):
        grouped.setdefault(place.region, []).append(place)
    return {region: tuple(members) for region, members in grouped.items()}


@cache
def name_parts(locale: str) -> Mapping[str, Any]:
    """The parts that invented names are put together from: the language's, and in their place the locale's own."""
    parts: dict[str, Any] = {}
    for name in dict.fromkeys((locale.split("-")[0], locale)):
        file = _DATA.joinpath(f"names/{name}.toml")
        if file.is_file():
            parts.update(tomllib.loads(file.read_text(encoding="utf-8")))
    return parts


def german_address(draws: Draws, place: Place) -> tuple[str, ...]:
    """Street and number, then postcode and town."""
    street_name = street(draws, "de", "{head}{tail}{end}")
    return (f"{street_name} {draws.integer('number', 1, 180)}{draws.choice('letter', _LETTERS)}", _town(place))


_LETTERS = ("", "", "", "", "", "", "a", "b", "c")


def _town(place: Place) -> str:
    return f"{place.postcode} {place.city}"


def american_address(draws: Draws, place: Place) -> tuple[str, ...]:
    """Number and street, often a suite, then city, state and ZIP code."""
    name = street(draws, "en-US", "{head} {tail} {end}")
    lines = [f"{draws.integer('number', 100, 9899)} {name}"]
    if draws.chance("has suite", 450):
        lines.append(f"{draws.choice('suite', name_parts('en-US')['suites'])} {draws.integer('suite number', 2, 980)}")
    return (*lines, f"{place.city}, {place.region} {place.postcode}")


def japanese_address(draws: Draws, place: Place) -> tuple[str, ...]:
    """〒 and code; prefecture, municipality, quarter and block; sometimes a building."""
    parts = name_parts("ja")
    quarter = draws.choice("town head", parts["town_heads"]) + draws.choice("town tail", parts["town_tails"])
    block = "-".join(str(draws.integer(step, 1, most)) for step, most in (("chome", 6), ("ban", 28), ("go", 18)))
    lines = [f"〒{place.postcode}", f"{place.region}{place.city}{quarter}{block}"]
    if draws.chance("has building", 400):
        lines.append(f"{draws.choice('building', parts['buildings'])}{draws.integer('floor', 2, 12)}階")
    return tuple(lines)


def street(draws: Draws, locale: str, pattern: str) -> str:
    """A street's invented name in a pattern of pieces: `{head}` is one of the locale's `street_heads`."""
    parts = name_parts(locale)
    pieces = [piece for _, piece, _, _ in Formatter().parse(pattern) if piece]
    return pattern.format_map({piece: draws.choice(f"street {piece}", parts[f"street_{piece}s"]) for piece in pieces})


def german_phone(draws: Draws, place: Place) -> str:
    """From the numbers that the Bundesnetzagentur keeps free for film and television.

    Five towns have such a block of a thousand; the nearest one is taken.
    """
    area = place.facts["drama"]
    return f"{area} {_DRAMA_BLOCKS[area]}{draws.integer('phone', 0, 999):03d}"


_DRAMA_BLOCKS = {"030": "23125 ", "040": "66969 ", "069": "90009 ", "089": "99998 ", "0221": "4710 "}


def american_phone(draws: Draws, place: Place) -> str:
    """555-0100 to 555-0199, kept free for fiction in each area code."""
    return f"({place.facts['area_code']}) 555-01{draws.integer('phone', 0, 99):02d}"


def japanese_phone(draws: Draws, place: Place) -> str:
    """A number that cannot be dialled: Japan keeps none free for fiction.

    Local exchanges begin with 2 to 9, since 0 and 1 begin trunk prefixes and special services;
    an exchange that begins with 0 is therefore never assigned.
    """
    area = place.facts["area_code"]
    width = _JAPANESE_DIGITS - len(area) - _SUBSCRIBER_DIGITS
    exchange = f"{draws.integer('exchange', 1, 10 ** (width - 1) - 1):0{width}d}"
    return f"{area}-{exchange}-{draws.integer('phone', 0, 9999):04d}"


_JAPANESE_DIGITS = 10
_SUBSCRIBER_DIGITS = 4
