"""One browser process, spoken to in the DevTools protocol over a pipe.

The pipe is the browser's life line: when this process ends, however it ends, the browser reads
the end of the pipe and ends too. Talking to it directly keeps the time-out of a call, the
process ids and the memory in our hands, and costs no driver process beside each worker.
What does not belong here: what is printed, and when a browser is given up (`chromium`).
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

START_SECONDS = 60.0
LOOK_SECONDS = 10.0
_CHUNK_BYTES = 1 << 20
_PROFILE_PREFIX = "docgen-chromium-"
_LOCK_NAME = "docgen.lock"
_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "FONTCONFIG_FILE", "FONTCONFIG_PATH")

_ARGUMENTS = (
    "--headless",
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # no name leads anywhere
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers give /dev/shm 64 MB, and a page that outgrows it dies
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--lang=en-US",
    "--password-store=basic",
    "--use-mock-keychain",
)

# The protocol wants file descriptors 3 and 4. A shell moves them there, for a hook between fork
# and exec is unsafe in a process with threads.
_SHELL = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null'


class BrowserGone(Exception):
    """The browser died, did not answer in time, or refused a call."""


class Browser:
    """A running browser. Not for two threads at once."""

    def __init__(self, executable: Path) -> None:
        """Start it. Raises `BrowserGone` when it does not come up."""
        _sweep_profiles()
        self._profile, self._lock = _make_profile()
        self._errors = self._profile / "stderr.txt"
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        arguments = [*_ARGUMENTS, f"--user-data-dir={self._profile}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium's sandbox refuses to run as root
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SHELL, str(executable), *arguments],
                stdin=theirs_in,
                stdout=theirs_out,
                stderr=errors,
                env={**environment, "LANG": "C.UTF-8", "TZ": "UTC"},
                start_new_session=True,  # an interrupt at the terminal is the worker's to handle
            )
        os.close(theirs_in)
        os.close(theirs_out)
        for end in (self._read, self._write):
            os.set_blocking(end, False)
        self._buffer = bytearray()
        self._calls = 0
        self._closed = False
        try:
            self.version = str(self.call("Browser.getVersion", seconds=START_SECONDS)["product"])
        except BrowserGone as gone:
            said = self._last_error()
            self.kill()
            raise BrowserGone(f"{executable} did not start: {said or gone}") from None

    def call(
        self, method: str, params: dict[str, Any] | None = None, *, session: str | None = None, seconds: float
    ) -> dict[str, Any]:
        """Call a protocol method and give its result. Raises `BrowserGone`."""
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        deadline = time.monotonic() + seconds
        try:
            self._send(json.dumps(message).encode() + b"\0", deadline)
            while True:
                reply = json.loads(self._receive(deadline))
                if reply.get("id") == self._calls:
                    break
        except TimeoutError:
            raise BrowserGone(f"{method} gave no answer in {seconds:g} s") from None
        except (OSError, ValueError) as error:
            raise BrowserGone(f"the browser died in {method}: {error}") from None
        if "error" in reply:
            raise BrowserGone(f"{method}: {reply['error'].get('message')}")
        result: dict[str, Any] = reply["result"]
        return result

    def _send(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(self._write, selectors.EVENT_WRITE, deadline)
            with suppress(BlockingIOError):
                rest = rest[os.write(self._write, rest[:_CHUNK_BYTES]) :]

    def _receive(self, deadline: float) -> bytes:
        seen = 0
        while (end := self._buffer.find(0, seen)) < 0:
            seen = len(self._buffer)
            self._wait(self._read, selectors.EVENT_READ, deadline)
            with suppress(BlockingIOError):
                chunk = os.read(self._read, _CHUNK_BYTES)
                if not chunk:
                    raise OSError("its end of the pipe is closed")
                self._buffer += chunk
        message = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return message

    def _wait(self, end: int, event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(end, event)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                raise TimeoutError

    def process_ids(self) -> list[int]:
        """Ids of the browser's processes."""
        found = self.call("SystemInfo.getProcessInfo", seconds=LOOK_SECONDS)["processInfo"]
        return [int(process["id"]) for process in found]

    def private_bytes(self) -> int | None:
        """Resident memory that is the browser's alone; None where the system does not tell (no /proc)."""
        total = 0
        for process_id in self.process_ids():
            try:
                _, resident, shared, *_ = Path(f"/proc/{process_id}/statm").read_text().split()
            except OSError:
                if not Path("/proc/self/statm").exists():
                    return None
                continue  # the process ended between the two looks
            total += (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
        return total

    def kill(self) -> None:
        """End the browser and every process of its group at once, and remove its profile: nothing in it is worth
        an orderly end. A second call does nothing.
        """
        if self._closed:
            return
        self._closed = True
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for end in (self._read, self._write, self._lock):
            os.close(end)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _last_error(self) -> str:
        lines = self._errors.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _make_profile() -> tuple[Path, int]:
    """A fresh profile folder, and the lock that says its owner lives."""
    while True:
        profile = Path(tempfile.mkdtemp(prefix=_PROFILE_PREFIX))
        lock = os.open(profile / _LOCK_NAME, os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (profile / _LOCK_NAME).exists():
            return profile, lock
        os.close(lock)  # another worker's sweep came between the two lines


def _sweep_profiles() -> None:
    """Remove profiles whose owner was killed: its lock is free."""
    for profile in Path(tempfile.gettempdir()).glob(f"{_PROFILE_PREFIX}*"):
        with suppress(OSError):
            lock = os.open(profile / _LOCK_NAME, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(profile, ignore_errors=True)
            finally:
                os.close(lock)
