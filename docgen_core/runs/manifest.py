"""What a run publishes about itself: plan, parts, root. Models, writers' bytes, checked readers.

A reader starts at the root and takes every key and digest from there: what it returns is what
was sealed, or it raises. What does not belong here: walking a prefix to find damage (verify.py).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.errors import BlobMissing, Damage, RunIncomplete, RunWithdrawn, UsageError
from docgen_core.runs.keys import check_name, default_prefix, plan_key, root_key, run_id_at, sealed_key, withdrawn_key
from docgen_core.runs.spec import CatalogueRunSpec, DocumentsSpec
from docgen_core.state.contract import RunKind, RunMarker, StateStore

FORMAT = 1
"""Format number of everything published here. A reader refuses any other."""


FEWEST_JUDGED = 20
"""Texts of models, below which their rejections say nothing about a rate."""


class Published(BaseModel):
    """Base of what is published as canonical JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1

    def to_bytes(self) -> bytes:
        """The one byte form."""
        return canonical_json(self.model_dump(mode="json", exclude_none=True))

    @property
    def digest(self) -> str:
        """SHA-256 of the byte form."""
        return sha256_hex(self.to_bytes())


class Plan(Published):
    """The plan artefact: what the run makes, and the software whose bytes it promises."""

    run_id: str
    kind: Literal["documents", "catalogue"]
    prefix: str
    spec: dict[str, Any]
    spec_digest: str
    total_items: int
    total_units: int
    unit_size: int
    fingerprint: dict[str, str]

    @classmethod
    def of(cls, marker: RunMarker, fingerprint: Mapping[str, str]) -> Plan:
        """The plan of a recorded run: whoever writes it writes these bytes."""
        return cls(
            run_id=marker.run_id,
            kind=marker.kind.value,
            prefix=marker.prefix,
            spec=dict(marker.spec),
            spec_digest=marker.spec_digest,
            total_items=marker.total_items,
            total_units=marker.total_units,
            unit_size=marker.unit_size,
            fingerprint=dict(fingerprint),
        )

    @property
    def marker(self) -> RunMarker:
        """The plan as a store records it."""
        return RunMarker(
            run_id=self.run_id,
            kind=RunKind(self.kind),
            prefix=self.prefix,
            spec=self.spec,
            spec_digest=self.spec_digest,
            total_units=self.total_units,
            unit_size=self.unit_size,
            total_items=self.total_items,
        )

    @property
    def pack_version(self) -> str:
        """Version of the pack that the run was planned with."""
        return str(self.spec["pack_version"])

    @property
    def documents_spec(self) -> DocumentsSpec:
        """The spec of a documents run."""
        return DocumentsSpec.model_validate(self.spec)

    @property
    def catalogue_spec(self) -> CatalogueRunSpec:
        """The spec of a catalogue build."""
        return CatalogueRunSpec.model_validate(self.spec)

    def unit_range(self, unit: int) -> range:
        """Item indices of a unit."""
        first = unit * self.unit_size
        return range(first, min(first + self.unit_size, self.total_items))


class BlobEntry(BaseModel):
    """One blob of a unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    key: str
    sha256: str
    bytes: int


class Answers(BaseModel):
    """What one model answered for the texts of a part or a run, at the mix's prices, whoever has paid for it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    calls: int
    input_tokens: int
    output_tokens: int
    cost: int
    """Nano-dollars, of the calls whose cost is known."""
    unpriced_calls: int


class Texts(BaseModel):
    """Who wrote the texts of a catalogue, and what was turned down: its provenance and audit.

    Nothing of it says what this build has spent, which answers out of the cache make less than what
    the texts have cost.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    items: int
    written: dict[str, int]
    """Texts by model."""
    rounds: dict[str, int]
    """Texts of models by the round they were written in, from 0."""
    unfilled: dict[str, int]
    """Items that kept their procedural text, by reason."""
    rejected: dict[str, dict[str, int]]
    """Texts of models that were turned down, by model and rule."""
    answers: dict[str, Answers]
    """By model."""

    @property
    def turned_down(self) -> int:
        """Texts of models that were turned down."""
        return sum(sum(rules.values()) for rules in self.rejected.values())

    def accepted_within(self, percent: int) -> bool:
        """Whether at most so many of a hundred texts of models were turned down; few of them say nothing."""
        judged = self.turned_down + self.filled
        return judged < FEWEST_JUDGED or self.turned_down * 100 <= judged * percent

    @property
    def filled(self) -> int:
        """Texts of models."""
        return sum(self.written.values())

    @classmethod
    def sum_of(cls, found: Iterable[Texts]) -> Texts:
        """All of them together, every name in order."""
        items = 0
        counts: dict[str, Counter[str]] = {name: Counter() for name in ("written", "rounds", "unfilled")}
        rejected: dict[str, Counter[str]] = {}
        answers: dict[str, Counter[str]] = {}
        for each in found:
            items += each.items
            for name, counter in counts.items():
                counter.update(getattr(each, name))
            for model, rules in each.rejected.items():
                rejected.setdefault(model, Counter()).update(rules)
            for model, given in each.answers.items():
                answers.setdefault(model, Counter()).update(given.model_dump())
        return cls(
            items=items,
            **{name: dict(counter) for name, counter in counts.items()},
            rejected={model: dict(rules) for model, rules in rejected.items()},
            answers={model: Answers(**given) for model, given in answers.items()},
        )


class Part(Published):
    """What one attempt at a unit published: every blob, and how many rows a table got."""

    run_id: str
    unit: int
    first: int
    count: int
    blobs: list[BlobEntry]
    """Sorted by key."""
    rows: dict[str, int]
    texts: Texts | None = None
    """Of a catalogue that language models write."""


class PartEntry(BaseModel):
    """One part, named by the root."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    unit: int
    key: str
    sha256: str


