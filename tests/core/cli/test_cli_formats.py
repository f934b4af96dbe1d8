"""State and manifests of another version of docgen: refused in one line that says so, and nothing is written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from json import loads
from pathlib import Path
from typing import Any

import pytest

from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.state.sqlite import FORMAT_VERSION

RUN, CATALOGUE = ("runs/r1", "sealed/r1"), ("catalogue/small", "sealed/catalogue-small")


@pytest.fixture
def desk(shop_folder: Path, tmp_path: Path) -> Path:
    """The shop in a folder of one's own."""
    return Path(shutil.copytree(shop_folder, tmp_path / "desk"))


@pytest.fixture
def typed(desk: Path, type_in: Any) -> Any:
    """Commands typed there."""
    return type_in(desk)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file, but what SQLite keeps beside an open database."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def rewrite(file: Path, content: Mapping[str, Any], newer: bool) -> str:
    """Publish this as a newer docgen would; its digest."""
    data = canonical_json({**content, "format": 2} if newer else content)
    file.write_bytes(data)
    return sha256_hex(data)


def let_a_newer_docgen_have_written(desk: Path, place: tuple[str, str], kind: str) -> None:
    """One kind of manifest of a sealed run in the next format, and all that names it by its digest."""
    prefix, marker = desk / ".docgen/blobs" / place[0], desk / ".docgen/blobs" / place[1]
    root = loads((prefix / "manifest.json").read_bytes())
    root["plan_sha256"] = rewrite(prefix / "plan.json", loads((prefix / "plan.json").read_bytes()), kind == "plan")
    for entry in root["parts"]:
        file = desk / ".docgen/blobs" / entry["key"]
        entry["sha256"] = rewrite(file, loads(file.read_bytes()), kind == "part")
    marker.write_text(rewrite(prefix / "manifest.json", root, kind == "root") + "\n")


@pytest.mark.parametrize(
    ("place", "kind", "commands"),
    [
        (RUN, "root", ["verify r1", "export r1", "show r1 0"]),
        (RUN, "part", ["verify r1", "verify r1 --deep", "export r1"]),
        (RUN, "plan", ["verify r1", "generate r1 --documents 2", "show r1 0"]),
        (CATALOGUE, "root", ["verify catalogue-small", "generate r9 --catalogue small"]),
        (CATALOGUE, "part", ["verify catalogue-small", "generate r9 --catalogue small"]),
        (CATALOGUE, "plan", ["verify catalogue-small", "generate r9 --catalogue small"]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value if isinstance(value, str) else "",
)
def test_a_manifest_of_a_newer_format(
    desk: Path, typed: Any, place: tuple[str, str], kind: str, commands: list[str]
) -> None:
    let_a_newer_docgen_have_written(desk, place, kind)
    before = contents(desk / ".docgen/blobs")
    assert typed("init", "--state", "other.db").code == 0
    for command in commands:
        # A store that knows nothing: what is published vouches for itself.
        refused = typed(*command.split(), "--state", "other.db")
        assert (refused.code, refused.out) == (2, ""), command
        assert "has format 2; this docgen reads 1: install the one that wrote it" in refused.complaint
        assert contents(desk / ".docgen/blobs") == before
        assert typed("status", "--state", "other.db").json["runs"] == []


@pytest.mark.parametrize("command", ["work r2", "generate r2 --documents 2"])
def test_a_plan_of_a_newer_format_is_not_joined(desk: Path, typed: Any, command: str) -> None:
    plan = desk / ".docgen/blobs/runs/r2/plan.json"
    plan.write_bytes(plan.read_bytes().replace(b'"format":1', b'"format":2'))
    before = contents(desk / ".docgen/blobs")
    refused = typed(*command.split())
    assert (refused.code, refused.out) == (2, "")
    assert "'runs/r2/plan.json' has format 2; this docgen reads 1" in refused.complaint
    assert contents(desk / ".docgen/blobs") == before
    units = typed("status", "r2").json["units"]
    assert units["pending"] == units["total"]


@pytest.mark.parametrize("command", ["status", "work r2", "generate r9", "resume r2", "cancel r2"])
def test_a_state_file_of_a_newer_format(desk: Path, typed: Any, command: str) -> None:
    with sqlite3.connect(desk / ".docgen/state.db") as db:
        db.execute(f"PRAGMA user_version = {FORMAT_VERSION + 1}")
    db.close()
    before = contents(desk)
    refused = typed(*command.split())
    assert (refused.code, refused.out) == (2, "")
    assert f"state store of format {FORMAT_VERSION + 1}, this docgen reads format {FORMAT_VERSION}" in refused.complaint
    assert contents(desk) == before
