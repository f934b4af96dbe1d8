"""Invented item numbers: SKUs, GTINs and series letters that name nothing real.

Numbers run through the product ids by fixed permutations, so that they are unique within a
company without remembering which were given.
"""

from __future__ import annotations

from stdnum import ean

from docgen_core.draws import Draws
from docgen_core.packs.invoice.catalogue import content

_ITEM_NUMBERS = 10_000
"""Item numbers a company has; more than the products a catalogue spec may ask for."""
_STRIDE = 7_919
"""Coprime to `_ITEM_NUMBERS`: item numbers are spread, and none comes twice."""
_SKU_STYLES = ("prefixed", "plain", "family", "grouped", "suffixed")


def item_number(draws: Draws, product_id: int) -> int:
    """0..9999, different for each product of a company (`draws` are the company's)."""
    return (draws.integer("item_offset", 0, _ITEM_NUMBERS - 1) + product_id * _STRIDE) % _ITEM_NUMBERS


def sku(draws: Draws, prefix: str, family: str, product_id: int) -> str:
    """The company's item number in the one style it uses."""
    number = item_number(draws, product_id)
    group = draws.integer(f"sku_group/{family}", 10, 89)
    match draws.choice("sku_style", _SKU_STYLES):
        case "prefixed":
            return f"{prefix}-{number:05d}"
        case "plain":
            return f"{draws.integer('sku_head', 10, 99)}{number:04d}"
        case "family":
            return f"{_initials(family)}{number:04d}"
        case "grouped":
            return f"{group}.{number:04d}"
        case _:
            return f"{prefix}{group}-{number:04d}"


def gtin(draws: Draws, product_id: int) -> str:
    """A valid GTIN-13 within a restricted-circulation prefix of GS1."""
    body = (
        draws.choice("ean_prefix", content.codes().ean_prefixes)
        + f"{draws.integer('ean_company', 0, 99_999):05d}{item_number(draws, product_id):04d}"
    )
    return body + str(ean.calc_check_digit(body))


def series(draws: Draws, family: str) -> str:
    """Two invented letters for the company's own series of a family."""
    codes = content.codes()
    for attempt in range(len(codes.letters) ** 2):
        pair = "".join(draws.choice(f"series/{family}/{attempt}/{place}", codes.letters) for place in range(2))
        if pair not in codes.avoid:
            return pair
    raise ValueError("every series code is to be avoided")


def _initials(family: str) -> str:
    words = family.split("_")
    return (words[0][:1] + (words[1][:1] if len(words) > 1 else words[0][1:2])).upper()
