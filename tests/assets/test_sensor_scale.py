"""The sensors at the size of a bucket of many runs, across restarts of the daemon.

Ten thousand runs of a hundred blobs each behind DOCGEN_PROVE=1, thirty of two otherwise. Every request
that reaches the bucket is counted by a server in front of it. The thirty are asked for by the
daemon's own code; the ten thousand by what it does with a tick's answer, without the third of a
second that launching a run takes it.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from blob_servers import BlobServer
from dagster._core.test_utils import create_test_daemon_workspace_context, freeze_time
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.sensor import execute_sensor_iteration
from interposer import Interposer, interposed

from docgen_core.runs.manifest import Plan
from docgen_core.runs.selection import Selection
from docgen_core.runs.spec import spec_digest
from docgen_core.state.contract import RunKind, RunMarker

REPOSITORY = Path(__file__).parents[2]
ROSTER = {"DOCGEN_COMPANIES": "10", "DOCGEN_RANGE_WIDTH": "4", "DOCGEN_PRODUCTS": "8"}
RANGE = "00000-00003"

PREFIX = "sensor-at-scale"
PROMISED = 100
"""Requests that a tick stays under."""
RANGES_RUNS = 6
"""Of the runs, how many are named as a range's and have a plan, which has to be read."""
TICK_SECONDS = 60.0
PUTTERS = 16

pytestmark = pytest.mark.timeout(7_200)


@dataclass
class Daemon:
    """The daemon that evaluates sensors, begun anew for each tick that is asked of a fresh one."""

    home: Path
    proxy: Interposer
    now: float
    asked: Counter[str] = field(default_factory=Counter)
    """Run keys of the Dagster runs there are."""
    most: int = 0
    """Requests of the busiest tick."""
    ticks: int = 0
    starts: int = 0

    @contextmanager
    def started(self) -> Iterator[Callable[[], int]]:
        """A daemon on the home; gives a function that evaluates one tick of every sensor that runs."""
        self.starts += 1
        target = ModuleTarget("docgen_assets.definitions", None, str(REPOSITORY), "docgen")
        with (
            dg.DagsterInstance.from_config(str(self.home)) as instance,
            create_test_daemon_workspace_context(target, instance) as workspace,
        ):
            yield lambda: self._tick(instance, workspace)

    def _tick(self, instance: dg.DagsterInstance, workspace: Any) -> int:
        """One tick. Returns how many runs it asked for; those have ended before the next."""
        with self.counted(), freeze_time(self.now):
            list(execute_sensor_iteration(workspace, logging.getLogger("daemon"), None, None))
        queued = instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
        for run in queued:
            self.asked[run.tags["dagster/run_key"]] += 1
            instance.report_run_failed(run, "this test executes nothing")
        return len(queued)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """A tick, of whose requests there are fewer than promised."""
        before, self.now, self.ticks = len(self.proxy.seen), self.now + TICK_SECONDS, self.ticks + 1
        yield
        sent = len(self.proxy.seen) - before
        self.most = max(self.most, sent)
        assert 0 < sent < PROMISED, sent


class Recorder(Daemon):
    """Evaluates the sensors as the daemon does, their cursors kept in the instance, and records the runs asked for."""

    @contextmanager
    def started(self) -> Iterator[Callable[[], int]]:
        self.starts += 1
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            yield lambda: self._recorded(instance)

    def _recorded(self, instance: dg.DagsterInstance) -> int:
        from docgen_assets.defs.sensors import root_manifest_sensor, withdrawn_run_sensor

        with self.counted():
            return sum(self._evaluated(instance, sensor) for sensor in (root_manifest_sensor, withdrawn_run_sensor))

    def _evaluated(self, instance: dg.DagsterInstance, sensor: dg.SensorDefinition) -> int:
        from docgen_assets.resources import Stores

        kept = instance.daemon_cursor_storage
        cursor = kept.get_cursor_values({sensor.name}).get(sensor.name)
        stores = Stores(**{name: os.environ[f"DOCGEN_{name.upper()}"] for name in ("state", "blobs", "sink")})
        answer = sensor(dg.build_sensor_context(instance=instance, cursor=cursor, resources={"stores": stores}))
        assert isinstance(answer, dg.SensorResult)
        asked = 0
        for request in answer.run_requests or ():
            tags = {**request.tags, "dagster/run_key": request.run_key or ""}
            if not instance.get_runs_count(dg.RunsFilter(tags={"dagster/run_key": request.run_key or ""})):
                run = dg.DagsterRun(request.job_name or "", tags=tags, status=dg.DagsterRunStatus.FAILURE)
                instance.run_storage.add_run(run)
                asked += 1
            self.asked[request.run_key or ""] += 1
        kept.set_cursor_values({sensor.name: answer.cursor or ""})
        return asked


