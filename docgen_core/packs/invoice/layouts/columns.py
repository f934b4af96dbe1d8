"""Which columns a document's table of lines has: the layout's set, less what no line fills."""

from __future__ import annotations

from dataclasses import dataclass

from docgen_core.packs.invoice.layouts.sheet import Sheet


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
}

_HEADS = {
    "line_number": "position",
    "quantity_unit": "quantity",
    "discount_percent": "discount",
    "discount_amount": "discount",
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
}  # fmt: skip
"""By layout, the orders that companies choose from. The receipt has no columns."""

_ONLY_WHERE_RATES_DIFFER = frozenset({"letter"})


def columns_for(sheet: Sheet) -> tuple[Column, ...]:
    """The columns of this document, in the order that its company keeps."""
    layout = sheet.invoice.layout
    order = sheet.habits.choice("column_order", _ORDERS[layout])
    return tuple(
        Column(name, sheet.w[_HEADS.get(name, name)], _CSS.get(name, "num"))
        for name in order
        if _filled(sheet, layout, name)
    )


def _filled(sheet: Sheet, layout: str, name: str) -> bool:
    if name in _ALWAYS:
        return True
    if name == "tax_rate":
        return layout not in _ONLY_WHERE_RATES_DIFFER or len(sheet.taxes) > 1
    if name in ("discount", "line_total"):
        return any(line.given("discount_amount") for line in sheet.lines)
    return any(line.given(name) for line in sheet.lines)