class Root(Published):
    """The root manifest: its presence means that the run is done and readable."""

    run_id: str
    kind: Literal["documents", "catalogue"]
    spec_digest: str
    plan_sha256: str
    total_units: int
    total_items: int
    rows: dict[str, int]
    parts: list[PartEntry]
    version: str | None = None
    """Of a catalogue."""
    texts: Texts | None = None
    """Of a catalogue that language models write: the sum over its parts."""


def blob_entry(key: str, data: bytes) -> BlobEntry:
    """The entry for `data` under `key`."""
    return BlobEntry(key=key, sha256=sha256_hex(data), bytes=len(data))


PublishedT = TypeVar("PublishedT", bound=Published)


def parse(model: type[PublishedT], key: str, data: bytes) -> PublishedT:
    """What was published under `key`. Raises `UsageError` for another format, `Damage` for other content."""
    try:
        content = json.loads(data)
        number = content.get("format") if isinstance(content, dict) else None
        if isinstance(number, int) and number != FORMAT:
            raise UsageError(
                f"blob {key!r} has format {number}; this docgen reads {FORMAT}: install the one that wrote it"
            )
        found = model.model_validate(content)
    except (ValueError, ValidationError) as error:
        raise Damage(
            f"blob {key!r} is no {model.__name__.lower()}: {_first_line(error)}; run `docgen verify`"
        ) from None
    if found.to_bytes() != data:
        raise Damage(f"blob {key!r} is not in canonical form; run `docgen verify`")
    return found


def is_published(blobs: BlobStore, run_id: str) -> bool:
    """Whether the blobs know the run, by its plan, its marker or its tombstone."""
    known = (plan_key(default_prefix(run_id)), sealed_key(run_id), withdrawn_key(run_id))
    return any(blobs.exists(key) for key in known)


def refuse_unknown(blobs: BlobStore, state: StateStore, run_id: str) -> None:
    """Raise `RunUnknown` for a run that neither store knows: to finish it would be wrong advice."""
    if not is_published(blobs, check_name(run_id, "run id")):
        state.run(run_id)


def refuse_withdrawn(blobs: BlobStore, run_id: str) -> None:
    """Raise `RunWithdrawn` when the run carries a tombstone."""
    if blobs.exists(withdrawn_key(run_id)):
        raise RunWithdrawn(run_id)


def read_checked(blobs: BlobStore, key: str, sha256: str) -> bytes:
    """The blob that a manifest names. Raises `Damage` when it is missing or other bytes."""
    try:
        data = blobs.get(key)
    except BlobMissing:
        raise Damage(f"blob {key!r} is named by its manifest and is missing; run `docgen verify`") from None
    if (found := sha256_hex(data)) != sha256:
        raise Damage(f"blob {key!r} has sha256 {found}, its manifest names {sha256}; run `docgen verify`")
    return data


def read_plan(blobs: BlobStore, prefix: str) -> Plan:
    """The plan under a prefix. Raises `BlobMissing` when there is none, `Damage` when it is no plan."""
    key = plan_key(prefix)
    return parse(Plan, key, blobs.get(key))


def sealed_digest(blobs: BlobStore, run_id: str) -> str | None:
    """The root's digest that the run's marker holds; None while there is no marker."""
    try:
        return blobs.get(sealed_key(run_id)).decode("ascii", "replace").strip()
    except BlobMissing:
        return None


DIGEST = re.compile(r"[0-9a-f]{64}")
"""What a marker holds."""


def read_root(blobs: BlobStore, prefix: str) -> Root:
    """The root manifest under a run's prefix, checked against the run's marker.

    Raises `RunWithdrawn`, `RunIncomplete` (no root), `Damage` (not what was sealed).
    """
    run_id, key = run_id_at(prefix), root_key(prefix)
    refuse_withdrawn(blobs, run_id)
    sealed = sealed_digest(blobs, run_id)
    if sealed is not None:
        if not DIGEST.fullmatch(sealed):
            raise Damage(f"marker {sealed_key(run_id)!r} holds no digest; run `docgen verify {run_id}`")
        return parse(Root, key, read_checked(blobs, key, sealed))
    try:
        return parse(Root, key, blobs.get(key))
    except BlobMissing:
        raise RunIncomplete(run_id, (), f"it has no root manifest; `docgen work {run_id}` finishes it") from None


def read_part(blobs: BlobStore, entry: PartEntry) -> Part:
    """A part that a root names."""
    return parse(Part, entry.key, read_checked(blobs, entry.key, entry.sha256))


def read_blob(blobs: BlobStore, entry: BlobEntry) -> bytes:
    """A blob that a part names."""
    return read_checked(blobs, entry.key, entry.sha256)


def iter_parts(blobs: BlobStore, root: Root) -> Iterator[Part]:
    """Every part of a run, in unit order. Raises `RunIncomplete` for a gap, `Damage` for other bytes."""
    present = [entry.unit for entry in root.parts]
    if present != list(range(root.total_units)):
        gap = sorted(set(range(root.total_units)) - set(present))
        raise RunIncomplete(root.run_id, gap, "its root manifest has a gap; run `docgen verify`")
    for entry in root.parts:
        yield read_part(blobs, entry)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
    return str(error).splitlines()[0]
