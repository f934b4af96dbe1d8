"""Catalogues: built as runs, read at a pin, every byte held against it."""

from __future__ import annotations

from typing import Any

import pytest

from docgen_core.errors import Damage, PlanConflict, RunIncomplete, RunWithdrawn, UsageError
from docgen_core.runs import catalogue_view
from docgen_core.runs.catalogue import newest_catalogue, open_catalogue
from docgen_core.runs.manifest import read_root
from docgen_core.runs.spec import PartsPin, RootPin
from docgen_core.runs.withdraw import withdraw
from docgen_core.state import open_state


def test_a_sealed_catalogue_gives_each_companys_rows(stage: Any) -> None:
    stage.catalogue(companies=7, range_width=3)
    view = open_catalogue(stage.blobs, "v1")
    assert view.version == "v1" and list(view.company_ids()) == list(range(7))
    assert [row["company_id"] for row in view.companies()] == list(range(7))
    for company_id in (6, 0, 3, 5):
        assert view.company(company_id)["company_id"] == company_id
        assert [row["name"] for row in view.rows("goods", company_id)] == [
            f"Goods {company_id}.0",
            f"Goods {company_id}.1",
        ]
    assert [row["company_id"] for row in view.companies((2, 4))] == [2, 3, 4]
    with pytest.raises(UsageError, match="no table 'orders'"):
        view.rows("orders", 0)


def test_ranges_in_memory_are_bounded(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_view, "CACHED_RANGES", 2)
    stage.catalogue(companies=8, range_width=1)
    view = open_catalogue(stage.blobs, "v1")
    for company_id in (0, 1, 2, 3, 0, 7):
        assert view.company(company_id)["company_id"] == company_id
    assert len(view._ranges) == 2


def test_a_pin_on_parts_gives_these_companies_only(stage: Any) -> None:
    stage.catalogue()
    root = read_root(stage.blobs, "catalogue/v1")
    view = open_catalogue(stage.blobs, "v1", PartsPin(parts={"3": root.parts[3].sha256, "1": root.parts[1].sha256}))
    assert list(view.company_ids()) == [2, 3, 6, 7]
    assert [row["company_id"] for row in view.companies()] == [2, 3, 6, 7]
    with pytest.raises(UsageError, match="not pinned"):
        view.company(0)


def test_a_pin_holds_against_other_content(stage: Any) -> None:
    stage.catalogue()
    with pytest.raises(Damage, match=r"manifest\.json"):
        open_catalogue(stage.blobs, "v1", RootPin(root="0" * 64, content="0" * 64))
    with pytest.raises(Damage, match="is the pinned part"):
        open_catalogue(stage.blobs, "v1", PartsPin(parts={"1": "0" * 64}))
    key = "catalogue/v1/golden/companies/unit-000001.parquet"
    stage.blobs.put(key, stage.blobs.get(key) + b"x")
    view = open_catalogue(stage.blobs, "v1")
    assert view.company(0)["company_id"] == 0
    with pytest.raises(Damage, match="unit-000001"):
        view.company(2)


def test_absent_unsealed_and_withdrawn_catalogues_are_told_apart(stage: Any) -> None:
    with pytest.raises(UsageError, match="docgen catalogue build v1"):
        open_catalogue(stage.blobs, "v1")
    stage.plan_catalogue()
    with pytest.raises(RunIncomplete, match="docgen work catalogue-v1"):
        open_catalogue(stage.blobs, "v1")
    stage.work("catalogue-v1")
    withdraw("catalogue-v1", stage.blobs)
    with pytest.raises(RunWithdrawn):
        open_catalogue(stage.blobs, "v1")


def test_planning_a_build_again_gives_expired_units_back(open_stage: Any) -> None:
    stage = open_stage("expired", "?lease_seconds=0.05")
    assert stage.plan_catalogue().created
    stage.state.claim_next_unit("catalogue-v1", "dead")
    while not stage.state.progress("catalogue-v1").expired:
        pass
    assert not stage.plan_catalogue().created
    assert stage.state.progress("catalogue-v1").running == 0
    with pytest.raises(PlanConflict, match="companies is 8, asked for 9"):
        stage.plan_catalogue(companies=9)


def test_the_newest_catalogue_is_the_one_sealed_and_not_withdrawn(stage: Any) -> None:
    from docgen_core.runs.catalogue import build_catalogue_run
    from docgen_core.runs.selection import CatalogueSpec

    assert newest_catalogue(stage.state, stage.blobs) is None
    spec = CatalogueSpec(pack="delivery_note_pack:PACK", companies=2, range_width=2, products=1)
    for version in ("z-first", "a-second", "m-unsealed"):
        build_catalogue_run(stage.state, stage.blobs, version, spec)
        if version != "m-unsealed":
            stage.work(f"catalogue-{version}")
    assert newest_catalogue(stage.state, stage.blobs) == "a-second"
    elsewhere = open_state(str(stage.folder / "other.db"))
    assert newest_catalogue(elsewhere, stage.blobs) == "z-first", "by name, where no store knows better"
    withdraw("catalogue-a-second", stage.blobs)
    assert newest_catalogue(stage.state, stage.blobs) == "z-first"
