"""What is installed from the wheel alone, outside the checkout, makes a Japanese invoice and exports it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 900
UV = Path(sys.executable).with_name("uv")

pytestmark = pytest.mark.timeout(1800)


def run(*command: str | Path, cwd: Path) -> str:
    """The command's output; a failure shows what it said. Nothing of the checkout is on its path."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DOCGEN_", "PYTHON", "VIRTUAL"))}
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".venv", ".git", ".docgen", ".dagster", "tests", "docs", ".*_cache")
    )
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source, cwd=folder)
    (built,) = folder.glob("docgen-*.whl")
    return built


def installed(wheel: Path, folder: Path, extras: str = "") -> Path:
    """The scripts folder of a fresh environment with the wheel and the locked versions of what it needs."""
    venv = folder / "venv"
    run(UV, "venv", "-q", "--python", sys.executable, venv, cwd=folder)
    locked = folder / "locked.txt"
    lines = (line.rstrip(" \\") for line in (ROOT / "requirements.lock").read_text().splitlines())
    locked.write_text("\n".join(line for line in lines if line and line[0] not in "# "))
    install = [UV, "pip", "install", "-q", "--python", venv / "bin" / "python", "-c", locked, f"{wheel}{extras}"]
    # What made this environment is in uv's cache; the index is asked only where that was cleaned.
    if subprocess.run([*install, "--offline"], cwd=folder, capture_output=True).returncode:
        run(*install, cwd=folder)
    return venv / "bin"


def make_and_export(scripts: Path, work: Path) -> None:
    """Two Japanese invoices, from nothing to tables."""
    work.mkdir()
    run(scripts / "docgen", "generate", "wheel", "--documents", "2", "--locale", "ja-JP", cwd=work)
    run(scripts / "docgen", "verify", "wheel", "--deep", cwd=work)
    run(scripts / "docgen", "export", "wheel", "--sink", "golden.duckdb", cwd=work)


def test_the_wheel_holds_every_file_of_both_packages_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        (points,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "docgen_core.packs.invoice:PACK" in archive.read(points).decode()
    tree = {
        path.relative_to(ROOT).as_posix()
        for package in ("docgen_core", "docgen_assets")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == tree
    assert {Path(name).suffix for name in held} >= {".py", ".html", ".css", ".sql", ".woff2", ".toml", ".tsv", ".txt"}


def test_the_wheel_alone_makes_verifies_and_exports_a_japanese_invoice(wheel: Path, tmp_path: Path) -> None:
    scripts, work = installed(wheel, tmp_path), tmp_path / "work"
    make_and_export(scripts, work)
    asked = (
        "import duckdb; print(duckdb.connect('golden.duckdb').sql('SELECT locale, currency FROM invoices').fetchall())"
    )
    assert run(scripts / "python", "-c", asked, cwd=work).strip() == "[('ja-JP', 'JPY'), ('ja-JP', 'JPY')]"
    missing = "import importlib.util as u; print([n for n in ('pandas', 'dagster', 'boto3') if u.find_spec(n)])"
    assert run(scripts / "python", "-c", missing, cwd=work).strip() == "[]"


def test_with_its_extras_the_wheel_has_frames_and_is_a_code_location(wheel: Path, tmp_path: Path) -> None:
    scripts, work = installed(wheel, tmp_path, "[dagster,pandas]"), tmp_path / "work"
    make_and_export(scripts, work)
    frame = (
        "from docgen_core import golden; from docgen_core.blobs import open_blobs; "
        "frame = golden.open('wheel', blobs=open_blobs('.docgen/blobs')).table('invoices').to_pandas(); "
        "print(len(frame), {type(total).__name__ for total in frame.gross_total})"
    )
    assert run(scripts / "python", "-c", frame, cwd=work).strip() == "2 {'Decimal'}"
    loaded = "from docgen_assets.definitions import defs; print(len(list(defs.resolve_all_asset_keys())))"
    assert int(run(scripts / "python", "-c", loaded, cwd=tmp_path)) == 16
