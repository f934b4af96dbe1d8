"""Planning: from a request to a recorded run, once, however many planners race.

The store's conditional create picks the winner; the plan artefact is create-only and has the same
bytes whoever writes it, so that a late or a second planner changes nothing. What does not belong
here: working on a run (drain.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import BlobExists, BlobMissing, PlanConflict, RunUnknown, SelectionRefused, UsageError
from docgen_core.packs import load_pack
from docgen_core.packs.contract import Pack, Row
from docgen_core.runs.catalogue_view import open_catalogue, refuse_missing_parts
from docgen_core.runs.fingerprint import current_fingerprint
from docgen_core.runs.keys import (
    MAX_UNITS,
    catalogue_run_id,
    check_run_id,
    default_prefix,
    plan_key,
)
from docgen_core.runs.manifest import Plan, read_plan, read_root, refuse_withdrawn
from docgen_core.runs.selection import Selection
from docgen_core.runs.spec import (
    DocumentsSpec,
    PartsPin,
    Pin,
    PinnedCatalogue,
    RootPin,
    content_digest,
    spec_digest,
    unit_count,
    usual_unit_size,
)
from docgen_core.state.contract import Run, RunKind, RunMarker, StateStore, UnitState

TAKEOVER_SECONDS = 30.0
"""How long a planner waits for the one that was first, before it does the planning itself."""
PLAN_POLL_SECONDS = 0.25

MAX_DOCUMENTS = 100_000_000
MAX_UNIT_SIZE = 10_000
MAX_SEED = 2**63 - 1
UNITS_A_WORKER = 2
"""Fewer units than this to a worker, and some end with nothing to do."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a caller wants made. Nothing in it says who works on it."""

    run_id: str
    documents: int
    seed: int
    selection: Selection
    catalogue: str
    """Catalogue version."""
    pin: str | tuple[int, ...] = "root"
    """`root`, or the units of a catalogue that may still be built."""
    unit_size: int | None = None
    """Documents to a unit; None follows from the number of documents."""
    pack: str = "invoice"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run that is planned, by this call or before it."""

    run: Run
    created: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preview:
    """What planning would record, and how many companies serve the selection."""

    plan: Plan
    companies: int
    exists: bool


def create_run(
    state: StateStore,
    blobs: BlobStore,
    request: RunRequest,
    *,
    workers: int | None = None,
    takeover_seconds: float = TAKEOVER_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> PlannedRun:
    """Plan the run, or find it planned with the same spec. With `workers`, warns when they are too many.

    Raises `UsageError`, `SelectionRefused`, `PlanConflict`, `RunWithdrawn`, `RunIncomplete`
    (the catalogue is not sealed, or a pinned part is not done), `StorageFailed`.
    """
    marker = _marker_of(state, blobs, request)
    planned = record_run(
        state, blobs, marker, admit=lambda: _eligible(blobs, marker), takeover_seconds=takeover_seconds, sleep=sleep
    )
    warning = fleet_warning(marker.total_units, workers) if workers else None
    return replace(planned, warnings=(warning,) if warning else ())


def preview(state: StateStore, blobs: BlobStore, request: RunRequest) -> Preview:
    """What `create_run` would record, refusing what it would refuse. Writes nothing."""
    marker = _marker_of(state, blobs, request)
    refuse_withdrawn(blobs, marker.run_id)
    existing = _find_run(state, marker.run_id)
    if existing is not None:
        _refuse_conflict(existing.marker, marker)
    companies = _eligible(blobs, marker)
    return Preview(_plan_of(marker), companies, existing is not None)


def check_request(request: RunRequest) -> None:
    """Raise `UsageError` or `SelectionRefused` for what could be planned on no catalogue. Looks at none."""
    check_run_id(request.run_id)
    _check_number("documents", request.documents, 1, MAX_DOCUMENTS)
    _check_number("seed", request.seed, 0, MAX_SEED)
    if request.unit_size is not None:
        _check_number("unit size", request.unit_size, 1, MAX_UNIT_SIZE)
    _refuse_pictures_as_web_pages(request.selection)
    load_pack(request.pack).refuse_impossible(request.selection)


def fleet_warning(total_units: int, workers: int) -> str | None:
    """A line for people when some workers would end with nothing to do; else None."""
    if workers == 1 or total_units >= UNITS_A_WORKER * workers:
        return None
    return (
        f"{workers} workers share {total_units} units: fewer than {UNITS_A_WORKER} a worker, so some will have nothing "
        f"to do; {max(total_units // UNITS_A_WORKER, 1)} workers are enough, or choose a smaller --unit-size"
    )


def record_run(
    state: StateStore,
    blobs: BlobStore,
    marker: RunMarker,
    *,
    admit: Callable[[], object],
    takeover_seconds: float,
    sleep: Callable[[float], None],
) -> PlannedRun:
    """Record the marker and publish its plan, or join those who did.

    `admit` raises when the run must not be planned; it is asked before anything is written.
    """
    refuse_withdrawn(blobs, marker.run_id)
    existing = _find_run(state, marker.run_id)
    if existing is None:
        admit()
        _refuse_other_plan(blobs, marker)
        _plan_of(marker)  # raises where nothing could be drawn, before anything is recorded
        run, created = state.create_run(marker)
    else:
        run, created = existing, False
    _refuse_conflict(run.marker, marker)
    if created:
        return PlannedRun(publish_plan(state, blobs, run), True)
    if run.planned:
        _log.info("run %r is already planned; resuming", run.run_id)
        return PlannedRun(run, False)
    return PlannedRun(await_plan(state, blobs, run, takeover_seconds, sleep), False)


def await_plan(
    state: StateStore, blobs: BlobStore, run: Run, takeover_seconds: float, sleep: Callable[[float], None]
) -> Run:
    """Wait for the planner that was first; take its work over when it does not come."""
    waited = 0.0
    while waited < takeover_seconds:
        sleep(PLAN_POLL_SECONDS)
        waited += PLAN_POLL_SECONDS
        run = state.run(run.run_id)
        if run.planned:
            return run
    _log.warning("the planner of run %r has not come in %.0f s; planning it here", run.run_id, takeover_seconds)
    return publish_plan(state, blobs, run)


def publish_plan(state: StateStore, blobs: BlobStore, run: Run) -> Run:
    """Write the plan artefact, or find it written, and open the run for claims."""
    plan = _plan_of(run.marker)
    try:
        blobs.put_same(plan_key(plan.prefix), plan.to_bytes())
    except BlobExists:
        # Another planner's software may differ from ours; its plan stands, and joining it is refused later.
        _refuse_other_plan(blobs, run.marker)
    return state.mark_planned(run.run_id, plan.spec_digest)


def marker_for(
    run_id: str, kind: RunKind, prefix: str, spec: Mapping[str, Any], total_items: int, unit_size: int
) -> RunMarker:
    """What a store records of a run. Raises `UsageError` when it would have too many units."""
    total_units = unit_count(total_items, unit_size)
    if total_units > MAX_UNITS:
        raise UsageError(f"run {run_id!r} would have {total_units} units; at most {MAX_UNITS}: choose larger units")
    return RunMarker(run_id, kind, prefix, spec, spec_digest(spec), total_units, unit_size, total_items)


def _plan_of(marker: RunMarker) -> Plan:
    return Plan.of(marker, current_fingerprint(marker.kind, str(marker.spec["pack_version"])))


def _marker_of(state: StateStore, blobs: BlobStore, request: RunRequest) -> RunMarker:
    check_request(request)
    run_id = request.run_id
    unit_size = usual_unit_size(request.documents) if request.unit_size is None else request.unit_size
    spec = DocumentsSpec(
        pack=request.pack,
        pack_version=load_pack(request.pack).version,
        documents=request.documents,
        seed=request.seed,
        selection=request.selection,
        catalogue=PinnedCatalogue(version=request.catalogue, pin=_pin(state, blobs, request)),
    )
    return marker_for(run_id, RunKind.DOCUMENTS, default_prefix(run_id), spec.as_json(), request.documents, unit_size)


def _refuse_pictures_as_web_pages(selection: Selection) -> None:
    captured = sorted(name for name, weight in selection.conditions.items() if weight and name != "clean")
    if selection.output == "html" and captured:
        raise SelectionRefused(
            f"output html is the page as it was printed, and {captured[0]} is a picture of it: "
            "choose condition clean, or output pdf, png, jpeg or tiff"
        )


def _check_number(name: str, number: int, low: int, high: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not low <= number <= high:
        raise UsageError(f"{name} {number!r}: give a whole number from {low} to {high}")


def _pin(state: StateStore, blobs: BlobStore, request: RunRequest) -> Pin:
    run_id = catalogue_run_id(request.catalogue)
    if request.pin == "root":
        open_catalogue(blobs, request.catalogue)
        root = read_root(blobs, default_prefix(run_id))
        return RootPin(root=root.digest, content=content_digest({part.unit: part.sha256 for part in root.parts}))
    if isinstance(request.pin, str) or not request.pin:
        raise UsageError(f"catalogue pin {request.pin!r}: give 'root', or the numbers of finished units")
    wanted = sorted(set(request.pin))
    try:
        digests = dict(_finished_parts(state, run_id, wanted))
    except RunUnknown:
        # Built with another state store: then only a sealed catalogue says what is finished.
        digests = {entry.unit: entry.sha256 for entry in read_root(blobs, default_prefix(run_id)).parts}
    refuse_missing_parts(request.catalogue, [unit for unit in wanted if unit not in digests])
    return PartsPin(parts={str(unit): digests[unit] for unit in wanted})


def _finished_parts(state: StateStore, run_id: str, wanted: list[int]) -> Iterator[tuple[int, str]]:
    for index in wanted:
        for unit in state.units(run_id, {UnitState.DONE}, after=index - 1, limit=1):
            if unit.index == index and unit.part_sha256 is not None:
                yield index, unit.part_sha256


def _eligible(blobs: BlobStore, marker: RunMarker) -> int:
    """How many companies serve the run's selection. Raises `SelectionRefused` when none does."""
    spec = DocumentsSpec.model_validate(marker.spec)
    return len(eligible_companies(load_pack(spec.pack), blobs, spec))


