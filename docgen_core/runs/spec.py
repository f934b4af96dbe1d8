"""What decides a run's bytes, as data: the spec, its digest, and how it is cut into units.

No worker, fleet, lease, store or clock is part of a spec. What does not belong here: what a user
may ask (selection.py) and how a run is recorded (plan.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.runs.selection import CatalogueSpec, Selection

USUAL_UNITS = 64
"""A run is cut into about this many units, whatever its size…"""
MAX_UNIT_DOCUMENTS = 200
"""…as long as a unit has at most this many documents."""

STREAM_DIGITS = 8
"""Hex digits of the stream's name."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def as_json(self) -> dict[str, Any]:
        """The model as plain JSON."""
        return self.model_dump(mode="json")


class RootPin(_Data):
    """A whole sealed catalogue, by its root's digest."""

    root: str
    content: str
    """`content_digest` of its parts. The root names the plan and so the software; this does not."""


class PartsPin(_Data):
    """Finished parts of a catalogue that may still be built: digests by unit number."""

    parts: dict[str, str]

    @property
    def content(self) -> str:
        """As a root pin's: a whole catalogue pinned part by part is the same content."""
        return content_digest({int(unit): sha256 for unit, sha256 in self.parts.items()})


Pin = RootPin | PartsPin


class PinnedCatalogue(_Data):
    """The catalogue content that a documents run reads, and no other."""

    version: str
    pin: Pin


class DocumentsSpec(_Data):
    """Everything that decides the documents of a run."""

    kind: Literal["documents"] = "documents"
    pack: str
    pack_version: str
    documents: int
    seed: int
    selection: Selection
    catalogue: PinnedCatalogue

    @property
    def stream(self) -> str:
        """Names everything that decides a document's content; not how many documents there are.

        Nor how their pages are captured: the same documents, scanned and clean, have the same ids and rows.
        """
        spec = self.as_json()
        del spec["documents"]
        spec["selection"] = self.selection.content
        spec["catalogue"] = {"version": self.catalogue.version, "content": self.catalogue.pin.content}
        return sha256_hex(canonical_json(spec))[:STREAM_DIGITS]


class CatalogueRunSpec(CatalogueSpec):
    """Everything that decides the content of a catalogue version."""

    kind: Literal["catalogue"] = "catalogue"
    version: str
    pack_version: str = Field(min_length=1)
    mix: str | None = None
    """Canonical text of the language models that write descriptions; None for a procedural catalogue."""

    def as_json(self) -> dict[str, Any]:
        """The model as plain JSON."""
        return self.model_dump(mode="json", exclude_none=True)


def content_digest(parts: Mapping[int, str]) -> str:
    """The digest of catalogue content: of its parts' digests, in unit order."""
    return sha256_hex(canonical_json([[unit, parts[unit]] for unit in sorted(parts)]))


def spec_digest(spec: Mapping[str, Any]) -> str:
    """The digest by which two plans are the same."""
    return sha256_hex(canonical_json(dict(spec)))


def usual_unit_size(documents: int) -> int:
    """Documents to a unit, from the number of documents alone: about 64 units of 1-200."""
    return min(max(_divided_up(documents, USUAL_UNITS), 1), MAX_UNIT_DOCUMENTS)


def unit_count(items: int, unit_size: int) -> int:
    """Units that `items` are cut into; the last may be short."""
    return _divided_up(items, unit_size)


def _divided_up(number: int, by: int) -> int:
    return -(-number // by)
