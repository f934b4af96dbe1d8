"""The table of lines: which columns it has, and what each prints of a line.

Its rows are laid here and not in a template: a document has ten times as many of these cells as
of all others, and a template's loop over them costs as much as the rest of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from docgen_core.packs.invoice.layouts.sheet import MINUS, NOTHING, Cells, Sheet
from docgen_core.packs.invoice.model import LineKind


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the printed table."""

    name: str
    """Column of `line_items`; or `discount`, which prints a percentage or else an amount; or
    `quantity_unit`, which prints both."""
    head: str
    css: str


_ALWAYS = ("line_number", "description", "quantity", "quantity_unit", "unit_price", "net_amount")

_CSS = {
    "line_number": "pos",
    "sku": "sku",
    "description": "what",
    "unit": "unit",
    "tax_rate": "num",
    "net_amount": "num net",
    "detail": "when",
    "fee_code": "sku",
}

_HEADS = {
    "line_number": "position",
    "quantity_unit": "quantity",
    "discount_percent": "discount",
    "discount_amount": "discount",
    "detail": "call",
}

_ORDERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "letter": (
        ("line_number", "description", "quantity", "unit", "unit_price", "discount", "tax_rate", "net_amount"),
        ("line_number", "quantity", "unit", "description", "unit_price", "discount", "tax_rate", "net_amount"),
        ("line_number", "sku", "description", "quantity", "unit", "unit_price", "discount", "tax_rate", "net_amount"),
        ("quantity", "unit", "sku", "description", "tax_rate", "unit_price", "discount", "net_amount"),
    ),
    "ledger": (
        (
            "line_number", "sku", "description", "quantity", "unit", "unit_price",
            "line_total", "discount_percent", "discount_amount", "tax_rate", "net_amount",
        ),
        (
            "line_number", "sku", "description", "tax_rate", "unit_price", "quantity", "unit",
            "line_total", "discount_percent", "discount_amount", "net_amount",
        ),
    ),
    "sidebar": (("description", "quantity_unit", "unit_price", "discount", "net_amount"),),
    "boxed": (
        ("line_number", "description", "quantity", "unit", "unit_price", "discount", "net_amount", "tax_rate"),
        ("line_number", "sku", "description", "quantity", "unit", "unit_price", "discount", "net_amount", "tax_rate"),
        ("sku", "description", "unit_price", "quantity", "unit", "discount", "tax_rate", "net_amount"),
    ),
    "banner": (
        ("description", "unit_price", "quantity_unit", "discount", "net_amount"),
        ("quantity_unit", "description", "unit_price", "discount", "net_amount"),
    ),
    "bleed": (
        ("line_number", "description", "quantity", "unit_price", "net_amount"),
        ("description", "quantity", "unit", "unit_price", "net_amount"),
    ),
    "minimal": (("description", "net_amount"),),
    "statement": (
        ("line_number", "sku", "description", "tax_rate", "quantity_unit", "unit_price", "discount", "net_amount"),
        ("line_number", "description", "quantity_unit", "unit_price", "discount", "tax_rate", "net_amount"),
    ),
    "utility": (("description", "quantity", "unit", "unit_price", "net_amount", "tax_rate"),),
    "telecom": (("line_number", "detail", "description", "quantity_unit", "unit_price", "net_amount"),),
    "progress": (
        ("line_number", "description", "contract_total", "previous_percent", "progress_percent", "net_amount"),
        ("description", "contract_total", "progress_percent", "previous_percent", "tax_rate", "net_amount"),
    ),
    "medical": (
        ("fee_code", "sku", "description", "quantity", "unit", "factor", "unit_price", "net_amount"),
        ("sku", "fee_code", "quantity", "description", "factor", "unit_price", "discount", "net_amount"),
    ),
    "pad": (("quantity", "description", "unit_price", "net_amount"),),
}  # fmt: skip
"""By layout, the orders that companies choose from. The receipt has no columns."""

_ONLY_WHERE_RATES_DIFFER = frozenset({"letter"})

FORM_ROWS = 8
"""Rows of a pad or a Japanese form; those that no line fills are printed empty."""

_DETAIL = Markup('<div class="detail">{}</div>')
_QUANTITIES = frozenset({"quantity", "quantity_unit"})
TIMES = Markup(" × ")
_DISCOUNTS = frozenset({"discount", "discount_amount"})