def eligible_companies(pack: Pack, blobs: BlobStore, spec: DocumentsSpec) -> list[int]:
    """Companies that serve the selection, in id order. Raises `SelectionRefused` when none does."""
    view = open_catalogue(blobs, spec.catalogue.version, spec.catalogue.pin)
    if view.plan.spec["pack"] != spec.pack:
        raise UsageError(f"catalogue {view.version!r} was built for pack {view.plan.spec['pack']!r}, not {spec.pack!r}")
    companies = serving(pack, spec.selection, view.companies(spec.selection.companies))
    if not companies:
        raise SelectionRefused(
            f"no company of catalogue {view.version!r} serves the selection; ask for less, or build a larger catalogue"
        )
    return companies


def serving(pack: Pack, selection: Selection, companies: Iterator[Row]) -> list[int]:
    """Companies, of those in these rows, that serve the selection, in id order.

    Raises `SelectionRefused`: the pack's reason, or a company that was named and is not there or
    does not fit, or fewer than were asked for.
    """
    named = set(selection.company_ids)
    if named:
        rows = [row for row in companies if row["company_id"] in named]
        if unknown := sorted(named - {row["company_id"] for row in rows}):
            raise SelectionRefused(f"no company {unknown[0]} in the catalogue, or among the companies asked for")
        companies = iter(rows)
    fitting = pack.eligible(selection, companies)
    if named and (unfit := sorted(named - set(fitting))):
        raise SelectionRefused(f"company {unfit[0]} does not fit the rest of the selection; leave it out")
    count = selection.company_count
    if count is not None and len(fitting) < count:
        raise SelectionRefused(f"{count} companies were asked for, and {len(fitting)} fit the rest of the selection")
    return fitting[:count]


