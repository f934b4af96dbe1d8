"""The check's SQL accepts what was computed rightly, and finds every wrong minor unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import date
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest

from docgen_assets.warehouse import broken_rules
from docgen_core.draws import Draws
from docgen_core.golden import DOCUMENTS
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice.arithmetic import Band, Charge, Computation, Discount, Extras, Sale, Tax, compute
from docgen_core.packs.invoice.corrections import taken_back
from docgen_core.packs.invoice.model import Basis, LineKind
from docgen_core.packs.invoice.settlement import Settlement, Withholding, instalments, settle
from docgen_core.packs.invoice.tables import TABLES

RUN = "r1"
RATES = [Decimal("19"), Decimal("7"), Decimal("8.375"), Decimal(0)]


def drawn(index: int) -> tuple[int, RoundingPolicy, Computation]:
    """A random computation: bands, discounts, charges, several taxes, every basis, prices finer than the currency."""
    draws = Draws("arithmetic", index)
    places = draws.choice("places", [0, 2, 3])
    policy = draws.choice("policy", list(RoundingPolicy))
    sales = [sale for line in range(draws.integer("lines", 1, 8)) for sale in _sales(draws.under("line", line), places)]
    extras = Extras(
        discount=draws.choice("discount", [Discount(), Discount(percent=Decimal("3.5")), Discount(amount=Decimal(1))]),
        charge=draws.choice("charge", [None, Charge("", percent=Decimal("1.75")), Charge("", amount=Decimal(7))]),
        shipping=draws.choice("shipping", [Decimal(0), Decimal(9)]),
    )
    if index % 10 == 0:
        plain = [sale for sale in sales if sale.basis == Basis() and not sale.with_above] or [_plain(draws)]
        return places, policy, taken_back(compute(plain, places=places, policy=policy))
    computed = compute(sales, places=places, policy=policy, extras=extras)
    settlement = Settlement(
        withholding=draws.choice("withholding", [None, Withholding("", Decimal(15))]),
        tip=Decimal(draws.integer("tip", 0, 3)),
        cash_step=draws.choice("coin", [None, Decimal("0.05") if places else Decimal(10)]) if places else None,
        credit=draws.choice("credit", [None, None, Decimal(20)]),
    )
    return places, policy, Computation(computed.lines, computed.tax_lines, settle(computed.totals, settlement, places))


def _sales(draws: Draws, places: int) -> list[Sale]:
    """A line, and now and then the one that belongs to it."""
    kind = draws.choice("kind", ["plain", "plain", "plain", "basis", "deposit", "overage"])
    sale = _sale(draws)
    if kind == "plain" or sale.bands:
        return [sale]
    if kind == "basis":
        other = replace(sale, basis=draws.choice("basis", _bases(places)))
        counted = other.basis.contract_total is None and other.basis.principal is None
        return [other if counted else replace(other, quantity=None, unit_price=None)]
    related = _sale(draws.under("related"))
    if related.bands:
        return [sale]
    if kind == "deposit":
        return [sale, replace(related, with_above=LineKind.DEPOSIT)]
    return [sale, replace(related, with_above=LineKind.OVERAGE, basis=Basis(included=sale.quantity))]


def _bases(places: int) -> list[Basis]:
    return [
        Basis(factor=Decimal("2.3")),
        Basis(days=17, days_of=30),
        Basis(
            contract_total=Decimal(4711).scaleb(-places), progress_percent=Decimal("62.5"), previous_percent=Decimal(30)
        ),
        Basis(principal=Decimal(88_123).scaleb(-places), interest_rate=Decimal("9.12"), days=41, days_of=365),
    ]


def _plain(draws: Draws) -> Sale:
    return replace(_sale(draws), basis=Basis())


SPLIT = Tax("S", Decimal("14.975"), "", parts=(("GST", Decimal(5)), ("QST", Decimal("9.975"))))


def _sale(draws: Draws) -> Sale:
    bands = tuple(
        Band(
            quantity=Decimal(draws.integer(f"quantity{i}", 1, 99)),
            unit_price=Decimal(draws.integer(f"price{i}", 5_000, 99_999)).scaleb(-3),
            detail="",
        )
        for i in range(3 * draws.chance("graduated", 250))
    )
    quantity = Decimal(draws.integer("quantity", 100, 50_000)).scaleb(-draws.integer("quantity_places", 0, 2))
    metered = Basis(meter_from=Decimal(700), meter_to=Decimal(700) + quantity)
    return Sale(
        sku=None,
        description="",
        detail=None,
        quantity=sum((band.quantity for band in bands), Decimal(0)) if bands else quantity,
        unit="",
        unit_code="C62",
        unit_price=None
        if bands
        else Decimal(draws.integer("price", 50_000, 9_999_999)).scaleb(-draws.integer("price_places", 0, 4)),
        tax=draws.choice("tax", [*(Tax("S", rate, "") for rate in RATES), SPLIT]),
        discount_percent=draws.choice("discount", [None, Decimal(4), Decimal("12.5")]),
        bands=bands,
        basis=metered if not bands and draws.chance("metered", 100) else Basis(),
    )


def tables(computations: dict[str, tuple[int, RoundingPolicy, Computation]]) -> dict[str, list[dict[str, object]]]:
    invoices, line_items, tax_lines, parts = [], [], [], []
    for document, (places, policy, computed) in computations.items():
        common = {"run_id": RUN, "document_id": document, "minor_units": places}
        invoices.append(common | asdict(computed.totals) | {"rounding_policy": policy.value})
        line_items += [
            common | asdict(line) | asdict(line.basis) | {"line_number": line.number} for line in computed.lines
        ]
        tax_lines += [
            common | asdict(tax) | {"row_key": str(tax.number), "line_rate": tax.bucket[1]}
            for tax in computed.tax_lines
        ]
        if document.endswith("7"):
            paid = instalments(computed.totals.amount_due, [date(2024, 5, 1), date(2024, 6, 1)], places)
            parts += [common | asdict(part) | {"row_key": str(part.number)} for part in paid]
    documents = [{"run_id": RUN, "document_id": document} for document in computations]
    return {
        "invoices": invoices,
        "line_items": line_items,
        "tax_lines": tax_lines,
        "instalments": parts,
        "codes": [],
        "documents": documents,
    }


def loaded(rows: dict[str, list[dict[str, object]]]) -> duckdb.DuckDBPyConnection:
    """The rows as tables with the declared column types; columns that no rule reads are null."""
    connection = duckdb.connect()
    for table, schema in {**TABLES, "documents": DOCUMENTS}.items():
        loose = pa.schema([field.with_nullable(True) for field in schema])
        kept = [{name: row.get(name) for name in loose.names} for row in rows[table]]
        connection.register("arrived", pa.Table.from_pylist(kept, schema=loose))
        connection.execute(f"CREATE TABLE {table} AS FROM arrived")
    return connection


@pytest.fixture(scope="module")
def exported() -> Iterator[duckdb.DuckDBPyConnection]:
    with loaded(tables({f"d{index}": drawn(index) for index in range(400)})) as connection:
        yield connection


@pytest.fixture
def damaged(exported: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The exported tables, for a change that is undone afterwards."""
    exported.execute("BEGIN")
    yield exported
    exported.execute("ROLLBACK")


