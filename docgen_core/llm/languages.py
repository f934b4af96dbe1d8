"""Languages that texts are written in, and whether a text is in another one than it was asked for in.

What a language writes and rules out is one file of data/gates; a language is added as a file. A text
is told by its small words and its letters, since models fall back into English, and into what lies
near. What does not belong here: what the words of a text say (gates.py).
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from docgen_core.errors import UsageError

_DATA = files("docgen_core.llm") / "data" / "gates"
LANGUAGES = tuple(sorted(entry.name.removesuffix(".toml") for entry in _DATA.iterdir()))
"""ISO 639-1 codes."""

_WORD = re.compile(r"(?<![\w-])[^\W\d_]+(?:['’]|(?![\w-]))")
"""A word without digits, and with its apostrophe (`l'`, `dell'`); half of a compound (`die-cut`) is none."""
_NATIVE = {"ja": re.compile(r"[\u3041-\u309f]"), "ko": re.compile(r"[\uac00-\ud7a3]")}
"""What no sentence is without: Japanese particles are hiragana, and what has none is Chinese or no sentence."""
_KANA = r"\u3040-\u30ff"
_IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff"
_HANGUL = r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_ELSEWHERE = r"\u0400-\u052f\u0590-\u08ff\u0900-\u0dff\u0e00-\u0eff"
"""Cyrillic, Hebrew, Arabic, the scripts of India, Thai, Lao: no catalogue here is written in them."""
_FOREIGN = {
    "ja": re.compile(f"[{_HANGUL}{_ELSEWHERE}]"),
    "ko": re.compile(f"[{_KANA}{_IDEOGRAPHS}{_ELSEWHERE}]"),
}
_FOREIGN_TO_LATIN = re.compile(f"[{_KANA}{_IDEOGRAPHS}{_HANGUL}{_ELSEWHERE}]")


@dataclass(frozen=True, slots=True)
class Language:
    """How a language is named and told."""

    english_name: str
    longest_asked: int
    """Characters of a description that a model is asked for, well below what the gates let pass."""
    words: frozenset[str] = frozenset()
    """Small words in lower case."""
    letters: frozenset[str] = frozenset()
    """Letters beyond ASCII, of its own words and of those that it borrows."""
    script: re.Pattern[str] | None = None
    """A character of its own script; None for the Latin one."""

    @property
    def is_dense(self) -> bool:
        """Whether a character is a syllable or a word, and some tokens: Japanese and Korean."""
        return self.script is not None


def data_of(code: str) -> dict[str, Any]:
    """The language's file. Raises `UsageError` for a language that has none."""
    if code not in LANGUAGES:
        raise UsageError(f"no rules for texts in {code!r}; there are {', '.join(LANGUAGES)}")
    return tomllib.loads((_DATA / f"{code}.toml").read_text(encoding="utf-8"))


@cache
def language(code: str) -> Language:
    """A language by its ISO 639-1 code. Raises `UsageError` where there is none."""
    told = data_of(code)["language"]
    return Language(
        told["english_name"],
        told["longest_asked"],
        frozenset(told.get("words", ())),
        frozenset(told.get("letters", "")),
        re.compile(told["script"]) if "script" in told else None,
    )


def is_in_another_script(text: str, code: str, *, sentence: bool) -> bool:
    """Whether there are characters that the language is not written in, or a sentence has none of its own."""
    if _FOREIGN.get(code, _FOREIGN_TO_LATIN).search(text):
        return True
    own = _NATIVE.get(code)
    return sentence and own is not None and not own.search(text)


def is_in_another_language(text: str, code: str) -> bool:
    """Whether the text has more words of another language than of this one."""
    told = Counter(spoken for word in _words(text) for spoken in _spoken(word))
    return bool(told) and max(told.values()) > told[code]


def _words(text: str) -> Iterator[str]:
    """The words in lower case, without single capitals, which are sizes and classes."""
    for found in _WORD.finditer(text):
        word = found[0].replace("’", "'").replace("İ", "i")
        if len(word) > 1 or word.islower():
            yield word.lower()


@lru_cache(maxsize=10_000)
def _spoken(word: str) -> tuple[str, ...]:
    """The languages that a word tells: once as a small word of theirs, once by its letters."""
    beyond = {char for char in word if not char.isascii()}
    told = []
    for code in LANGUAGES:
        spoken = language(code)
        native = spoken.script is not None and bool(spoken.script.search(word))
        by_letters = native or (bool(beyond) and beyond <= spoken.letters)
        told += [code] * ((word in spoken.words) + by_letters)
    return tuple(told)
