"""Every layout prints what a document must say, exactly as the golden set holds it, and legibly."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from docgen_core.packs.invoice.layouts import LAYOUTS, render_page
from docgen_core.packs.invoice.tables import rows, value_of
from docgen_core.packs.invoice.words import words_for

PLAIN = [(layout, locale) for layout in LAYOUTS for locale in ("en-US", "ja-JP")]
EVERY_RICH = [(layout, locale) for layout in LAYOUTS for locale in ("de-DE", "ja-JP")]
RICH = {"lines": 9, "discounts": True, "graduated": True, "prepaid": "100"}

IN_EVERY_LAYOUT = {"number", "issue_date", "seller_name", "seller_address", "net_total", "gross_total", "payment_terms"}
ON_INVOICES = {"buyer_name", "buyer_address", "amount_due", "due_date"}
ON_EVERY_LINE = {"description", "quantity", "unit_price", "net_amount"}


@pytest.fixture(params=PLAIN, ids=lambda pair: "-".join(pair))
def plain(request, printed):
    layout, locale = request.param
    return printed(locale=locale, layout=layout)


@pytest.fixture(params=EVERY_RICH, ids=lambda pair: "-".join(pair))
def rich(request, printed):
    layout, locale = request.param
    return printed(locale=locale, layout=layout, seed=12, typeface="Docgen Serif", **RICH)


def missing(document, required):
    there = {(entry.table, entry.row_key, entry.column) for entry in document.page.prints}
    return [key for key in required if value_of(document.invoice, *key) and key not in there]


def required_cells(invoice):
    on_document = IN_EVERY_LAYOUT | ({"issue_time"} if invoice.kind == "receipt" else ON_INVOICES)
    yield from (("invoices", "1", column) for column in sorted(on_document))
    for line in invoice.lines:
        yield from (("line_items", str(line.number), column) for column in sorted(ON_EVERY_LINE))
    yield from (("tax_lines", str(tax.number), column) for tax in invoice.tax_lines for column in ("label", "tax"))


class TestWhatIsPrinted:
    def test_a_short_document_says_all_it_must(self, plain):
        assert missing(plain, required_cells(plain.invoice)) == []

    def test_a_document_with_discounts_tiers_and_a_payment_says_all_it_must(self, rich):
        required = [*required_cells(rich.invoice), ("invoices", "1", "document_discount"), ("invoices", "1", "prepaid")]
        assert missing(rich, required) == []

    def test_a_line_discount_is_printed_with_the_line(self, rich):
        discounted = [str(line.number) for line in rich.invoice.lines if line.discount_amount]
        shown = {entry.row_key for entry in rich.page.prints if entry.column in ("discount_percent", "discount_amount")}
        assert discounted
        assert shown >= set(discounted)
        assert not any(
            entry.column == "discount_amount" and entry.row_key not in discounted for entry in rich.page.prints
        )

    def test_printed_values_are_the_golden_cells(self, rich):
        golden = {(table, row["row_key"]): row for table, found in rows(rich.invoice).items() for row in found}
        for entry in rich.page.prints:
            cell = golden[entry.table, entry.row_key][entry.column]
            assert entry.value == value_of(rich.invoice, entry.table, entry.row_key, entry.column)
            assert str(cell) == entry.value or cell == type(cell)(entry.value)

    def test_each_place_is_marked_once(self, rich):
        places = [entry.href for entry in rich.page.prints]
        assert len(places) == len(set(places))

    def test_the_whole_payment_account_is_printed(self, plain):
        account = [("invoices", "1", column) for column in plain.invoice.payment.account_columns]
        assert missing(plain, account) == []
        assert account or plain.invoice.kind == "receipt"

    def test_an_empty_value_prints_no_label(self, plain):
        document = plain.invoice
        words = words_for(document.locale, document.identity.logo_seed)
        without = render_page(_without_facts(document))
        for name in ("order_number", "customer_number", "due_date", "service_period"):
            assert words[name] not in without.body
        shown = [words[name] in plain.page.body for name in ("order_number", "customer_number", "due_date")]
        assert any(shown) == (document.kind == "invoice")


def _without_facts(document):
    absent = dict.fromkeys(("due_date", "service_from", "service_to", "order_number", "customer_number"))
    return dataclasses.replace(document, **absent)


class TestLegibility:
    def test_every_box_is_within_its_page(self, rich):
        for box in rich.rendered.boxes:
            width, height = rich.rendered.page_sizes[box.page - 1]
            xs, ys = box.quad[0::2], box.quad[1::2]
            assert 0 <= min(xs) < max(xs) <= width
            assert 0 <= min(ys) < max(ys) <= height

    def test_no_value_of_a_short_document_stands_over_another(self, plain):
        assert collisions(plain) == []

    def test_no_value_of_a_rich_document_stands_over_another(self, rich):
        assert collisions(rich) == []

    def test_amounts_of_a_column_end_on_one_edge(self, rich):
        first = min(box.page for box in rich.boxes("net_amount"))
        amounts = [box for box in rich.boxes("net_amount") if box.page == first]
        edges = [box.quad[2] for box in amounts if not rich.invoice.lines[int(box.print.row_key) - 1].discount_amount]
        assert max(edges) - min(edges) <= (4 if rich.invoice.layout == "pad" else 1)  # a hand is not so even


def collisions(document):
    """Pairs of values that share ink's room: a fifth of a line above and below is leading, not ink."""

    def extent(box):
        left, top, right, _, _, bottom = box.quad[:6]
        leading = (top - bottom) / 5
        return left, bottom + leading, right, top - leading

    def meet(one, other):
        return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]

    return [
        (one.print.href, other.print.href)
        for one, other in itertools.combinations(document.rendered.boxes, 2)
        if one.page == other.page and one.print.href != other.print.href and meet(extent(one), extent(other))
    ]


class TestPage:
    def test_a_page_brings_all_it_needs(self, rich):
        for text in (rich.page.body, rich.page.style):
            assert "://" not in text
            assert "<script" not in text
            assert "url(" not in text

    def test_every_font_stack_has_the_face_that_draws_japanese(self, rich):
        stacks = [part.split(";")[0].split("}")[0] for part in rich.page.style.split("font-family:")[1:]]
        assert stacks
        assert all('"Docgen JP"' in stack for stack in stacks)

    def test_the_same_invoice_gives_the_same_page(self, rich):
        assert render_page(rich.invoice) == rich.page

    def test_what_the_margins_print_is_declared(self, rich):
        if rich.invoice.kind == "receipt":
            assert rich.page.running_text == ""
        else:
            last = rich.rendered.pages
            assert all(set(f"{n} {last}") - {" "} <= set(rich.page.running_text) for n in range(1, last + 1))
