"""Impossible wishes are refused when a run is planned, each with its reason; possible ones are honoured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from docgen_core.errors import SelectionRefused
from docgen_core.packs.contract import CatalogueView, Row, RunView
from docgen_core.packs.invoice import PACK
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.record import Company
from docgen_core.runs.plan import serving
from docgen_core.runs.selection import Selection

Choose = Callable[..., list[int]]


@pytest.fixture(scope="module")
def rows(catalogue: CatalogueView) -> list[Row]:
    """Companies of three countries, some of them of a trade that never sent paper."""
    found = [catalogue.company(company) for company in catalogue.company_ids()]
    digital = {"business_type": "software_saas", "billing_model": "subscription", "document_kind": "invoice"}
    return [{**row, **digital, "founded_year": 2020} if row["company_id"] % 7 == 6 else row for row in found]


@pytest.fixture(scope="module")
def choose(rows: list[Row]) -> Choose:
    return lambda **selection: serving(PACK, Selection(**selection), iter(rows))


def test_a_layout_that_a_trade_never_sends_is_refused_naming_what_it_sends(choose: Choose, rows: list[Row]) -> None:
    bills = [{**row, "business_type": "energy_telecom"} for row in rows if row["document_kind"] == "invoice"]
    wish = Selection(layouts=("pad",), business_types=("energy_telecom",))
    with pytest.raises(SelectionRefused) as refused:
        serving(PACK, wish, iter(bills))
    for part in (
        "no company fits business type energy_telecom with layout pad",
        f"pad is sent by {', '.join(sorted(LAYOUTS['pad'].business_types))} only",
        "they send banner",
    ):
        assert part in str(refused.value)


def test_a_trade_of_later_years_is_not_dated_before_it_began(choose: Choose, rows: list[Row]) -> None:
    early = (date(2015, 1, 1), date(2015, 12, 31))
    with pytest.raises(
        SelectionRefused, match=r"since the first of them began to write on 2021-01-02; .*--anachronism"
    ):
        choose(business_types=("software_saas",), issued=early)
    young = {row["company_id"] for row in rows if Company.of(row).began > early[1]}
    assert young and set(choose(issued=early)) == {row["company_id"] for row in rows} - young
    assert set(choose(issued=early, anachronism=True)) >= young


def test_what_was_never_on_paper_is_not_scanned(choose: Choose, rows: list[Row]) -> None:
    digital = {row["company_id"] for row in rows if Company.of(row).born_digital}
    with pytest.raises(SelectionRefused, match=r"born digital, and nothing of theirs was ever on paper"):
        choose(business_types=("software_saas",), conditions={"light_scan": 1})
    assert digital and not digital & set(choose(conditions={"light_scan": 1}))
    assert digital <= set(choose(conditions={"light_scan": 1}, anachronism=True))
    assert digital <= set(choose(conditions={"light_scan": 3, "clean": 1}))
    mixed = Selection(conditions={"light_scan": 1000, "clean": 1})
    assert all(set(Company.of(rows[company]).conditions(mixed)) == {"clean"} for company in digital)


def test_more_lines_than_a_layout_holds_are_refused(choose: Choose) -> None:
    with pytest.raises(SelectionRefused, match=r"no layout holds 9999 lines of items: \w+ holds the most, \d+"):
        choose(line_items=(9_999, 10_000))
    with pytest.raises(SelectionRefused, match=r"no layout holds 100 lines of items: \w+ holds the most, \d\d$"):
        choose(line_items=(100, 120), layouts=("sidebar", "letter"))


@pytest.mark.parametrize("lines", [(2, 3), (12, 12), (30, 40)])
def test_lines_wished_for_decide_company_and_layout(run: RunView, lines: tuple[int, int]) -> None:
    selection = Selection(line_items=lines)
    companies = serving(PACK, selection, (run.catalogue.company(company) for company in run.companies))
    wished = replace(run, selection=selection, companies=companies)
    found = [PACK.record(wished, index) for index in range(12)]
    assert all(lines[0] <= len(invoice.lines) <= lines[1] for invoice in found)
    assert all(LAYOUTS[invoice.layout].most_lines >= lines[0] for invoice in found)


@pytest.mark.parametrize(
    ("selection", "reason"),
    [
        ({"currencies": ("XAU",)}, "no currency 'XAU'; the invoice pack has"),
        ({"currencies": ("JPY",), "locales": ("de-DE",)}, "fit locale de-DE and not currency JPY, since they have EUR"),
        ({"tax_mix": {"Q": 1}}, "no tax category 'Q'; the invoice pack has AA, AE, E, G, K, O, S, Z"),
        ({"tax_mix": {"S": 0}}, "weights of tax categories are whole numbers"),
        ({"conditions": {"clean": 10**9}}, "whole numbers from 0 to 1000000"),
        ({"issued": (date(1890, 1, 1), date(2024, 1, 1)), "anachronism": True}, "documents are dated from 1950-01-01"),
        ({"line_items": (21, 25), "layouts": ("receipt",)}, "their layouts hold up to 20 lines"),
        ({"tax_mix": {"K": 1}, "jurisdictions": ("US",)}, "and not tax category K, since they can charge"),
        ({"credit_notes": 50, "layouts": ("receipt",)}, "a till takes back by a receipt of its own"),
        ({"locales": ("fr-FR",)}, "no company fits locale fr-FR; companies 0 to 59 were looked at: "),
        ({"company_ids": (3, 99)}, "no company 99 in the catalogue"),
        ({"company_ids": (3,), "locales": ("ja-JP",)}, "no company fits locale ja-JP"),
        ({"company_ids": (2, 3), "locales": ("ja-JP",)}, "company 3 does not fit the rest of the selection"),
        ({"company_count": 40, "locales": ("ja-JP",)}, "40 companies were asked for, and 20 fit"),
    ],
)
def test_a_wish_that_nobody_can_grant_says_why(choose: Choose, selection: dict[str, Any], reason: str) -> None:
    with pytest.raises(SelectionRefused) as refused:
        choose(**selection)
    assert reason in str(refused.value) and "\n" not in str(refused.value)


def test_named_companies_and_the_first_that_fit(choose: Choose) -> None:
    assert choose(company_ids=(3, 17)) == [3, 17]
    assert choose(company_count=4, jurisdictions=("JP",)) == [2, 5, 8, 11]
    assert choose(tax_mix={"K": 1}, jurisdictions=("DE", "US")) == choose(tax_mix={"K": 1}, jurisdictions=("DE",))
