"""The golden tables: declared, complete, exact, and the same from rows as from single cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from decimal import Decimal

import pyarrow as pa
import pytest

from docgen_core.golden import DECIMAL, KEY_FIELDS
from docgen_core.money import RoundingPolicy
from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice import record, tables
from docgen_core.packs.invoice.arithmetic import Sale, Tax
from docgen_core.packs.invoice.model import Basis, Invoice, Line, Payment, TaxLine, Totals

DOCUMENTS = 60


@pytest.fixture(scope="module")
def invoices(run: RunView) -> list[Invoice]:
    return [record.build(run, index) for index in range(DOCUMENTS)]


def arrow(invoice: Invoice, table: str) -> pa.Table:
    rows = [{"run_id": "r", **row} for row in tables.rows(invoice)[table]]
    return pa.Table.from_pylist(rows, schema=tables.TABLES[table])


@pytest.mark.parametrize("table", list(tables.TABLES))
def test_each_schema_begins_with_the_keys_and_describes_every_column(table: str) -> None:
    schema = tables.TABLES[table]
    assert tuple(schema)[: len(KEY_FIELDS)] == KEY_FIELDS
    assert len(set(schema.names)) == len(schema.names)
    for field in schema:
        assert field.metadata[b"description"].decode().strip(), field.name


@pytest.mark.parametrize("table", list(tables.TABLES))
def test_rows_fit_their_declared_schema_exactly(table: str, invoices: list[Invoice]) -> None:
    for invoice in invoices:
        rows = tables.rows(invoice)[table]
        assert {frozenset(row) | {"run_id"} for row in rows} <= {frozenset(tables.TABLES[table].names)}
        made = arrow(invoice, table)
        made.validate(full=True)
        for field in tables.TABLES[table]:
            if not field.nullable:
                assert made.column(field.name).null_count == 0, field.name


def test_money_is_decimal_with_nine_places_everywhere() -> None:
    for schema in tables.TABLES.values():
        for field in schema:
            assert not pa.types.is_floating(field.type), field.name
            if pa.types.is_decimal(field.type):
                assert field.type == DECIMAL


def test_every_part_of_the_model_that_is_printed_has_a_column() -> None:
    renamed = {"number": "line_number"}
    line_columns = set(tables.TABLES["line_items"].names)
    told = {field.name for field in fields(Line)} - {"basis"} | {field.name for field in fields(Basis)}
    assert {renamed.get(name, name) for name in told} <= line_columns
    tax_columns = {*tables.TABLES["tax_lines"].names, "number"}
    assert {field.name for field in fields(TaxLine)} <= tax_columns
    invoice_columns = set(tables.TABLES["invoices"].names)
    assert {field.name for field in fields(Totals)} <= invoice_columns
    apart = {
        "document_id",
        "index",
        "seller",
        "buyer",
        "lines",
        "tax_lines",
        "totals",
        "payment",
        "identity",
        "condition",
        "original",
        "instalments",
    }
    assert {field.name for field in fields(Invoice)} - apart <= invoice_columns


def test_registrations_and_bank_accounts_have_their_columns(invoices: list[Invoice]) -> None:
    for invoice in invoices:
        (row,) = tables.rows(invoice)["invoices"]
        for role, party in (("seller", invoice.seller), ("buyer", invoice.buyer)):
            for entry in party.registrations if party else ():
                assert row[tables.registration_column(role, entry)] == entry.value
        for column, (_, value) in zip(invoice.payment.account_columns, invoice.payment.account, strict=True):
            assert row[column] == value
        if invoice.buyer is None:
            assert all(row[name] is None for name in row if name.startswith("buyer_"))


def test_a_cell_asked_for_alone_is_the_rows_cell(invoices: list[Invoice]) -> None:
    for invoice in invoices[:12]:
        for table, rows in tables.rows(invoice).items():
            if not rows:
                continue
            keys = {"document_id", "catalogue_version", "row_key"}
            declared = set(rows[0]) - keys - ({"currency", "minor_units"} if table != "invoices" else set())
            for row in rows:
                for column in declared:
                    text = tables.value_of(invoice, table, row["row_key"], column)
                    assert text == tables.canonical(table, column, row[column], invoice.minor_units)


def test_canonical_values_keep_every_digit_and_no_more(make_invoice: Callable[..., Invoice]) -> None:
    def one(quantity: str, price: str, rate: str) -> Sequence[Sale]:
        tax = Tax("S", Decimal(rate), "tax")
        return [Sale(None, "Thing", None, Decimal(quantity), "pc", "C62", Decimal(price), tax)]

    yen = make_invoice(one("1235", "4.5", "10"), currency="JPY")
    euro = make_invoice(one("2.500", "4.50000", "19.0"), policy=RoundingPolicy.PER_LINE)
    cells = {
        (yen, "line_items", "unit_price"): "4.5",
        (yen, "line_items", "line_total"): "5558",
        (yen, "invoices", "gross_total"): "6114",
        (yen, "line_items", "tax_amount"): "",
        (euro, "line_items", "unit_price"): "4.50",
        (euro, "line_items", "quantity"): "2.5",
        (euro, "line_items", "tax_rate"): "19",
        (euro, "line_items", "tax_amount"): "2.14",
        (euro, "line_items", "discount_percent"): "",
        (euro, "invoices", "issue_date"): "2024-03-05",
        (euro, "invoices", "seller_address"): "Mohngrundweg 1\n10115 Berlin",
        (euro, "line_items", "counted"): "true",
    }
    for (invoice, table, column), expected in cells.items():
        assert tables.value_of(invoice, table, "1", column) == expected


@pytest.mark.parametrize(
    ("table", "row_key", "column"),
    [("invoices", "2", "number"), ("line_items", "0", "sku"), ("tax_lines", "99", "tax"), ("invoices", "1", "colour")],
)
def test_a_cell_that_there_is_not_is_a_mistake(
    make_invoice: Callable[..., Invoice], table: str, row_key: str, column: str
) -> None:
    sale = Sale(None, "Thing", None, Decimal(1), "pc", "C62", Decimal(1), Tax("S", Decimal(19), "tax"))
    with pytest.raises(KeyError):
        tables.value_of(make_invoice([sale]), table, row_key, column)


def test_account_columns_are_part_of_the_schema() -> None:
    assert set(tables.ACCOUNT_COLUMNS) <= set(tables.TABLES["invoices"].names)
    assert Payment("", "paid", ()).account_columns == ()
