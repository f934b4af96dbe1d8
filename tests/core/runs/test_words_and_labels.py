"""Every word with its box and its golden value, and the labels beside a document: on request, in every condition."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from docgen_core import golden
from docgen_core.runs.keys import labels_key
from docgen_core.runs.selection import Selection
from docgen_core.runs.verify import verify_run

CONDITIONS = ("clean", "light_scan")
CORNERS = [f"{axis}{corner}" for corner in range(4) for axis in "xy"]
POINTS = 0.01
"""So far two readings of one edge may differ."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, shared_renderer: Any, open_stage_at: Any) -> Any:
    """The same documents clean and scanned, with words and labels; and without."""
    stage = open_stage_at(tmp_path_factory.mktemp("words"), shared_renderer)
    stage.catalogue()
    for condition in CONDITIONS:
        wanted = Selection(conditions={condition: 1}, words=True, labels=True, anachronism=True)
        stage.plan(condition, documents=3, unit_size=2, selection=wanted)
        stage.work(condition)
    stage.plan("bare", documents=3, unit_size=2, selection=Selection(anachronism=True))
    stage.work("bare")
    return stage


def rows(stage: Any, run: str, table: str) -> list[dict[str, Any]]:
    return list(golden.open(run, blobs=stage.blobs).table(table).to_arrow().to_pylist())


def bounds(row: dict[str, Any]) -> tuple[float, float, float, float]:
    across, up = [row[f"x{corner}"] for corner in range(4)], [row[f"y{corner}"] for corner in range(4)]
    return min(across), min(up), max(across), max(up)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_golden_value_is_its_words_and_they_stand_in_its_box(stage: Any, condition: str) -> None:
    assert verify_run(condition, blobs=stage.blobs, state=stage.state, deep=True).findings == ()
    words: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for word in rows(stage, condition, "words"):
        label = tuple(word[f"label_{name}"] for name in ("table", "row", "column", "occurrence"))
        words[(word["document_id"], *label)].append(word)
    boxes: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for box in rows(stage, condition, "field_boxes"):
        value = (box["table_name"], box["row_key"], box["column_name"], box["occurrence"])
        boxes[(box["document_id"], *value)].append(box)
    for value, parts in boxes.items():
        own = words.pop(value)
        assert "".join(word["text"] for word in own) == "".join("".join(part["text"].split()) for part in parts)
        for word in own:
            left, low, right, high = bounds(word)
            assert any(
                part["page"] == word["page"]
                and bounds(part)[0] - POINTS <= left
                and right <= bounds(part)[2] + POINTS
                and bounds(part)[1] < (low + high) / 2 < bounds(part)[3]
                for part in parts
            ), word
    texts = [word["text"] for unlabelled in words.values() for word in unlabelled]
    assert set(words) == {(key[0], None, None, None, None) for key in words} and "Lieferschein" in texts
    assert "kg" in {"".join(char for char in text if char.isalpha()) for text in texts} or "kg" in str(boxes)


def test_words_are_counted_and_stand_on_their_page(stage: Any) -> None:
    sizes = {(page["document_id"], page["page"]): page for page in rows(stage, "light_scan", "pages")}
    numbers: dict[str, list[int]] = defaultdict(list)
    for word in rows(stage, "light_scan", "words"):
        numbers[word["document_id"]].append(int(word["row_key"]))
        page, (left, low, right, high) = sizes[word["document_id"], word["page"]], bounds(word)
        assert left >= -1 and low >= -1 and right <= page["width"] + 1 and high <= page["height"] + 1
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values()) and len(numbers) == 3


def test_a_capture_moves_words_and_changes_no_text(stage: Any) -> None:
    clean, scanned = (rows(stage, condition, "words") for condition in CONDITIONS)
    assert [word["text"] for word in clean] == [word["text"] for word in scanned]
    assert [[word[corner] for corner in CORNERS] for word in clean] != [
        [word[corner] for corner in CORNERS] for word in scanned
    ]


def test_words_and_labels_change_no_document(stage: Any) -> None:
    files = [[row["sha256"] for row in rows(stage, run, "documents")] for run in ("bare", "clean")]
    assert files[0] == files[1]
    assert rows(stage, "bare", "words") == []
    assert not [info.key for info in stage.blobs.iter_keys("runs/bare/documents/") if "labels" in info.key]


def test_labels_hold_the_golden_set_of_their_document(stage: Any) -> None:
    boxes, words = rows(stage, "light_scan", "field_boxes"), rows(stage, "light_scan", "words")
    for number, document in enumerate(rows(stage, "light_scan", "documents")):
        key = labels_key("runs/light_scan", number // 2, document["document_id"])
        assert key.rpartition("/")[0] == document["key"].rpartition("/")[0]
        labels = json.loads(stage.blobs.get(key))
        own = [box for box in boxes if box["document_id"] == document["document_id"]]
        assert [(box["value"], box["quad"]) for box in labels["boxes"]] == [
            (box["value"], [round(box[corner] * 1000) for corner in CORNERS]) for box in own
        ]
        assert [word["text"] for word in labels["words"]] == [
            word["text"] for word in words if word["document_id"] == document["document_id"]
        ]
        assert labels["pages"][0]["key"] == document["key"] and labels["condition"] == "light_scan"
        (head,) = labels["values"]["delivery_notes"]
        weights = [row["weight"] for row in labels["values"]["parcels"]]
        assert {box["value"].rstrip("0").rstrip(".") for box in own if box["column_name"] == "weight"} >= set(weights)
        assert head["shipped"].startswith("2024-") and "run_id" not in head
