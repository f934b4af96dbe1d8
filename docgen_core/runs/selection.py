"""What a user may ask of a run, as data: parsed once, refused with a clear line.

One model for flags, YAML and Dagster's configuration. Worker counts, leases and stores are not
part of it: the same selection gives the same bytes whoever works on it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Selection(BaseModel):
    """Constraints on the documents of a run. Empty means no constraint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    locales: tuple[str, ...] = ()
    """CLDR locales, e.g. `de-DE`."""
    jurisdictions: tuple[str, ...] = ()
    """ISO 3166-1 alpha-2 codes of the seller's country."""
    layouts: tuple[str, ...] = ()
    business_types: tuple[str, ...] = ()
    conditions: dict[str, int] = Field(default_factory=lambda: {"clean": 1})
    """Capture conditions with integer weights."""
    companies: tuple[int, int] | None = None
    """First and last company id, both included."""


class CatalogueSpec(BaseModel):
    """What a catalogue build makes. Company ranges of `range_width` are its units."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pack: str = "invoice"
    companies: int = Field(default=200, ge=1, le=10_000_000)
    products: int = Field(default=24, ge=1, le=1_000)
    """Products a company."""
    range_width: int = Field(default=50, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0)
