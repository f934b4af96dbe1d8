"""Every output is sealed, verified and described page by page: PDF, PNG, JPEG, TIFF and HTML."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from docgen_core import golden
from docgen_core.errors import SelectionRefused
from docgen_core.render.capture import SUFFIXES
from docgen_core.render.pictures import outlined_pages
from docgen_core.runs.keys import is_document
from docgen_core.runs.manifest import iter_parts, read_root
from docgen_core.runs.selection import OUTPUTS, Selection
from docgen_core.runs.verify import verify_run

DOCUMENTS = 3


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, shared_renderer: Any, open_stage_at: Any) -> Any:
    """One run for each output, all of the same documents."""
    stage = open_stage_at(tmp_path_factory.mktemp("outputs"), shared_renderer)
    stage.catalogue()
    for output in OUTPUTS:
        conditions = {"clean": 1} if output == "html" else {"clean": 1, "light_scan": 2}
        stage.plan(output, documents=DOCUMENTS, selection=Selection(output=output, conditions=conditions, wear=40))
        stage.work(output)
    return stage


def rows(stage: Any, run: str, table: str) -> list[dict[str, Any]]:
    return golden.open(run, blobs=stage.blobs).table(table).to_arrow().to_pylist()


def test_the_outputs_are_those_of_a_selection() -> None:
    assert tuple(SUFFIXES) == OUTPUTS


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_run_is_whole_and_each_page_names_its_file(stage: Any, output: str) -> None:
    assert verify_run(output, blobs=stage.blobs, state=stage.state, deep=True).findings == ()
    files = {
        entry.key: entry
        for part in iter_parts(stage.blobs, read_root(stage.blobs, f"runs/{output}"))
        for entry in part.blobs
        if is_document(f"runs/{output}", entry.key)
    }
    pages = rows(stage, output, "pages")
    assert {page["key"] for page in pages} == set(files)
    assert all(files[page["key"]].sha256 == page["sha256"] for page in pages)
    assert all(key.endswith(SUFFIXES[output]) for key in files)
    for document in rows(stage, output, "documents"):
        own = [page for page in pages if page["document_id"] == document["document_id"]]
        assert [page["page"] for page in own] == list(range(1, document["pages"] + 1))
        assert document["key"] == own[0]["key"]
        assert document["bytes"] == sum(files[key].bytes for key in {page["key"] for page in own})


@pytest.mark.parametrize("output", ["png", "jpeg", "tiff"])
def test_a_picture_has_the_size_and_the_dots_that_its_page_says(stage: Any, output: str) -> None:
    for page in rows(stage, output, "pages"):
        with Image.open(io.BytesIO(stage.blobs.get(page["key"]))) as picture:
            assert picture.size == (page["pixels_wide"], page["pixels_high"])
            across, down = picture.info["dpi"]
        assert abs(across - page["dpi_across"]) < 0.1 and abs(down - page["dpi_down"]) < 0.1
        assert abs(page["pixels_wide"] / page["width"] * 72 - page["dpi_across"]) < 1


@pytest.mark.parametrize("output", ["pdf", "png", "tiff"])
def test_pages_are_drawn_with_their_boxes(stage: Any, output: str) -> None:
    document = rows(stage, output, "documents")[0]
    own = [page for page in rows(stage, output, "pages") if page["document_id"] == document["document_id"]]
    boxes = [box for box in rows(stage, output, "field_boxes") if box["document_id"] == document["document_id"]]
    quads = [(box["page"], [box[f"{axis}{corner}"] for corner in range(4) for axis in "xy"]) for box in boxes]
    files = [stage.blobs.get(key) for key in dict.fromkeys(page["key"] for page in own)]
    (png,) = outlined_pages(files, quads, sizes=[(page["width"], page["height"]) for page in own], dpi=72)
    drawn = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert drawn.shape[:2] == (round(own[0]["height"]), round(own[0]["width"]))
    assert (drawn[:, :, 2].astype(int) - drawn[:, :, 1] > 100).any(), "outlines are red"


def test_all_outputs_hold_the_same_documents(stage: Any) -> None:
    notes = [[{**row, "run_id": ""} for row in rows(stage, output, "delivery_notes")] for output in OUTPUTS]
    assert all(found == notes[0] for found in notes)


def test_a_web_page_does_not_say_what_is_golden(stage: Any) -> None:
    for page in rows(stage, "html", "pages"):
        html = stage.blobs.get(page["key"]).decode()
        assert "golden:" not in html and "Specimen: synthetic document, not for payment" in html
        assert page["pixels_wide"] is page["dpi_across"] is None


def test_a_scan_cannot_be_a_web_page(stage: Any) -> None:
    with pytest.raises(SelectionRefused, match="light_scan is a picture of it: choose condition clean"):
        stage.plan("no", selection=Selection(output="html", conditions={"clean": 1, "light_scan": 1}))
