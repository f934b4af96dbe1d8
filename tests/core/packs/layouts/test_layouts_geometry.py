"""Layouts differ in where things stand, carry many pages, and end as long as their content."""

from __future__ import annotations

import itertools
import math

import pytest

from docgen_core.packs.invoice.layouts import LAYOUTS

POINTS_PER_MM = 72 / 25.4
ANCHORS = ("number", "seller_name", "description", "gross_total", "amount_due", "payment_terms")


def places(document):
    """Where each anchor first stands, as parts of the page's width and height."""
    found = {}
    for anchor in ANCHORS:
        boxes = document.boxes(anchor)
        if boxes:
            width, height = document.rendered.page_sizes[boxes[0].page - 1]
            found[anchor] = (boxes[0].quad[0] / width, 1 - boxes[0].quad[1] / height)
    return found


def reading_order(document):
    """Anchors from top to bottom, left to right."""
    return tuple(sorted(found := places(document), key=lambda anchor: (round(found[anchor][1], 2), found[anchor][0])))


def columns_of(document):
    """Columns of the lines that are printed."""
    return frozenset(entry.column for entry in document.page.prints if entry.table == "line_items")


class TestLayoutsDiffer:
    def test_there_are_fourteen(self):
        assert len(LAYOUTS) >= 14

    @pytest.mark.parametrize("locale", ["de-DE", "ja-JP"])
    def test_in_the_places_of_several_values(self, printed, locale):
        stand = {layout: places(printed(locale=locale, layout=layout)) for layout in LAYOUTS}
        alike = [
            (one, other)
            for one, other in itertools.combinations(LAYOUTS, 2)
            if sum(math.dist(stand[one][name], stand[other][name]) > 0.15 for name in stand[one] & stand[other].keys())
            < 2
        ]
        assert alike == []

    def test_in_columns_reading_order_or_place_of_the_totals_two_at_least(self, printed):
        documents = {layout: printed(locale="de-DE", layout=layout, discounts=True) for layout in LAYOUTS}
        alike = []
        for one, other in itertools.combinations(documents, 2):
            stand = [places(documents[each]) for each in (one, other)]
            differ = (
                columns_of(documents[one]) != columns_of(documents[other]),
                reading_order(documents[one]) != reading_order(documents[other]),
                documents[one].rendered.page_sizes[0] != documents[other].rendered.page_sizes[0],
                *(
                    math.dist(*(found[name] for found in stand)) > 0.1
                    for name in ("gross_total", "amount_due")
                    if all(name in found for found in stand)
                ),
            )
            if sum(differ) < 2:
                alike.append((one, other, differ))
        assert alike == []

    def test_in_reading_order(self, printed):
        orders = {reading_order(printed(locale="de-DE", layout=layout)) for layout in LAYOUTS}
        assert len(orders) >= 9

    def test_in_the_columns_of_the_table(self, printed):
        sets = {columns_of(printed(locale="de-DE", layout=layout, lines=9, discounts=True)) for layout in LAYOUTS}
        assert len(sets) >= 7


class TestReceipt:
    @pytest.mark.parametrize("locale", ["de-DE", "en-US", "ja-JP"])
    @pytest.mark.parametrize("lines", [1, 9, 70])
    def test_is_one_strip_as_long_as_its_content(self, printed, locale, lines):
        document = printed(locale=locale, layout="receipt", lines=lines, discounts=True)
        assert document.rendered.pages == 1
        ((width, _),) = document.rendered.page_sizes
        assert width == pytest.approx(80 * POINTS_PER_MM, abs=1)
        lowest = min(box.quad[5] for box in document.rendered.boxes)
        assert 5 <= lowest / POINTS_PER_MM <= 22  # the closing words stand below the last value

    def test_prints_quantity_and_price_below_the_description(self, printed):
        document = printed(locale="de-DE", layout="receipt")
        for line in document.invoice.lines:
            by_column = {
                box.print.column: box
                for box in document.rendered.boxes
                if box.print.row_key == str(line.number) and box.print.table == "line_items"
            }
            assert by_column["quantity"].quad[1] < by_column["description"].quad[5] + 1
            assert by_column["quantity"].quad[1] == pytest.approx(by_column["unit_price"].quad[1], abs=1)


