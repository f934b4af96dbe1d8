"""Verify names every blob that is missing, changed or foreign, and tells leftovers apart."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.errors import RunIncomplete, RunUnknown, RunWithdrawn
from docgen_core.golden import CORE_TABLES
from docgen_core.runs.manifest import blob_entry, read_part, read_root
from docgen_core.runs.shards import decode_shard, encode_shard
from docgen_core.runs.verify import Finding, FindingKind, Verification, verify_run
from docgen_core.runs.withdraw import withdraw

PREFIX = "runs/r1"


def verify(stage: Any, *, deep: bool = True, state: bool = True, **how: object) -> Verification:
    return verify_run("r1", blobs=stage.blobs, state=stage.state if state else None, deep=deep, **how)  # type: ignore[arg-type]


def named(verification: Verification, kind: FindingKind) -> list[str]:
    return [finding.key for finding in verification.findings if finding.kind is kind]


def every_key(stage: Any) -> list[str]:
    return [info.key for info in stage.blobs.iter_keys(f"{PREFIX}/")]


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("state", [True, False], ids=["with state", "blobs alone"])
@pytest.mark.parametrize("deep", [True, False], ids=["deep", "shallow"])
def test_a_sound_run_has_no_findings(sealed: Any, deep: bool, state: bool) -> None:
    found = verify(sealed, deep=deep, state=state)
    assert found.ok and found.findings == () and found.units == 3
    assert found.blobs == len(every_key(sealed)) == 2 + 3 + 6 + 3 * (len(CORE_TABLES) + 2)
    assert "no damage" in found.summary
    assert found.as_json()["ok"] is True


@pytest.mark.parametrize("state", [True, False], ids=["with state", "blobs alone"])
def test_one_flipped_byte_of_any_blob_is_found_and_named(sealed: Any, state: bool) -> None:
    for key in every_key(sealed):
        data = sealed.blobs.get(key)
        for at in (0, len(data) // 2, len(data) - 1):
            sealed.blobs.put(key, flip(data, at))
            found = verify(sealed, state=state)
            assert not found.ok
            assert named(found, FindingKind.CHANGED) == [key], (key, at)
        sealed.blobs.put(key, data)
    assert verify(sealed, state=state).ok


@pytest.mark.parametrize("deep", [True, False], ids=["deep", "shallow"])
@pytest.mark.parametrize("state", [True, False], ids=["with state", "blobs alone"])
def test_any_deleted_blob_is_found_and_named(sealed: Any, deep: bool, state: bool) -> None:
    for key in every_key(sealed):
        data = sealed.blobs.get(key)
        sealed.blobs.delete(key)
        found = verify(sealed, deep=deep, state=state)
        assert not found.ok
        assert named(found, FindingKind.MISSING) == [key]
        if "/manifest/" in key:
            assert len(found.findings) == 1, "what a part named is not foreign because the part is gone"
        sealed.blobs.put(key, data)


@pytest.mark.parametrize(
    "added",
    [
        *(
            "note.txt",
            "plan.json.bak",
            "documents/readme",
            "documents/unit-000000/extra.pdf",
            "documents/unit-000009/x.pdf",
        ),
        *("golden/parcels/unit-000003.parquet", "golden/other/unit-000000.parquet", "manifest/unit-000003.json"),
        "documents/unit-000000/.hidden",
        "golden/parcels/unit-000000.g9.parquet",
    ],
)
def test_any_added_blob_is_found_and_named(sealed: Any, added: str) -> None:
    sealed.blobs.put(f"{PREFIX}/{added}", b"x")
    for deep in (True, False):
        found = verify(sealed, deep=deep)
        assert not found.ok
        assert found.findings == (Finding(FindingKind.FOREIGN, f"{PREFIX}/{added}", "no part names it"),)


def test_a_link_in_a_blobs_place_is_damage(sealed: Any, tmp_path: Path) -> None:
    key = next(key for key in every_key(sealed) if key.endswith(".pdf"))
    path = Path(sealed.blobs.uri.removeprefix("file://")) / key
    path.rename(tmp_path / "moved.pdf")
    path.symlink_to(tmp_path / "moved.pdf")
    assert not verify(sealed).ok
    assert not verify(sealed, deep=False).ok


def test_leftovers_are_told_apart_and_fine(sealed: Any) -> None:
    leftovers = ["catalogue/v1/golden/goods/unit-000001.g2.parquet", "catalogue/v1/manifest/unit-000001.g3.json"]
    for key in leftovers:
        sealed.blobs.put(key, b"superseded")
    temporary = Path(sealed.blobs.uri.removeprefix("file://")) / ".tmp" / "123-abc"
    temporary.write_bytes(b"half")
    found = verify_run("catalogue-v1", blobs=sealed.blobs, state=sealed.state, deep=True)
    assert found.ok
    assert sorted(named(found, FindingKind.LEFTOVER)) == sorted(["123-abc", *leftovers])
    assert "3 leftovers" in found.summary


def test_a_shallow_look_sees_a_changed_size(sealed: Any) -> None:
    key = next(key for key in every_key(sealed) if key.endswith(".pdf"))
    sealed.blobs.put(key, sealed.blobs.get(key) + b"\n")
    assert named(verify(sealed, deep=False), FindingKind.CHANGED) == [key]


def test_the_root_is_held_against_marker_and_store(sealed: Any) -> None:
    root = sealed.blobs.get(f"{PREFIX}/manifest.json")
    sealed.blobs.put("sealed/r1", b"0" * 64 + b"\n")
    assert named(verify(sealed), FindingKind.MISMATCH) == ["sealed/r1"]
    assert named(verify(sealed, state=False), FindingKind.CHANGED) == [f"{PREFIX}/manifest.json"]
    sealed.blobs.put("sealed/r1", b"")
    assert named(verify(sealed), FindingKind.CHANGED) == ["sealed/r1"]
    assert named(verify(sealed, state=False), FindingKind.CHANGED) == ["sealed/r1"]
    sealed.blobs.put("sealed/r1", sha256_hex(root).encode())
    assert verify(sealed).ok
    sealed.blobs.delete("sealed/r1")
    assert named(verify(sealed), FindingKind.MISSING) == ["sealed/r1"]


def test_a_run_without_root_is_incomplete_and_not_damaged(stage: Any) -> None:
    stage.catalogue()
    stage.plan()
    with pytest.raises(RunIncomplete, match="docgen work r1"):
        verify(stage)
    with pytest.raises(RunIncomplete):
        verify(stage, state=False)


def test_finished_units_of_an_unfinished_run_can_be_verified(stage: Any) -> None:
    stage.plan_catalogue()
    stage.work("catalogue-v1", within={0, 2})

    def look(*units: int) -> Verification:
        return verify_run("catalogue-v1", blobs=stage.blobs, state=stage.state, deep=True, units=units)

    assert look(0, 2).findings == () and look(2).units == 1
    with pytest.raises(RunIncomplete, match="units 1"):
        look(0, 1)
    for key, kind in (
        ("catalogue/v1/plan.json", FindingKind.CHANGED),
        ("catalogue/v1/manifest/unit-000002.json", FindingKind.CHANGED),
        ("catalogue/v1/golden/goods/unit-000002.parquet", FindingKind.CHANGED),
    ):
        data = stage.blobs.get(key)
        stage.blobs.put(key, flip(data, len(data) // 2))
        assert named(look(2), kind) == [key]
        stage.blobs.put(key, data)
    stage.blobs.put("catalogue/v1/golden/goods/unit-000001.parquet", b"another worker's, half done")
    assert look(0, 2).findings == (), "the work of others is not judged"
    stage.blobs.put("catalogue/v1/stray", b"")
    assert named(look(2), FindingKind.FOREIGN) == ["catalogue/v1/stray"]


def test_an_unknown_or_withdrawn_run_is_said_to_be_so(sealed: Any) -> None:
    with pytest.raises(RunUnknown):
        verify_run("never", blobs=sealed.blobs, state=sealed.state)
    withdraw("r1", sealed.blobs)
    with pytest.raises(RunWithdrawn):
        verify(sealed)


# Faults of a writer: every digest is right, and the content is not --------------------------


def reseal(stage: Any, unit: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Publish the run anew with a part that `change` has edited, all digests made to fit."""
    root = read_root(stage.blobs, PREFIX)
    part = read_part(stage.blobs, root.parts[unit]).model_dump(exclude_none=True)
    change(part)
    stage.blobs.put(root.parts[unit].key, canonical_json(part))
    edited = root.model_dump(exclude_none=True)
    edited["parts"][unit]["sha256"] = sha256_hex(canonical_json(part))
    stage.blobs.put(f"{PREFIX}/manifest.json", canonical_json(edited))
    stage.blobs.put("sealed/r1", sha256_hex(canonical_json(edited)).encode())


