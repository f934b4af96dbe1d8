"""Manifests are read through the root, and anything but what was sealed is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.errors import Damage, RunIncomplete, RunWithdrawn, UsageError
from docgen_core.golden import CORE_TABLES
from docgen_core.runs.manifest import (
    Plan,
    Root,
    iter_parts,
    parse,
    read_blob,
    read_part,
    read_plan,
    read_root,
)
from docgen_core.runs.withdraw import withdraw

PREFIX = "runs/r1"


def test_everything_is_read_through_the_root(sealed: Any) -> None:
    root = read_root(sealed.blobs, PREFIX)
    assert root.run_id == "r1" and root.total_units == 3 and root.total_items == 6
    assert root.plan_sha256 == read_plan(sealed.blobs, PREFIX).digest
    assert root.digest == sha256_hex(sealed.blobs.get(f"{PREFIX}/manifest.json"))
    parts = list(iter_parts(sealed.blobs, root))
    assert [(part.unit, part.first, part.count) for part in parts] == [(0, 0, 2), (1, 2, 2), (2, 4, 2)]
    for part in parts:
        assert [entry.key for entry in part.blobs] == sorted(entry.key for entry in part.blobs)
        assert all(len(read_blob(sealed.blobs, entry)) == entry.bytes for entry in part.blobs)
    assert root.rows == {
        name: sum(part.rows[name] for part in parts) for name in (*CORE_TABLES, "delivery_notes", "parcels")
    }
    assert root.rows["documents"] == 6


@pytest.mark.parametrize("key", ["plan.json", "manifest.json", "manifest/unit-000001.json"])
def test_published_json_is_canonical_and_holds_integers_and_texts_only(sealed: Any, key: str) -> None:
    data = sealed.blobs.get(f"{PREFIX}/{key}")
    content = json.loads(data)
    assert content["format"] == 1
    assert canonical_json(content) == data


def test_floats_have_no_canonical_form() -> None:
    for value in (1.0, [float("nan")], {"a": {"b": [2.5]}}):
        with pytest.raises(TypeError, match="no floats"):
            canonical_json(value)
    with pytest.raises(TypeError, match="string keys"):
        canonical_json({1: "a"})
    assert canonical_json({"b": [1, None, True], "a": "é"}) == '{"a":"é","b":[1,null,true]}\n'.encode()


def test_an_unknown_format_is_refused(sealed: Any) -> None:
    plan = json.loads(sealed.blobs.get(f"{PREFIX}/plan.json"))
    with pytest.raises(UsageError, match="has format 2; this docgen reads 1"):
        parse(Plan, "plan.json", canonical_json({**plan, "format": 2}))


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"\xff", b"[]", b'"x"', b"null", b"{}\n", b'{"format":1}\n', b'{"format":true}\n'],
)
def test_what_is_no_manifest_is_damage_in_one_line(data: bytes) -> None:
    with pytest.raises(Damage) as damage:
        parse(Root, "runs/r1/manifest.json", data)
    assert "runs/r1/manifest.json" in str(damage.value) and "\n" not in str(damage.value)


def test_another_form_of_the_same_json_is_damage(sealed: Any) -> None:
    plan = json.loads(sealed.blobs.get(f"{PREFIX}/plan.json"))
    with pytest.raises(Damage, match="canonical"):
        parse(Plan, "plan.json", json.dumps(plan).encode())
    with pytest.raises(Damage, match="Extra inputs"):
        parse(Plan, "plan.json", canonical_json({**plan, "owner": "w1"}))


def test_a_root_that_was_not_sealed_is_damage(sealed: Any) -> None:
    marker = sealed.blobs.get("sealed/r1")
    root = json.loads(sealed.blobs.get(f"{PREFIX}/manifest.json"))
    root["rows"]["parcels"] += 1
    sealed.blobs.put(f"{PREFIX}/manifest.json", canonical_json(root))
    with pytest.raises(Damage, match=r"manifest\.json"):
        read_root(sealed.blobs, PREFIX)
    sealed.blobs.put("sealed/r1", b"\xff junk")
    with pytest.raises(Damage, match="marker 'sealed/r1' holds no digest; run `docgen verify r1`"):
        read_root(sealed.blobs, PREFIX)
    sealed.blobs.put("sealed/r1", marker)
    sealed.blobs.delete(f"{PREFIX}/manifest.json")
    with pytest.raises(Damage, match="is missing"):
        read_root(sealed.blobs, PREFIX)


def test_a_root_whose_marker_is_not_there_yet_may_be_read(sealed: Any) -> None:
    sealed.blobs.delete("sealed/r1")
    assert read_root(sealed.blobs, PREFIX).total_units == 3


def test_a_changed_or_missing_part_or_blob_is_damage(sealed: Any) -> None:
    root = read_root(sealed.blobs, PREFIX)
    part = read_part(sealed.blobs, root.parts[0])
    sealed.blobs.put(part.blobs[0].key, b"other")
    with pytest.raises(Damage, match="its manifest names"):
        read_blob(sealed.blobs, part.blobs[0])
    sealed.blobs.delete(root.parts[0].key)
    with pytest.raises(Damage, match="is missing"):
        read_part(sealed.blobs, root.parts[0])


def test_a_gap_is_refused_by_index_not_by_count(sealed: Any) -> None:
    root = read_root(sealed.blobs, PREFIX)
    odd = root.model_copy(update={"parts": [root.parts[0], root.parts[1], root.parts[1]]})
    with pytest.raises(RunIncomplete, match="units 2"):
        list(iter_parts(sealed.blobs, odd))


def test_nobody_reads_a_run_without_root_or_a_withdrawn_one(sealed: Any) -> None:
    with pytest.raises(RunIncomplete, match="docgen work r2"):
        read_root(sealed.blobs, "runs/r2")
    withdraw("r1", sealed.blobs)
    withdraw("r1", sealed.blobs)
    with pytest.raises(RunWithdrawn):
        read_root(sealed.blobs, PREFIX)
