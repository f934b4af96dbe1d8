"""Gates on text: what may be printed of what a model (or a data file) says, each rejection with its rule.

Texts are judged with their characters made plain: NFKC, without invisible characters, HTML escapes
undone. What a language rules out stands in data/gates/*.toml. What does not belong here: reading
replies (replies.py), and what becomes of an item whose text was turned down.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from stdnum import iban

from docgen_core.llm.languages import LANGUAGES, data_of, is_in_another_language, is_in_another_script, language

ESCAPES_UNDONE = 3
"""Rounds of undoing HTML escapes: models escape what is escaped already."""
ECHO_CHARACTERS = 28
"""A run of characters this long that also stands in the instructions was copied out of them."""
ECHO_CHARACTERS_OF_DENSE = 12
"""The same where a character says more."""


class Rule(StrEnum):
    """Why a text was turned down; in this order, the first that holds."""

    EMPTY = "empty"
    EMAIL = "email"
    URL = "url"
    PHONE = "phone"
    IBAN = "iban"
    MARKUP = "markup"
    PREAMBLE = "preamble"
    """The model talks to us instead of doing what it was asked for."""
    ECHO = "echo"
    """A piece of the prompt."""
    PLACEHOLDER = "placeholder"
    PERSON = "person"
    """An honorific with a name."""
    MARKETING = "marketing"
    SCRIPT = "script"
    """Letters that the language is not written in."""
    LANGUAGE = "language"
    """A sentence in another language."""
    CHARACTERS = "characters"
    """Control characters, line ends, invisible or undefined characters."""
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    DUPLICATE = "duplicate"


class Field(StrEnum):
    """What a text is for; lengths go by it."""

    NAME = "name"
    DESCRIPTION = "description"


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a language rules out, and how long its texts are."""

    patterns: dict[Rule, tuple[re.Pattern[str], ...]]
    lengths: dict[Field, tuple[int, int]]


def check_text(text: str, code: str, field: Field, *, instructions: str = "") -> Rule | None:
    """The rule that turns the text down; None when it may be printed.

    `code` is the ISO 639-1 code of its language, and `instructions` the fixed part of the prompt, for
    the echo. Raises `UsageError` for a language that has no rules.
    """
    rules = _rules(code)
    if len(text) > FAR_TOO_LONG * rules.lengths[field][1]:
        return Rule.TOO_LONG
    plain = plain_characters(text).strip()
    return (
        (Rule.EMPTY if not any(char.isalnum() for char in plain) and not _PLACEHOLDER_SIGNS.search(plain) else None)
        or _contact(plain)
        or (Rule.MARKUP if _MARKUP.search(plain) or _ENTITY.search(text) else None)
        or _worded(plain, code)
        or (Rule.ECHO if _echoes(plain, instructions, code) else None)
        or _foreign(plain, code, is_sentence=field is Field.DESCRIPTION)
        or (Rule.CHARACTERS if any(_odd(char) for char in text) else None)
        or _length(plain, rules.lengths[field])
    )


def plain_characters(text: str) -> str:
    """The text as a reader sees it: escapes undone, NFKC, nothing invisible."""
    for _ in range(ESCAPES_UNDONE):
        if (undone := html.unescape(text)) == text:
            break
        text = undone
    if not text.isprintable() or _PRINTABLE_INVISIBLE.search(text):
        text = "".join(char for char in text if not _invisible(char))
    return unicodedata.normalize("NFKC", text)


def meaning_key(text: str) -> str:
    """What two texts have in common that a reader takes for the same.

    NFKC, case, spaces, and × for x do not count; a space between two digits does, and so do raised
    digits and fractions after a digit (10² is not 102, 1½ is not 11/2).
    """
    # Most names are plain as they are, and a catalogue asks for each of them.
    plain = plain_characters(text if unicodedata.is_normalized("NFKC", text) else _raised(text))
    plain = plain.casefold().replace("×", "x").replace("✕", "x")
    plain = re.sub(r"(?<=\d)\s+(?=\d)", "_", plain)
    return "".join(plain.split())


def _raised(text: str) -> str:
    """The text with a mark where a raised or lowered digit, or a fraction, follows a digit: NFKC would join the two."""
    parts: list[str] = []
    for char in text:
        form = unicodedata.decomposition(char).partition(" ")[0]
        if form in {"<super>", "<sub>", "<fraction>"} and parts and parts[-1][-1:].isdecimal():
            parts.append("^")
        parts.append(char)
    return "".join(parts)


class Gate:
    """The gate that all texts of one company pass, in order: keeps what was there, and counts what it turned down."""

    def __init__(self, language: str, *, instructions: str = "") -> None:
        self._language, self._instructions = language, instructions
        self._seen: dict[Field, set[str]] = {field: set() for field in Field}
        self.accepted: Counter[str] = Counter()
        """By writer."""
        self.rejected: Counter[tuple[str, Rule]] = Counter()
        """By writer and rule."""

    def admit(self, text: str, field: Field, writer: str, *, unique: bool = True) -> Rule | None:
        """The rule that turns the text down; None admits it, and no other that means the same after it.

        `unique` is for texts that must differ within a company, as names must.
        """
        rule = check_text(text, self._language, field, instructions=self._instructions)
        key = meaning_key(text)
        if rule is None and unique and key in self._seen[field]:
            rule = Rule.DUPLICATE
        if rule is not None:
            self.rejected[writer, rule] += 1
            return rule
        self._seen[field].add(key)
        self.accepted[writer] += 1
        return None


