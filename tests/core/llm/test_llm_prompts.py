"""What a model is asked, and which text of a reply is whose: the same items, the same words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_runs import asked_for, items_of, mix_of, reply

from docgen_core.errors import UsageError
from docgen_core.llm.gates import Field, Rule, check_text
from docgen_core.llm.languages import LANGUAGES
from docgen_core.llm.prompts import CHUNK_ITEMS, chunk_items, chunk_request, instructions, read_chunk
from docgen_core.llm.replies import read_reply

PROVIDER = mix_of({"name": "alpha"}).providers[0]
ITEMS = items_of(3)
SAID = ["A filter for oil.", "A filter for air.", "A filter for fuel."]


def told(*pairs: tuple[object, str]) -> str:
    return json.dumps({"items": [{"id": number, "description": text} for number, text in pairs]})


def read(text: str, *, cut: bool = False) -> list[str | None]:
    texts = read_chunk(reply(text, cut=cut), ITEMS)
    return [texts.get(item.id) for item in ITEMS]


def test_a_prompt_is_the_same_in_every_process() -> None:
    code = (
        "from text_runs import *; from docgen_core.llm.prompts import chunk_request;"
        "print(chunk_request(mix_of({'name': 'alpha'}).providers[0], items_of(3, language='ja'), 1).digest)"
    )
    path = str(Path(__file__).parents[2] / "servers")
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed, "TZ": zone, "LANG": "C"},
        ).stdout.strip()
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert printed == {chunk_request(PROVIDER, items_of(3, language="ja"), 1).digest}


def test_what_is_asked_names_the_items_by_number_and_nothing_of_ours() -> None:
    items = [replace(item, subject='Ölfilter "M10" ¾″') for item in items_of(2, language="de")]
    request = chunk_request(PROVIDER, items, 2)
    assert request.round == 2 and "German" in request.messages[0]["content"]
    assert asked_for(request.messages) == [
        {"id": number, "trade": "garage: spare parts", "name": 'Ölfilter "M10" ¾″'} for number in ("1", "2")
    ]
    assert not any(item.id in request.messages[1]["content"] for item in items)


def test_a_language_without_words_for_it_is_refused() -> None:
    with pytest.raises(UsageError, match="there are de, en, es, fr, it, ja, ko, nl, pl, pt, sv, tr"):
        instructions("fi")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_instructions_ask_for_no_more_than_the_gates_let_pass_and_are_not_let_pass_themselves(
    language: str,
) -> None:
    fixed = instructions(language)
    longest = int(fixed.partition("no longer than ")[2].split()[0])
    fits = {"ja": "部の", "ko": "부품"}.get(language, "ab")
    assert check_text(fits * (longest // 2), language, Field.DESCRIPTION) is None
    for line in fixed.split("\n"):
        assert check_text(line, language, Field.DESCRIPTION, instructions=fixed) is not None
    piece = "what it is, what it is made of or consists of, what it is used for, its size or scope."
    assert check_text(piece, "en", Field.DESCRIPTION, instructions=fixed) is Rule.ECHO


def test_a_request_asks_for_what_the_longest_reply_holds_and_for_half_as_much_each_round() -> None:
    assert [chunk_items(PROVIDER, "en", round_) for round_ in range(3)] == [CHUNK_ITEMS, 6, 3]
    small = PROVIDER.model_copy(update={"max_output_tokens": 500})
    assert max(chunk_items(small, dense, 0) for dense in ("ja", "ko")) < chunk_items(small, "en", 0) < CHUNK_ITEMS
    tiny = PROVIDER.model_copy(update={"max_output_tokens": 10})
    assert [chunk_items(tiny, "en", round_) for round_ in range(9)] == [1] * 9


@pytest.mark.parametrize(
    "text",
    [
        told(("1", SAID[0]), ("2", SAID[1]), ("3", SAID[2])),
        told((3, SAID[2]), (1, SAID[0]), (2, SAID[1])),
        told((" 2 ", SAID[1]), ("1", SAID[0]), (3, SAID[2])),
        json.dumps([{"description": text} for text in SAID]),
        "Sure! Here you go:\n```json\n" + json.dumps([{"description": text} for text in SAID]) + "\n```\nEnjoy",
        "<think>maybe [1]</think>" + told(("1", SAID[0]), ("2", SAID[1]), ("3", SAID[2]), ("4", "More.")),
        told(("1", SAID[0]), ("1", "Another."), ("2", SAID[1]), ("3", f"  {SAID[2].replace(' ', chr(10), 1)} ")),
    ],
)
def test_texts_find_their_items_by_number_or_where_all_are_there_by_place(text: str) -> None:
    assert read(text) == SAID


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("", [None, None, None]),
        ("I cannot do that.", [None, None, None]),
        (json.dumps([{"description": SAID[0]}, {"description": SAID[1]}]), [None, None, None]),
        (json.dumps([{"description": text, "id": None} for text in SAID]), [None, None, None]),
        (told(("7", SAID[0]), (True, SAID[1]), ("2", SAID[2])), [None, SAID[2], None]),
        ('{"items":[{"id":"1","description":"A filter for oil."},{"id":"2","descr', [SAID[0], None, None]),
        (json.dumps({"items": [{"id": "1", "description": None}, {"id": "2", "text": "no"}]}), [None, None, None]),
    ],
)
def test_a_text_that_is_nobodys_is_nobodys(text: str, texts: list[str | None]) -> None:
    assert read(text) == texts


@given(st.text(max_size=60), st.booleans())
def test_no_reply_raises_and_none_gives_a_text_for_what_was_not_asked(text: str, cut: bool) -> None:
    assert set(read_chunk(reply(text, cut=cut), ITEMS)) <= {item.id for item in ITEMS}
    assert set(read_chunk(reply(told(("1", text)), cut=cut), ITEMS)) <= {ITEMS[0].id}


def test_the_form_that_is_asked_for_is_one_that_is_read() -> None:
    shown = instructions("en").rpartition("\n")[2]
    assert [item["id"] for item in read_reply(shown, keys=("description",)).items] == ["1"]
