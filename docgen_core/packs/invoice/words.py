"""The words documents print, in the language of the document and the wording of the company.

The wordings are data (`data/words.toml`). What does not belong here: anything that comes with a
record (names, units, tax labels, terms, notes), and numbers and dates.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType

from docgen_core.draws import Draws

Wordings = Mapping[str, Sequence[str]]
"""By key, the wordings that mean the same."""


@cache
def wordings(locale: str) -> Wordings:
    """Every wording of a locale (`de-DE`) or language (`de`), by key; a locale's own ones before its language's.

    Raises KeyError for a language without words.
    """
    said = _said()
    entries = {**said[locale.split("-")[0]], **said.get(locale, {})}
    return {key: [value] if isinstance(value, str) else value for key, value in entries.items()}


@cache
def _said() -> Mapping[str, Mapping[str, str | list[str]]]:
    data = files("docgen_core.packs.invoice").joinpath("data/words.toml").read_text(encoding="utf-8")
    return tomllib.loads(data)


@lru_cache(maxsize=1024)
def words_for(locale: str, company_seed: int) -> Mapping[str, str]:
    """The wording a company keeps for every key, in `locale` (`de-DE`) or language, drawn from its seed."""
    draws = Draws("words", locale.split("-")[0], company_seed)
    return MappingProxyType({key: draws.choice(key, options) for key, options in wordings(locale).items()})
