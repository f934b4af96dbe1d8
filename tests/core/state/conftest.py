"""Operations that every store has, for what must be true of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from docgen_core.state.contract import Lease, Part, RunMarker, StateStore


@pytest.fixture
def every_operation() -> Callable[[RunMarker], list[Callable[[StateStore], object]]]:
    """All that can be asked about the run of this marker."""

    def operations(marker: RunMarker) -> list[Callable[[StateStore], object]]:
        run, digest = marker.run_id, marker.spec_digest
        lease = Lease(run, 0, 1, 1, "w", 0, 0.0)
        return [
            lambda store: store.create_run(marker),
            lambda store: store.mark_planned(run, digest),
            lambda store: store.run(run),
            lambda store: store.list_runs(),
            lambda store: store.pause(run),
            lambda store: store.resume(run),
            lambda store: store.cancel(run),
            lambda store: store.claim_next_unit(run, "w"),
            lambda store: store.renew(lease),
            lambda store: store.complete_unit(lease, Part("part", digest, 1)),
            lambda store: store.fail_unit(lease, "no"),
            lambda store: store.release(lease),
            lambda store: store.reset_failed_units(run),
            lambda store: store.reclaim_expired_units(run),
            lambda store: store.units(run),
            lambda store: store.progress(run),
            lambda store: store.begin_finalize(run),
            lambda store: store.complete_run(run, digest),
        ]

    return operations
