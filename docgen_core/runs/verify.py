"""Whether what is published is what was sealed: every blob named, present, unchanged, and nothing else.

Trust starts at the marker and the state store: both hold the root's digest. From the root follow
the plan and the parts, from the parts the documents and shards. What does not belong here:
mending anything, and the meaning of golden values (a pack's checks).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import sha256_hex
from docgen_core.errors import BlobMissing, Damage, RunIncomplete, RunUnknown
from docgen_core.runs.contents import check_unit_contents
from docgen_core.runs.finalise import finished_units, part_entry
from docgen_core.runs.keys import (
    check_name,
    default_prefix,
    is_attempt,
    is_usage,
    plan_key,
    root_key,
    sealed_key,
    unit_of,
)
from docgen_core.runs.manifest import (
    DIGEST,
    Part,
    PartEntry,
    Plan,
    PublishedT,
    Root,
    Texts,
    parse,
    refuse_withdrawn,
    sealed_digest,
)
from docgen_core.runs.spec import spec_digest
from docgen_core.state.contract import Run, RunState, StateStore


class FindingKind(StrEnum):
    """What is wrong with a blob, or not wrong: a leftover is fine."""

    MISSING = "missing"
    CHANGED = "changed"
    FOREIGN = "foreign"
    """Nobody names it: damage."""
    LEFTOVER = "leftover"
    """A superseded attempt or a temporary file: reported, and fine."""
    GAP = "gap"
    MISMATCH = "mismatch"
    """Two things that should agree do not: store and root, part and rows."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that verify has to say, about one key."""

    kind: FindingKind
    key: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What was looked at, and what was found."""

    run_id: str
    deep: bool
    units: int
    blobs: int
    bytes: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether there is nothing but leftovers."""
        return all(finding.kind is FindingKind.LEFTOVER for finding in self.findings)

    @property
    def summary(self) -> str:
        """One line for people."""
        how = "read and compared" if self.deep else "present with the right size"
        damage = sum(finding.kind is not FindingKind.LEFTOVER for finding in self.findings)
        verdict = f"{damage} findings" if damage else "no damage"
        leftovers = len(self.findings) - damage
        return (
            f"run {self.run_id!r}: {self.blobs} blobs of {self.units} units ({self.bytes} bytes) {how}: {verdict}"
            + (f", {leftovers} leftovers that `docgen gc` may remove" if leftovers else "")
        )

    def as_json(self) -> dict[str, Any]:
        """Everything, as plain JSON."""
        return {
            "run": self.run_id,
            "ok": self.ok,
            "deep": self.deep,
            "units": self.units,
            "blobs": self.blobs,
            "bytes": self.bytes,
            "findings": [
                {"kind": finding.kind.value, "key": finding.key, "detail": finding.detail} for finding in self.findings
            ],
        }


def verify_run(
    run_id: str,
    *,
    blobs: BlobStore,
    state: StateStore | None = None,
    deep: bool = False,
    units: Collection[int] | None = None,
) -> Verification:
    """Compare everything under the run's prefix with its manifests, and those with the store.

    Sizes and presence; with `deep` every byte, the shards' schemas and rows too. With `units`, only
    these are judged, and the run need not be sealed. Raises `RunUnknown`, `RunWithdrawn`, and
    `RunIncomplete` for a run that was never sealed, or units that are not DONE.
    """
    refuse_withdrawn(blobs, check_name(run_id, "run id"))
    run = _known_run(run_id, state)
    where = run.marker.prefix if run else default_prefix(run_id)
    if run is None and not blobs.exists(sealed_key(run_id)) and not blobs.exists(plan_key(where)):
        raise RunUnknown(run_id)
    return _Verifier(run_id, where, blobs, state if run else None, run, deep, units).verify()


def _known_run(run_id: str, state: StateStore | None) -> Run | None:
    try:
        return state.run(run_id) if state else None
    except RunUnknown:
        # Sealed by another store's fleet: the blobs still vouch for themselves.
        return None


