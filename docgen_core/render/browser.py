"""One browser with one live page, driven through playwright from a thread of its own.

The thread is what gives any call a time-out: the caller waits outside playwright, and when no
answer comes the processes are ended, whereupon the call in the thread fails. It also keeps
playwright's event loop, and what an interrupt would do to it, out of the caller's thread, and
lets a process have several browsers.
What does not belong here: what is printed, and when a browser is given up (`chromium`).
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import psutil

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Playwright

_log = logging.getLogger(__name__)

START_SECONDS = 60.0
GRACE_SECONDS = 5.0
"""For the driver to tidy up and leave, before it is killed."""
POLL_SECONDS = 0.02

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")
_ENVIRONMENT: dict[str, str | float | bool] = {"LANG": "C.UTF-8", "TZ": "UTC"}
_ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no name leads anywhere
    "--disable-gpu",
    "--font-render-hinting=none",
    "--lang=en-US",
    "--enable-begin-frame-control",  # of the headless shell: no frame is drawn for a screen that nobody looks at
)
_TEMPORARY_PROFILE = ""
_PROFILE_ARGUMENT = "--user-data-dir="
_DRIVER_ARGUMENT = "run-driver"
_STARTING = threading.Lock()
"""Held while a driver starts, so that a new one is known to be ours."""

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class BrowserGone(Exception):
    """The browser or its driver died, did not answer in time, or refused a call."""


class LivePage:
    """A browser that shows one page. Not for two threads at once."""

    def __init__(self, executable: Path, html: str) -> None:
        """Start driver and browser and show the page. Raises `BrowserGone` when they do not come up."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="docgen-browser")
        self._crashed: Future[None] = Future()
        self._playwright: Playwright | None = None
        with _STARTING:
            others = _drivers()
            try:
                self._session = self._call(START_SECONDS, self._start, executable, html)
            except BaseException as error:
                self._look(others)
                self.close()
                if isinstance(error, BrowserGone):
                    raise BrowserGone(f"{executable} did not start: {error}") from None
                raise
            self._look(others)

    def _start(self, executable: Path, html: str) -> CDPSession:
        import asyncio

        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        asyncio.get_running_loop().set_exception_handler(_note)  # playwright's, within which this thread now is
        # The browser's first page and no other one obeys the switch for frames; a persistent context shows it.
        context = self._playwright.chromium.launch_persistent_context(
            _TEMPORARY_PROFILE,
            executable_path=executable,
            args=_ARGUMENTS,
            env=_ENVIRONMENT | {name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            chromium_sandbox=os.geteuid() != 0,  # Chromium's sandbox refuses to run as root
            handle_sigint=False,  # an interrupt at the terminal is the worker's to handle
            java_script_enabled=False,
            offline=True,
            service_workers="block",
            no_viewport=True,
        )
        context.route("**/*", lambda route: route.abort())
        page = context.pages[0]
        page.once("crash", lambda _: self._crashed.set_result(None))  # the protocol leaves its calls unanswered then
        page.set_content(html)
        return context.new_cdp_session(page)

    def _look(self, others: Collection[psutil.Process]) -> None:
        """Note whose end is ours to see to: `others` are drivers that were there before."""
        self._driver = next((driver for driver in _drivers() if driver not in others), None)
        self._started = self.processes()
        named = (argument for process in self._started for argument in _command(process))
        profile = next((argument for argument in named if argument.startswith(_PROFILE_ARGUMENT)), None)
        self._profile = Path(profile.removeprefix(_PROFILE_ARGUMENT)) if profile else None

    def evaluate(self, function: str, argument: object, *, seconds: float) -> None:
        """Call a function of ours in the page, whose own scripts are off. Raises `BrowserGone`."""
        call = {"expression": f"({function})({json.dumps(argument)})", "awaitPromise": True, "returnByValue": True}
        answer = self._call(seconds, self._session.send, "Runtime.evaluate", call)
        if "exceptionDetails" in answer:
            raise BrowserGone(_first_line(answer["result"].get("description", answer["exceptionDetails"]["text"])))

    def print(self, options: Mapping[str, object], *, seconds: float) -> bytes:
        """The page as a PDF, by `Page.printToPDF`. Raises `BrowserGone`."""
        printed = self._call(seconds, self._session.send, "Page.printToPDF", dict(options))
        return base64.b64decode(printed["data"])

    def collect_garbage(self, *, seconds: float) -> None:
        """Free what earlier documents left in the page: a busy browser puts it off. Raises `BrowserGone`."""
        self._call(seconds, self._session.send, "HeapProfiler.collectGarbage")

    def processes(self) -> list[psutil.Process]:
        """The driver, the browser and all that they started, as far as they are alive."""
        with suppress(psutil.NoSuchProcess):
            if self._driver is not None:
                return [self._driver, *self._driver.children(recursive=True)]
        return []

    def private_bytes(self) -> int:
        """Resident memory that these processes do not share, as far as the system tells them apart."""
        total = 0
        for process in self.processes():
            with suppress(psutil.Error):
                memory = process.memory_info()
                total += memory.rss - getattr(memory, "shared", 0)
        return total

    def close(self) -> None:
        """End browser and driver, for good.

        The browser is killed: nothing in it is worth an orderly end, and a call that hangs in it
        fails in this way.
        """
        deadline = time.monotonic() + GRACE_SECONDS
        for process in {*self._started, *self.processes()} - {self._driver}:
            _kill(process)
        # The driver removes the profile once it sees the browser's end. Told to leave before, it leaves it.
        while self._driver and self._driver.is_running() and self._profile and self._profile.exists():
            if time.monotonic() > deadline:
                break
            time.sleep(POLL_SECONDS)
        wait([self._thread.submit(self._stop)], deadline - time.monotonic())
        if self._driver:
            _kill(self._driver)
        self._thread.shutdown()
        if self._profile:
            shutil.rmtree(self._profile, ignore_errors=True)

    def _stop(self) -> None:
        if self._playwright:
            self._playwright.stop()

    def _call(
        self,
        seconds: float,
        call: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **options: _Arguments.kwargs,
    ) -> _Result:
        """Call in the thread, and wait no longer than this."""
        from playwright.sync_api import Error

        answer = self._thread.submit(call, *arguments, **options)
        either: list[Future[Any]] = [answer, self._crashed]
        done, _ = wait(either, seconds, FIRST_COMPLETED)
        if answer not in done:
            raise BrowserGone("its page crashed" if done else f"no answer in {seconds:g} s")
        try:
            return answer.result()
        except Exception as error:
            if isinstance(error, Error | OSError) or type(error) is Exception:
                raise BrowserGone(_reason(error)) from None
            raise


def _drivers() -> list[psutil.Process]:
    """This process's playwright drivers."""
    return [child for child in psutil.Process().children() if _DRIVER_ARGUMENT in _command(child)]


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return list(process.cmdline())
    return []


def _note(_: object, context: Mapping[str, Any]) -> None:
    """Keep what playwright's loop has to say off standard error.

    A driver that went away fails a future of playwright's own, which nobody asks; who waited for an
    answer has met `BrowserGone`.
    """
    _log.debug("%s", context["message"], exc_info=context.get("exception"))


def _kill(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()


def _reason(error: Exception) -> str:
    """One line of playwright's many: what the browser said last, if it did not come up."""
    said = re.findall(r"\[err\] (?!\[\S*:INFO:)(.+)", str(error))
    return said[-1].strip() if said else _first_line(str(error))


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
