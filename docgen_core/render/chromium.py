"""The renderer: one browser with one live page, whose body and style are swapped per document.

A document takes the way that costs least CPU (docs/decisions/0003-rendering.md): fonts are loaded
once, nothing is laid out for the screen, and what a document was printed after cannot change its
bytes. A browser that hangs or dies is replaced and the page printed once more.
What does not belong here: how the browser is driven (`browser`), and reading the print (`boxes`).
"""

from __future__ import annotations

import logging
import os
import platform
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from pathlib import Path
from types import TracebackType
from typing import Self

from docgen_core.errors import BrowserMissing, GlyphMissing, RenderFailed
from docgen_core.render.boxes import Box, Rendered, finish
from docgen_core.render.browser import BrowserGone, LivePage
from docgen_core.render.fonts import DEFAULT_STACK, FACES, WHITE_SPACE, FaceSet
from docgen_core.render.html import Page

__all__ = ["Box", "Rendered", "Renderer", "chromium_version", "find_chromium"]

_log = logging.getLogger(__name__)

EXECUTABLE_VARIABLE = "DOCGEN_CHROMIUM"
PRINT_SECONDS = 60.0
PRINTS_PER_BROWSER = 1_000
BROWSER_BYTES = 700 * 1024 * 1024
"""Private memory at which a browser is replaced."""
PRINTS_PER_LOOK = 100
"""The browser's memory is tidied and looked at once in so many prints."""

_HEADLESS_SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_APPLICATIONS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)

# Nothing comes from outside the document, and nothing in it runs.
_POLICY = "default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'"
_DEFAULT_FONT = f"font-family:{','.join(repr(family) for family in DEFAULT_STACK)}"
_LIVE_PAGE = (
    f'<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    # Nothing is laid out but the print. The browser prints in two passes with a screen in between, and what
    # is hidden in this way keeps its boxes and its shaped text, as `display: none` would not.
    '<style id="docgen-base">@media screen{body{content-visibility:hidden}}'
    "html{-webkit-print-color-adjust:exact;print-color-adjust:exact}"
    f"html{{{_DEFAULT_FONT}}}@page{{{_DEFAULT_FONT}}}body{{margin:0}}"
    "a[href^='golden:']{color:inherit;text-decoration:none}"
    # What does not fit is seen, not hidden; and a shadow of text is text once more, to whoever reads the file.
    "*{overflow:visible!important;clip-path:none!important;text-shadow:none!important}"
    '</style><style id="docgen-page"></style></head><body></body></html>'
)
_FAMILY = """["']([^"']+)["']"""
_STACKS = re.compile(rf"{_FAMILY}(?:\s*,\s*{_FAMILY})*")
_ADD_FACES = """(css) => {
  const style = document.createElement('style');
  style.textContent = css;
  document.head.append(style);
  return Promise.all([...document.fonts].filter(face => face.status !== 'loaded').map(face => face.load()))
    .then(faces => faces.length);
}"""
# A template's content is inert: what may not be in a document is gone before it could act.
_SWAP = """([lang, style, body]) => {
  document.documentElement.lang = lang;
  document.getElementById('docgen-page').textContent = style;
  const inert = document.createElement('template');
  inert.innerHTML = body;
  inert.content.querySelectorAll('script,meta,link,base,iframe,frame,object,embed,form').forEach(e => e.remove());
  document.body.replaceChildren(inert.content);
  return document.fonts.status;
}"""
_PRINT_OPTIONS = {
    # A tagged file carries the page's node numbers, which grow with every document printed before.
    "generateTaggedPDF": False,
    "generateDocumentOutline": False,
    "preferCSSPageSize": True,
    "printBackground": True,
    "displayHeaderFooter": False,
    "marginTop": 0,
    "marginBottom": 0,
    "marginLeft": 0,
    "marginRight": 0,
}


