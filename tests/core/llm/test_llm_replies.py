"""Reading replies: case 12, and whatever else a model may write, never raising and never giving half an item."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.llm.replies import Reply, read_reply

FENCED = '```json\n[{"name":"Brake pad set"}]\n```'


def names(reply: Reply) -> list[str]:
    return [item["name"] for item in reply.items]


CASE_12 = {
    "a fence": (FENCED, ["Brake pad set"]),
    "prose around a fence": (f"Sure! Here you go:\n{FENCED}\nEnjoy", ["Brake pad set"]),
    "a wrapped list": ('{"products":[{"name":"Brake pad set"}]}', ["Brake pad set"]),
    "thinking first": ('<think>maybe [1]</think>[{"name":"Brake pad set"}]', ["Brake pad set"]),
    "another fence, and backticks in a string": (
        '```bash\npip install x\n```\n```json\n[{"name":"Wire ``` tie"}]\n```',
        ["Wire ``` tie"],
    ),
}


@pytest.mark.parametrize("shape", CASE_12)
def test_the_shapes_of_case_12_are_read(shape: str) -> None:
    text, expected = CASE_12[shape]
    reply = read_reply(text)
    assert (names(reply), reply.truncated) == (expected, False)


def test_a_cut_reply_of_case_12_gives_its_whole_items_and_counts_as_truncated() -> None:
    reply = read_reply('[{"name":"Oil filter"},{"name":"Cabin fil')
    assert (names(reply), reply.truncated) == (["Oil filter"], True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"result":{"products":[{"name":"A"},{"name":"B"}]}}', ["A", "B"]),
        ('{"1":{"name":"A"},"2":{"name":"B"}}', ["A", "B"]),
        ('{"name":"A"}\n{"name":"B"}\n', ["A", "B"]),
        ('{"name":"A","maker":{"name":"Acme"}}', ["A"]),
        ('e.g. [{"name":"X"}], so:\n[{"name":"A"},{"name":"B"}]', ["A", "B"]),
        ('[{"name":"draft"}] or better [{"name":"final"}]', ["final"]),
        ('```[{"name":"A"}]```', ["A"]),
        ('~~~json\n[{"name":"A"},]\n~~~', ["A"]),
        ('\ufeff[{"name":"A"}]', ["A"]),
        ('[{"name":"<think>A"},{"name":"[B] {c}"}]', ["<think>A", "[B] {c}"]),
        ('```python\nx = [{"name":"code"},{"name":"code"}]\n```\n[{"name":"A"}]', ["A"]),
        ('[1] and [see note], then [{"name":"A"}]', ["A"]),
        ("[]", []),
        ("", []),
        ("I cannot help with that.", []),
        ('["A","B"]', []),
        ('[{"name":""},{"name":" "},{"name":null},{"name":7},{"title":"A"}]', []),
        ('[{"name":"\\ud83d"},{"name":"A"}]', ["A"]),
        ("[" * 5000 + '{"name":"A"}', ["A"]),
        ('[{"n":' + "9" * 6000 + ',"name":"A"}]', ["A"]),
    ],
)
def test_what_stands_around_items_does_not_matter(text: str, expected: list[str]) -> None:
    assert names(read_reply(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        '<think>[{"name":"draft"}]',
        '[{"name":"draft"}]</think>',
        '[THINK][{"name":"draft"}][/THINK]',
        '<|channel|>analysis<|message|>[{"name":"draft"}]<|channel|>final<|message|>none',
        '<thinking>a <think>b</think>[{"name":"draft"}]</thinking>',
    ],
)
def test_nothing_comes_out_of_the_thinking(text: str) -> None:
    assert names(read_reply(text)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"products":[{"name":"A"},{"name":"B","maker":{"name":"Acme"},"note":"cu', ["A"]),
        ('{"maker":{"name":"Acme"},"na', []),
        ('{"name":"half', []),
        ('{"name":"whole","note":"cu', []),
        ('[{"name":"A"},{"name":"B" oops},{"name":"C"}]', ["A"]),
        ("<think>and on and on", []),
        ("[", []),
    ],
)
def test_what_cannot_be_read_on_is_asked_for_again(text: str, expected: list[str]) -> None:
    reply = read_reply(text)
    assert (names(reply), reply.truncated) == (expected, True)


def test_an_answer_after_bottomless_brackets_is_found_in_one_pass() -> None:
    assert names(read_reply("[" * 100_000 + '[{"name":"Oil filter"}]')) == ["Oil filter"]


def test_a_cut_that_the_vendor_reports_counts() -> None:
    assert read_reply('[{"name":"A"}]', cut=True) == Reply(({"name": "A"},), truncated=True)
    assert read_reply("", cut=True).truncated


def test_items_need_every_key_that_was_asked_for() -> None:
    text = '[{"id":"1","text":"A"},{"id":"2"},{"text":"C"}]'
    assert [item["id"] for item in read_reply(text, keys=("id", "text")).items] == ["1"]


ITEMS = st.lists(
    st.fixed_dictionaries(
        {"name": st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)},
        optional={"note": st.none() | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))},
    ),
    min_size=1,
    max_size=5,
)


@given(ITEMS, st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_list_is_read_as_it_is(items: list[dict[str, object]], fenced: bool, wrapped: bool) -> None:
    text = json.dumps({"products": items} if wrapped else items, ensure_ascii=False)
    reply = read_reply(f"Here:\n```json\n{text}\n```\nDone" if fenced else text)
    assert (list(reply.items), reply.truncated) == (items, False)


@given(ITEMS, st.data())
@settings(max_examples=150, deadline=None)
def test_a_list_cut_anywhere_gives_its_first_items_and_no_half(
    items: list[dict[str, object]], data: st.DataObject
) -> None:
    text = json.dumps(items)
    reply = read_reply(text[: data.draw(st.integers(0, len(text) - 1))])
    assert list(reply.items) == items[: len(reply.items)]
    assert reply.truncated or reply == Reply((), False)


PIECES = st.sampled_from(
    [
        "```",
        "```json\n",
        "<think>",
        "</think>",
        "[",
        "]",
        "{",
        "}",
        '"',
        '"name"',
        ":",
        ",",
        "\\",
        "A",
        "\n",
        "[THINK]",
        "1e9",
        "\ud800",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
@settings(max_examples=400, deadline=None)
def test_no_text_raises_and_every_item_has_a_whole_name(text: str) -> None:
    for item in read_reply(text).items:
        assert item["name"].strip()
        item["name"].encode()
