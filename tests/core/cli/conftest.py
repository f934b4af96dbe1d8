"""The docgen command inside this process, for the many small things that need no process of their own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from docgen_core.cli.app import main


@dataclass(frozen=True)
class Answer:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of standard error."""
        (line,) = self.err.splitlines()
        assert line.startswith("docgen"), line
        return line


Typed = Callable[..., Answer]


def typed_in(folder: Path) -> Typed:
    """Types commands in a folder."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("DOCGEN_")}

    def type_(*words: str | Path, **env: str) -> Answer:
        out, err = io.StringIO(), io.StringIO()
        argv = ["docgen", *(str(word) for word in words)]
        with (
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            patch.object(sys, "argv", argv),
            patch.dict(os.environ, {**bare, **env}, clear=True),
            pytest.raises(SystemExit) as left,
        ):
            main()
        assert isinstance(left.value.code, int)
        return Answer(left.value.code, out.getvalue(), err.getvalue())

    return type_


@pytest.fixture
def docgen(tmp_path: Path) -> Typed:
    """Commands typed in an empty folder."""
    (tmp_path / "empty").mkdir()
    return typed_in(tmp_path / "empty")


@pytest.fixture(scope="session")
def shop_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a catalogue, a sealed run `r1` and a planned run `r2`. To be left as it is."""
    folder = tmp_path_factory.mktemp("shop")
    type_ = typed_in(folder)
    for words in (
        "catalogue build small --companies 12 --products 4 --range 6",
        "generate r1 --documents 2",
        "plan r2 --documents 2",
    ):
        assert type_(*words.split()).code == 0
    before = {path: path.read_bytes() for path in (folder / ".docgen/blobs").rglob("*") if path.is_file()}
    yield folder
    assert {path: path.read_bytes() for path in (folder / ".docgen/blobs").rglob("*") if path.is_file()} == before


@pytest.fixture
def shop(shop_folder: Path) -> Typed:
    """Commands typed in the shop's folder."""
    return typed_in(shop_folder)


@pytest.fixture
def type_in() -> Callable[[Path], Typed]:
    """Commands typed in any folder."""
    return typed_in
