"""An outside witness: SQL over the golden tables recomputes every invoice to the minor unit."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice import record, tables

DOCUMENTS = 300


@pytest.fixture(scope="module")
def golden(run: RunView) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    collected: dict[str, list[dict[str, object]]] = {table: [] for table in tables.TABLES}
    for index in range(DOCUMENTS):
        for table, rows in tables.rows(record.build(run, index)).items():
            collected[table] += [{"run_id": "r", **row} for row in rows]
    for table, rows in collected.items():
        connection.register(f"arrow_{table}", pa.Table.from_pylist(rows, schema=tables.TABLES[table]))
        connection.execute(f"create table {table} as select * from arrow_{table}")
    return connection


def differences(golden: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    return golden.execute(query).fetchall()


def rounded(expression: str, places: str = "minor_units") -> str:
    """Half away from zero; DuckDB's own rounding of decimals, which needs its places written out."""
    return f"(case {places} when 0 then round({expression}, 0) else round({expression}, 2) end)"


def test_lines_follow_from_quantity_price_and_discount(golden: duckdb.DuckDBPyConnection) -> None:
    price = rounded("quantity::decimal(12, 4) * unit_price::decimal(14, 6) * coalesce(factor, 1)::decimal(4, 2)")
    discount = rounded("line_total::decimal(18, 3) * coalesce(discount_percent, 0)::decimal(15, 4) * 0.01")
    query = f"""
        select document_id, line_number from line_items
        where (kind <> 'tier_parent' and contract_total is null and principal is null and days is null
               and line_total is distinct from {price})
           or discount_amount <> {discount} or net_amount <> line_total - discount_amount
    """
    assert differences(golden, query) == []


def test_tier_parents_are_the_sum_of_bands_that_do_not_count(golden: duckdb.DuckDBPyConnection) -> None:
    query = """
        select p.document_id, p.line_number from line_items p
        join line_items b on b.document_id = p.document_id and b.parent = p.line_number
        group by all having max(p.line_total) <> sum(b.line_total) or max(p.quantity) <> sum(b.quantity)
            or not bool_and(p.counted) or bool_or(b.counted)
    """
    assert differences(golden, query) == []
    assert golden.execute("select count(*) from line_items where kind = 'tier_band'").fetchall()[0][0] > 50


def test_buckets_follow_from_lines_and_rates(golden: duckdb.DuckDBPyConnection) -> None:
    tax = rounded("t.base::decimal(18, 3) * t.rate::decimal(15, 4) * 0.01", "t.minor_units")
    query = f"""
        with lines as (
            select document_id, tax_category, tax_rate, sum(net_amount) as nets, sum(tax_amount) as taxes
            from line_items where counted group by all
        )
        select t.document_id, t.row_key from tax_lines t
        join invoices i using (document_id)
        full join lines l on l.document_id = t.document_id and l.tax_category = t.category and l.tax_rate = t.line_rate
        where t.line_total is distinct from l.nets
           or t.base <> t.line_total - t.discount_share + t.charge_share
           or t.tax <> case i.rounding_policy
                when 'per_bucket' then {tax}
                else l.taxes end
    """
    assert differences(golden, query) == []


def test_line_taxes_follow_from_their_share_of_the_document_discount(golden: duckdb.DuckDBPyConnection) -> None:
    net = "(net_amount - document_discount_share + document_charge_share)::decimal(18, 3)"
    tax = rounded(f"{net} * tax_rate::decimal(15, 4) * 0.01", "line_items.minor_units")
    query = f"""
        select document_id from line_items join invoices i using (document_id)
        where (tax_amount is not null) <> (i.rounding_policy = 'per_line' and counted)
           or (tax_amount is not null and tax_amount <> {tax})
    """
    assert differences(golden, query) == []


def test_totals_follow_from_lines_and_buckets(golden: duckdb.DuckDBPyConnection) -> None:
    discount = rounded("lines_total::decimal(18, 3) * document_discount_percent::decimal(15, 4) * 0.01")
    query = f"""
        with lines as (select document_id, sum(net_amount) as nets from line_items where counted group by all),
             taxes as (
                select document_id, sum(tax) as taxes, sum(base) filter (counted) as bases,
                       sum(discount_share) filter (counted) as shares, sum(charge_share) filter (counted) as charges
                from tax_lines group by all
             )
        select document_id from invoices join lines using (document_id) join taxes using (document_id)
        where lines_total <> nets or net_total <> bases or tax_total <> taxes or document_discount <> shares
           or net_total <> lines_total - document_discount + document_charge + shipping
           or charges <> document_charge + shipping or gross_total <> net_total + tax_total
           or amount_due <> gross_total - withholding + tip + rounding - credit_used - prepaid
           or (document_discount_percent is not null and document_discount <> {discount})
    """
    assert differences(golden, query) == []
    assert golden.execute("select count(*) from invoices").fetchall() == [(DOCUMENTS,)]


def test_the_witness_sees_a_cent_that_is_wrong(golden: duckdb.DuckDBPyConnection) -> None:
    golden.execute("begin")
    golden.execute("update invoices set gross_total = gross_total + 0.01 where document_id = '0badcafe-0000000'")
    query = "select document_id from invoices where gross_total <> net_total + tax_total"
    assert differences(golden, query) == [("0badcafe-0000000",)]
    golden.execute("rollback")
