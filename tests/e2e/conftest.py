"""The docgen command as a process of its own, in a folder of its own, and one corpus made once a session."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from docgen_core.blobs import open_blobs
from docgen_core.cli.produce import COMPANIES, DEFAULT_CATALOGUE, PRODUCTS, RANGE_WIDTH
from docgen_core.money import RoundingPolicy
from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice.identity import identity_of
from docgen_core.packs.invoice.model import LineKind
from docgen_core.packs.invoice.record import Company
from docgen_core.render.capture import CONDITIONS as CAPTURE_CONDITIONS
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.plan import RunRequest, preview
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.source import DocumentSource
from docgen_core.state import open_state

DOCGEN = Path(sys.executable).with_name("docgen")
"""The script that an installation puts beside its Python."""
PATIENCE_SECONDS = 7_000 if os.environ.get("DOCGEN_PROVE") == "1" else 280
"""A command that takes longer hangs; the time-out of the test is not much more."""

RUN = "r1"
DOCUMENTS, FULL_DOCUMENTS = 48, 2_000
CLEAN, FULL_CLEAN = 24, 200
"""At least so many documents of the corpus are clean; the others are captured."""
CONDITIONS = {name: {"clean": 14, "light_scan": 5}.get(name, 1) for name in sorted(CAPTURE_CONDITIONS)}
CLEAN_VARIETY, FULL_CLEAN_VARIETY = 0.6, 1.0
"""Every locale and layout that the catalogue's companies have is in a corpus; of them, so many as clean documents."""
FULL_COMPANIES = 1_500
"""A catalogue with companies of every locale and layout; the usual small one lacks some."""
SEEDS = 20_000
"""Tried in turn: other sources draw other documents, and a small corpus has not everything by chance."""


@dataclass(frozen=True)
class Finished:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its result."""
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What it said line by line; a line that is no JSON object fails here."""
        return [dict(json.loads(line)) for line in self.out.splitlines()]

    @property
    def complaint(self) -> str:
        """The one line of standard error. More or fewer lines fail here, and so does a traceback."""
        (line,) = self.err.splitlines()
        assert line.startswith("docgen"), line
        return line


@dataclass(frozen=True)
class Desk:
    """A folder where somebody types docgen commands."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """No setting comes from outside but the browser's."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("DOCGEN_") or name == "DOCGEN_CHROMIUM"
        }
        return {**inherited, **self.env}

    def start(self, *words: str | Path, **how: Any) -> subprocess.Popen[str]:
        """The command, under way."""
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        prefix = how.pop("prefix", [DOCGEN])
        command = [str(word) for word in (*prefix, *words)]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment(), text=True, encoding="utf-8", **how)

    def docgen(self, *words: str | Path, **how: Any) -> Finished:
        """The command, until it ends."""
        process = self.start(*words, **how)
        try:
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        finally:
            process.kill()
        return Finished(process.returncode, out, err)

    def done(self, *words: str | Path, **how: Any) -> Finished:
        """The command, which must succeed."""
        finished = self.docgen(*words, **how)
        assert finished.code == 0, finished.err
        return finished

    def units(self, run: str) -> dict[str, int]:
        """Units of a run by state, as `docgen status` counts them."""
        return dict(self.done("status", run, "--json").json["units"])

    def digests(self, *prefixes: str) -> dict[str, str]:
        """SHA-256 of every file under these prefixes of the blob folder, by key."""
        blobs = self.folder / ".docgen" / "blobs"
        return {
            path.relative_to(blobs).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for prefix in prefixes
            for path in sorted((blobs / prefix).rglob("*"))
            if path.is_file()
        }

    def files(self) -> set[str]:
        """Everything there is in the folder, but the state store's own passing files."""
        found = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file())
        return {name for name in found if not name.endswith(("-wal", "-shm"))}

    @staticmethod
    def until(holds: Callable[[], object]) -> None:
        """Wait for a condition; the time-out of the test is what gives up."""
        while not holds():
            threading.Event().wait(0.05)


