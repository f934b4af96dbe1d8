"""Reading what a model answered: the whole items in a reply, whatever stands around them.

Models put JSON into fences, write prose around it, think aloud first, wrap the list into an object,
and are cut off in the middle. A reply never raises, gives nothing from inside the thinking, and no
item that is not whole. What does not belong here: whether a text is fit to print (gates.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # of the standard library, without a stub
from typing import Any

MAX_DEPTH = 32
"""Of nested lists and objects; what is deeper is no answer to any prompt of ours."""

Item = dict[str, Any]

_LANDMARK = re.compile(
    r"(?P<opens_thought><(?:seed:)?(?:think|thinking|thought|reasoning|scratchpad)(?:\s[^<>]*)?>|\[THINK\])"
    r"|(?P<closes_thought></(?:seed:)?(?:think|thinking|thought|reasoning|scratchpad)\s*>|\[/THINK\]"
    r"|<\|channel\|>final<\|message\|>)"
    r"|(?P<fence>`{3,}|~{3,})(?P<language>[\w+#.-]*)"
    r"|(?P<value>[\[{])",
    re.IGNORECASE,
)
_CLOSES_THOUGHT = re.compile(r"</(?:seed:)?(?:think|thinking|thought|reasoning|scratchpad)\s*>|\[/THINK\]", re.I)
_SPACE = re.compile(r"[\s\ufeff]*")
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_DATA_LANGUAGES = {"", "json", "json5", "jsonc", "jsonl", "ndjson", "text", "txt", "plaintext"}
"""Of fences that hold an answer; what a fence of another language holds counts only where nothing else does."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The whole items of a reply, in its order."""

    items: tuple[Item, ...]
    truncated: bool
    """Whether the reply ends, or cannot be read on, before its list does: the rest is asked for again."""


@dataclass(frozen=True, slots=True)
class _Found:
    """One JSON value of the reply that holds items, or that was cut off before it held any."""

    items: tuple[Item, ...]
    whole: bool
    is_list: bool
    foreign: bool
    """In a fence of another language."""


def read_reply(text: str, *, keys: Sequence[str] = ("name",), cut: bool = False) -> Reply:
    """The items of a model's reply: objects whose `keys` are texts that are not blank.

    `cut` says that the vendor reported a cut (finish reason "length"). Of several lists the longest
    is the answer, of equally long ones the last; objects one after the other are a list too.
    """
    found = list(_values(text, keys))
    own = [value for value in found if not value.foreign] or found
    lists = [value for value in own if value.is_list]
    if lists:
        answer = max(enumerate(lists), key=lambda place: (len(place[1].items), place[0]))[1]
        return Reply(answer.items, cut or not answer.whole)
    items = tuple(item for value in own for item in value.items)
    return Reply(items, cut or not all(value.whole for value in own))


def _values(text: str, keys: Sequence[str]) -> Iterator[_Found]:
    """Every value outside of thinking that holds items; what came before the end of a thought is dropped."""
    found: list[_Found] = []
    position, language = 0, ""
    in_fence = False
    while mark := _LANDMARK.search(text, position):
        position = mark.end()
        if mark["opens_thought"]:
            end = _CLOSES_THOUGHT.search(text, position)
            if end is None:  # it thought until it was cut off
                found.append(_Found((), False, False, False))
                break
            position = end.end()
        elif mark["closes_thought"]:
            found, in_fence, language = [], False, ""
        elif mark["fence"]:
            in_fence = not in_fence or bool(mark["language"])
            language = mark["language"].lower() if in_fence else ""
        else:
            reader = _Reader(text, mark.start())
            value = reader.value()
            items = tuple(_items(value, keys))
            if items or (reader.cut and _begins_list(text, mark.start())):
                is_list = isinstance(value, list) or not _is_item(value, keys)
                found.append(_Found(items, reader.whole, is_list, language not in _DATA_LANGUAGES))
                position = max(position, reader.position)
            elif reader.whole or reader.too_deep:
                position = max(position, reader.position)
    yield from found