@dataclass(slots=True)
class _Verifier:
    run_id: str
    prefix: str
    blobs: BlobStore
    state: StateStore | None
    run: Run | None
    deep: bool
    units: Collection[int] | None
    findings: list[Finding] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    present: dict[str, int] = field(default_factory=dict)
    """Sizes by key of everything under the prefix."""
    unread: set[int] = field(default_factory=set)
    """Units whose part is gone or damaged: what it named, nobody can say."""
    bytes_seen: int = 0

    def verify(self) -> Verification:
        # What is recorded is read before what is present: a fleet may be publishing meanwhile.
        recorded = self._recorded_parts()
        sealed = sealed_digest(self.blobs, self.run_id)
        self.present = {info.key: info.size for info in self.blobs.iter_keys(f"{self.prefix}/")}
        root = self._root(sealed)
        plan = self._plan(root)
        entries = self._entries(root, recorded)
        parts = [part for entry in entries if (part := self._part(entry, plan)) is not None]
        self.unread = {entry.unit for entry in entries} - {part.unit for part in parts}
        if root is not None and self.units is None:
            self._compare_rows(root, parts)
        self._unnamed()
        order = sorted(self.findings, key=lambda finding: (finding.key, finding.kind))
        return Verification(self.run_id, self.deep, len(entries), len(self.named), self.bytes_seen, tuple(order))

    # Root, plan, parts --------------------------------------------------------------------

    def _root(self, sealed: str | None) -> Root | None:
        """The root as sealed; None when there is none to trust."""
        key = root_key(self.prefix)
        self.named.add(key)
        stored = self.run.root_digest if self.run else None
        if key not in self.present:
            if sealed or stored:
                self._find(FindingKind.MISSING, key, "the run was sealed, and its root manifest is gone")
            elif self.units is None:
                self._refuse_unsealed("it has no root manifest")
            return None
        if self.units is None and self.run is not None and self.run.state is not RunState.COMPLETED:
            self._refuse_unsealed(f"it is {self.run.state.value}")
        data = self._bytes(key)
        if data is None:
            return None
        found = sha256_hex(data)
        if sealed is not None and not DIGEST.fullmatch(sealed):
            self._find(FindingKind.CHANGED, sealed_key(self.run_id), "the marker holds no digest")
            sealed = None
        elif stored and sealed and stored != sealed:
            self._find(FindingKind.MISMATCH, sealed_key(self.run_id), f"the marker holds {sealed}, the store {stored}")
        elif sealed is None:
            advice = f"the run has a root and no marker; `docgen work {self.run_id}` puts it"
            self._find(FindingKind.MISSING, sealed_key(self.run_id), advice)
        expected = stored or sealed
        if expected and found != expected:
            self._find(FindingKind.CHANGED, key, f"sha256 {found}, sealed as {expected}")
            return None
        return self._parsed(Root, key, data)

    def _refuse_unsealed(self, why: str) -> None:
        raise RunIncomplete(self.run_id, (), f"{why}; `docgen work {self.run_id}` finishes it")

    def _plan(self, root: Root | None) -> Plan | None:
        key = plan_key(self.prefix)
        self.named.add(key)
        if key not in self.present:
            self._find(FindingKind.MISSING, key, "the plan artefact is gone")
            return None
        data = self._bytes(key)
        if data is None:
            return None
        if root is not None and (found := sha256_hex(data)) != root.plan_sha256:
            self._find(FindingKind.CHANGED, key, f"sha256 {found}, the root names {root.plan_sha256}")
            return None
        plan = self._parsed(Plan, key, data)
        recorded = self.run.marker if self.run else None
        if plan is not None and (
            plan.spec_digest != spec_digest(plan.spec) or plan.marker != (recorded or plan.marker)
        ):
            self._find(FindingKind.CHANGED, key, "it is not the plan that the run was recorded with")
            return None
        return plan

    def _recorded_parts(self) -> dict[int, PartEntry]:
        """Parts by unit as the store recorded them."""
        if self.state is None:
            return {}
        return {unit.index: part_entry(self.run_id, unit) for unit in finished_units(self.run_id, self.state)}

    def _entries(self, root: Root | None, recorded: dict[int, PartEntry]) -> list[PartEntry]:
        """The parts to judge, from the root where it can be trusted, else from the store."""
        sealed = {entry.unit: entry for entry in root.parts} if root else {}
        if root is not None:
            for unit in sorted(set(range(root.total_units)) - set(sealed)):
                self._find(FindingKind.GAP, root_key(self.prefix), f"unit {unit} has no part")
        for unit in sorted(sealed.keys() & recorded.keys()):
            if sealed[unit] != recorded[unit]:
                theirs, ours = recorded[unit].sha256, sealed[unit].sha256
                self._find(
                    FindingKind.MISMATCH, sealed[unit].key, f"the root names {ours}, the store recorded {theirs}"
                )
        entries = sealed or recorded
        if self.units is None:
            return [entries[unit] for unit in sorted(entries)]
        gap = sorted(set(self.units) - entries.keys())
        if gap:
            raise RunIncomplete(self.run_id, gap, f"they are not done; `docgen work {self.run_id}` goes on")
        return [entries[unit] for unit in sorted(set(self.units))]

    def _part(self, entry: PartEntry, plan: Plan | None) -> Part | None:
        self.named.add(entry.key)
        if entry.key not in self.present:
            self._find(FindingKind.MISSING, entry.key, f"the part of unit {entry.unit} is gone")
            return None
        data = self._bytes(entry.key)
        if data is None:
            return None
        if (found := sha256_hex(data)) != entry.sha256:
            self._find(FindingKind.CHANGED, entry.key, f"sha256 {found}, recorded as {entry.sha256}")
            return None
        part = self._parsed(Part, entry.key, data)
        if part is None:
            return None
        held = self._blobs_of(part)
        if plan is not None:
            items = plan.unit_range(entry.unit)
            if (part.run_id, part.unit, part.first, part.count) != (self.run_id, entry.unit, items.start, len(items)):
                self._find(FindingKind.MISMATCH, entry.key, f"it is not the part of unit {entry.unit} of this plan")
            elif self.deep and held is not None:
                for key, detail in check_unit_contents(plan, part, held):
                    self._find(FindingKind.MISMATCH, key, detail)
        return part

    def _blobs_of(self, part: Part) -> dict[str, bytes] | None:
        """Compare a unit's blobs with its part; their shards' bytes, when every blob is sound and read."""
        before, shards = len(self.findings), {}
        for entry in part.blobs:
            if entry.key in self.named:
                self._find(FindingKind.MISMATCH, entry.key, f"named again by the part of unit {part.unit}")
            self.named.add(entry.key)
            if entry.key not in self.present:
                self._find(FindingKind.MISSING, entry.key, f"named by the part of unit {part.unit}")
            elif self.present[entry.key] != entry.bytes:
                self._find(
                    FindingKind.CHANGED, entry.key, f"{self.present[entry.key]} bytes, its part names {entry.bytes}"
                )
            elif self.deep:
                data = self._bytes(entry.key)
                if data is not None and (found := sha256_hex(data)) != entry.sha256:
                    self._find(FindingKind.CHANGED, entry.key, f"sha256 {found}, its part names {entry.sha256}")
                elif data is not None and entry.key.endswith(".parquet"):
                    shards[entry.key] = data
            else:
                self.bytes_seen += entry.bytes
        return shards if len(self.findings) == before else None

    # The whole ----------------------------------------------------------------------------

    def _compare_rows(self, root: Root, parts: list[Part]) -> None:
        sums: Counter[str] = Counter()
        for part in parts:
            sums.update(part.rows)
        if len(parts) == root.total_units and dict(sums) != root.rows:
            self._find(FindingKind.MISMATCH, root_key(self.prefix), "its row counts are not the sums of its parts'")
        texts = [part.texts for part in parts if part.texts]
        if len(parts) == root.total_units and root.texts != (Texts.sum_of(texts) if texts else None):
            self._find(FindingKind.MISMATCH, root_key(self.prefix), "its audit of texts is not the sum of its parts'")

    def _unnamed(self) -> None:
        for key in self.present.keys() - self.named:
            unit = unit_of(self.prefix, key)
            if unit in self.unread or (self.units is not None and unit is not None and unit not in self.units):
                continue
            if is_usage(self.prefix, key):
                continue  # what was spent is no part of what was made: nobody has to name it
            if is_attempt(self.prefix, key):
                self._find(FindingKind.LEFTOVER, key, "a superseded attempt")
            else:
                self._find(FindingKind.FOREIGN, key, "no part names it")
        for temporary in self.blobs.iter_temporary():
            self._find(FindingKind.LEFTOVER, temporary.name, "a temporary file of an unfinished write")

    def _bytes(self, key: str) -> bytes | None:
        try:
            data = self.blobs.get(key)
        except BlobMissing:
            self._find(FindingKind.MISSING, key, "it cannot be read as a blob")
            return None
        self.bytes_seen += len(data)
        return data

    def _parsed(self, model: type[PublishedT], key: str, data: bytes) -> PublishedT | None:
        """None for what is damage. Another format is none: it is refused, as everywhere."""
        try:
            return parse(model, key, data)
        except Damage as error:
            self._find(FindingKind.CHANGED, key, str(error))
            return None

    def _find(self, kind: FindingKind, key: str, detail: str) -> None:
        self.findings.append(Finding(kind, key, detail))
