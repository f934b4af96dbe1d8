"""Catalogues: a build is a run over company ranges, and a version is read through its root or a pin.

What does not belong here: what a catalogue holds (the pack), and how the build is worked on: like
any other run, by `work_run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from docgen_core.blobs.contract import BlobStore
from docgen_core.llm.mix import ProviderMix
from docgen_core.packs import load_pack
from docgen_core.runs.catalogue_view import PinnedView, open_catalogue
from docgen_core.runs.keys import CATALOGUE_RUN, SEALED, catalogue_run_id, default_prefix, withdrawn_key
from docgen_core.runs.plan import TAKEOVER_SECONDS, PlannedRun, marker_for, record_run
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.spec import CatalogueRunSpec
from docgen_core.state.contract import Run, RunKind, RunState, StateStore

__all__ = ["PinnedView", "build_catalogue_run", "newest_catalogue", "open_catalogue"]

PAGE_RUNS = 100


def build_catalogue_run(
    state: StateStore,
    blobs: BlobStore,
    version: str,
    spec: CatalogueSpec,
    *,
    mix: ProviderMix | None = None,
    budget: int | None = None,
    takeover_seconds: float = TAKEOVER_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> PlannedRun:
    """Plan the build of a version, or find it planned, and give expired units and grants back.

    `mix` are the language models that write descriptions, `budget` what the whole fleet may spend on
    them: nano-dollars, absolute, so that the same again changes nothing. `work_run("catalogue-VERSION",
    …)` builds it. Raises as `create_run` does, `UsageError` for a budget where a model has no price, and
    `BudgetTooLow` for one below what is spent.
    """
    run_id = catalogue_run_id(version)
    if budget is not None and mix is not None:
        mix.require_prices()
    run_spec = CatalogueRunSpec(
        **spec.model_dump(),
        version=version,
        pack_version=load_pack(spec.pack).version,
        mix=mix.as_text() if mix else None,
    )
    prefix = default_prefix(run_id)
    marker = marker_for(run_id, RunKind.CATALOGUE, prefix, run_spec.as_json(), spec.companies, spec.range_width)
    planned = record_run(state, blobs, marker, admit=lambda: None, takeover_seconds=takeover_seconds, sleep=sleep)
    if planned.run.state is RunState.RUNNING:
        if budget is not None:
            state.set_budget(run_id, budget)
        if not planned.created:
            state.reclaim_expired_units(run_id)
            state.expire_grants(run_id)
    return planned


def newest_catalogue(state: StateStore, blobs: BlobStore) -> str | None:
    """The version whose build was started last among the sealed ones; None when there is none.

    Versions that another store's fleet built are known by their markers alone: of these, the last
    by name, and only when this store knows none.
    """
    known = [run for run in _catalogue_runs(state) if not blobs.exists(withdrawn_key(run.run_id))]
    if known:
        newest = max(known, key=lambda run: (run.created_at, run.run_id))
        return newest.run_id.removeprefix(CATALOGUE_RUN)
    sealed = [info.key.removeprefix(SEALED) for info in blobs.iter_keys(f"{SEALED}{CATALOGUE_RUN}")]
    readable = [run_id for run_id in sealed if not blobs.exists(withdrawn_key(run_id))]
    return max(readable).removeprefix(CATALOGUE_RUN) if readable else None


def _catalogue_runs(state: StateStore) -> Iterator[Run]:
    after = CATALOGUE_RUN
    while page := state.list_runs({RunState.COMPLETED}, after=after, limit=PAGE_RUNS):
        for run in page:
            if not run.run_id.startswith(CATALOGUE_RUN):
                return
            yield run
        after = page[-1].run_id
