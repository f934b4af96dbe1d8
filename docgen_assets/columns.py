"""Column schemas and lineage for the catalog view, from the schemas that the core declares.

Nothing is declared twice: names, types and descriptions are the Arrow schemas'.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
import pyarrow as pa

_FROM_COMPANY = ("company_id", "jurisdiction", "currency", "minor_units", "business_type")
"""Columns of `invoices` that are the company's in the catalogue."""

_FROM_PRODUCT = ("sku", "unit_code")
"""Columns of `line_items` that are the product's in the catalogue."""


def table_schema(tables: Mapping[str, pa.Schema]) -> dg.TableSchema:
    """One asset's columns. Of several tables each column carries its table's name before a dot."""
    several = len(tables) > 1
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=f"{table}.{field.name}" if several else field.name,
                type=str(field.type),
                description=description(field),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for table, schema in tables.items()
            for field in schema
        ]
    )


def description(field: pa.Field) -> str:
    """What the schema's owner says of the column."""
    text: bytes = (field.metadata or {}).get(b"description", b"")
    return text.decode()


def shard_lineage(tables: Mapping[str, pa.Schema], catalogue: dg.AssetKey) -> dg.TableColumnLineage:
    """Which columns of the golden shards come from the catalogue as they are."""
    origins = {
        **{f"invoices.{name}": f"companies.{name}" for name in _FROM_COMPANY},
        **{f"line_items.{name}": f"products.{name}" for name in _FROM_PRODUCT},
    }
    declared = {f"{table}.{field.name}" for table, schema in tables.items() for field in schema}
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(asset_key=catalogue, column_name=origin)]
            for column, origin in origins.items()
            if column in declared
        }
    )


def table_lineage(table: str, schema: pa.Schema, shards: dg.AssetKey) -> dg.TableColumnLineage:
    """Every exported column is the golden shards' column of that name."""
    return dg.TableColumnLineage(
        {field.name: [dg.TableColumnDep(asset_key=shards, column_name=f"{table}.{field.name}")] for field in schema}
    )
