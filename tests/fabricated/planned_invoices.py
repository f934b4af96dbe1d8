"""Documents of a planned run of the invoice pack, from nothing and in memory: what a worker would draw."""

from __future__ import annotations

from docgen_core.blobs import open_blobs
from docgen_core.runs.catalogue import build_catalogue_run
from docgen_core.runs.drain import work_run
from docgen_core.runs.manifest import read_plan
from docgen_core.runs.plan import RunRequest, create_run
from docgen_core.runs.selection import CatalogueSpec, Selection
from docgen_core.runs.source import DocumentSource
from docgen_core.state import open_state

PRODUCTS = 24


def planned_invoices(
    documents: int, *, companies: int, seed: int = 0, selection: Selection | None = None
) -> DocumentSource:
    """The source of such a run's documents, over a catalogue of its own."""
    store = f"memory://planned-invoices-{documents}-{companies}-{seed}"
    blobs = open_blobs(store)
    with open_state(store) as state:
        spec = CatalogueSpec(companies=companies, products=PRODUCTS, range_width=companies, seed=seed)
        catalogue = build_catalogue_run(state, blobs, "v", spec)
        work_run(catalogue.run.run_id, state=state, blobs=blobs, worker="w")
        planned = create_run(state, blobs, RunRequest("r", documents, seed, selection or Selection(), "v"))
    return DocumentSource.open(read_plan(blobs, planned.run.marker.prefix), blobs)
