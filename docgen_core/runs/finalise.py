"""Sealing a drained run: FINALIZING, then the root, then the marker, then COMPLETED.

Any worker can do it, and do it again: the root's bytes follow from the store's digests alone.
Whoever dies in between leaves unfinished business that the next worker sees (decision 0006).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import BlobExists, Damage, RootConflict, RunIncomplete
from docgen_core.runs.keys import plan_key, root_key, sealed_key
from docgen_core.runs.manifest import Part, PartEntry, Plan, Root, parse, read_checked, refuse_withdrawn
from docgen_core.state.contract import Run, RunState, StateStore, Unit, UnitState

PAGE_UNITS = 1_000
"""Unit rows asked for at once."""


def finalize(run_id: str, state: StateStore, blobs: BlobStore) -> str:
    """Seal the run, or find it sealed and heal what a crash left out. Returns the root's digest.

    Raises `RunIncomplete` (the gap by index), `RunCancelled`, `WrongRunState` (paused),
    `RootConflict`, `Damage` (a part is not what the store recorded), `RunWithdrawn`.
    """
    refuse_withdrawn(blobs, run_id)
    run = state.begin_finalize(run_id)
    key = root_key(run.marker.prefix)
    if run.state is RunState.COMPLETED and run.root_digest is not None and blobs.exists(key):
        digest = run.root_digest
    else:
        root = build_root(run, state, blobs)
        digest = root.digest
        _put_root(run_id, blobs, key, root.to_bytes())
    _seal(run_id, blobs, digest)
    state.complete_run(run_id, digest)
    return digest


def build_root(run: Run, state: StateStore, blobs: BlobStore) -> Root:
    """The root that the store's digests give. Reads every part, and trusts none it cannot match."""
    plan_bytes = blobs.get(plan_key(run.marker.prefix))
    plan = parse(Plan, plan_key(run.marker.prefix), plan_bytes)
    refuse_other_plan(plan, run)
    rows: Counter[str] = Counter()
    entries: list[PartEntry] = []
    for unit in finished_units(run.run_id, state):
        entry = part_entry(run.run_id, unit)
        part = parse(Part, entry.key, read_checked(blobs, entry.key, entry.sha256))
        if part.run_id != run.run_id or part.unit != unit.index:
            raise Damage(f"blob {entry.key!r} is part {part.unit} of run {part.run_id!r}; run `docgen verify`")
        rows.update(part.rows)
        entries.append(entry)
    gap = sorted(set(range(plan.total_units)) - {entry.unit for entry in entries})
    if gap:
        raise RunIncomplete(run.run_id, gap, f"`docgen work {run.run_id}` goes on")
    return Root(
        run_id=run.run_id,
        kind=plan.kind,
        spec_digest=plan.spec_digest,
        plan_sha256=sha256_hex(plan_bytes),
        total_units=plan.total_units,
        total_items=plan.total_items,
        rows=dict(rows),
        parts=entries,
        version=plan.catalogue_spec.version if plan.kind == "catalogue" else None,
    )


def refuse_other_plan(plan: Plan, run: Run) -> None:
    """Raise `Damage` when the plan artefact is not the plan that the store recorded, to the last word of its spec."""
    if plan.marker != run.marker:
        raise Damage(f"blob {plan_key(run.marker.prefix)!r} is not the plan of run {run.run_id!r}; restore it")


def finished_units(run_id: str, state: StateStore) -> Iterator[Unit]:
    """Every DONE unit, in index order."""
    after = -1
    while page := state.units(run_id, {UnitState.DONE}, after=after, limit=PAGE_UNITS):
        yield from page
        after = page[-1].index


def part_entry(run_id: str, unit: Unit) -> PartEntry:
    """What the store recorded of a DONE unit's part."""
    if unit.part_key is None or unit.part_sha256 is None:
        raise Damage(f"unit {unit.index} of run {run_id!r} is DONE without a part; run `docgen verify`")
    return PartEntry(unit=unit.index, key=unit.part_key, sha256=unit.part_sha256)


def _put_root(run_id: str, blobs: BlobStore, key: str, root: bytes) -> None:
    try:
        blobs.put_same(key, root)
    except BlobExists:
        raise RootConflict(run_id, sha256_hex(root), sha256_hex(blobs.get(key))) from None


def _seal(run_id: str, blobs: BlobStore, digest: str) -> None:
    key = sealed_key(run_id)
    try:
        blobs.put_same(key, f"{digest}\n".encode())
    except BlobExists:
        raise RootConflict(run_id, digest, blobs.get(key).decode("ascii", "replace").strip()) from None
