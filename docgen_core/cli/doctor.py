"""`docgen doctor`: whether this machine can do the work, each check with what to do about it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from docgen_core.cli import console
from docgen_core.cli.options import AsJson, Blobs, State
from docgen_core.errors import DocgenError

LOW_SPACE_BYTES = 1 << 30


class Verdict(StrEnum):
    """What a check has come to. A warning keeps nobody from working."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "FAILED"


class _Doubt(Exception):
    """A check met something to know, and to mend."""


def doctor(as_json: AsJson = False, state: State = None, blobs: Blobs = None) -> int:
    """Check the browser, the fonts, the stores, the space and the clock. Exit 3 when one fails."""
    from docgen_core.settings import load_settings

    settings = load_settings(state=state, blobs=blobs)
    findings = list(_examine(settings.state, settings.blobs))
    healthy = all(verdict is not Verdict.FAILED for _, verdict, _ in findings)
    if as_json or not console.at_terminal():
        checks = [
            {"check": name, "ok": verdict is not Verdict.FAILED, "verdict": verdict.value.lower(), "detail": detail}
            for name, verdict, detail in findings
        ]
        console.result({"healthy": healthy, "checks": checks})
    else:
        console.table(("check", "", "detail"), [(name, verdict.value, text) for name, verdict, text in findings])
    return 0 if healthy else 3


def _examine(state: str, blobs: str) -> Iterator[tuple[str, Verdict, str]]:
    checks: dict[str, Callable[[], str]] = {
        "browser": _browser,
        "fonts": _fonts,
        "state store": lambda: _state(state),
        "blob store": lambda: _blobs(blobs),
        "clock": lambda: _clock(state),
    }
    for name, check in checks.items():
        try:
            yield name, Verdict.OK, check()
        except _Doubt as doubt:
            yield name, Verdict.WARNING, str(doubt)
        except (DocgenError, OSError) as error:
            yield name, Verdict.FAILED, " ".join(str(error).split())


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
    """Against the store's own. It decides nothing, so a clock that is off is a warning."""
    from docgen_core.state import open_state

    try:
        with open_state(uri) as store:
            offset = store.clock_offset()
    except DocgenError:
        raise _Doubt("not compared: the state store does not answer") from None
    if offset is None:
        return "the state store has no other"
    if offset.complaint:
        raise _Doubt(offset.complaint)
    return f"within {offset.bound:.0f} s of the state store's"
