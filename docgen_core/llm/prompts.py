"""How a model is asked for descriptions, and which text of its reply belongs to which item.

Pure functions of the items: the same items are asked for in the same words, which is what makes the
reply cache answer them. What does not belong here: who is asked (routing.py), and whether a text may
be printed (gates.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docgen_core.llm.items import TextItem
from docgen_core.llm.languages import language
from docgen_core.llm.mix import Provider
from docgen_core.llm.replies import Item, read_reply
from docgen_core.llm.requests import ASCII_A_TOKEN, TOKENS_A_CHARACTER, Answer, Message, Request, request_for

CHUNK_ITEMS = 12
"""Items in a request: the instructions are paid for once for all of them, and lost together with all of them."""
FORM_TOKENS = 20
"""Of the JSON around one description."""
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "description": {"type": "string"}},
                "required": ["id", "description"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}


def instructions(code: str) -> str:
    """The fixed part of the prompt. Raises `UsageError` for a language that no catalogue is written in."""
    asked = language(code)
    return (
        f"The user sends lines of a trade catalogue as JSON. For each line, put into {asked.english_name} what the "
        "catalogue states about it: one plain sentence, two at most, "
        f"no longer than {asked.longest_asked} characters in all.\n"
        "State facts that follow from the name and the trade: what it is, what it is made of or consists of, what it "
        "is used for, its size or scope. Where nothing is known, keep to what is certain.\n"
        "Leave out: prices and discounts, certificates and norms that the name does not mention, names of people, "
        "addresses, telephone numbers, web pages, praise and appeals to the reader, markup, line breaks. "
        "Two lines never get the same sentence, and none merely repeats its name.\n"
        'Give back only JSON of this form, with the "id" of each line as it was sent: '
        '{"items":[{"id":"1","description":"…"}]}'
    )


def chunk_items(provider: Provider, code: str, round_: int) -> int:
    """How many items one request asks for: what the provider's longest reply holds, and half as many each round."""
    asked = language(code)
    characters = asked.longest_asked
    tokens = characters * TOKENS_A_CHARACTER if asked.is_dense else -(-characters // ASCII_A_TOKEN)
    return max(min(CHUNK_ITEMS >> round_, provider.max_output_tokens // (tokens + FORM_TOKENS)), 1)


def requests_for(
    provider: Provider, items: Sequence[TextItem], round_: int
) -> Iterator[tuple[tuple[TextItem, ...], Request]]:
    """Items of one language cut, in their order, into those of a request each, and the request."""
    size = chunk_items(provider, items[0].language, round_)
    for start in range(0, len(items), size):
        part = tuple(items[start : start + size])
        yield part, chunk_request(provider, part, round_)


def chunk_request(provider: Provider, items: Sequence[TextItem], round_: int) -> Request:
    """The request for items of one language, numbered from 1."""
    lines = [
        {"id": str(number), "trade": item.setting, "name": item.subject} for number, item in enumerate(items, start=1)
    ]
    asked: list[Message] = [
        {"role": "system", "content": instructions(items[0].language)},
        {"role": "user", "content": json.dumps(lines, ensure_ascii=False, separators=(",", ":"))},
    ]
    return request_for(provider, asked, schema=_SCHEMA, round_=round_)


def read_chunk(answer: Answer, items: Sequence[TextItem]) -> dict[str, str]:
    """The reply's text for each item, by the item's id; items that it has none for are left out.

    Of two texts for one item the first counts. Where no text has a number, and there are as many as
    items, they belong together in their order. Spaces and line ends become one space.
    """
    told = read_reply(answer.text, keys=("description",), cut=answer.cut).items
    if len(told) == len(items) and not any("id" in each for each in told):
        numbered: Mapping[str, Item] = {str(number): each for number, each in enumerate(told, start=1)}
    else:
        numbered = {str(each.get("id")).strip(): each for each in reversed(told)}
    return {
        item.id: " ".join(numbered[str(number)]["description"].split())
        for number, item in enumerate(items, start=1)
        if str(number) in numbered
    }