class TestManyPages:
    LINES = 220

    @pytest.fixture
    def ledger(self, printed):
        return printed(locale="de-DE", layout="ledger", lines=self.LINES)

    def test_pages_are_counted_in_the_language_of_the_document(self, ledger, printed):
        texts = ledger.texts()
        assert len(texts) == ledger.rendered.pages >= 4
        assert all(f"Seite {n} von {len(texts)}" in text for n, text in enumerate(texts, start=1))
        assert "Page 1 of 1" in printed(locale="en-US", layout="ledger").texts()[0]
        assert "1 / 1 ページ" in printed(locale="ja-JP", layout="ledger").texts()[0]

    def test_the_table_head_stands_on_every_page(self, ledger):
        head = ledger.page.body.split("<thead>")[1].split("</th>")[2].rsplit(">", 1)[1]
        assert head
        assert all(head in text for text in ledger.texts())

    def test_rows_are_whole_and_in_order(self, ledger):
        pages = {}
        for box in ledger.rendered.boxes:
            if box.print.table == "line_items":
                pages.setdefault(int(box.print.row_key), set()).add(box.page)
        assert sorted(pages) == list(range(1, self.LINES + 1))
        assert all(len(found) == 1 for found in pages.values())
        in_order = [min(pages[number]) for number in sorted(pages)]
        assert in_order == sorted(in_order)

    def test_totals_stand_once_at_the_end(self, ledger):
        (total,) = ledger.boxes("gross_total")
        assert total.page == ledger.rendered.pages


PAGED = [layout for layout, info in LAYOUTS.items() if "receipt" not in info.kinds]


ENDS = [
    (layout, lines)
    for layout in PAGED
    for lines in (6, 9, 15, 24)
    if lines <= LAYOUTS[layout].most_lines and not LAYOUTS[layout].itemises_calls
]


TOTALS_FIRST = {"sidebar", "statement", "utility"}
FLOW = ("description", "gross_total", "payment_terms", "notes")
MOST_BLANK = 0.42
"""Of a page's height: a line with the totals, the margin, and the foot of a letter."""


class TestItemisation:
    def test_follows_a_page_of_totals_and_repeats_its_head(self, printed):
        document = printed(locale="de-DE", layout="telecom", lines=400)
        (total, *_) = document.boxes("gross_total")
        assert total.page == 1
        assert {box.page for box in document.boxes("net_amount")} == set(range(2, document.rendered.pages + 1))
        texts = document.texts()
        assert len(texts) >= 6
        head = document.page.body.split("<thead>")[1].split("</th>")[2].rsplit(">", 1)[1]
        assert all(head in text for text in texts[1:])


class TestEndOfDocument:
    @pytest.mark.parametrize(("layout", "lines"), ENDS)
    def test_totals_stand_with_the_last_line_and_no_page_before_the_last_is_left_half_blank(
        self, printed, layout, lines
    ):
        document = printed(locale="de-DE", layout=layout, lines=lines, discounts=lines % 2 == 0, seed=lines)
        last = document.rendered.pages
        page_of = {int(box.print.row_key): box.page for box in document.boxes("description")}
        end = page_of[lines]
        assert max(box.page for box in document.boxes("gross_total")) == (1 if layout in TOTALS_FIRST else end)
        assert set(page_of.values()) == set(range(1, end + 1)) and last <= end + 1
        for page in range(1, last):
            flow = [box for column in FLOW for box in document.boxes(column) if box.page == page]
            assert min(box.quad[5] for box in flow) < MOST_BLANK * document.rendered.page_sizes[page - 1][1]

    @pytest.mark.parametrize("layout", PAGED)
    def test_a_long_name_wraps_within_its_place(self, printed, layout):
        document = printed(locale="de-DE", layout=layout)
        buyer = [box for box in document.boxes("buyer_name") if box.print.occurrence == 0]
        assert "".join(box.text.replace(" ", "") for box in buyer) == document.invoice.buyer.name.replace(" ", "")
        width, _ = document.rendered.page_sizes[0]
        assert all(box.quad[2] <= width - 10 * POINTS_PER_MM for box in buyer)