@pytest.fixture(scope="session")
def desk_type() -> type[Desk]:
    """For folders that a test makes itself."""
    return Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty folder."""
    (tmp_path / "desk").mkdir()
    return Desk(tmp_path / "desk")


@pytest.fixture(scope="session")
def beforehand(full_figures: bool) -> tuple[str, ...]:
    """The command that comes before the order, if any: a corpus of all there is needs a wide catalogue."""
    size = ("--companies", str(FULL_COMPANIES), "--products", str(PRODUCTS), "--range", str(RANGE_WIDTH))
    return ("catalogue", "build", DEFAULT_CATALOGUE, *size) if full_figures else ()


@pytest.fixture(scope="session")
def order(once: Any, full_figures: bool) -> tuple[str, ...]:
    """The command that makes the corpus, from the first seed that gives something of everything."""
    _, said = once("order", lambda _: Finished(0, json.dumps(_order(full_figures)), ""))
    return tuple(said.json)


def _order(full_figures: bool) -> list[str]:
    state, blobs = open_state("memory://seeds"), open_blobs("memory://seeds")
    companies = FULL_COMPANIES if full_figures else COMPANIES
    spec = CatalogueSpec(companies=companies, products=PRODUCTS, range_width=RANGE_WIDTH)
    build_catalogue_run(state, blobs, DEFAULT_CATALOGUE, spec)
    work_run(f"catalogue-{DEFAULT_CATALOGUE}", state=state, blobs=blobs, worker="here")
    documents, clean, share = (
        (FULL_DOCUMENTS, FULL_CLEAN, FULL_CLEAN_VARIETY) if full_figures else (DOCUMENTS, CLEAN, CLEAN_VARIETY)
    )
    everybody = Selection(conditions=CONDITIONS)
    request = RunRequest(RUN, documents, 0, everybody, DEFAULT_CATALOGUE)
    there = _faces(DocumentSource.open(preview(state, blobs, request).plan, blobs).view)
    chosen = () if full_figures else _few_with_every_face(there)
    request = replace(request, selection=everybody.model_copy(update={"company_ids": chosen}))
    plan = preview(state, blobs, request).plan
    source, spec = DocumentSource.open(plan, blobs), plan.documents_spec
    every = set().union(*there.values())
    for seed in range(SEEDS):
        stream = spec.model_copy(update={"seed": seed}).stream
        source.view = replace(source.view, stream=stream, seed=seed)
        if not _may_have_everything(source.view, documents, clean, chosen):
            continue
        invoices = [source.pack.record(source.view, index) for index in range(documents)]
        if has_something_of_everything(invoices, every, clean, share):
            weights = ",".join(f"{name}={weight}" for name, weight in CONDITIONS.items())
            named = ["--company", ",".join(map(str, chosen))] if chosen else []
            drawn = ["--seed", str(seed), "--condition", weights, *named]
            return ["generate", RUN, "--documents", str(documents), *drawn]
    pytest.fail(f"none of {SEEDS} seeds gives every locale, layout, condition and rule of arithmetic")


def _faces(view: RunView) -> dict[int, set[str]]:
    """The locale of each company and the layouts of its documents."""
    found = {}
    for company_id in view.companies:
        company = Company.of(view.catalogue.company(company_id))
        found[company_id] = {company.jurisdiction.locale} | {
            identity_of(company.jurisdiction, company_id, kind, names, "").layout
            for kind, names in company.looks(()).items()
        }
    return found


def _few_with_every_face(there: Mapping[int, set[str]]) -> tuple[int, ...]:
    """Few companies that have, together, every locale and layout that there is."""
    left, chosen = set().union(*there.values()), []
    while left:
        chosen.append(max(there, key=lambda company: len(there[company] & left)))
        left -= there[chosen[-1]]
    return tuple(sorted(chosen))


def _may_have_everything(view: RunView, documents: int, clean: int, chosen: Sequence[int]) -> bool:
    """Whether every chosen company comes up, and the conditions do; cheaper than the documents themselves."""
    drawn = [view.draws(index) for index in range(documents)]
    if not set(chosen) <= {draws.choice("company", view.companies) for draws in drawn}:
        return False
    conditions = Counter(draws.weighted("condition", CONDITIONS) for draws in drawn)
    return len(conditions) == len(CONDITIONS) and conditions["clean"] >= clean


def has_something_of_everything(invoices: Sequence[Any], every: set[str], clean: int, share: float) -> bool:
    """Every condition, locale and layout, enough of these clean, and each rule by which an amount comes about."""
    printed = [invoice for invoice in invoices if invoice.condition == "clean"]
    discounted = [invoice for invoice in invoices if invoice.totals.document_discount]
    return (
        len(printed) >= clean
        and {face for invoice in invoices for face in (invoice.locale, invoice.layout)} == every
        and len({face for invoice in printed for face in (invoice.locale, invoice.layout)}) >= share * len(every)
        and {invoice.condition for invoice in invoices} == set(CONDITIONS)
        and {invoice.rounding_policy for invoice in discounted} == set(RoundingPolicy)
        and any(len(invoice.tax_lines) > 1 for invoice in discounted)
        and any(invoice.totals.prepaid for invoice in invoices)
        and any(invoice.instalments for invoice in invoices)
        and any(line.kind is LineKind.TIER_BAND for invoice in invoices for line in invoice.lines)
    )


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[Path], Finished]], tuple[Path, Finished]]:
    """Folders that are made once, whichever of the session's processes asks first, and what was said then."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def made(name: str, make: Callable[[Path], Finished]) -> tuple[Path, Finished]:
        folder, said = root / name, root / f"{name}.said.json"
        with FileLock(f"{folder}.lock"):
            if not said.exists():
                folder.mkdir(exist_ok=True)
                said.write_text(json.dumps(asdict(make(folder))))
        return folder, Finished(**json.loads(said.read_text()))

    return made


