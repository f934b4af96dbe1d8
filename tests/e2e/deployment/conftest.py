"""A real Dagster deployment: webserver and daemon on a temporary DAGSTER_HOME, and temporary stores."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, TypeVar

import psutil
import pytest

from docgen_core.state import open_state

REPOSITORY = Path(__file__).parents[3]
PATIENCE_SECONDS = 180.0
LOOK_SECONDS = 0.7
"""Between two looks: each costs the server that is waited for."""
T = TypeVar("T")

COMPANIES = 40
RANGE_WIDTH = 4


@dataclass
class Deployment:
    """The running processes, and how a test talks to them."""

    home: Path
    env: dict[str, str]
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def until(self, what: str, look: Callable[[], T | None]) -> T:
        """The first true answer of `look`; a condition that never comes fails the test, naming it.

        Patience begins anew while units, steps or runs come along: a slow machine is no fault, one that
        does nothing is.
        """
        far = None
        while True:
            end = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < end:
                if found := look():
                    return found
                time.sleep(LOOK_SECONDS)
            if (now := self._far()) == far:
                pytest.fail(f"waited {PATIENCE_SECONDS:.0f} s in vain for: {what}")
            far = now

    def _far(self) -> object:
        """How far everything is that this deployment does: its newest runs' steps, and every corpus' units."""
        query = "{ runsOrError(limit: 30) { ... on Runs { results { runId status stepStats { stepKey status } } } } }"
        with closing(open_state(self.state)) as state:
            return self.ask(query), [(run, state.progress(run.run_id)) for run in state.list_runs()]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def state(self) -> str:
        return self.env["DOCGEN_STATE"]

    @property
    def sink(self) -> Path:
        return Path(self.env["DOCGEN_SINK"])

    def start(self) -> None:
        scripts = Path(sys.executable).parent
        # Processes that create a fresh history at the same time trip over one another: make it first.
        subprocess.run(
            [scripts / "dagster", "instance", "info"], env=self.env, cwd=self.home, check=True, stdout=DEVNULL
        )
        workspace = ["-w", str(REPOSITORY / "workspace.yaml")]
        commands = {
            "webserver": [scripts / "dagster-webserver", *workspace, "-h", "127.0.0.1", "-p", str(self.port)],
            "daemon": [scripts / "dagster-daemon", "run", *workspace],
        }
        for name, command in commands.items():
            with (self.home / f"{name}.log").open("wb") as log:
                self.processes.append(
                    subprocess.Popen(
                        [str(step) for step in command],
                        cwd=self.home,
                        env=self.env,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        self.until("the webserver has loaded the code location", self._is_loaded)

    def stop(self) -> None:
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _is_loaded(self) -> bool:
        try:
            answer = self.ask("{ repositoriesOrError { __typename ... on RepositoryConnection { nodes { name } } } }")
        except (urllib.error.URLError, ConnectionError):
            return False
        return bool(answer["repositoriesOrError"].get("nodes"))

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """The data of one GraphQL answer."""
        request = urllib.request.Request(
            f"{self.url}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def docgen(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, on the same stores, without Dagster."""
        return subprocess.run(
            [sys.executable, "-m", "docgen_core.cli", *arguments],
            env=self.env,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )

    def workers(self) -> list[psutil.Process]:
        """Every living `docgen work` process on this deployment's stores, and whatever those started."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter(["cmdline", "status"]):
            line = process.info["cmdline"] or []
            ours = "work" in line and any(str(self.home) in step for step in line)
            if ours and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Variables that a module's deployment has beside those of its stores; a module may have its own."""
    return {}


@pytest.fixture(scope="module")
def deployment(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    home = tmp_path_factory.mktemp("deployment")
    dagster_home = home / "dagster"
    dagster_home.mkdir()
    shutil.copy(REPOSITORY / "deploy" / "dagster.yaml", dagster_home / "dagster.yaml")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DOCGEN_", "DAGSTER_"))}
    env |= {
        "DAGSTER_HOME": str(dagster_home),
        "DOCGEN_STATE": f"sqlite:///{home / 'state.db'}?lease_seconds=20",
        "DOCGEN_BLOBS": str(home / "blobs"),
        "DOCGEN_SINK": str(home / "golden.duckdb"),
        "DOCGEN_COMPANIES": str(COMPANIES),
        "DOCGEN_RANGE_WIDTH": str(RANGE_WIDTH),
        "DOCGEN_PRODUCTS": "8",
    } | environment
    running = Deployment(home, env, free_port())
    try:
        running.start()
        yield running
    finally:
        running.stop()
        for left in running.workers():
            left.kill()


@pytest.fixture
def rows(deployment: Deployment) -> Callable[[str], list[tuple[Any, ...]]]:
    """Rows of a query on the exported tables; an export that holds the file is waited for."""
    import duckdb

    def connect() -> duckdb.DuckDBPyConnection | None:
        try:
            return duckdb.connect(str(deployment.sink), read_only=True)
        except duckdb.IOException:
            return None

    def query(sql: str) -> list[tuple[Any, ...]]:
        with deployment.until("an export to let go of the file", connect) as connection:
            return connection.execute(sql).fetchall()

    return query
