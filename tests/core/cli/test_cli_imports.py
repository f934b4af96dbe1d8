"""What a command loads: help next to nothing, a worker nothing that only readers need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "babel",
    "cv2",
    "dagster",
    "duckdb",
    "jinja2",
    "litellm",
    "numpy",
    "openai",
    "pandas",
    "pikepdf",
    "playwright",
    "pyarrow",
    "pydantic",
    "pypdfium2",
    "yaml",
}
"""Each costs tens or hundreds of milliseconds."""
NEVER_IN_A_WORKER = {"dagster", "duckdb", "litellm", "openai", "pandas", "yaml"}

COUNT = """
import json, sys
from docgen_core.cli.app import main
listed = sys.argv.pop()
try:
    main()
finally:
    open(listed, "w").write(json.dumps(sorted(sys.modules)))
"""


def loaded(folder: Path, *words: str) -> set[str]:
    """Top-level modules at the end of a command, which must succeed."""
    listed = folder / "modules.json"
    ended = subprocess.run([sys.executable, "-c", COUNT, *words, str(listed)], cwd=folder, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    return {name.partition(".")[0] for name in json.loads(listed.read_text())}


@pytest.mark.parametrize("words", ["--help", "--version", "generate --help", "catalogue build --help", "export --help"])
def test_help_loads_nothing_heavy(tmp_path: Path, words: str) -> None:
    assert loaded(tmp_path, *words.split()) & HEAVY == set()


def test_a_worker_loads_nothing_that_only_readers_need(tmp_path: Path) -> None:
    loaded(tmp_path, "catalogue", "build", "small", "--companies", "6", "--products", "4", "--range", "6")
    loaded(tmp_path, "plan", "r1", "--documents", "2", "--condition", "light_scan")
    assert loaded(tmp_path, "status") & (HEAVY - {"pydantic"}) == set(), "a look needs no browser and no table"
    worked = loaded(tmp_path, "work", "r1")
    assert worked & NEVER_IN_A_WORKER == set()
    assert {"cv2", "pikepdf", "pyarrow", "pypdfium2"} <= worked, "it drew a scan"
    assert len(list(tmp_path.glob(".docgen/blobs/runs/r1/documents/*/*.pdf"))) == 2


def test_the_code_location_loads_nothing_that_calls_models() -> None:
    code = "import sys, docgen_assets.definitions; assert not {'litellm', 'openai'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
