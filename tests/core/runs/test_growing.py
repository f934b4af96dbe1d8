"""A longer run takes over what a shorter one has drawn, and is byte for byte what drawing all of it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from docgen_core.runs.selection import Selection
from docgen_core.runs.unit import RendererOnDemand
from docgen_core.runs.verify import verify_run
from docgen_core.runs.withdraw import withdraw

SELECTION = Selection(conditions={"clean": 1, "light_scan": 1}, words=True, labels=True)
FEW, MANY = 5, 8


class Counting(RendererOnDemand):
    """Counts the documents that are drawn."""

    def __init__(self, lent: RendererOnDemand) -> None:
        self.lent, self.drawn = lent, 0

    def get(self) -> Any:
        self.drawn += 1
        return self.lent.get()


@pytest.fixture
def grow(open_stage: Callable[..., Any]) -> Callable[..., tuple[Any, int]]:
    """A stage with a sealed run `r1` of five documents, then `r2` of eight; and how many of those were drawn."""

    def grown(spoil: Callable[[Any], None] = lambda _: None, **other: Any) -> tuple[Any, int]:
        stage = open_stage("grown")
        stage.done("r1", documents=FEW, unit_size=2, selection=SELECTION)
        spoil(stage)
        stage.plan("r2", **{"documents": MANY, "unit_size": 3, "selection": SELECTION, **other})
        renderer = Counting(stage.renderer)
        stage.work("r2", renderer=renderer)
        return stage, renderer.drawn

    return grown


@pytest.fixture
def drawn_whole(open_stage: Callable[..., Any]) -> dict[str, str]:
    """`r2` where there is no `r1`."""
    stage = open_stage("whole")
    stage.done("r2", documents=MANY, unit_size=3, selection=SELECTION)
    return dict(stage.digests("runs/r2/"))


def test_what_is_there_is_taken_over_and_not_drawn_again(
    grow: Callable[..., tuple[Any, int]], drawn_whole: dict[str, str]
) -> None:
    stage, drawn = grow()
    assert drawn == MANY - FEW
    assert stage.digests("runs/r2/") == drawn_whole
    assert verify_run("r2", blobs=stage.blobs, state=stage.state, deep=True).findings == ()
    files = [
        {key.rpartition("/")[2]: digest for key, digest in stage.digests(f"runs/{run}/documents/").items()}
        for run in ("r1", "r2")
    ]
    assert all(files[1][name] == digest for name, digest in files[0].items() if name.endswith(".pdf"))


def test_what_was_damaged_is_drawn_again(grow: Callable[..., tuple[Any, int]], drawn_whole: dict[str, str]) -> None:
    def spoil(stage: Any) -> None:
        key = next(info.key for info in stage.blobs.iter_keys("runs/r1/documents/") if info.key.endswith("3.pdf"))
        stage.blobs.put(key, b"something else")

    stage, drawn = grow(spoil)
    assert drawn == MANY - FEW + 1
    assert stage.digests("runs/r2/") == drawn_whole


@pytest.mark.parametrize(
    "other", [{"seed": 8}, {"selection": SELECTION.model_copy(update={"wear": 9})}, {"documents": 3, "unit_size": 2}]
)
def test_only_a_run_of_the_same_documents_is_taken_over(
    grow: Callable[..., tuple[Any, int]], other: dict[str, Any]
) -> None:
    _, drawn = grow(**other)
    assert drawn == (0 if "documents" in other else MANY)


def test_a_withdrawn_run_gives_nothing(grow: Callable[..., tuple[Any, int]]) -> None:
    _, drawn = grow(lambda stage: withdraw("r1", stage.blobs))
    assert drawn == MANY
