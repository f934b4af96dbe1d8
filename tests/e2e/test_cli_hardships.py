"""A full disk, a folder that cannot be written, an interrupt, two at once, a killed worker: nothing is lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

LONG_LEASES = "state.db?lease_seconds=600"
"""Whatever is free again within a test was handed back; it did not expire."""
SHORT_LEASES = "state.db?lease_seconds=2&max_attempts=100"
AS_ROOT = os.geteuid() == 0
NOBODY = 65534
SMALL, LARGE = "2m", "100m"
"""The first holds a catalogue and a few scans, the second all."""
LIMIT_BYTES = 200_000
"""No file may grow beyond this; a catalogue and a few units make more of the state store's log."""


def is_sound(desk: Any, documents: int) -> None:
    """The run is sealed and sound, each document there once."""
    assert "no damage" in desk.done("verify", "r1", "--deep").err
    names = [path.name for path in (desk.folder / ".docgen/blobs/runs/r1/documents").rglob("*.pdf")]
    assert len(names) == len(set(names)) == documents


@dataclass(frozen=True)
class Disk:
    """A folder in which writes are soon refused."""

    state: str
    while_full: dict[str, Any]
    """How a command is started while they are."""
    make_room: Callable[[], object]


def limit_files() -> None:
    """Any user's way to a write that the system refuses."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, resource.RLIM_INFINITY))


@pytest.fixture(params=["full", "full, with the state elsewhere", "no large files"] if AS_ROOT else ["no large files"])
def disk(request: pytest.FixtureRequest, desk: Any, tmp_path: Path) -> Iterator[Disk]:
    """What root can mount, and what anybody can limit."""
    if request.param == "no large files":
        yield Disk(SHORT_LEASES, {"preexec_fn": limit_files}, lambda: None)
        return
    state = SHORT_LEASES if request.param == "full" else str(tmp_path / LONG_LEASES)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "docgen-test", desk.folder], check=True)
    yield Disk(state, {}, lambda: subprocess.run(["mount", "-o", f"remount,size={LARGE}", desk.folder], check=True))
    subprocess.run(["umount", desk.folder], check=True)


def test_a_full_disk_ends_the_command_in_one_line_and_room_lets_it_go_on(desk: Any, disk: Disk) -> None:
    here = type(desk)(desk.folder, {"DOCGEN_STATE": disk.state})
    order = ("generate", "r1", "--documents", "16", "--condition", "light_scan")
    refused = here.docgen(*order, **disk.while_full)
    assert refused.code == 3 and refused.events
    *notes, complaint = refused.err.splitlines()
    assert all("building a small one" in note or "a lease could not be renewed" in note for note in notes)
    assert complaint.startswith("docgen: ") and str(desk.folder) in complaint
    disk.make_room()
    done = here.done(*order, "--workers", "2")
    before = [event for event in refused.events if event.get("run") == "r1" and event.get("outcome") == "done"]
    assert done.events[-1]["made"] == 16 - sum(event["documents"] for event in before), "what was done stays done"
    is_sound(here, 16)


def test_a_folder_that_an_ordinary_user_cannot_write_is_named_and_nothing_is_in_it(desk: Any, catalogue: Path) -> None:
    """Root may write everywhere: as root, the command is run as nobody, who may read everything and write little."""
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    may_read = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    blobs, state = desk.folder / "blobs", desk.folder / "state"
    subprocess.run(["cp", "-r", catalogue / ".docgen/blobs", blobs], check=True)
    state.mkdir()
    if AS_ROOT:
        os.chown(state, NOBODY, NOBODY)
    for folder in [blobs, *(path for path in blobs.rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
    before = sorted(blobs.rglob("*"))
    docgen = desk.docgen.__globals__["DOCGEN"]
    refused = desk.docgen(
        *("generate", "r1", "--documents", "1", "--blobs", blobs, "--state", state / "state.db"),
        prefix=[*as_nobody, *may_read, docgen] if AS_ROOT else [docgen],
    )
    assert refused.code == 3 and str(blobs) in refused.complaint and "permission denied" in refused.complaint
    assert sorted(blobs.rglob("*")) == before


def test_an_interrupt_hands_every_lease_back_and_the_same_command_goes_on(stocked: Any) -> None:
    here = type(stocked)(stocked.folder, {"DOCGEN_STATE": LONG_LEASES})
    order = ("generate", "r1", "--documents", "24", "--unit-size", "2")
    for how, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with here.start(*order, "--workers", "2") as process:
            assert '"outcome": "done"' in process.stdout.readline()
            family = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(how)
            process.communicate()
            assert process.returncode == code
        assert family and not any(child.is_running() and child.status() != "zombie" for child in family)
        units = here.units("r1")
        assert units["running"] == units["failed"] == 0 and units["pending"] > 0
    done = here.done(*order)
    assert done.events[-1]["made"] == 2 * units["pending"]
    assert {event["attempt"] for event in done.events[:-1]} == {1}, "to hand back is no attempt"
    is_sound(here, 24)


def test_of_two_plans_at_once_one_wins_and_the_other_is_told(stocked: Any) -> None:
    both = [stocked.start("plan", "r1", "--documents", "3", "--seed", seed) for seed in ("1", "2")]
    said = [process.communicate() for process in both]
    assert sorted(process.returncode for process in both) == [0, 2]
    (told,) = [err for _, err in said if err]
    assert "run 'r1' was planned with other parameters (seed is" in told


def test_a_worker_that_is_killed_is_replaced_and_the_run_is_done(stocked: Any) -> None:
    here = type(stocked)(stocked.folder, {"DOCGEN_STATE": SHORT_LEASES})
    order = ("generate", "r1", "--documents", "24", "--unit-size", "2", "--workers", "2")
    with here.start(*order) as process:
        assert '"outcome": "done"' in process.stdout.readline()
        worker = psutil.Process(process.pid).children()[0]
        worker.kill()
        _, err = process.communicate()
    assert process.returncode == 0, err
    assert "1 of run 'r1''s workers were killed" in err
    is_sound(here, 24)