def find_chromium() -> Path:
    """The browser to render with: DOCGEN_CHROMIUM, else a headless shell, else any Chromium or Chrome.

    Raises:
        BrowserMissing: saying how to get one.
    """
    named = os.environ.get(EXECUTABLE_VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise BrowserMissing(f"{EXECUTABLE_VARIABLE} names {named!r}, which is not a program here")
        return Path(found).absolute()
    for candidate in _candidates():
        if os.access(candidate, os.X_OK):
            return candidate.absolute()
    raise BrowserMissing(
        "no Chromium found: run `playwright install --with-deps chromium`, or install the distribution's package "
        f"(Debian: chromium-headless-shell), or name one in {EXECUTABLE_VARIABLE}"
    )


def _candidates() -> Iterator[Path]:
    """Where a browser may be, the cheapest to print with first."""
    yield from (Path(found) for name in _HEADLESS_SHELLS if (found := shutil.which(name)))
    caches = {"Darwin": Path.home() / "Library/Caches/ms-playwright"}
    cache_folder = Path(
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
        or caches.get(platform.system(), Path.home() / ".cache/ms-playwright")
    )
    for pattern in ("chromium_headless_shell-*/*/*headless*shell", "chromium-*/*/chrome"):
        yield from sorted(cache_folder.glob(pattern), key=_revision, reverse=True)
    yield from (Path(found) for name in _BROWSERS if (found := shutil.which(name)))
    yield from _APPLICATIONS


def _revision(downloaded: Path) -> int:
    digits = downloaded.parents[1].name.rsplit("-", 1)[-1]
    return int(digits) if digits.isdigit() else 0


@cache
def chromium_version(path: Path) -> str:
    """The browser's version, such as `Chromium 156.0.8078.108`. Raises `BrowserMissing` when it does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BrowserMissing(f"{path} does not run ({error}); name another browser in {EXECUTABLE_VARIABLE}") from None
    if not _VERSION.search(said):
        raise BrowserMissing(f"{path} is no Chromium; name one in {EXECUTABLE_VARIABLE}")
    return said.strip()


_VERSION = re.compile(r"\d+(\.\d+){2}")
"""Of any browser of Chromium's family, whatever its name."""


@dataclass(slots=True)
class _Live:
    """A live page, and what it has been through."""

    page: LivePage
    families: set[str] = field(default_factory=set)
    prints: int = 0


class Renderer:
    """Prints pages. A context manager; for one thread at a time.

    Args:
        executable: the browser; found by `find_chromium` where not given.
        faces: what to draw with.
        print_seconds: time after which a print counts as hung.
        prints_per_browser: prints after which the browser is replaced.
    """

    def __init__(
        self,
        executable: Path | None = None,
        *,
        faces: FaceSet = FACES,
        print_seconds: float = PRINT_SECONDS,
        prints_per_browser: int = PRINTS_PER_BROWSER,
    ) -> None:
        self._executable = executable or find_chromium()
        self._faces = faces
        self._face_names = frozenset(face.path.stem for face in faces.faces)
        self._print_seconds = print_seconds
        self._prints_per_browser = prints_per_browser
        self._live: _Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def render(self, page: Page, *, document_id: str, subject: str) -> Rendered:
        """Print a page and read its boxes.

        Raises:
            GlyphMissing: the page holds a character that none of its faces draws.
            RenderFailed: no print in two browsers, or the print does not pass a gate (`gates`); it names the document.
        """
        body = unicodedata.normalize("NFC", page.body)
        drawn = set().union(*(map(unescape, (body, page.running_text, page.style))))
        try:
            self._check_glyphs(page, drawn)
        except GlyphMissing as missing:
            raise GlyphMissing(missing.text, missing.code_points, document_id) from None
        families = self._needed(page, drawn)
        try:
            raw = self._print(page, body, families)
        except BrowserGone as gone:
            _log.info("document %s is printed once more, in a fresh browser: %s", document_id, gone)
            self.close()
            try:
                raw = self._print(page, body, families)
            except BrowserGone as gone:
                self.close()
                raise RenderFailed(f"document {document_id} was not printed in two browsers: {gone}") from None
        try:
            return finish(raw, page, faces=self._face_names, document_id=document_id, subject=subject)
        except RenderFailed as refused:
            raise RenderFailed(f"document {document_id} ({page.title}): {refused}") from None

    def process_ids(self) -> list[int]:
        """Ids of the processes of the browser and of its driver; none before the first print."""
        return [process.pid for process in self._live.page.processes()] if self._live else []

    def private_bytes(self) -> int | None:
        """Resident memory that belongs to these processes alone; None before the first print."""
        return self._live.page.private_bytes() if self._live else None

    def close(self) -> None:
        """End the browser. The next print starts another."""
        live, self._live = self._live, None
        if live is not None:
            live.page.close()

    def _check_glyphs(self, page: Page, drawn: set[str]) -> None:
        families = self._families(page)
        try:
            self._faces.check("".join(sorted(drawn)), families)
        except GlyphMissing as missing:
            for entry in page.prints:  # name the value rather than the page
                self._faces.check(entry.text, families)
            raise GlyphMissing(page.title, missing.code_points) from None

    def _families(self, page: Page) -> tuple[str, ...]:
        """Bundled families that the page may draw with."""
        named = {family for family in self._faces.families if family in page.style or family in page.body}
        return tuple(family for family in self._faces.families if family in named or family in DEFAULT_STACK)

    def _needed(self, page: Page, drawn: set[str]) -> tuple[str, ...]:
        """Families that can come to draw something: those of a stack up to where nothing is left to draw.

        The last of a stack mostly is Japanese, and takes a browser longer to load than all others together.
        """
        named = self._families(page)
        stacks = {tuple(re.findall(_FAMILY, stack[0])) for stack in _STACKS.finditer(page.style)}
        elsewhere = _STACKS.sub("", page.style) + page.body
        needed = {family for family in named if family in elsewhere}
        printed = set(map(ord, drawn)) - WHITE_SPACE
        for stack in (DEFAULT_STACK, *stacks):
            left = set(printed)
            for family in (each for each in stack if each in named):
                needed.add(family)
                left -= self._faces.coverage(family)
                if not left:
                    break
        return tuple(family for family in named if family in needed)

    def _print(self, page: Page, body: str, families: Sequence[str]) -> bytes:
        live = self._ready()
        missing = [family for family in families if family not in live.families]
        if missing:
            live.page.evaluate(_ADD_FACES, self._faces.css(missing), seconds=self._print_seconds)
            live.families.update(missing)
        live.page.evaluate(_SWAP, [page.lang, page.style, body], seconds=self._print_seconds)
        live.prints += 1
        return live.page.print(_PRINT_OPTIONS, seconds=self._print_seconds)

    def _ready(self) -> _Live:
        """The live page, in a fresh browser where the old one is worn."""
        if self._live is not None and self._worn(self._live):
            self.close()
        if self._live is None:
            self._live = _Live(LivePage(self._executable, _LIVE_PAGE))
        return self._live

    def _worn(self, live: _Live) -> bool:
        if live.prints >= self._prints_per_browser:
            return True
        if live.prints % PRINTS_PER_LOOK:
            return False
        live.page.collect_garbage(seconds=self._print_seconds)
        return live.page.private_bytes() > BROWSER_BYTES
