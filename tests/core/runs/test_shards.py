"""Shards: declared schemas, exact values, equal bytes; anything else refuses."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pytest

from docgen_core.errors import Damage, RecordRefused
from docgen_core.golden import CORE_TABLES, DECIMAL
from docgen_core.runs.columns import column_array
from docgen_core.runs.shards import decode_shard, encode_shard

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
        pa.field("amount", DECIMAL, nullable=False),
        pa.field("day", pa.date32(), nullable=True),
        pa.field("flag", pa.bool_(), nullable=False),
        pa.field("x", pa.float64(), nullable=False),
    ]
)
ROW: dict[str, Any] = {
    "name": "Süden 東京",
    "count": 3,
    "amount": Decimal("12345678901234567890123456789.123456789"),
    "day": date(2024, 2, 29),
    "flag": True,
    "x": 0.1,
}


def test_values_come_back_exactly() -> None:
    rows = [ROW, {**ROW, "day": None, "amount": Decimal("-0.000000001")}]
    assert decode_shard("k", encode_shard("t", SCHEMA, rows), SCHEMA).to_pylist() == rows


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1_000])
def test_columns_are_laid_out_as_arrow_itself_would(count: int) -> None:
    chosen = random.Random(count)
    rows = [
        {
            "name": "".join(chosen.choices("aé東𝄞\n", k=chosen.randrange(4))),
            "count": chosen.randrange(-(2**31), 2**31),
            "amount": Decimal(chosen.randrange(-(10**38) + 1, 10**38)).scaleb(-9, Context(prec=40)),
            "day": None if chosen.random() < 0.3 else date.fromordinal(chosen.randrange(1, 3_652_060)),
            "flag": chosen.random() < 0.5,
            "x": chosen.uniform(-1e300, 1e300),
        }
        for _ in range(count)
    ]
    for field in SCHEMA:
        values = [row[field.name] for row in rows]
        laid_out = column_array(field.type, values, nullable=field.nullable)
        laid_out.validate(full=True)
        assert laid_out.equals(pa.array(values, type=field.type)), field.name


def test_equal_rows_give_equal_bytes_and_an_empty_shard_is_one() -> None:
    assert encode_shard("t", SCHEMA, [ROW] * 100) == encode_shard("t", SCHEMA, [dict(reversed(ROW.items()))] * 100)
    empty = decode_shard("k", encode_shard("t", SCHEMA, []), SCHEMA)
    assert empty.num_rows == 0 and empty.schema.equals(SCHEMA)


def test_descriptions_travel_with_the_schema() -> None:
    shard = decode_shard("k", encode_shard("documents", CORE_TABLES["documents"], []))
    assert shard.schema.field("sha256").metadata[b"description"].startswith(b"SHA-256")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None},
        {"name": 3},
        {"name": "\ud800"},
        {"count": "3"},
        {"count": 3.0},
        {"count": True},
        {"count": 2**31},
        {"amount": 1.5},
        {"amount": 1},
        {"amount": "1.5"},
        {"amount": Decimal("0.0000000001")},
        {"amount": Decimal(10) ** 30},
        {"amount": Decimal("NaN")},
        {"day": "2024-02-29"},
        {"day": datetime(2024, 2, 29)},  # noqa: DTZ001
        {"flag": 1},
        {"x": 1},
        {"more": 1},
    ],
)
def test_a_value_that_is_not_as_declared_is_refused_by_column(wrong: dict[str, Any]) -> None:
    with pytest.raises(RecordRefused) as refused:
        encode_shard("parcels", SCHEMA, [ROW, {**ROW, **wrong}])
    assert "parcels" in str(refused.value) and next(iter(wrong)) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_column_is_refused() -> None:
    with pytest.raises(RecordRefused, match="flag"):
        encode_shard("t", SCHEMA, [{name: value for name, value in ROW.items() if name != "flag"}])


def test_what_is_no_shard_is_damage() -> None:
    good = encode_shard("t", SCHEMA, [ROW])
    for bad in (b"", b"PAR1", good[:-9], good[: len(good) // 2]):
        with pytest.raises(Damage, match="cannot be read"):
            decode_shard("k", bad)


@pytest.mark.parametrize(
    "other",
    [
        SCHEMA.remove(5),
        SCHEMA.append(pa.field("more", pa.string())),
        SCHEMA.set(1, pa.field("count", pa.int64(), nullable=False)),
        SCHEMA.set(3, pa.field("day", pa.date32(), nullable=False)),
        pa.schema(list(reversed(list(SCHEMA)))),
    ],
)
def test_another_schema_is_damage(other: pa.Schema) -> None:
    with pytest.raises(Damage, match="declared"):
        decode_shard("k", encode_shard("t", SCHEMA, [ROW]), other)
