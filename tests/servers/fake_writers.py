"""What a language model would write: descriptions for the lines of a request, well or ill as told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from fake_provider import Body, Says

_SENTENCES = {
    "English": "{name}, supplied as listed and meant for everyday use in the trade.",
    "German": "{name}, wie gelistet geliefert und für den täglichen Einsatz im Betrieb bestimmt.",
    "Japanese": "{name}。業務で日常的に使う標準的な仕様の品目です。",
}


def lines_of(body: Body) -> list[dict[str, Any]]:
    """The lines that the request asks about."""
    found: list[dict[str, Any]] = json.loads(_contents(body)[-1])
    return found


def language_of(body: Body) -> str:
    """English, German or Japanese."""
    (language,) = set(re.findall("|".join(_SENTENCES), _contents(body)[0]))
    return str(language)


def written(body: Body, *, text: Callable[[str], str] | None = None) -> str:
    """A reply in the form that was asked for; `text` makes a description of a name."""
    sentence = _SENTENCES[language_of(body)]
    make = text or (lambda name: sentence.format(name=name))
    items = [{"id": line["id"], "description": make(line["name"])} for line in lines_of(body)]
    return json.dumps({"items": items}, ensure_ascii=False)


def writer(number: int, body: Body) -> Says:
    """A script for `FakeProvider`: every line described, 300 tokens in and 200 out."""
    return Says(text=written(body))


def _contents(body: Body) -> list[str]:
    system = [body["system"]] if isinstance(body.get("system"), str) else []
    return [*system, *(str(message["content"]) for message in body["messages"])]
