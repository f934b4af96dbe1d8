"""An independent accountant: reads the exported tables by SQL and reckons every invoice anew, to the minor unit.

Amounts are whole minor units and rates are fractions here; nothing of the product's arithmetic is used. What a
column means is taken from its description in the exported file.
"""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

Row = dict[str, Any]
INVOICE_AMOUNTS = [
    "lines_total", "document_discount", "document_charge", "shipping", "net_total", "tax_total", "gross_total",
    "withholding", "tip", "rounding", "credit_used", "prepaid", "amount_due",
]  # fmt: skip
AMOUNTS = {
    "invoices": INVOICE_AMOUNTS,
    "line_items": (
        "line_total", "discount_amount", "net_amount", "tax_amount", "document_discount_share",
        "document_charge_share", "contract_total", "principal",
    ),
    "tax_lines": ("line_total", "discount_share", "charge_share", "base", "tax"),
    "instalments": ("amount",),
}  # fmt: skip
"""Columns in the currency's minor units; quantities, prices and rates may be finer."""


def half_up(number: Fraction) -> int:
    """To the nearest whole number, ties away from zero."""
    size = math.floor(abs(number) + Fraction(1, 2))
    return size if number >= 0 else -size


def shared(amount: int, weights: Sequence[int]) -> list[int]:
    """In proportion to the weights; what is left over goes, one each, to the largest remainders."""
    if not amount:
        return [0] * len(weights)
    if sum(weights) < 0:
        return [-part for part in shared(-amount, [-weight for weight in weights])]
    exact = [Fraction(amount * weight, sum(weights)) for weight in weights]
    parts = [int(part) for part in exact]
    for _, place in sorted((part - exact[place], place) for place, part in enumerate(parts))[: amount - sum(parts)]:
        parts[place] += 1
    return parts


def rows_of(golden: duckdb.DuckDBPyConnection, table: str) -> Iterator[Row]:
    """Rows with decimals as fractions and amounts in minor units; an amount with finer digits fails here."""
    found = golden.execute(f"select * from {table} order by document_id, row_key::integer")
    names = [column[0] for column in found.description or ()]
    for values in found.fetchall():
        row = {
            name: Fraction(value) if isinstance(value, Decimal) else value
            for name, value in zip(names, values, strict=True)
        }
        for name in AMOUNTS[table]:
            if row[name] is not None:
                minor = row[name] * 10 ** row["minor_units"]
                assert minor.denominator == 1, (table, name, row)
                row[name] = int(minor)
        yield row


