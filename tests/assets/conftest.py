"""The code location on a tiny roster, and stores of its own for each test.

The ranges are read from the environment when the code location loads; the stores are configured,
as an operator would, so that no test depends on a default.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

ROSTER = {"DOCGEN_COMPANIES": "10", "DOCGEN_RANGE_WIDTH": "4", "DOCGEN_PRODUCTS": "8"}
FIRST, SECOND, LAST = "00000-00003", "00004-00007", "00008-00009"


@pytest.fixture(scope="session")
def defs() -> dg.Definitions:
    """The definitions, loaded once with the tiny roster."""
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("DOCGEN_")}
    os.environ.update(ROSTER)
    try:
        with warnings.catch_warnings(action="ignore"):
            from docgen_assets.definitions import defs
    finally:
        for name in ROSTER:
            del os.environ[name]
        os.environ.update(before)
    return defs


@dataclass
class Location:
    """The code location on stores of its own, run in process."""

    defs: dg.Definitions
    folder: Path
    instance: dg.DagsterInstance
    sink: str

    @property
    def stores(self) -> dict[str, str]:
        return {
            "state": f"sqlite:///{self.folder / 'state.db'}?lease_seconds=20&max_attempts=2",
            "blobs": str(self.folder / "blobs"),
            "sink": self.sink,
        }

    def run(
        self,
        job: str,
        *keys: str,
        corpus: Mapping[str, Any] | None = None,
        ops: Mapping[str, Any] | None = None,
        selection: list[str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Execute a job for a range, or for all from the first key to the last as one run."""
        resources: dict[str, Any] = {"stores": {"config": self.stores}}
        if corpus is not None:
            resources["corpus"] = {"config": dict(corpus)}
        tags = {}
        if len(keys) > 1:
            tags = {"dagster/asset_partition_range_start": keys[0], "dagster/asset_partition_range_end": keys[-1]}
        return self.defs.resolve_job_def(job).execute_in_process(
            run_config={"resources": resources, "ops": dict(ops or {})},
            instance=self.instance,
            partition_key=keys[0] if len(keys) == 1 else None,
            tags=tags,
            asset_selection=[dg.AssetKey(name) for name in selection] if selection else None,
            raise_on_error=False,
        )

    def generate(self, *keys: str, **corpus: Any) -> dg.ExecuteInProcessResult:
        """Everything for these ranges, with few documents and two workers."""
        return self.run(
            "generate_corpus",
            *keys,
            corpus={"documents_per_range": 3, **corpus},
            ops={"catalogue": {"config": {"workers": 1}}, "golden_shards": {"config": {"workers": 2}}},
        )

    def refusal(self, result: dg.ExecuteInProcessResult) -> str:
        """What the one failed step says to the person at the UI."""
        (failed,) = [event for event in result.all_events if event.is_step_failure]
        said = failed.step_failure_data.user_failure_data
        assert said is not None, f"not said plainly: {failed.step_failure_data.error}"
        return said.description or ""

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the exported tables."""
        import duckdb

        with duckdb.connect(self.sink, read_only=True) as connection:
            return connection.execute(sql).fetchall()


@contextmanager
def opened_location(defs: dg.Definitions, folder: Path, *, sink: str = "golden.duckdb") -> Iterator[Location]:
    """A location whose stores, sink and history are under one folder."""
    history = folder / "dagster"
    history.mkdir()
    with dg.DagsterInstance.ephemeral(tempdir=str(history)) as instance:
        yield Location(defs, folder, instance, str(folder / sink))


@pytest.fixture
def location(defs: dg.Definitions, tmp_path: Path) -> Iterator[Location]:
    """A location where nothing was made yet."""
    with opened_location(defs, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def made(defs: dg.Definitions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    """A location where the first range was generated; for tests that change nothing."""
    with opened_location(defs, tmp_path_factory.mktemp("made")) as opened:
        assert opened.generate(FIRST).success
        yield opened


@contextmanager
def copied(source: Location, folder: Path) -> Iterator[Location]:
    """A location with a copy of another's stores and sink, and a history of its own."""
    for path in source.folder.iterdir():
        if path.name != "dagster":
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
    with opened_location(source.defs, folder) as opened:
        yield opened


@pytest.fixture(scope="session")
def copies() -> Callable[[Location, Path], AbstractContextManager[Location]]:
    """Makes a copy of a location under a folder of its own."""
    return copied


@pytest.fixture(scope="session")
def locations(defs: dg.Definitions) -> Callable[[Path], AbstractContextManager[Location]]:
    """Makes a location under a folder, for modules that share one of their own."""
    return partial(opened_location, defs)


@pytest.fixture
def damageable(made: Location, tmp_path: Path) -> Iterator[Location]:
    """A copy of what was made, to be damaged."""
    with copied(made, tmp_path) as opened:
        yield opened


@pytest.fixture(scope="session")
def planned_once(defs: dg.Definitions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    """A location where the first range's run is planned and nothing is drawn yet."""
    with opened_location(defs, tmp_path_factory.mktemp("planned")) as opened:
        chosen = {"documents_per_range": 2}
        assert opened.run("generate_corpus", FIRST, corpus=chosen, selection=["catalogue", "run_plan"]).success
        yield opened


@pytest.fixture
def planned(planned_once: Location, tmp_path: Path) -> Iterator[Location]:
    """A copy of what was planned, to be worked on."""
    with copied(planned_once, tmp_path) as opened:
        yield opened
