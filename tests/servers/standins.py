"""Stand-in servers: installed on first use, started on free loopback ports, ended by their process.

Each package gets an environment of its own in a cache folder, since servers pin other libraries
than docgen does. What cannot be had fails the tests in CI, and is left out with its reason
on a user's machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from filelock import FileLock

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "docgen-tests"
START_SECONDS = 60.0
"""A server that does not answer by then will not."""
INSTALL_SECONDS = 300.0


def without(server: str, reason: str) -> NoReturn:
    """Give up on a server: a failure in CI, elsewhere a test left out, and why."""
    text = f"no {server} to test against: {reason}"
    if os.environ.get("CI"):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


def installed(requirement: str, *with_it: str, python: str = sys.executable) -> Path:
    """The environment of a server's package, made where there is none: `bin/…` and `lib/…` of it.

    `python` is a version, such as 3.13, where the package does not run on this one.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    place = CACHE / requirement.replace("==", "-")
    with FileLock(f"{place}.lock", timeout=INSTALL_SECONDS):
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            _run(requirement, "venv", "--python", python, str(place))
            _run(requirement, "pip", "install", "--python", str(place / "bin" / "python"), requirement, *with_it)
            (place / "complete").touch()
    return place


def _run(requirement: str, *command: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    # What pyenv has installed is not on the path, unless it is the version in use.
    pythons = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin")
    environment = {**os.environ, "PATH": os.pathsep.join([*map(str, pythons), os.environ.get("PATH", os.defpath)])}
    try:
        subprocess.run(
            [str(uv), *command, "-q"],
            capture_output=True, text=True, check=True, timeout=INSTALL_SECONDS, env=environment,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or error
        without(requirement, f"the package {requirement} cannot be installed: {str(said).strip()[-500:]}")


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nobody listens on, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(opened.getsockname()[1]) for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports


@contextmanager
def running(
    name: str,
    command: Sequence[str],
    folder: Path,
    ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """The server's process id, once `ready` holds; it runs in `folder`, and ends with the block."""
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        try:
            server = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            without(name, f"it cannot be started: {error}")
    try:
        if not _until(ready, server):
            without(name, f"it did not start: {log.read_text(errors='replace')[-2_000:]}")
        yield server.pid
    finally:
        # It keeps nothing, and may have children: the group is all of them, and only ours.
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _until(ready: Callable[[], bool], server: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if ready():
            return True
        threading.Event().wait(0.05)
    return False