def _find_run(state: StateStore, run_id: str) -> Run | None:
    try:
        return state.run(run_id)
    except RunUnknown:
        return None


def _refuse_other_plan(blobs: BlobStore, marker: RunMarker) -> None:
    """A plan may outlive its state store: the same run may be planned again, another may not."""
    try:
        there = read_plan(blobs, marker.prefix)
    except BlobMissing:
        return
    _refuse_conflict(there.marker, marker)


def _refuse_conflict(there: RunMarker, asked: RunMarker) -> None:
    theirs, ours = _fields(there), _fields(asked)
    differences = [
        f"{name} is {theirs.get(name)!r}, asked for {ours.get(name)!r}"
        for name in sorted({*theirs, *ours})
        if theirs.get(name) != ours.get(name)
    ]
    if differences:
        raise PlanConflict(asked.run_id, differences)


def _fields(marker: RunMarker) -> dict[str, object]:
    told = {**dict(_flat(marker.spec)), "prefix": marker.prefix, "unit_size": marker.unit_size}
    if "mix" in told:
        told["mix"] = f"the one of SHA-256 {sha256_hex(str(told['mix']).encode())[:12]}"
    return told


def _flat(spec: Mapping[str, object], path: str = "") -> Iterator[tuple[str, object]]:
    for name, value in spec.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", list(value) if isinstance(value, tuple) else value