class Books:
    """The tables of one export, rows by document."""

    def __init__(self, file: Path) -> None:
        with duckdb.connect(str(file), read_only=True) as golden:
            self.invoices = {row["document_id"]: row for row in rows_of(golden, "invoices")}
            self.lines, self.buckets, self.parts = defaultdict(list), defaultdict(list), defaultdict(list)
            for row in rows_of(golden, "line_items"):
                self.lines[row["document_id"]].append(row)
            for row in rows_of(golden, "tax_lines"):
                self.buckets[row["document_id"]].append(row)
            for row in rows_of(golden, "instalments"):
                self.parts[row["document_id"]].append(row["amount"])
            self.documents = {row[0] for row in golden.execute("select document_id from documents").fetchall()}

    def audit(self) -> list[str]:
        """What does not come out."""
        return [
            f"{document}: {name} is {found}, reckoned {expected}"
            for document, invoice in self.invoices.items()
            for name, expected, found in self.reckon(invoice, self.lines[document], self.buckets[document])
            if expected != found
        ]

    def reckon(self, invoice: Row, lines: list[Row], buckets: list[Row]) -> Iterator[tuple[str, object, object]]:
        """(name, as reckoned, as found) of every amount, from quantities, prices, percentages, rates and policy."""
        unit = 10 ** invoice["minor_units"]
        numbers = [line["line_number"] for line in lines]
        if numbers != list(range(1, len(lines) + 1)):
            yield "line numbers", "1 and so on", numbers
            return
        totals = self.line_totals(lines, unit)
        nets: dict[tuple[str, Fraction], dict[int, int]] = {}
        for line, line_total in zip(lines, totals, strict=True):
            place = f"line {line['line_number']} "
            discount = half_up(line_total * (line["discount_percent"] or Fraction(0)) / 100)
            yield place + "line_total", line_total, line["line_total"]
            yield place + "discount_amount", discount, line["discount_amount"]
            yield place + "net_amount", line_total - discount, line["net_amount"]
            yield place + "counted", line["kind"] != "tier_band", line["counted"]
            if line["kind"] != "tier_band":
                key = line["tax_category"], line["tax_rate"]
                nets.setdefault(key, {})[line["line_number"]] = line_total - discount
        sums = {key: sum(members.values()) for key, members in nets.items()}
        lines_total, percent = sum(sums.values()), invoice["document_discount_percent"]
        discount = invoice["document_discount"] if percent is None else half_up(lines_total * percent / 100)
        yield "document_discount", discount, invoice["document_discount"]
        charge, percent = invoice["document_charge"], invoice["document_charge_percent"]
        charge = charge if percent is None else half_up(lines_total * percent / 100)
        yield "document_charge", charge, invoice["document_charge"]
        added = charge + invoice["shipping"]
        bases = {key: dict(members) for key, members in nets.items()}
        parts = {}
        for sign, amount, name in ((-1, discount, "discount"), (1, added, "charge")):
            parts[name] = dict(zip(sums, shared(amount, list(sums.values())), strict=True))
            for key, members in nets.items():
                each = shared(parts[name][key], list(members.values()))
                for number, part in zip(members, each, strict=True):
                    bases[key][number] += sign * part
                    if invoice["rounding_policy"] == "per_line":
                        yield f"line {number} {name}", part, lines[number - 1][f"document_{name}_share"]
        yield from self.reckon_taxes(invoice, lines, buckets, sums, parts, bases)
        net, tax = lines_total - discount + added, sum(bucket["tax"] for bucket in buckets)
        yield "lines_total", lines_total, invoice["lines_total"]
        yield "net_total", net, invoice["net_total"]
        yield "tax_total", tax, invoice["tax_total"]
        yield "gross_total", net + tax, invoice["gross_total"]
        withheld = half_up(net * (invoice["withholding_percent"] or Fraction(0)) / 100)
        yield "withholding", withheld, invoice["withholding"]
        payable = net + tax - withheld + invoice["tip"] + invoice["rounding"]
        yield "amount_due", payable - invoice["credit_used"] - invoice["prepaid"], invoice["amount_due"]
        if parts := self.parts[invoice["document_id"]]:
            yield "instalments", sum(parts), invoice["amount_due"]

    def line_totals(self, lines: list[Row], unit: int) -> list[int]:
        """What each line comes to by its basis; of a graduated line, the sum of its bands."""
        totals = {line["line_number"]: self.worth(line, unit) for line in lines if line["kind"] != "tier_parent"}
        for line in lines:
            if line["kind"] == "tier_parent":
                bands = [band for band in lines if band["parent"] == line["line_number"]]
                assert sum(band["quantity"] for band in bands) == line["quantity"] and len(bands) > 0
                totals[line["line_number"]] = sum(totals[band["line_number"]] for band in bands)
        return [totals[line["line_number"]] for line in lines]

    def worth(self, line: Row, unit: int) -> int:
        """By a share of a contract, by interest on a principal, or by quantity and price."""
        if line["contract_total"] is not None:
            done, before = line["progress_percent"], line["previous_percent"]
            return half_up(line["contract_total"] * done / 100) - half_up(line["contract_total"] * before / 100)
        share = Fraction(line["days"], line["days_of"]) if line["days"] is not None else Fraction(1)
        if line["principal"] is not None:
            return half_up(line["principal"] * line["interest_rate"] / 100 * share)
        return half_up(line["quantity"] * line["unit_price"] * (line["factor"] or Fraction(1)) * share * unit)

    def reckon_taxes(
        self,
        invoice: Row,
        lines: list[Row],
        rows: list[Row],
        sums: dict[Any, int],
        parts: dict[str, dict[Any, int]],
        bases: dict[Any, dict[int, int]],
    ) -> Iterator[tuple[str, object, object]]:
        """A bucket for each category and rate; one or more taxes on each, rounded as the policy says."""
        found: dict[tuple[str, Fraction], list[Row]] = defaultdict(list)
        for row in rows:
            found[row["category"], row["line_rate"]].append(row)
        yield "buckets", set(sums), set(found)
        for key in sums.keys() & found.keys():
            base = sum(bases[key].values())
            yield f"bucket {key} rates", key[1], sum(row["rate"] for row in found[key])
            yield f"bucket {key} counted", [True] + [False] * (len(found[key]) - 1), [r["counted"] for r in found[key]]
            each = dict.fromkeys(bases[key], 0)
            for row in found[key]:
                place = f"bucket {key[0]} {float(row['rate'])} "
                yield place + "line_total", sums[key], row["line_total"]
                yield place + "discount_share", parts["discount"][key], row["discount_share"]
                yield place + "charge_share", parts["charge"][key], row["charge_share"]
                yield place + "base", base, row["base"]
                if invoice["rounding_policy"] == "per_line":
                    taxes = {number: half_up(amount * row["rate"] / 100) for number, amount in bases[key].items()}
                    each = {number: each[number] + taxes[number] for number in each}
                    yield place + "tax", sum(taxes.values()), row["tax"]
                else:
                    yield place + "tax", half_up(base * row["rate"] / 100), row["tax"]
            if invoice["rounding_policy"] == "per_line":
                for number, tax in each.items():
                    yield f"line {number} tax_amount", tax, lines[number - 1]["tax_amount"]