def test_four_hundred_computed_invoices_break_no_rule(exported: duckdb.DuckDBPyConnection):
    assert broken_rules(exported, RUN) == []


MONEY = [(table, field.name) for table, schema in TABLES.items() for field in schema if pa.types.is_decimal(field.type)]


@pytest.mark.parametrize(("table", "column"), MONEY, ids=lambda value: value)
def test_one_minor_unit_or_digit_anywhere_breaks_a_rule(damaged: duckdb.DuckDBPyConnection, table: str, column: str):
    """Every decimal column of every table is held by some rule, in every document that has a value there."""
    unused = "" if column == "prepaid" else f"WHERE {column} <> 0"
    (document,) = damaged.execute(f"SELECT min(document_id) FROM {table} {unused}").fetchone() or (None,)
    assert document is not None, f"no document has a {column}"
    more = "1000" if column in _SHARED else "1" if _is_number(column) else "10 ** -minor_units"
    damaged.execute(f"UPDATE {table} SET {column} = {column} + {more} WHERE document_id = ?", [document])
    assert {broken["document_id"] for broken in broken_rules(damaged, RUN)} == {document}


def _is_number(column: str) -> bool:
    return column in _NUMBERS or column.endswith(("_percent", "_rate"))


_SHARED = ("contract_total", "principal")
"""A minor unit of these may be lost in rounding the part that is billed."""

