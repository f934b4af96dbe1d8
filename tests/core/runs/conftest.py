"""A stage with real stores in a fresh folder, and one browser for all tests of runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from docgen_core.blobs.contract import BlobStore
from docgen_core.blobs.file import FileBlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.outcomes import DrainEnd, DrainOutcome, UnitEvent
from docgen_core.runs.plan import PlannedRun, RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.unit import RendererOnDemand
from docgen_core.state import open_state
from docgen_core.state.contract import StateStore

VERSION = "v1"
BUILD = f"catalogue-{VERSION}"


class Stage:
    """Stores of one test, and the usual things done with them."""

    def __init__(self, folder: Path, renderer: RendererOnDemand, settings: str = "") -> None:
        self.folder, self.renderer = folder, renderer
        self.blobs: BlobStore = FileBlobStore(folder / "blobs")
        self.state_uri = f"{folder / 'state.db'}{settings}"
        self.state = open_state(self.state_uri)
        self.events: list[UnitEvent] = []

    def reopen(self) -> StateStore:
        """The same state store as another process would open it."""
        return open_state(self.state_uri)

    def plan_catalogue(self, pack: str = "PACK", *, companies: int = 8, range_width: int = 2) -> PlannedRun:
        spec = CatalogueSpec(
            pack=f"delivery_note_pack:{pack}", companies=companies, products=2, range_width=range_width
        )
        return build_catalogue_run(self.state, self.blobs, VERSION, spec)

    def catalogue(self, pack: str = "PACK", *, companies: int = 8, range_width: int = 2) -> None:
        self.plan_catalogue(pack, companies=companies, range_width=range_width)
        assert self.work(BUILD).kind is DrainEnd.COMPLETED

    def request(self, run_id: str = "r1", pack: str = "PACK", **changes: object) -> RunRequest:
        wanted: dict[str, object] = {
            "documents": 6,
            "seed": 7,
            "selection": Selection(),
            "catalogue": VERSION,
            "unit_size": 2,
            "pack": f"delivery_note_pack:{pack}",
            **changes,
        }
        return RunRequest(run_id=run_id, **wanted)  # type: ignore[arg-type]

    def plan(self, run_id: str = "r1", pack: str = "PACK", **changes: object) -> PlannedRun:
        return create_run(self.state, self.blobs, self.request(run_id, pack, **changes))

    def work(self, run_id: str = "r1", worker: str = "w", **how: object) -> DrainOutcome:
        how = {"state": self.state, "blobs": self.blobs, "renderer": self.renderer, **how}
        return work_run(run_id, worker=worker, on_event=self.events.append, **how)  # type: ignore[arg-type]

    def done(self, run_id: str = "r1", **changes: object) -> None:
        """A sealed run over a sealed catalogue."""
        self.catalogue()
        self.plan(run_id, **changes)
        assert self.work(run_id).kind is DrainEnd.COMPLETED

    def digests(self, prefix: str = "runs/r1/") -> dict[str, str]:
        """SHA-256 by key of everything under a prefix."""
        return {info.key: sha256_hex(self.blobs.get(info.key)) for info in self.blobs.iter_keys(prefix)}


@pytest.fixture(scope="session")
def shared_renderer() -> Iterator[RendererOnDemand]:
    with RendererOnDemand() as renderer:
        yield renderer


@pytest.fixture(scope="session")
def open_stage_at() -> type[Stage]:
    """A stage in a folder that is there: `open_stage_at(folder, renderer)`."""
    return Stage


@pytest.fixture
def open_stage(tmp_path: Path, shared_renderer: RendererOnDemand) -> Callable[..., Stage]:
    """Stages by name; `settings` goes to the state URI."""

    def stage(name: str = "one", settings: str = "") -> Stage:
        (tmp_path / name).mkdir()
        return Stage(tmp_path / name, shared_renderer, settings)

    return stage


@pytest.fixture
def stage(open_stage: Callable[..., Stage]) -> Stage:
    return open_stage()


@pytest.fixture(scope="session")
def sealed_once(tmp_path_factory: pytest.TempPathFactory, shared_renderer: RendererOnDemand) -> Stage:
    """A sealed run `r1`, made once for all tests that only look at it or at a copy of its blobs."""
    stage = Stage(tmp_path_factory.mktemp("sealed"), shared_renderer)
    stage.done(selection=Selection(conditions={"clean": 2, "light_scan": 1}))
    return stage


@pytest.fixture
def sealed(sealed_once: Stage, tmp_path: Path) -> Stage:
    """The sealed run with blobs of one's own to damage."""
    copy = object.__new__(Stage)
    copy.__dict__.update(sealed_once.__dict__)
    shutil.copytree(sealed_once.folder / "blobs", tmp_path / "copy")
    copy.blobs = FileBlobStore(tmp_path / "copy")
    return copy
