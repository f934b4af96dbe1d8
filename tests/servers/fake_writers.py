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
    "French": "{name}, livré conforme au catalogue et destiné à l'usage courant des professionnels.",
    "Spanish": "{name}, suministrado según el catálogo y destinado al uso diario en el sector.",
    "Italian": "{name}, fornito come da catalogo e destinato all'uso quotidiano nel settore.",
    "Portuguese": "{name}, fornecido conforme o catálogo e destinado ao uso diário no comércio.",
    "Dutch": "{name}, geleverd zoals in de lijst en bedoeld voor dagelijks gebruik in het vak.",
    "Polish": "{name}, dostarczany zgodnie z katalogiem i przeznaczony do codziennego użytku w branży.",
    "Swedish": "{name}, levereras enligt listan och är avsedd för dagligt bruk i branschen.",
    "Turkish": "{name}, listelendiği gibi teslim edilir ve günlük kullanım için uygundur.",
    "Korean": "{name}. 업무에 일상적으로 쓰는 표준 사양의 품목입니다.",
}


def lines_of(body: Body) -> list[dict[str, Any]]:
    """The lines that the request asks about."""
    found: list[dict[str, Any]] = json.loads(_contents(body)[-1])
    return found


def sentence_of(body: Body) -> str:
    """A description of anything, in the language that is asked for."""
    (language,) = set(re.findall("|".join(_SENTENCES), _contents(body)[0]))
    return _SENTENCES[str(language)]


def written(body: Body, *, text: Callable[[str], str] | None = None) -> str:
    """A reply in the form that was asked for; `text` makes a description of a name."""
    sentence = sentence_of(body)
    make = text or (lambda name: sentence.format(name=name))
    items = [{"id": line["id"], "description": make(line["name"])} for line in lines_of(body)]
    return json.dumps({"items": items}, ensure_ascii=False)


def writer(number: int, body: Body) -> Says:
    """A script for `FakeProvider`: every line described, 300 tokens in and 200 out."""
    return Says(text=written(body))


def _contents(body: Body) -> list[str]:
    system = [body["system"]] if isinstance(body.get("system"), str) else []
    return [*system, *(str(message["content"]) for message in body["messages"])]