@pytest.fixture(scope="module")
def books(exported: Path) -> Books:
    return Books(exported)


def test_every_invoice_comes_out_to_the_minor_unit(books: Books) -> None:
    assert books.audit() == []


def test_every_rule_was_met(books: Books, order: Sequence[str]) -> None:
    """An audit of invoices in which nothing is discounted or graduated would prove little."""
    assert len(books.invoices) == len(books.documents) == int(order[order.index("--documents") + 1])
    invoices, lines = list(books.invoices.values()), [line for found in books.lines.values() for line in found]
    assert {invoice["minor_units"] for invoice in invoices} >= {0, 2}
    assert {invoice["rounding_policy"] for invoice in invoices if invoice["document_discount"]} == {
        "per_line",
        "per_bucket",
    }
    assert any(invoice["document_discount"] and len(books.buckets[key]) > 1 for key, invoice in books.invoices.items())
    assert any(invoice["prepaid"] for invoice in invoices)
    assert {line["kind"] for line in lines} >= {"item", "tier_parent", "tier_band"}
    assert any(line["discount_amount"] for line in lines)
    assert any(line["quantity"] is not None and line["quantity"].denominator > 1 for line in lines)
    assert all(invoice["amount_due"] >= 0 for invoice in invoices)


WRONG = {
    "a total": "update invoices set gross_total = gross_total + 0.01 where minor_units = 2",
    "a price": "update line_items set unit_price = unit_price + 1 where kind = 'item'",
    "a rate": "update tax_lines set rate = rate + 1 where rate > 0",
    "a policy": "update invoices set rounding_policy = 'per_line' where rounding_policy = 'per_bucket'",
    "a line that is gone": "delete from line_items where line_number = 1",
    "a yen": "update line_items set net_amount = net_amount - 1 where currency = 'JPY'",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_accountant_sees_what_is_wrong(exported: Path, tmp_path: Path, wrong: str) -> None:
    shutil.copy(exported, tmp_path / "golden.duckdb")
    with duckdb.connect(str(tmp_path / "golden.duckdb")) as golden:
        golden.execute(WRONG[wrong])
    assert Books(tmp_path / "golden.duckdb").audit()


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        (
            """select i.document_id from invoices i
               join (select document_id, sum(net_amount) filter (counted) as net from line_items group by all) l
               using (document_id) where l.net <> i.lines_total""",
            "lines and invoices",
        ),
        (
            """select i.document_id from invoices i
               join (select document_id, sum(base) filter (counted) as base, sum(tax) as tax,
                            sum(discount_share) filter (counted) as share
                     from tax_lines group by all) t using (document_id)
               where t.base <> i.net_total or t.tax <> i.tax_total or t.share <> i.document_discount""",
            "tax lines and invoices",
        ),
        (
            """select document_id from documents
               where document_id not in (select document_id from invoices)
                  or document_id not in (select document_id from line_items)
                  or document_id not in (select document_id from tax_lines)
                  or document_id not in (select document_id from field_boxes)""",
            "every document in every table",
        ),
        (
            """select b.document_id, b.row_key, b.column_name from field_boxes b
               left join (
                   select 'invoices' as table_name, document_id, row_key from invoices
                   union all select 'line_items', document_id, row_key from line_items
                   union all select 'tax_lines', document_id, row_key from tax_lines
                   union all select 'instalments', document_id, row_key from instalments
                   union all select 'codes', document_id, row_key from codes
                   union all select 'instalments', document_id, row_key from instalments
               ) r using (table_name, document_id, row_key) where r.row_key is null""",
            "every box and its row",
        ),
        (
            """select i.document_id from invoices i join field_boxes b using (document_id)
               where b.table_name = 'invoices' and b.column_name = 'gross_total'
                 and b.value::decimal(38, 9) <> i.gross_total""",
            "what is printed and what is due",
        ),
    ],
    ids=lambda text: text if len(text) < 40 else "",
)
def test_the_tables_agree(exported: Path, query: str, meaning: str) -> None:
    with duckdb.connect(str(exported), read_only=True) as golden:
        assert golden.execute(query).fetchall() == [], meaning