class ItemTable:
    """The table of lines of one sheet, in the order of columns that its company keeps."""

    def __init__(self, sheet: Sheet, code: Callable[[Cells], Markup]) -> None:
        """`code` draws what is printed of a line's article as a bar code."""
        self._sheet, self._code = sheet, code
        self.lines = sheet.lines
        self.first, self.last = _parted(self.lines)
        """Lines that may end any page, and what stays with the totals: a line at least."""
        layout = sheet.invoice.layout
        order = sheet.habits.choice("column_order", _ORDERS[layout])
        self.columns = tuple(
            Column(name, _head(sheet.w, name, claim=layout == "progress"), _CSS.get(name, "num"))
            for name in order
            if _filled(sheet, layout, name)
        )
        self._shown = frozenset(column.name for column in self.columns)
        is_form = layout == "pad" or (layout == "boxed" and sheet.language == "ja")
        self.fillers = max(0, FORM_ROWS - len(sheet.lines)) if is_form else 0
        """Empty rows below the lines."""

    def entries(self, line: Cells) -> Iterator[tuple[Column, Markup]]:
        """What each column prints of a line, for a layout that sets its cells itself."""
        return ((column, self._entry(line, column.name)) for column in self.columns)

    def cells(self, line: Cells) -> Markup:
        """The `td` elements of a line, one a column."""
        return Markup(
            "".join(f'<td class="{column.css}">{self._entry(line, column.name)}</td>' for column in self.columns)
        )

    def _entry(self, line: Cells, column: str) -> Markup:
        if column == "description":
            small = self._small_print(line)
            mark = self._sheet.reduced(line, "tax_category")
            return line(column) + mark + (_DETAIL.format(small) if small else NOTHING) + self._code(line)
        if column == "quantity_unit":
            return _quantity(line)
        if column == "discount":
            return _discount(line)
        if column == "detail" and not self._told(line):
            return NOTHING
        if column == "discount_amount" and not line.given(column):
            return NOTHING
        return line(column)

    def _told(self, line: Cells) -> bool:
        """Whether columns already say what the detail says."""
        if "detail" in self._shown:
            return not line.given("sku")
        return "contract_total" in self._shown and line.given("contract_total")

    def _small_print(self, line: Cells) -> Markup:
        """What stands under a description: item number and discount where no column has them, and the detail."""
        words, parts = self._sheet.w, []
        if not self._shown & _QUANTITIES and line.given("quantity"):
            parts.append(_quantity(line) + (TIMES + line("unit_price") if line.given("unit_price") else NOTHING))
        if "sku" not in self._shown and line.given("sku"):
            parts.append(Markup("{} ").format(words["sku"]) + line("sku"))
        if line.given("commodity_code"):
            parts.append(Markup("{} ").format(words["commodity_code"]) + line("commodity_code"))
        if line.given("detail") and not self._told(line):
            parts.append(line("detail"))
        if not self._shown & _DISCOUNTS and line.given("discount_amount"):
            parts.append(Markup("{} ").format(words["discount"]) + _discount(line))
        return Markup(" · ").join(parts)


def _parted(lines: list[Cells]) -> tuple[list[Cells], list[Cells]]:
    """All but the last line, and that; a band is not parted from the price that it belongs to."""
    at = len(lines) - 1
    while lines[at]["kind"] == LineKind.TIER_BAND:
        at -= 1
    return lines[:at], lines[at:]


def _quantity(line: Cells) -> Markup:
    return Markup(" ").join(part for part in (line("quantity"), line("unit")) if part)


def _discount(line: Cells) -> Markup:
    if not line.given("discount_amount"):
        return NOTHING
    return line("discount_percent") or MINUS + line("discount_amount")


def _head(words: Mapping[str, str], name: str, *, claim: bool) -> str:
    head = words["this_claim" if claim and name == "net_amount" else _HEADS.get(name, name)]
    return f"{head} %" if name == "discount_percent" else head


def _filled(sheet: Sheet, layout: str, name: str) -> bool:
    if name in _ALWAYS:
        return True
    if name == "tax_rate":
        return layout not in _ONLY_WHERE_RATES_DIFFER or len(sheet.taxes) > 1
    if name in ("discount", "line_total"):
        return any(line.given("discount_amount") for line in sheet.lines)
    return any(line.given(name) for line in sheet.lines)
