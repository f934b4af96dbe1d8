"""The browser: how it is found, what it refuses, and what happens when it hangs, dies or grows old."""

from __future__ import annotations

import asyncio
import gc
import http.server
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from docgen_core.errors import BrowserMissing, RenderFailed, UsageError
from docgen_core.render import chromium
from docgen_core.render.browser import BrowserGone
from docgen_core.render.chromium import Renderer, chromium_version, find_chromium

LIVED_DOCUMENTS = 150
GROWTH_BYTES = 120 * 1024 * 1024
ENDED_SECONDS = 30


def _is_alive(process_id: int) -> bool:
    try:
        return bool(psutil.Process(process_id).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _wait_until(holds: Callable[[], bool], what: object) -> None:
    deadline = time.monotonic() + ENDED_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _wait_until_ended(process_ids: Sequence[int]) -> None:
    _wait_until(lambda: not any(_is_alive(process_id) for process_id in process_ids), process_ids)


def _program(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def own(paper: Any) -> Iterator[Renderer]:
    """A renderer of the test's own, to be ill-treated."""
    with Renderer(print_seconds=20) as renderer:
        renderer.render(paper.page("<p>warm</p>"), document_id="warm", subject="s")
        yield renderer


class TestFinding:
    @pytest.fixture(autouse=True)
    def bare_machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("DOCGEN_CHROMIUM", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "downloads"))
        monkeypatch.setattr(chromium, "_APPLICATIONS", ())

    def test_no_browser_says_how_to_get_one(self) -> None:
        with pytest.raises(BrowserMissing, match="playwright install --with-deps chromium"):
            find_chromium()

    def test_the_headless_shell_comes_first_then_downloads_then_browsers(self, tmp_path: Path) -> None:
        expected = [
            _program(tmp_path, "bin/google-chrome"),
            _program(tmp_path, "bin/chromium"),
            _program(tmp_path, "downloads/chromium-1200/chrome-linux/chrome"),
            _program(tmp_path, "downloads/chromium_headless_shell-999/chrome-linux/headless_shell"),
            _program(tmp_path, "downloads/chromium_headless_shell-1200/chrome-linux/headless_shell"),
            _program(tmp_path, "bin/chromium-headless-shell"),
        ]
        while expected:
            assert find_chromium() == expected[-1]
            expected.pop().unlink()

    def test_a_named_browser_wins(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _program(tmp_path, "bin/chromium-headless-shell")
        named = _program(tmp_path, "mine/browser")
        monkeypatch.setenv("DOCGEN_CHROMIUM", str(named))
        assert find_chromium() == named

    def test_a_named_browser_that_is_not_there_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DOCGEN_CHROMIUM", "/nowhere/browser")
        with pytest.raises(BrowserMissing, match="DOCGEN_CHROMIUM names '/nowhere/browser'"):
            find_chromium()

    def test_a_version_is_asked_of_the_browser(self, tmp_path: Path) -> None:
        talking = _program(tmp_path, "talking")
        talking.write_text("#!/bin/sh\necho 'Chromium 99.0.1'\n")
        assert chromium_version(talking) == "Chromium 99.0.1"
        broken = _program(tmp_path, "broken")
        broken.write_text("#!/bin/sh\nexit 3\n")
        with pytest.raises(BrowserMissing, match="does not run"):
            chromium_version(broken)
        other = _program(tmp_path, "other")
        other.write_text("#!/bin/sh\necho 'true (GNU coreutils) 9.1'\n")
        with pytest.raises(BrowserMissing, match="is no Chromium"):
            chromium_version(other)


def test_a_program_that_is_no_browser_fails_in_one_line(tmp_path: Path, paper: Any) -> None:
    fake = _program(tmp_path, "fake")
    fake.write_text("#!/bin/sh\necho 'no display here' >&2\nexit 1\n")
    with pytest.raises(RenderFailed, match="did not start: no display here") as failed, Renderer(fake) as renderer:
        renderer.render(paper.page("<p>x</p>"), document_id="d", subject="s")
    assert isinstance(failed.value, RenderFailed) and not isinstance(failed.value, UsageError)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("() => { throw new Error('no such face\\nat line 1') }", "Error: no such face$"),
        ("() => Promise.reject(new TypeError('late'))", "TypeError: late$"),
    ],
)
def test_a_call_that_the_page_refuses_fails_in_one_line(
    draw: Callable, paper: Any, renderer: Renderer, function: str, said: str
) -> None:
    draw(paper.page("<p>x</p>"))
    assert renderer._live is not None
    with pytest.raises(BrowserGone, match=said):
        renderer._live.page.evaluate(function, None, seconds=chromium.PRINT_SECONDS)
    assert draw(paper.page("<p>x</p>")).pages == 1


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """A server on this machine, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()
        thread.join()


HOSTILE = (
    "<script>document.body.textContent = 'changed'</script>",
    "<img src=x onerror=\"document.body.textContent = 'changed'\">",
    "<svg onload=\"document.body.textContent = 'changed'\"></svg>",
    '<img src="{url}/img.png">',
    '<iframe src="{url}/frame.html"></iframe>',
    '<object data="{url}/object.svg"></object>',
    '<link rel="stylesheet" href="{url}/link.css">',
    '<meta http-equiv="refresh" content="0;url={url}/refresh">',
    '<base href="{url}/base/">',
    '<video src="{url}/video.mp4" autoplay></video>',
    "<style>@import url({url}/import.css); p {{ background: url({url}/background.png) }}</style>",
    "<style>@font-face {{ font-family: Away; src: url({url}/font.woff2) }}"
    "i {{ font-family: Away, 'Docgen Sans' }}</style><i>x</i>",
    '<a ping="{url}/ping"></a>',
    '<img src="file:///etc/hostname">',
)


@pytest.mark.parametrize("markup", HOSTILE)
def test_nothing_in_a_document_runs_or_fetches(
    draw: Callable, new_paper: Any, words: Callable, outside: tuple[str, list[str]], markup: str
) -> None:
    url, asked = outside
    paper = new_paper()
    rendered = draw(paper.page(f"<p>{paper.show('item', 'before')}</p>{markup.format(url=url)}<p>after</p>"))
    printed = [word.text for word in words(rendered.pdf)[0]]
    assert printed[0] == "before" and printed[-1] == "after" and "changed" not in printed
    clean = new_paper()
    assert draw(clean.page("<p>next</p>")).pages == 1
    assert asked == []


def test_one_document_leaves_nothing_to_the_next(draw: Callable, new_paper: Any) -> None:
    plain = new_paper()
    page = plain.page(f"<h1>{plain.show('number', 'R-1')}</h1><p>text</p>", style="")
    first = draw(page).pdf
    other = new_paper()
    draw(other.page("<style>*{color:red;font-size:30pt}</style><p>loud</p>", "@page{size:A5 landscape}", lang="ja"))
    assert draw(page).pdf == first


PARTS = {
    "the driver": lambda command: "run-driver" in command,
    "the browser": lambda command: "--remote-debugging-pipe" in command and "--type=" not in " ".join(command),
    "the page's process": lambda command: "--type=renderer" in command,
    "everything": lambda command: True,
}


@pytest.mark.parametrize("victim", PARTS)
def test_a_browser_that_died_is_replaced(
    own: Renderer, paper: Any, victim: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    page = paper.page(f"<p>{paper.show('item', 'text')}</p>")
    before = own.render(page, document_id="d", subject="s")
    old = own.process_ids()
    victims = [process_id for process_id in old if PARTS[victim](psutil.Process(process_id).cmdline())]
    assert victims
    for process_id in victims:
        os.kill(process_id, signal.SIGKILL)
    assert own.render(page, document_id="d", subject="s") == before
    assert "no answer" not in caplog.text, "its end is seen, not waited for"
    assert "INFO:CONSOLE" not in caplog.text, "what it said when it was well is no reason"
    gc.collect()
    assert [record for record in caplog.records if record.name == "asyncio"] == [], "told once, and not on stderr too"
    assert not set(old) & set(own.process_ids())
    _wait_until_ended(old)


@pytest.mark.parametrize("victim", ["the browser", "everything"])
def test_a_print_that_hangs_is_tried_again_in_a_fresh_browser(paper: Any, victim: str) -> None:
    page = paper.page(f"<p>{paper.show('item', 'text')}</p>")
    with Renderer(print_seconds=5) as renderer:
        before = renderer.render(page, document_id="d", subject="s")
        old = renderer.process_ids()
        for process_id in old:
            if PARTS[victim](psutil.Process(process_id).cmdline()):
                os.kill(process_id, signal.SIGSTOP)
        assert renderer.render(page, document_id="d", subject="s") == before
        _wait_until_ended(old)


def test_a_print_that_hangs_twice_fails_and_the_renderer_lives(paper: Any) -> None:
    endless = paper.page("<p>" + "word " * 400_000 + "</p>")
    short = type(paper)()
    with Renderer(print_seconds=0.7) as renderer:
        with pytest.raises(RenderFailed, match=r"document d-9 was not printed in two browsers: .* in 0\.7 s"):
            renderer.render(endless, document_id="d-9", subject="s")
        renderer._print_seconds = 20
        assert renderer.render(short.page("<p>x</p>"), document_id="d", subject="s").pages == 1


def test_a_browser_is_replaced_after_so_many_prints(paper: Any) -> None:
    page = paper.page("<p>x</p>")
    with Renderer(prints_per_browser=2) as renderer:
        seen = []
        for _ in range(4):
            renderer.render(page, document_id="d", subject="s")
            seen.append(frozenset(renderer.process_ids()))
        assert seen[0] == seen[1] and seen[2] == seen[3]
        assert not seen[0] & seen[2]
        _wait_until_ended(list(seen[0]))


def test_a_browser_that_grew_is_replaced(paper: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chromium, "BROWSER_BYTES", 1)
    monkeypatch.setattr(chromium, "PRINTS_PER_LOOK", 1)
    page = paper.page("<p>x</p>")
    with Renderer() as renderer:
        renderer.render(page, document_id="d", subject="s")
        old = renderer.process_ids()
        renderer.render(page, document_id="d", subject="s")
        assert not set(old) & set(renderer.process_ids())


def test_nothing_is_left_after_closing(paper: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Renderer() as renderer:
        renderer.render(paper.page("<p>x</p>"), document_id="d", subject="s")
        started = renderer.process_ids()
        assert started and all(_is_alive(process_id) for process_id in started)
        assert list(tmp_path.iterdir()) != []
    _wait_until_ended(started)
    assert list(tmp_path.iterdir()) == []


def test_the_sandbox_is_left_out_for_root_alone(own: Renderer) -> None:
    commands = [psutil.Process(process_id).cmdline() for process_id in own.process_ids()]
    browser = next(command for command in commands if PARTS["the browser"](command))
    assert ("--no-sandbox" in browser) == (os.geteuid() == 0)


def test_renderers_work_side_by_side_and_inside_an_event_loop(own: Renderer, renderer: Renderer, paper: Any) -> None:
    page = paper.page(f"<p>{paper.show('item', 'text')}</p>")

    async def render_in_turn() -> list[object]:
        return [each.render(page, document_id="d", subject="s") for each in (own, renderer, own)]

    first, *others = asyncio.run(render_in_turn())
    assert others == [first, first]


def test_playwright_is_not_imported_before_the_first_print() -> None:
    probe = "import sys, docgen_core.render.chromium as c; c.Renderer(); sys.exit('playwright' in sys.modules)"
    subprocess.run([sys.executable, "-c", probe], check=True)


PRINTING = textwrap.dedent(
    """
    import signal, sys, threading
    from docgen_core.render.chromium import Renderer
    from docgen_core.render.html import Page
    page = Page("<p>" + "word " * 4000, "", "en", "t", "a", ())
    stop = threading.Event()
    # Whoever starts the tests in the background has told their processes to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "heedful" in sys.argv:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    with Renderer() as renderer:
        first = renderer.render(page, document_id="d", subject="s")
        print(*renderer.process_ids(), flush=True)
        same = True
        while not stop.is_set():
            same = same and renderer.render(page, document_id="d", subject="s") == first
        print("same" if same else "other", flush=True)
        print(*renderer.process_ids(), flush=True)
    """
)


@contextmanager
def _printing(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A process in a group of its own that prints without end, and the processes it started."""
    worker = subprocess.Popen(
        [sys.executable, "-c", PRINTING, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    with worker:
        assert worker.stdout is not None
        try:
            started = [int(process_id) for process_id in worker.stdout.readline().split()]
            assert started and all(_is_alive(process_id) for process_id in started)
            yield worker, started
        finally:
            worker.kill()


def test_a_killed_worker_leaves_nothing(tmp_path: Path) -> None:
    with _printing(tmp_path) as (worker, started):
        worker.kill()
        _wait_until_ended(started)
        _wait_until(lambda: list(tmp_path.iterdir()) == [], "its folder is not empty")


def test_a_killed_process_group_leaves_no_process(tmp_path: Path) -> None:
    with _printing(tmp_path) as (worker, started):
        os.killpg(worker.pid, signal.SIGKILL)
        _wait_until_ended(started)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_process_group_costs_no_document(tmp_path: Path, number: signal.Signals) -> None:
    with _printing(tmp_path, "heedful") as (worker, started):
        os.killpg(worker.pid, number)
        said, complaints = worker.communicate(timeout=ENDED_SECONDS)
        same, ids = said.splitlines()
        assert (worker.returncode, same, complaints) == (0, "same", "")
        if number == signal.SIGINT:  # the terminal's: neither driver nor browser was touched
            assert ids.split() == [str(process_id) for process_id in started]
        _wait_until_ended([*started, *map(int, ids.split())])
        assert list(tmp_path.iterdir()) == []


def test_a_keyboard_interrupt_in_a_print_ends_everything(tmp_path: Path) -> None:
    with _printing(tmp_path) as (worker, started):
        os.killpg(worker.pid, signal.SIGINT)
        complaints = worker.communicate(timeout=ENDED_SECONDS)[1]
        assert complaints.strip().endswith("KeyboardInterrupt")
        _wait_until_ended(started)
        assert list(tmp_path.iterdir()) == []


def test_a_browser_that_lives_long_does_not_grow(paper: Any) -> None:
    rows = "".join(f"<tr><td>{paper.show('item', f'Item {n}', row=str(n))}<td>{n * 7}.00" for n in range(25))
    page = paper.page(f"<table>{rows}</table>")
    with Renderer() as renderer:
        for count in range(1, LIVED_DOCUMENTS + 1):
            renderer.render(page, document_id=f"d-{count}", subject="s")
            if count == LIVED_DOCUMENTS // 3:
                settled, first = renderer.private_bytes(), renderer.process_ids()
        assert settled is not None
        assert renderer.private_bytes() - settled < GROWTH_BYTES
        assert set(first) & set(renderer.process_ids())
