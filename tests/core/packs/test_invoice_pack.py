"""The invoice pack as the core meets it: found by name, honest about what it can do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from docgen_core.errors import SelectionRefused, UsageError
from docgen_core.packs import load_pack
from docgen_core.packs.contract import CatalogueView, RunView
from docgen_core.packs.invoice import PACK
from docgen_core.packs.invoice.tables import TABLES
from docgen_core.runs.selection import CatalogueSpec, Selection

Eligible = Callable[..., list[int]]


@pytest.fixture
def eligible(catalogue: CatalogueView) -> Eligible:
    def choose(**selection: Any) -> list[int]:
        rows = (catalogue.company(company_id) for company_id in reversed(list(catalogue.company_ids())))
        return PACK.eligible(Selection(**selection), rows)

    return choose


def test_the_pack_is_found_by_its_entry_point() -> None:
    assert load_pack("invoice") is PACK


def test_an_unknown_pack_is_refused_by_naming_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"no pack 'letters'.*invoice"):
        load_pack("letters")


def test_reading_the_schema_does_not_load_layouts_or_languages() -> None:
    code = (
        "import sys, docgen_core.packs.invoice.tables, docgen_core.packs\n"
        "heavy = {'jinja2', 'cv2', 'playwright', 'duckdb', 'pandas'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_constraints_every_company_is_eligible_in_id_order(eligible: Eligible) -> None:
    assert eligible() == list(range(60))


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        ({"locales": ("de-DE",)}, lambda number: number % 3 == 0),
        ({"jurisdictions": ("JP", "US")}, lambda number: number % 3 > 0),
        ({"business_types": ("grocery_retail",)}, lambda number: number % 5 == 0),
        ({"companies": (10, 19)}, lambda number: 10 <= number <= 19),
        ({"layouts": ("receipt",)}, lambda number: number % 5 == 0 and number % 3 > 0),
        ({"layouts": ("receipt", "ledger"), "locales": ("de-DE",)}, lambda number: number % 3 == 0),
        ({"layouts": ("ledger",), "locales": ("ja-JP",)}, lambda number: number % 3 == 2),
    ],
)
def test_constraints_leave_the_companies_that_fit(
    eligible: Eligible, selection: dict[str, Any], fits: Callable[[int], bool]
) -> None:
    assert eligible(**selection) == [number for number in range(60) if fits(number)]


@pytest.mark.parametrize(
    ("selection", "named"),
    [
        ({"locales": ("xx-XX",)}, ["xx-XX", "de-DE", "en-US", "ja-JP"]),
        ({"locales": ("de_DE",)}, ["de_DE", "de-DE"]),
        ({"jurisdictions": ("XX",)}, ["XX", "DE", "JP", "US"]),
        ({"layouts": ("poster",)}, ["poster", "ledger", "receipt"]),
        ({"conditions": {"coffee": 1}}, ["coffee", "clean", "light_scan"]),
        ({"conditions": {}}, ["weights"]),
        ({"conditions": {"clean": 0}}, ["clean=0"]),
        ({"conditions": {"clean": -1, "light_scan": 2}}, ["clean=-1"]),
        ({"business_types": ("bakery",)}, ["bakery", "grocery_retail", "industrial_supplies"]),
        ({"companies": (500, 600)}, ["500 to 600", "companies 0 to 59"]),
        ({"companies": (20, 10)}, ["20 to 10"]),
        ({"locales": ("de-DE",), "jurisdictions": ("JP",)}, ["de-DE", "jurisdiction JP", "since they have DE"]),
        ({"layouts": ("receipt",), "locales": ("de-DE",)}, ["receipt", "not made in de-DE", "en-US", "ja-JP"]),
        ({"layouts": ("receipt",), "jurisdictions": ("DE",)}, ["receipt", "not made in de-DE"]),
        ({"layouts": ("receipt",), "business_types": ("industrial_supplies",)}, ["receipt", "industrial_supplies"]),
    ],
)
def test_what_cannot_be_honoured_is_refused_in_one_line_that_names_what_there_is(
    eligible: Eligible, selection: dict[str, Any], named: list[str]
) -> None:
    with pytest.raises(SelectionRefused) as refusal:
        eligible(**selection)
    message = str(refusal.value)
    assert "\n" not in message
    for part in named:
        assert part in message


def test_an_empty_catalogue_is_said_to_be_empty() -> None:
    with pytest.raises(SelectionRefused, match="no company: build one"):
        PACK.eligible(Selection(), iter(()))


def test_a_record_has_rows_for_every_table_and_a_page(run: RunView) -> None:
    invoice = PACK.record(run, 4)
    rows = PACK.to_rows(invoice)
    assert set(rows) == set(PACK.tables) == set(TABLES)
    page = PACK.html(invoice)
    assert page.lang == invoice.locale
    assert any(entry.column == "gross_total" for entry in page.prints)


def test_what_a_page_prints_are_cells_of_the_golden_rows(run: RunView) -> None:
    for index in range(40):
        invoice = PACK.record(run, index)
        keys = {(table, row["row_key"]): row for table, rows in PACK.to_rows(invoice).items() for row in rows}
        for entry in PACK.html(invoice).prints:
            assert entry.column in keys[entry.table, entry.row_key]


def test_records_are_made_from_the_packs_own_catalogue() -> None:
    spec = CatalogueSpec(companies=12, products=8, range_width=6)
    made = {company: PACK.catalogue_rows(spec, company) for company in range(spec.companies)}

    class Built:
        version = "built"

        def company_ids(self) -> list[int]:
            return list(made)

        def company(self, company_id: int) -> dict[str, Any]:
            return dict(made[company_id]["companies"][0])

        def rows(self, table: str, company_id: int) -> Any:
            return made[company_id].get(table, [])

    view = Built()
    companies = PACK.eligible(Selection(), (view.company(company) for company in view.company_ids()))
    built = RunView("cafe0001", 1, Selection(), companies, view)
    for index in range(60):
        invoice = PACK.record(built, index)
        skus = {row["sku"] for row in made[invoice.company_id]["products"]}
        assert {line.sku for line in invoice.lines if line.sku} <= skus
