"""Sealing a drained run: FINALIZING, then the root, then the marker, then COMPLETED.

Any worker can do it, and do it again: the root's bytes follow from the store's digests alone.
Whoever dies in between leaves unfinished business that the next worker sees (decision 0006).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import BlobExists, BlobMissing, Damage, RootConflict, RunIncomplete, UsageError
from docgen_core.runs.keys import plan_key, root_key, sealed_key
from docgen_core.runs.manifest import (
    Part,
    PartEntry,
    Plan,
    Root,
    Texts,
    parse,
    read_checked,
    refuse_withdrawn,
    sealed_digest,
)
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
    digest = run.root_digest if run.state is RunState.COMPLETED and blobs.exists(key) else None
    if digest is None:
        digest = _sealed_by_a_peer(run, state, blobs)
    if digest is None:
        root = build_root(run, state, blobs)
        digest = root.digest
        _put_root(run_id, blobs, key, root.to_bytes())
    _seal(run_id, blobs, digest)
    state.complete_run(run_id, digest)
    return digest


def _sealed_by_a_peer(run: Run, state: StateStore, blobs: BlobStore) -> str | None:
    """Digest of a root that a peer has put and marked, when it is the one the store's digests give; else None.

    Whoever put it has read every part. What it cannot have wrong is compared, without reading them again.
    """
    digest, prefix = sealed_digest(blobs, run.run_id), run.marker.prefix
    if digest is None:
        return None
    try:
        root = parse(Root, root_key(prefix), read_checked(blobs, root_key(prefix), digest))
        plan_sha256 = sha256_hex(blobs.get(plan_key(prefix)))
    except (Damage, UsageError, BlobMissing):
        # What is wrong is found, and told, where the root is built.
        return None
    units = list(finished_units(run.run_id, state))
    theirs = (root.run_id, root.total_units, root.plan_sha256, root.parts, sum(root.rows.values()))
    entries = [part_entry(run.run_id, unit) for unit in units]
    ours = (run.run_id, len(units), plan_sha256, entries, sum(unit.rows for unit in units))
    return digest if theirs == ours else None


def build_root(run: Run, state: StateStore, blobs: BlobStore) -> Root:
    """The root that the store's digests give. Reads every part, and trusts none it cannot match."""
    plan_bytes = blobs.get(plan_key(run.marker.prefix))
    plan = parse(Plan, plan_key(run.marker.prefix), plan_bytes)
    refuse_other_plan(plan, run)
    rows: Counter[str] = Counter()
    texts: list[Texts] = []
    entries: list[PartEntry] = []
    for unit in finished_units(run.run_id, state):
        entry = part_entry(run.run_id, unit)
        part = parse(Part, entry.key, read_checked(blobs, entry.key, entry.sha256))
        if part.run_id != run.run_id or part.unit != unit.index:
            raise Damage(f"blob {entry.key!r} is part {part.unit} of run {part.run_id!r}; run `docgen verify`")
        rows.update(part.rows)
        texts += [part.texts] if part.texts else []
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
        texts=Texts.sum_of(texts) if texts else None,
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