def change_shard(stage: Any, table: str, change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Any], None]:
    def edit(part: dict[str, Any]) -> None:
        (entry,) = (entry for entry in part["blobs"] if f"/golden/{table}/" in entry["key"])
        shard = decode_shard(entry["key"], stage.blobs.get(entry["key"]))
        rows = shard.to_pylist()
        schema = change(rows) or shard.schema
        data = encode_shard(table, schema, rows)
        stage.blobs.put(entry["key"], data)
        entry.update(blob_entry(entry["key"], data).model_dump())

    return edit


@pytest.mark.parametrize(
    ("table", "change", "complaint"),
    [
        ("parcels", lambda rows: rows.pop() and None, "its part counts"),
        ("documents", lambda rows: rows[1].update(document_id=rows[0]["document_id"]), "each once and in order"),
        ("documents", lambda rows: rows[0].update(sha256="0" * 64), "does not describe the file"),
        ("documents", lambda rows: rows[0].update(bytes=1), "does not describe the file"),
        ("pages", lambda rows: rows[0].update(sha256="0" * 64), "does not describe the file"),
        ("pages", lambda rows: rows[1].update(page=2), "says 1 pages"),
        ("documents", lambda rows: rows[0].update(key="runs/r1/documents/unit-000000/x.pdf"), "does not describe"),
        ("parcels", lambda rows: rows[0].update(run_id="r2"), "rows of another run"),
        ("parcels", lambda rows: rows[0].update(document_id="stray"), "not this unit's"),
    ],
)
def test_deep_reads_what_the_shards_say(sealed: Any, table: str, change: Any, complaint: str) -> None:
    reseal(sealed, 0, change_shard(sealed, table, change))
    found = verify(sealed, state=False)
    assert any(complaint in finding.detail for finding in found.findings), found.findings
    assert all(finding.kind is FindingKind.MISMATCH for finding in found.findings)
    assert verify(sealed, state=False, deep=False).ok, "a shallow look takes the parts' word"
    assert not verify(sealed, deep=False).ok, "the store recorded other parts"


