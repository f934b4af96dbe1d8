"""Workers as processes of this machine. A fleet starts, counts, replaces and ends them; who works on what
it does not decide.

Each worker has a session of its own, so that a terminal's interrupt reaches the fleet alone, and
its standard input is a pipe that the fleet holds: when the fleet's process dies, however it dies,
the pipe ends, and the worker hands its leases back and leaves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import BinaryIO

GRACE_SECONDS = 30.0
"""From asking a worker to leave until its whole process group is killed."""
POLL_SECONDS = 0.05
REPLACEMENTS_A_WORKER = 5
"""A worker that a signal killed is replaced, so that a unit which kills its process uses up its
attempts and the others are done; this many times the workers ever asked for, and no more."""


class LocalFleet:
    """Processes that run one command. Use as a context manager, or call `stop` in a `finally`."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str] | None = None, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self._command = tuple(command)
        self._env = None if env is None else dict(env)
        self._grace_seconds = grace_seconds
        self._workers: list[subprocess.Popen[bytes]] = []
        self._asked_for = 0
        self._killed = 0
        """Workers that signals had killed when `replace_killed` looked last."""
        self._replaced = 0
        self._stopping = False

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the workers that are alive; each leads its own group."""
        return tuple(worker.pid for worker in self._workers if worker.poll() is None)

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """Exit codes of the workers that have ended, negative for a signal."""
        return tuple(code for worker in self._workers if (code := worker.poll()) is not None)

    def start(self, n: int) -> None:
        """Start `n` workers more."""
        self._asked_for += n
        self._spawn(n)

    def replace_killed(self) -> int:
        """Start as many workers as signals have killed since the last call, within the bound. Returns how many.

        Call it while there is work left. A fleet that is stopping replaces nobody.
        """
        if self._stopping:
            return 0
        killed = sum(code < 0 for code in self.exit_codes)
        n = min(killed - self._killed, REPLACEMENTS_A_WORKER * self._asked_for - self._replaced)
        self._spawn(n)
        self._killed, self._replaced = killed, self._replaced + n
        return n

    def _spawn(self, n: int) -> None:
        for _ in range(n):
            self._workers.append(
                subprocess.Popen(self._command, stdin=subprocess.PIPE, env=self._env, start_new_session=True)
            )

    def poll(self) -> int:
        """How many are alive."""
        return len(self.pids)

    def wait(self) -> tuple[int, ...]:
        """Wait until every worker has ended by itself. Returns their exit codes."""
        for worker in self._workers:
            worker.wait()
        return self.exit_codes

    def stop(self) -> None:
        """Ask all to hand their leases back, wait a grace, then kill what is left. Safe to call again."""
        self._stopping = True
        alive = [worker for worker in self._workers if worker.poll() is None]
        for worker in alive:
            worker.terminate()
        deadline = time.monotonic() + self._grace_seconds
        while self.pids and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        for worker in alive:
            # The group may outlive its leader: a browser that did not notice.
            _kill_group(worker.pid)
            worker.wait()
        for worker in self._workers:
            if worker.stdin is not None:
                worker.stdin.close()

    def __enter__(self) -> LocalFleet:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def stop_when_closed(stream: BinaryIO, stop: threading.Event, *, grace_seconds: float = GRACE_SECONDS) -> None:
    """Set `stop` when the stream ends, and end the whole process group when that does not help.

    Watches from a daemon thread. Only a process that leads its own session ends its group.
    """
    descriptor = stream.fileno()

    def watch() -> None:
        # Past the buffer: a thread that waits inside it holds its lock, and the interpreter aborts when it ends.
        while os.read(descriptor, 4096):
            pass
        stop.set()
        time.sleep(grace_seconds)
        if os.getsid(0) == os.getpid():
            _kill_group(os.getpid())
        os._exit(128 + signal.SIGTERM)

    threading.Thread(target=watch, name="docgen-stdin", daemon=True).start()


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
