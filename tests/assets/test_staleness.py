"""Dagster shows what is out of date: tables of an older root, and everything of another pack's version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

if TYPE_CHECKING:
    from tests.assets.conftest import Location

FIRST = "00000-00003"
LINKS = ("run_plan", "golden_shards", "invoices", "field_boxes")


def statuses(location: Location, defs: dg.Definitions) -> dict[str, tuple[str, str]]:
    """Of the range at each asset: its status, and the reasons that the page gives."""
    resolver = CachingStaleStatusResolver(
        location.instance, defs.resolve_asset_graph(), LoadingContextForTest(location.instance)
    )
    return {
        name: (
            resolver.get_status(dg.AssetKey(name), FIRST).name,
            "; ".join(cause.reason for cause in resolver.get_stale_causes(dg.AssetKey(name), FIRST)),
        )
        for name in LINKS
    }


def test_another_pack_and_a_new_root_show_as_out_of_date_until_they_are_made(damageable: Location):
    assert damageable.generate(FIRST).success
    fresh = statuses(damageable, damageable.defs)
    assert {status for status, _ in fresh.values()} == {StaleStatus.FRESH.name}

    newer = damageable.defs.map_asset_specs(func=lambda spec: spec.replace_attributes(code_version="another"))
    assert all("code version" in reason for _, reason in statuses(damageable, newer).values())

    # Another run of this range, say of another corpus, was drained somewhere else.
    made = dg.AssetMaterialization("golden_shards", partition=FIRST, tags={"dagster/data_version": "another root"})
    damageable.instance.report_runless_asset_event(made)
    after = statuses(damageable, damageable.defs)
    assert after["golden_shards"][0] == after["run_plan"][0] == StaleStatus.FRESH.name, after
    for table in ("invoices", "field_boxes"):
        assert after[table][0] == StaleStatus.STALE.name and "data version" in after[table][1]
    assert damageable.run("export_ranges", FIRST, corpus={}).success
    assert statuses(damageable, damageable.defs)["invoices"][0] == StaleStatus.FRESH.name
