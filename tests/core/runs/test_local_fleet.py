"""A fleet's workers are real processes, and none is left behind, whatever happens to whom."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from docgen_core.runs.fleet import REPLACEMENTS_A_WORKER, LocalFleet

POLITE = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
open(sys.argv[1], 'a').write('x')
signal.pause()
"""
STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], 'a').write('x')
while True:
    signal.pause()
"""
WATCHING = """
import sys, threading, time
from docgen_core.runs.fleet import stop_when_closed
stop = threading.Event()
stop_when_closed(sys.stdin.buffer, stop, grace_seconds=float(sys.argv[2]))
open(sys.argv[1], 'a').write('x')
stop.wait()
time.sleep(float(sys.argv[3]))
sys.exit(143)
"""


def until(holds: Any) -> None:
    while not holds():
        threading.Event().wait(0.01)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    path = tmp_path / "ready"
    path.touch()
    return path


def test_workers_are_started_counted_and_waited_for() -> None:
    with LocalFleet([sys.executable, "-c", "import sys; sys.exit(3)"]) as fleet:
        fleet.start(2)
        fleet.start(1)
        assert fleet.wait() == (3, 3, 3)
        assert fleet.poll() == 0


def test_workers_that_signals_killed_are_replaced_and_those_that_left_are_not(ready: Path) -> None:
    with LocalFleet([sys.executable, "-c", POLITE, str(ready)]) as fleet:
        fleet.start(3)
        until(lambda: ready.read_text() == "xxx")
        first, second, third = fleet.pids
        assert fleet.replace_killed() == 0
        os.kill(first, signal.SIGKILL)
        os.kill(second, signal.SIGKILL)
        os.kill(third, signal.SIGTERM)
        until(lambda: fleet.poll() == 0)
        assert fleet.replace_killed() == 2 and fleet.poll() == 2
        assert fleet.replace_killed() == 0
        fleet.stop()
        assert fleet.replace_killed() == 0 and fleet.poll() == 0


def test_a_fleet_whose_every_worker_is_killed_gives_up() -> None:
    with LocalFleet([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) as fleet:
        fleet.start(2)
        started = 0
        while n := (fleet.wait() and fleet.replace_killed()):
            started += n
        assert started == 2 * REPLACEMENTS_A_WORKER
        assert fleet.exit_codes == (-signal.SIGKILL,) * (2 + started)


def test_stopping_asks_first(ready: Path) -> None:
    fleet = LocalFleet([sys.executable, "-c", POLITE, str(ready)])
    fleet.start(3)
    until(lambda: ready.read_text() == "xxx")
    assert fleet.poll() == 3
    fleet.stop()
    fleet.stop()
    assert fleet.poll() == 0 and fleet.exit_codes == (143, 143, 143)


def test_who_does_not_listen_is_killed_after_the_grace(ready: Path) -> None:
    fleet = LocalFleet([sys.executable, "-c", STUBBORN, str(ready)], grace_seconds=0.2)
    fleet.start(2)
    until(lambda: ready.read_text() == "xx")
    fleet.stop()
    assert fleet.exit_codes == (-signal.SIGKILL, -signal.SIGKILL)


def test_each_worker_has_a_session_of_its_own(ready: Path) -> None:
    with LocalFleet([sys.executable, "-c", POLITE, str(ready)]) as fleet:
        fleet.start(2)
        assert [os.getsid(pid) for pid in fleet.pids] == list(fleet.pids)


@pytest.mark.parametrize(("grace", "lingers"), [("60", "0"), ("0.2", "600")], ids=["listens", "hangs"])
def test_when_the_fleets_process_is_killed_its_workers_end(
    tmp_path: Path, ready: Path, grace: str, lingers: str
) -> None:
    owner = f"""
import signal, sys
from docgen_core.runs.fleet import LocalFleet
fleet = LocalFleet([sys.executable, "-c", {WATCHING!r}, {str(ready)!r}, {grace!r}, {lingers!r}])
fleet.start(2)
print(*fleet.pids, flush=True)
signal.pause()
"""
    process = subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    until(lambda: ready.read_text() == "xx")
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    until(lambda: not any(alive(pid) for pid in pids))