_NUMBERS = ("quantity", "unit_price", "rate", "factor", "meter_from", "meter_to", "included")


def test_a_fraction_below_the_minor_unit_breaks_a_rule(damaged: duckdb.DuckDBPyConnection):
    for column in ("net_total", "tax_total", "gross_total", "prepaid", "amount_due"):
        damaged.execute(f"UPDATE invoices SET {column} = {column} + 0.0001")
    assert len({broken["document_id"] for broken in broken_rules(damaged, RUN)}) == 400
    damaged.execute("UPDATE invoices SET prepaid = prepaid, gross_total = gross_total - 0.0001")
    assert "prepaid is in whole minor units" in {broken["rule"] for broken in broken_rules(damaged, RUN)}


@pytest.mark.parametrize("table", ["invoices", "line_items", "tax_lines"])
def test_a_missing_row_breaks_a_rule(damaged: duckdb.DuckDBPyConnection, table: str):
    damaged.execute(f"DELETE FROM {table} WHERE document_id = 'd3'")
    assert {broken["document_id"] for broken in broken_rules(damaged, RUN)} == {"d3"}


@pytest.mark.parametrize("table", ["invoices", "line_items", "tax_lines"])
def test_a_doubled_row_breaks_a_rule(damaged: duckdb.DuckDBPyConnection, table: str):
    damaged.execute(f"INSERT INTO {table} SELECT * FROM {table} WHERE document_id = 'd4' LIMIT 1")
    assert {broken["document_id"] for broken in broken_rules(damaged, RUN)} == {"d4"}


def test_another_run_in_the_same_tables_is_not_looked_at(damaged: duckdb.DuckDBPyConnection):
    damaged.execute("INSERT INTO invoices SELECT * REPLACE ('r2' AS run_id, 0 AS gross_total) FROM invoices")
    assert broken_rules(damaged, RUN) == []


CASES = {
    "case 1, three times 10.10 at 15 %": (
        [Sale(None, "", None, Decimal(1), "", "C62", Decimal("10.10"), Tax("S", Decimal(15), ""))] * 3,
        2,
        None,
        "34.85",
    ),
    "case 3, a line discount": (
        [
            Sale(
                *(None, "", None, Decimal(16), "", "C62", Decimal("348.35"), Tax("S", Decimal(22), "")),
                discount_percent=Decimal(4),
            )
        ],
        2,
        None,
        "6527.81",
    ),
    "case 4, yen with a sub-yen price": (
        [Sale(None, "", None, Decimal(1235), "", "C62", Decimal("4.5"), Tax("S", Decimal(10), ""))],
        0,
        None,
        "6114",
    ),
    "case 7, a discount over three rates": (
        [
            Sale(None, "", None, Decimal(1), "", "C62", Decimal("10.01"), Tax(category, Decimal(rate), ""))
            for category, rate in (("S", 20), ("AA", 5), ("Z", 0))
        ],
        2,
        Discount(amount=Decimal("1.00")),
        "31.44",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_worked_cases_hold_and_their_gross_is_the_only_right_one(case: str):
    sales, places, discount, gross = CASES[case]
    computed = compute(sales, places=places, policy=RoundingPolicy.PER_BUCKET, discount=discount)
    rows = tables({"d": (places, RoundingPolicy.PER_BUCKET, computed)})
    assert rows["invoices"][0]["gross_total"] == Decimal(gross)
    assert broken_rules(loaded(rows), RUN) == []
    for wrong in (Decimal(gross) + Decimal(1).scaleb(-places), Decimal(gross) - Decimal(1).scaleb(-places)):
        rows["invoices"][0]["gross_total"] = wrong
        assert broken_rules(loaded(rows), RUN)


def test_what_was_prepaid_is_not_due():
    places, policy, computed = drawn(1)
    totals = settle(computed.totals, Settlement(prepaid=Decimal(1)), 2)
    rows = tables({"d": (places, policy, Computation(computed.lines, computed.tax_lines, totals))})
    assert broken_rules(loaded(rows), RUN) == []
