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
def wordings(language: str) -> Wordings:
    """Every wording of a language (`de`), by key. Raises KeyError for a language without words."""
    data = files("docgen_core.packs.invoice").joinpath("data/words.toml").read_text(encoding="utf-8")
    entries: dict[str, str | list[str]] = tomllib.loads(data)[language]
    return {key: [value] if isinstance(value, str) else value for key, value in entries.items()}


@lru_cache(maxsize=1024)
def words_for(language: str, company_seed: int) -> Mapping[str, str]:
    """The wording a company keeps for every key, in `language` (`de`), drawn from its seed."""
    draws = Draws("words", language, company_seed)
    return MappingProxyType({key: draws.choice(key, options) for key, options in wordings(language).items()})