def test_deep_knows_the_declared_schema(sealed: Any) -> None:
    def widen(rows: list[dict[str, Any]]) -> Any:
        import pyarrow as pa

        from docgen_core.golden import KEY_FIELDS

        for row in rows:
            row["weight"] = float(row["weight"])
        return pa.schema([*KEY_FIELDS, pa.field("goods", pa.string(), False), pa.field("weight", pa.float64(), False)])

    reseal(sealed, 1, change_shard(sealed, "parcels", widen))
    (finding,) = verify(sealed, state=False).findings
    assert "does not have the declared schema" in finding.detail and "unit-000001" in finding.key


def test_the_roots_sums_are_held_against_the_parts(sealed: Any) -> None:
    reseal(sealed, 0, lambda part: part["rows"].update(parcels=part["rows"]["parcels"] + 1))
    found = verify(sealed, state=False, deep=False)
    assert named(found, FindingKind.MISMATCH) == [f"{PREFIX}/manifest.json"]


def test_a_gap_is_named_by_its_unit(sealed: Any) -> None:
    root = read_root(sealed.blobs, PREFIX).model_dump(exclude_none=True)
    del root["parts"][1]
    sealed.blobs.put(f"{PREFIX}/manifest.json", canonical_json(root))
    sealed.blobs.put("sealed/r1", sha256_hex(canonical_json(root)).encode())
    found = verify(sealed, state=False)
    gaps = [finding for finding in found.findings if finding.kind is FindingKind.GAP]
    assert [gap.detail for gap in gaps] == ["unit 1 has no part"]


def test_weights_are_exact_to_the_gram(sealed: Any) -> None:
    root = read_root(sealed.blobs, PREFIX)
    part = read_part(sealed.blobs, root.parts[0])
    tables = {
        name: decode_shard(entry.key, sealed.blobs.get(entry.key)).to_pylist()
        for name in ("delivery_notes", "parcels")
        for entry in part.blobs
        if f"/golden/{name}/" in entry.key
    }
    for note in tables["delivery_notes"]:
        parcels = [row["weight"] for row in tables["parcels"] if row["document_id"] == note["document_id"]]
        assert isinstance(note["weight"], Decimal) and note["weight"] == sum(parcels)
