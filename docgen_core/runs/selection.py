"""What a user may ask of a run, as data: parsed once, refused with a clear line.

One model for flags, YAML and Dagster's configuration. Worker counts, leases and stores are not
part of it: the same selection gives the same bytes whoever works on it.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

Output = Literal["pdf", "png", "jpeg", "tiff", "html"]
OUTPUTS: tuple[Output, ...] = get_args(Output)
"""What a document's file may be."""

MOST_WEAR = 100

AS_PRINTED = "clean"
"""The capture condition of a document that never became paper."""

_FIRST_FIELDS = ("locales", "jurisdictions", "layouts", "business_types", "conditions", "companies")
"""Always part of a spec. The fields that came after them are left out while they say nothing, so that
a spec from before them keeps its bytes and its digest."""

FILE_FIELDS = frozenset(("conditions", "wear", "output", "labels", "words"))
"""What decides the file of a document and what lies beside it, and nothing of its content: runs that
differ in these alone have the same documents and golden rows."""


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
    company_ids: tuple[int, ...] = ()
    """These companies alone."""
    company_count: int | None = Field(default=None, ge=1)
    """The first so many of the companies that fit."""
    currencies: tuple[str, ...] = ()
    """ISO 4217 codes."""
    issued: tuple[date, date] | None = None
    """First and last day a document may be dated, both included."""
    line_items: tuple[int, int] | None = None
    """Fewest and most printed lines of items."""
    credit_notes: int = Field(default=0, ge=0, le=1000)
    """Credit notes among a thousand documents."""
    tax_mix: dict[str, int] = Field(default_factory=dict)
    """UNCL 5305 categories with integer weights; empty: as the sellers' law and goods have it."""
    wear: int | None = Field(default=None, ge=0, le=MOST_WEAR)
    """How worn the captured pages are, from 0 to 100; None: as each condition draws it."""
    output: Output = "pdf"
    labels: bool = False
    """Whether a `labels.json` lies beside each document."""
    words: bool = False
    """Whether the table `words` is filled."""
    anachronism: bool = False
    """Whether documents may come from before their company, or in a form that it never used."""

    @property
    def on_paper_only(self) -> bool:
        """Whether every document was on paper once, which some companies' never were."""
        return not self.anachronism and not self.conditions.get(AS_PRINTED)

    @property
    def content(self) -> dict[str, Any]:
        """What of it decides the content of documents, as plain JSON.

        How pages are captured does not, but for one thing: where nothing is left as it was printed,
        companies that never sent paper send nothing.
        """
        told = {name: value for name, value in self.model_dump(mode="json").items() if name not in FILE_FIELDS}
        return {**told, "on_paper_only": True} if self.on_paper_only else told

    @model_serializer(mode="wrap")
    def _without_what_says_nothing(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {
            name: value
            for name, value in serialise(self).items()
            if name in _FIRST_FIELDS
            or getattr(self, name) != Selection.model_fields[name].get_default(call_default_factory=True)
        }


class CatalogueSpec(BaseModel):
    """What a catalogue build makes. Company ranges of `range_width` are its units."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pack: str = "invoice"
    companies: int = Field(default=200, ge=1, le=10_000_000)
    products: int = Field(default=24, ge=1, le=1_000)
    """Products a company."""
    range_width: int = Field(default=50, ge=1, le=10_000)
    seed: int = Field(default=0, ge=0)
