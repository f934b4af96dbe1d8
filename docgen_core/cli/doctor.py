"""`docgen doctor`: whether this machine can do the work, each check with what to do about it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from docgen_core.cli import console
from docgen_core.cli.options import AsJson, Blobs, State
from docgen_core.errors import DocgenError

LOW_SPACE_BYTES = 1 << 30
CLOCK_TOLERANCE_SECONDS = 2.0


def doctor(as_json: AsJson = False, state: State = None, blobs: Blobs = None) -> int:
    """Check the browser, the fonts, the stores, the space and the clock. Exit 3 when one fails."""
    from docgen_core.settings import load_settings

    settings = load_settings(state=state, blobs=blobs)
    findings = list(_examine(settings.state, settings.blobs))
    healthy = all(ok for _, ok, _ in findings)
    if as_json or not console.at_terminal():
        console.result(
            {
                "healthy": healthy,
                "checks": [{"check": name, "ok": ok, "detail": detail} for name, ok, detail in findings],
            }
        )
    else:
        console.table(("check", "", "detail"), [(name, "ok" if ok else "FAILED", text) for name, ok, text in findings])
    return 0 if healthy else 3


def _examine(state: str, blobs: str) -> Iterator[tuple[str, bool, str]]:
    checks: dict[str, Callable[[], str]] = {
        "browser": _browser,
        "fonts": _fonts,
        "state store": lambda: _state(state),
        "blob store": lambda: _blobs(blobs),
        "clock": lambda: _clock(blobs),
    }
    for name, check in checks.items():
        try:
            yield name, True, check()
        except (DocgenError, OSError) as error:
            yield name, False, " ".join(str(error).split())


def _browser() -> str:
    from docgen_core.render.chromium import Renderer, chromium_version, find_chromium
    from docgen_core.render.html import Page

    path = find_chromium()
    started = time.monotonic()
    with Renderer(path) as renderer:
        blank = Page(body="<p>docgen</p>", style="", lang="en", title="", author="", prints=())
        renderer.render(blank, document_id="doctor", subject="doctor")
    return f"{chromium_version(path)} at {path}; first page after {time.monotonic() - started:.1f} s"


def _fonts() -> str:
    from docgen_core.render.fonts import FACES

    for face in FACES.faces:
        face.css()
    return f"{len(FACES.faces)} faces, each the file its table names"


def _state(uri: str) -> str:
    from docgen_core.state import open_state

    store = open_state(uri)
    try:
        store.list_runs(limit=1)
    finally:
        store.close()
    return uri


def _blobs(uri: str) -> str:
    from docgen_core.blobs import open_blobs

    store = open_blobs(uri)
    key = f"doctor/{time.monotonic_ns()}"
    try:
        store.put(key, b"docgen", create_only=True)
        store.get(key)
    finally:
        store.delete(key)
        store.close()
    path = Path(uri.removeprefix("file://"))
    if path.exists():
        free = shutil.disk_usage(path).free
        if free < LOW_SPACE_BYTES:
            raise OSError(f"only {free >> 20} MiB free at {path}: make room, or point --blobs elsewhere")
        return f"{uri}, {free >> 30} GiB free"
    return uri


def _clock(uri: str) -> str:
    """Against the clock of the file system that holds the blobs, which is another machine's on a shared mount."""
    folder = Path(uri.removeprefix("file://"))
    with tempfile.NamedTemporaryFile(dir=folder if folder.is_dir() else None) as probe:
        probe.write(b".")
        probe.flush()
        off = abs(time.time() - Path(probe.name).stat().st_mtime)
    if off > CLOCK_TOLERANCE_SECONDS:
        raise OSError(f"this machine's clock is {off:.0f} s off the file system's: set it by NTP")
    return f"within {CLOCK_TOLERANCE_SECONDS:.0f} s of the file system's"