# What every language rules out ------------------------------------------------------------------

FAR_TOO_LONG = 10
"""Times the longest text: no other rule is looked for in a model's endless one, which would take minutes."""
_PLACEHOLDER_SIGNS = re.compile(r"^[-–—.…_*?]+$")
_TAGS = (
    "a|abbr|article|b|big|blockquote|body|br|center|code|dd|div|dl|dt|em|font|form|h[1-6]|head|hr|html|i|iframe|img"
    "|input|li|link|meta|ol|p|pre|s|script|section|small|span|strike|strong|style|sub|sup|svg|table|tbody|td|th"
    "|thead|title|tr|u|ul"
)
_MARKUP = re.compile(
    rf"<\s*/?\s*(?:{_TAGS})(?:\s[^<>]*)?/?\s*>|<!--|</\w+\s*>|<\?xml"
    r"|`{1,3}[^`]+`{1,3}|```|\*\*[^*\s][^*]*\*\*|(?<!\w)__[^_\s][^_]*__(?!\w)|\[[^\]]+\]\([^)]*\)"
    r"|^\s*#{1,6}\s+\S|^\s*[-*•]\s+\S|^\s*\|.*\|\s*$|\[/?(?:b|i|u|url|img|code)\b[^\]]*\]|\\(?:textbf|textit|emph)\{"
    r"|\{\{.*?\}\}|\{%|\$\{\w+\}|%\(\w+\)s|^\s*[{\[]\s*\"",
    re.IGNORECASE | re.MULTILINE,
)
_ENTITY = re.compile(r"&(?:#\d+|#x[0-9a-f]+|[a-z]{2,8});", re.IGNORECASE)
_AT = "at|ät|arobase|arroba|chiocciola|apenstaartje|małpa|snabel-a|골뱅이"
_EMAIL = re.compile(
    rf"[\w.+%-]+\s*@\s*[\w-]+(?:\s*\.\s*[\w-]+)+|\b[\w.+-]+\s*[\[({{]\s*(?:@|{_AT})\s*[\])}}]\s*[\w-]+"
    rf"|\b[\w.+-]+\s+(?:{_AT})\s+[\w-]+\s+(?:dot|punkt|punt|punto|ponto|point|kropka|nokta)\s+[a-z]{{2,}}\b",
    re.IGNORECASE,
)
_URL = re.compile(
    r"(?i:\b(?:https?|ftp)\s*:\s*/\s*/|\bwww\s?\.\s?\w|\bmailto:)"
    r"|\b[\w-]{2,}\.(?:com|net|org|info|biz|shop|store|online|example|invalid)\b(?!\.?\d)"
    r"|\b[a-z][a-z-]{2,}\.(?:de|jp|fr|es|it|br|mx|nl|pl|se|tr|kr|io|co|eu|at|ch|uk|us|app|dev)\b(?:/|(?=[\s,.;:)]|$))"
    r"|\b[A-Z][A-Z-]{2,}\.(?:COM|ORG)\b"
)
_DIGITS_TO_CALL = re.compile(r"[\s.:]*\(?\+?\d(?:[\s()./–-]*\d){5,14}")
_PHONE = re.compile(
    r"(?<![A-Za-z0-9+])\+\s?[1-9]\d{0,2}[\s().–-]*\d(?:[\s().–-]?\d){6,12}(?![A-Za-z0-9])"  # international
    r"|(?<![A-Za-z0-9-])00(?:1|3[1-49]|4[1-49]|61|81|82|86|91)[\s/-]\(?\d{2,5}\)?[\s/-]?\d{3,}"
    r"|(?<![A-Za-z0-9-])(?:1[-.\s])?\([2-9]\d{2}\)\s?\d{3}[-.\s]\d{4}(?![A-Za-z0-9-])"  # North America
    r"|(?<![A-Za-z0-9.-])[2-9]\d{2}-[2-9]\d{2}-\d{4}(?![A-Za-z0-9-])"
    r"|(?<![A-Za-z0-9-])0\d{2,4}\s?/\s?\d{5,8}(?![A-Za-z0-9-])"  # Germany
    r"|(?<![A-Za-z0-9-])0800[\s-]\d{3}[\s-]?\d{3,4}(?![A-Za-z0-9-])"
    r"|(?<![A-Za-z0-9-])(?:0(?:\d-\d{4}|\d{2}-\d{3,4}|\d{3}-\d{2})-\d{4}|0120-\d{3}-\d{3})(?![A-Za-z0-9-])"  # Japan
    r"|(?<![A-Za-z0-9-])02-\d{3}-\d{4}(?![A-Za-z0-9-])"  # Seoul
    r"|(?<![A-Za-z0-9.-])0[1-9](?:([\s.])\d{2})(?:\1\d{2}){3}(?![A-Za-z0-9-])"  # France
    r"|(?<![A-Za-z0-9-])\(\d{2}\)\s?9?\d{4}-\d{4}(?![A-Za-z0-9-])"  # Brazil
    r"|(?<![A-Za-z0-9-])0\d{2}-\d{7}(?![A-Za-z0-9-])"  # the Netherlands
    r"|(?<![A-Za-z0-9-])0\d{1,3}-\d{2,3} \d{2,3} \d{2}(?![A-Za-z0-9-])"  # Sweden
    r"|(?<![A-Za-z0-9-])\(?0[2-5]\d{2}\)?\s\d{3}\s\d{2}\s\d{2}(?![A-Za-z0-9-])"  # Türkiye
    r"|[☎☏✆📞]\s*[\d+(]"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\s?\d{2}(?:[\s-]?[A-Z0-9]{4}){2,7}(?:[\s-]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_IBAN_WORD = re.compile(r"\bIBAN\b\s*:?\s*[A-Z]{2}\s?\d", re.IGNORECASE)
_EXCLAMATION = re.compile(r"!(?!=)")


def _contact(plain: str) -> Rule | None:
    if _EMAIL.search(plain):
        return Rule.EMAIL
    if _URL.search(plain):
        return Rule.URL
    if _IBAN_WORD.search(plain) or any(iban.is_valid(found[0]) for found in _IBAN.finditer(plain)):
        return Rule.IBAN
    called = (word.end() for call in _calls() for word in call.finditer(plain))
    if _PHONE.search(plain) or any(_DIGITS_TO_CALL.match(plain, end) for end in called):
        return Rule.PHONE
    return None


def _worded(plain: str, code: str) -> Rule | None:
    """Rules by words: those of the language, and English ones, since models fall back into English."""
    for rule in (Rule.PREAMBLE, Rule.ECHO, Rule.PLACEHOLDER, Rule.PERSON, Rule.MARKETING):
        for spoken in dict.fromkeys((code, "en")):
            if any(pattern.search(plain) for pattern in _rules(spoken).patterns[rule]):
                return rule
        if rule is Rule.MARKETING and _EXCLAMATION.search(plain):
            return rule
    return None


def _echoes(plain: str, instructions: str, code: str) -> bool:
    length = ECHO_CHARACTERS_OF_DENSE if language(code).is_dense else ECHO_CHARACTERS
    key = meaning_key(plain)
    return any(key[start : start + length] in _runs(instructions, length) for start in range(len(key) - length + 1))


@cache
def _runs(instructions: str, length: int) -> frozenset[str]:
    key = meaning_key(instructions)
    return frozenset(key[start : start + length] for start in range(len(key) - length + 1))


def _foreign(plain: str, code: str, *, is_sentence: bool) -> Rule | None:
    """A name may be nothing but a brand or a size, or come out of another language; a sentence is in one."""
    if is_in_another_script(plain, code, sentence=is_sentence):
        return Rule.SCRIPT
    return Rule.LANGUAGE if is_sentence and is_in_another_language(plain, code) else None


def _length(plain: str, bounds: tuple[int, int]) -> Rule | None:
    shortest, longest = bounds
    return Rule.TOO_SHORT if len(plain) < shortest else Rule.TOO_LONG if len(plain) > longest else None


_PRINTABLE_INVISIBLE = re.compile("[\ufe00-\ufe0f\u034f\u115f\u1160\u3164]")
"""Variation selectors and fillers: printable characters, as Unicode has it, that print nothing."""


def _invisible(char: str) -> bool:
    """Format characters, variation selectors and fillers: they print nothing."""
    return unicodedata.category(char) == "Cf" or _PRINTABLE_INVISIBLE.match(char) is not None


def _odd(char: str) -> bool:
    return _invisible(char) or char == "\ufffd" or unicodedata.category(char) in {"Cc", "Cs", "Co", "Cn", "Zl", "Zp"}


# The data files ---------------------------------------------------------------------------------


@cache
def _rules(code: str) -> _Rules:
    data = data_of(code)
    worded = (Rule.PREAMBLE, Rule.ECHO, Rule.PLACEHOLDER, Rule.PERSON, Rule.MARKETING)
    return _Rules(
        {
            rule: (*_compiled(data[rule].get("patterns", ()), re.I), *_compiled(data[rule].get("exact", ())))
            for rule in worded
        },
        {Field(name): (bounds[0], bounds[1]) for name, bounds in data["length"].items()},
    )


@cache
def _calls() -> tuple[re.Pattern[str], ...]:
    """Words of each language that make a number after them one to call."""
    return tuple(_compiled((word for code in LANGUAGES for word in data_of(code)["call"]["patterns"]), re.I))


def _compiled(patterns: Iterable[str], flags: int = 0) -> Iterable[re.Pattern[str]]:
    return [re.compile(pattern, flags) for pattern in patterns]
