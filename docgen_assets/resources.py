"""What a run of the code location is configured by: which stores, and which corpus.

Resources, not op configuration, because the plan, the drain and the tables must agree on them:
a value changed once in the Launchpad holds for every step. What does not belong here: how many
workers (configuration of the step that starts them), and anything that coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from docgen_assets.clients import blob_client
from docgen_assets.partitions import ROSTER, SETTINGS, CompanyRange
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.wishes import selection_from
from docgen_core.settings import load_settings

if TYPE_CHECKING:
    from docgen_core.blobs.contract import BlobStore
    from docgen_core.runs.manifest import Part, Root
    from docgen_core.runs.plan import RunRequest
    from docgen_core.state.contract import StateStore

ROSTER_VERSION = SETTINGS.catalogue or "roster"
"""The catalogue version that the company ranges belong to, unless the corpus names another."""


@dataclass(frozen=True, slots=True)
class Places:
    """The opened stores of one step."""

    state: StateStore
    blobs: BlobStore

    def root(self, run_id: str) -> Root:
        """The root manifest of a sealed run. Raises `RunUnknown`, `RunIncomplete`, `RunWithdrawn`, `Damage`."""
        from docgen_core.runs.manifest import read_root

        return read_root(self.blobs, self.state.run(run_id).marker.prefix)

    def catalogue_part(self, version: str, companies: CompanyRange) -> Part:
        """The finished part of a range. Raises `RunUnknown`, `RunIncomplete` where it is not made yet, `Damage`."""
        from docgen_core.errors import RunIncomplete
        from docgen_core.runs.finalise import part_entry
        from docgen_core.runs.keys import catalogue_run_id
        from docgen_core.runs.manifest import read_part
        from docgen_core.state.contract import UnitState

        run_id = catalogue_run_id(version)
        found = self.state.units(run_id, {UnitState.DONE}, after=companies.unit - 1, limit=1)
        if not found or found[0].index != companies.unit:
            raise RunIncomplete(run_id, [companies.unit], f"materialise the catalogue's range {companies.key}")
        return read_part(self.blobs, part_entry(run_id, found[0]))


class Stores(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Where everything is: the same URIs as the command line's, from the same variables."""

    state: str = Field(
        default=SETTINGS.state,
        description="State store, the only coordinator: a path, firestore://… or dynamodb://… (DOCGEN_STATE).",
    )
    blobs: str = Field(
        default=SETTINGS.blobs,
        description="Blob store of documents, shards and manifests: a folder, s3://… or gs://… (DOCGEN_BLOBS).",
    )
    sink: str = Field(
        default=SETTINGS.sink,
        description="Where tables are exported to: a *.duckdb file, a folder of Parquet files, bigquery://… or "
        "athena://… (DOCGEN_SINK).",
    )

    @contextmanager
    def opened(self) -> Iterator[Places]:
        """The state and blob stores, closed at the end."""
        from docgen_core.blobs import open_blobs
        from docgen_core.state import open_state

        at = load_settings(state=self.state, blobs=self.blobs)
        with (
            blob_client(at.blobs) as client,
            closing(open_blobs(at.blobs, client)) as blobs,
            closing(open_state(at.state)) as state,
        ):
            yield Places(state, blobs)


class Corpus(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Which documents to make. One corpus is one specification: a name never holds two."""

    name: str = Field(
        default="invoices",
        description="Name of the corpus. The run of a range is called NAME-RANGE, e.g. invoices-00000-00049. "
        "A name keeps its first specification: for other documents choose another name.",
    )
    documents_per_range: int = Field(default=75, description="Documents to make for each company range.")
    seed: int = Field(default=0, description="The same seed gives the same documents, byte for byte.")
    locales: list[str] = Field(
        default=[],
        description="Only companies that write in these locales, e.g. de-DE, ja-JP. Empty: all. Here as in every list: "
        "a name that there is not is refused, naming those that there are.",
    )
    jurisdictions: list[str] = Field(
        default=[], description="Only sellers of these countries, e.g. US, DE, JP. Empty: all."
    )
    layouts: list[str] = Field(default=[], description="Only these page layouts. Empty: all.")
    business_types: list[str] = Field(default=[], description="Only companies of these business types. Empty: all.")
    conditions: dict[str, int] = Field(
        default={"clean": 3, "light_scan": 1},
        description="Capture conditions with whole-number weights: clean (as printed), light_scan, "
        "heavy_scan, fax, phone_photo, photocopy, folded_stained, highlighter_notes (pictures of it).",
    )
    currencies: list[str] = Field(default=[], description="Only documents in these currencies, ISO 4217. Empty: all.")
    issued: str = Field(default="", description="Only documents dated so: FROM..TO, e.g. 2024-01-01..2024-06-30.")
    line_items: str = Field(default="", description="Only documents with so many lines: FEWEST-MOST, e.g. 3-40.")
    credit_notes: str = Field(default="", description="Share of credit notes among the documents, e.g. 0.05.")
    tax_mix: dict[str, int] = Field(
        default={}, description="Tax categories (UNCL 5305) with whole-number weights. Empty: as law and goods have it."
    )
    wear: int | None = Field(default=None, description="How worn captured pages are, 0-100. None: as drawn.")
    output: str = Field(default="pdf", description="What the files are: pdf, png, jpeg, tiff or html.")
    labels: bool = Field(default=False, description="Put a file of labels (JSON) beside each document.")
    words: bool = Field(default=False, description="Fill the table `words`: every word with its box and label.")
    anachronism: bool = Field(
        default=False, description="Allow documents from before their company, or in a form it never used."
    )
    catalogue: str = Field(
        default=ROSTER_VERSION,
        description="Catalogue version to draw companies and products from; made range by range where it is missing.",
    )

    def run_id(self, companies: CompanyRange) -> str:
        """The docgen run that holds this corpus's documents of a range."""
        return f"{self.name}-{companies.key}"

    def selection(self, companies: CompanyRange) -> Selection:
        """What the documents of a range are drawn from."""
        return selection_from(
            {
                "locale": self.locales,
                "jurisdiction": self.jurisdictions,
                "layout": self.layouts,
                "business-type": self.business_types,
                "condition": dict(self.conditions),
                "companies": f"{companies.first}-{companies.last}",
                "currency": self.currencies,
                "issued": self.issued or None,
                "line-items": self.line_items or None,
                "credit-notes": self.credit_notes or None,
                "tax-mix": dict(self.tax_mix),
                "wear": self.wear,
                "output": self.output,
                "labels": self.labels,
                "words": self.words,
                "anachronism": self.anachronism,
            },
            "corpus",
        )

    def request(self, companies: CompanyRange) -> RunRequest:
        """The plan of a range's run; it pins that range's part of the catalogue and no other."""
        from docgen_core.runs.plan import RunRequest

        return RunRequest(
            run_id=self.run_id(companies),
            documents=self.documents_per_range,
            seed=self.seed,
            selection=self.selection(companies),
            catalogue=self.catalogue,
            pin=(companies.unit,),
        )

    @property
    def roster(self) -> CatalogueSpec:
        """What the catalogue is made of; its ranges are the partitions."""
        return ROSTER