@pytest.fixture(scope="session")
def making(once: Any, beforehand: tuple[str, ...], order: tuple[str, ...]) -> tuple[Desk, Finished]:
    """The corpus, and what was said when it was made."""
    env = {"TZ": "Pacific/Auckland", "LANG": "C", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
    folder, said = once("corpus", lambda folder: _made(Desk(folder, env), beforehand, order))
    return Desk(folder, env), said


def _made(desk: Desk, beforehand: Sequence[str], order: Sequence[str]) -> Finished:
    if not beforehand:
        return desk.done(*order)
    desk.done(*beforehand)
    return desk.done(*order, "--workers", "2")


@pytest.fixture(scope="session")
def corpus(making: tuple[Desk, Finished]) -> Desk:
    """A catalogue and a sealed run `r1`, made from nothing by one worker. Only to be looked at."""
    return making[0]


@pytest.fixture(scope="session")
def exported(once: Any, corpus: Desk) -> Path:
    """The corpus as `docgen export` leaves it in DuckDB."""
    folder, _ = once("exported", lambda folder: corpus.done("export", RUN, "--sink", folder / "golden.duckdb"))
    return folder / "golden.duckdb"


@pytest.fixture
def copied(corpus: Desk, tmp_path: Path) -> Desk:
    """The corpus in a folder of one's own, to be changed."""
    shutil.copytree(corpus.folder, tmp_path / "copy")
    return Desk(tmp_path / "copy")


@pytest.fixture(scope="session")
def catalogue(once: Any) -> Path:
    """A folder with a small sealed catalogue and nothing else."""
    order = ("catalogue", "build", "small", "--companies", "24", "--products", "8", "--range", "12")
    folder, _ = once("catalogue", lambda folder: Desk(folder).done(*order))
    return folder


@pytest.fixture
def stocked(catalogue: Path, tmp_path: Path) -> Desk:
    """A folder of one's own with a small sealed catalogue."""
    shutil.copytree(catalogue, tmp_path / "stocked")
    return Desk(tmp_path / "stocked")