def _begins_list(text: str, start: int) -> bool:
    """Whether this is a list of objects, or an object, and not a bracket in prose."""
    return re.match(r'\[\s*(?:\{|$)|\{\s*(?:"|$)', text[start : start + 64]) is not None


def _items(value: Any, keys: Sequence[str]) -> Iterator[Item]:
    """Items in a list, in what wraps the list, or the one item that the value is."""
    if isinstance(value, list):
        for part in value:
            if _is_item(part, keys):
                yield part
            else:
                yield from _items(part, keys)
    elif isinstance(value, dict):
        listed = [item for part in value.values() if isinstance(part, list) for item in _items(part, keys)]
        if listed:
            yield from listed
        elif _is_item(value, keys):
            yield value
        else:
            for part in value.values():
                # A part of what may be half an item is no item: it could be its maker.
                if not _is_item(part, keys) or not isinstance(value, _Partial):
                    yield from _items(part, keys)


def _is_item(value: Any, keys: Sequence[str]) -> bool:
    return isinstance(value, dict) and not isinstance(value, _Partial) and all(_is_text(value.get(key)) for key in keys)


def _is_text(value: Any) -> bool:
    """Printable as it stands: half a surrogate pair is half a character, and no store takes it."""
    return isinstance(value, str) and bool(value.strip()) and not any("\ud800" <= char <= "\udfff" for char in value)


class _Partial(dict[str, Any]):
    """An object that was cut off: its members may hold whole items, but it is none itself."""


class _Reader:
    """Reads one JSON value as far as it goes. `whole` says whether that was to its end."""

    def __init__(self, text: str, position: int) -> None:
        self.position, self.whole, self.cut, self.too_deep = position, True, False, False
        """`cut`: the text ended first; `too_deep`: nothing that it begins with is worth a second look."""
        self._text = text

    def value(self) -> Any:
        """The value, without the parts that are not whole; None for what is no value."""
        return self._value(0)

    def _value(self, depth: int) -> Any:
        here = self._next()
        if depth > MAX_DEPTH:
            self.too_deep = True
            return self._broken()
        if here == "[":
            return self._list(depth)
        if here == "{":
            return self._object(depth)
        if here == '"':
            return self._string()
        if scalar := _SCALAR.match(self._text, self.position):
            self.position = scalar.end()
            try:
                return json.loads(scalar[0])
            except ValueError:  # more digits than an integer may have
                return None
        return self._broken()

    def _list(self, depth: int) -> list[Any]:
        values: list[Any] = []
        self.position += 1
        while self._next() != "]":
            value = self._value(depth + 1)
            if not self.whole:
                return [*values, value] if isinstance(value, list) else values
            values.append(value)
            if not self._separated("]"):
                return values
        self.position += 1
        return values

    def _object(self, depth: int) -> Item:
        members: Item = {}
        self.position += 1
        while self._next() != "}":
            key = self._key()
            value = self._value(depth + 1) if self.whole else None
            if not self.whole:
                return _Partial({**members, key: value} if isinstance(value, list | _Partial) else members)
            members[key] = value
            if not self._separated("}"):
                return _Partial(members)
        self.position += 1
        return members

    def _key(self) -> str:
        key = self._string() if self._next() == '"' else ""
        if self._next() != ":":
            self._broken()
        self.position += 1
        return key

    def _string(self) -> str:
        try:
            value, self.position = scanstring(self._text, self.position + 1, False)
        except json.JSONDecodeError as error:
            if error.msg.startswith("Unterminated"):
                self.position = len(self._text)
            self._broken()
            return ""
        return str(value)

    def _separated(self, end: str) -> bool:
        """Whether a comma, or the end, follows; a comma before the end is let pass."""
        here = self._next()
        if here == ",":
            self.position += 1
        elif here != end:
            self._broken()
        return self.whole

    def _next(self) -> str:
        space = _SPACE.match(self._text, self.position)
        self.position = space.end() if space else self.position
        return self._text[self.position : self.position + 1]

    def _broken(self) -> None:
        self.whole = False
        self.cut = self.cut or self.position >= len(self._text)
