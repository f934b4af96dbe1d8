"""From a record to a page: what a page is, and the log of every golden value printed on it.

A golden value is printed through `PrintLog.show`, which wraps it in a link that names it
(`golden:TABLE/ROW_KEY/COLUMN/OCCURRENCE`); the print then holds a link annotation on each
fragment of the value, and its rectangle is the value's box.

What does not belong here: a document type's words or looks (its pack), and the browser.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from unicodedata import normalize
from urllib.parse import quote

from markupsafe import Markup, escape


@lru_cache(maxsize=4096)
def _step(text: str) -> str:
    """One step of a link target; the same few table and column names come again and again."""
    return quote(text, safe="")


@dataclass(frozen=True, slots=True)
class Print:
    """One place where one golden value is printed."""

    table: str
    row_key: str
    column: str
    occurrence: int
    """From 0, in document order, for a value that is printed more than once."""
    text: str
    """As printed; empty for a value that a picture says."""
    value: str
    """The golden value in canonical form: decimals without exponent or needless zeros beyond the
    currency's, ISO dates, text as it is."""

    @property
    def href(self) -> str:
        """The link target that marks this place; it holds no character that markup escapes."""
        return f"golden:{_step(self.table)}/{_step(self.row_key)}/{_step(self.column)}/{self.occurrence}"


@dataclass(slots=True)
class PrintLog:
    """Collects prints while a template renders. One per page."""

    prints: list[Print] = field(default_factory=list)
    _seen: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def show(self, table: str, row_key: str, column: str, text: str, value: str) -> Markup:
        """The markup that prints `text` (in NFC) and marks it as golden `value`; empty text prints nothing."""
        text = normalize("NFC", text)
        if not text:
            return Markup("")
        entry = self._log(table, row_key, column, text, value)
        return Markup(f'<a href="{entry.href}">{escape(text)}</a>')

    def draw(self, table: str, row_key: str, column: str, picture: Markup, value: str) -> Markup:
        """The markup of a picture that says golden `value`, such as a bar code. It holds no text."""
        entry = self._log(table, row_key, column, "", value)
        return Markup(f'<a class="drawn" href="{entry.href}">{picture}</a>')

    def _log(self, table: str, row_key: str, column: str, text: str, value: str) -> Print:
        key = (table, row_key, column)
        occurrence = self._seen.get(key, 0)
        self._seen[key] = occurrence + 1
        entry = Print(table, row_key, column, occurrence, text, value)
        self.prints.append(entry)
        return entry


@dataclass(frozen=True, slots=True)
class Page:
    """What a pack hands to the renderer: markup that needs nothing from outside."""

    body: str
    """Inner HTML of `<body>`. No scripts, no URLs but `golden:` links and `data:` images."""
    style: str
    """CSS, with `@page` rules for format, margins and running texts ("Page n of N")."""
    lang: str
    """BCP 47 language of the document."""
    title: str
    """For the file's metadata."""
    author: str
    """The issuing (invented) company, for the file's metadata."""
    prints: tuple[Print, ...]
    running_text: str = ""
    """Characters that margin boxes print, so that glyph coverage is checked for them too."""