@pytest.fixture
def daemon(
    s3_seaweed: BlobServer, defs: dg.Definitions, full_figures: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Daemon]:
    """A daemon whose bucket is behind a counting server."""
    home = tmp_path / "dagster"
    home.mkdir()
    shutil.copy(REPOSITORY / "deploy" / "dagster.yaml", home / "dagster.yaml")
    stores = {
        "DOCGEN_BLOBS": f"s3://{s3_seaweed.bucket}/{PREFIX}",
        "DOCGEN_STATE": str(tmp_path / "state.db"),
        "DOCGEN_SINK": str(tmp_path / "golden.duckdb"),
    }
    with interposed(s3_seaweed.port) as proxy:
        for name, value in {**s3_seaweed.behind(proxy.port), **ROSTER, **stores}.items():
            monkeypatch.setenv(name, value)
        yield (Recorder if full_figures else Daemon)(home, proxy, time.time())


def plan_of(run_id: str) -> Plan:
    """The plan of a run over the companies of the first range."""
    spec = {
        "kind": "documents",
        "pack": "invoice",
        "pack_version": "1",
        "documents": 1,
        "seed": 0,
        "selection": Selection(companies=(0, 3)).model_dump(mode="json"),
        "catalogue": {"version": "roster", "pin": {"parts": {"0": root_of("roster")}}},
    }
    marker = RunMarker(run_id, RunKind.DOCUMENTS, f"runs/{run_id}", spec, spec_digest(spec), 1, 1, 1)
    return Plan.of(marker, {})


def put_all(server: BlobServer, items: Iterable[tuple[str, bytes]]) -> int:
    """Put many small objects by plain HTTP, from several threads. Returns how many."""

    def put(part: Sequence[tuple[str, bytes]]) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.bulk_port, timeout=60)
        for key, data in part:
            connection.request("PUT", f"/buckets/{server.bucket}/{PREFIX}/{key}", data)
            answer = connection.getresponse()
            answer.read()
            assert answer.status < 300, (key, answer.status)
        connection.close()
        return len(part)

    everything = list(items)
    with ThreadPoolExecutor(PUTTERS) as pool:
        return sum(pool.map(put, [everything[start::PUTTERS] for start in range(PUTTERS)]))


def published(run_ids: Sequence[str], blobs_each: int) -> Iterator[tuple[str, bytes]]:
    """What such runs have in a bucket, as far as a sensor can see: blobs, markers, and plans of ranges."""
    for run_id in run_ids:
        for number in range(blobs_each - 1):
            yield f"runs/{run_id}/documents/unit-000000/{number:07d}.pdf", b"%PDF"
        if run_id.endswith(RANGE):
            yield f"runs/{run_id}/plan.json", plan_of(run_id).to_bytes()
        yield f"sealed/{run_id}", f"{root_of(run_id)}\n".encode()


def root_of(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()


def test_each_new_root_is_asked_for_once_in_bounded_ticks_across_restarts(
    daemon: Daemon,
    s3_seaweed: BlobServer,
    full_figures: bool,
    say: Callable[[str], None],
):
    runs, blobs_each, ticks_a_daemon = (10_000, 100, 100) if full_figures else (30, 2, 1)
    # The newest sort first: their numbers go down.
    ids = [
        f"r{number:05d}" + (f"-{RANGE}" if number % (runs // RANGES_RUNS) == 0 else "") for number in range(runs, 0, -1)
    ]
    withdrawn = ids[3 :: max(len(ids) // 20, 1)]
    wanted = {f"{run_id}:{root_of(run_id)}" for run_id in set(ids) - set(withdrawn)}
    wanted |= {f"withdrawn:{run_id}" for run_id in withdrawn}
    began = time.monotonic()
    put = put_all(s3_seaweed, published(ids, blobs_each))
    put += put_all(s3_seaweed, ((f"withdrawn/{run_id}", b"withdrawn\n") for run_id in withdrawn))
    putting, began = time.monotonic() - began, time.monotonic()

    late = ("a-new-one-in-front", "r00000-the-next-one")
    most = 0
    while not most:
        with daemon.started() as tick:
            for _ in range(ticks_a_daemon):
                if tick():
                    continue
                assert set(daemon.asked) == wanted
                ticks, most = daemon.ticks, daemon.most
                for run_id in late:
                    put_all(s3_seaweed, published([run_id], blobs_each))
                    wanted.add(f"{run_id}:{root_of(run_id)}")
                    assert tick() == 1, "a new run is seen in the very next tick, wherever it sorts"
                assert tick() == 0
                break
        ticks_a_daemon = max(ticks_a_daemon, 10)
    assert daemon.asked == Counter(dict.fromkeys(wanted, 1)), "each once"
    say(
        f"{runs} runs, {put} blobs in {putting:.0f} s; {len(daemon.asked)} requests in {ticks} ticks of "
        f"{daemon.starts} daemons, at most {most} requests to the bucket a tick; {time.monotonic() - began:.0f} s"
    )
