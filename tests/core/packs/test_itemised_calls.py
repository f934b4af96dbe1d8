"""A telephone bill lists its services and then every call, in order of time, within what is asked for."""

from __future__ import annotations

from decimal import Decimal

import pytest

from docgen_core.packs.contract import RunView
from docgen_core.packs.invoice import itemisation, record
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.words import wordings
from docgen_core.runs.selection import Selection


@pytest.fixture
def bills(catalogue_of_a_telephone_company):
    def made(count, **wishes):
        catalogue = catalogue_of_a_telephone_company
        selection = Selection(layouts=("telecom",), **wishes)
        run = RunView("0badcafe", 3, selection, list(catalogue.company_ids()), catalogue)
        return [record.build(run, index) for index in range(count)]

    return made


@pytest.fixture
def catalogue_of_a_telephone_company(catalogue):
    class Telephone:
        version = catalogue.version

        def company_ids(self):
            return range(1, 4)

        def company(self, company_id):
            own = {"business_type": "energy_telecom", "niche": "business_telephony", "document_kind": "invoice"}
            return {**catalogue.company(company_id), **own, "billing_model": "subscription"}

        def rows(self, table, company_id):
            return catalogue.rows(table, company_id)

    return Telephone()


def calls(bill):
    return [line for line in bill.lines if line.unit_code == "MIN" and line.sku is None]


def test_calls_follow_the_services_in_order_of_time(bills):
    for bill in bills(6):
        listed = calls(bill)
        assert len(listed) >= 40
        assert list(bill.lines[-len(listed) :]) == listed
        times = [line.detail.split(" · ")[0] for line in listed]
        assert times == sorted(times)
        assert all(str(bill.service_from) <= time[:10] <= str(bill.service_to) for time in times)


def test_numbers_called_are_covered_and_durations_are_whole_steps(bills):
    for line in calls(bills(1)[0]):
        called = line.detail.split(" · ")[1]
        assert called.count("X") == 3 and called.rstrip().endswith("X")
        assert line.quantity % Decimal("0.1") == 0 < line.quantity


def test_as_many_lines_are_made_as_are_asked_for(bills):
    assert {len(bill.lines) for bill in bills(4, line_items=(300, 300))} == {300}


def test_calls_are_told_in_every_language_that_the_layout_is_written_in():
    assert set(itemisation.languages()) == set(LAYOUTS["telecom"].languages)
    assert all(wordings(language) for language in itemisation.languages())
