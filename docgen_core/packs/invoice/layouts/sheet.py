"""What a template sees of an invoice: its golden cells, ready to print, and its words.

A cell is printed by calling its row with a column: `inv("gross_total")`. Text and golden value
are read from the same declared column, so what is printed and what is golden cannot part.
Empty cells give empty markup, and templates print no label for those.

What does not belong here: where things stand (templates), the table of lines (items.py).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, cast

from markupsafe import Markup

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice import tables
from docgen_core.packs.invoice.model import Invoice
from docgen_core.packs.invoice.words import words_for
from docgen_core.render.html import PrintLog

PRICES = frozenset({"unit_price"})
QUANTITIES = frozenset({"quantity", "factor", "meter_from", "meter_to", "included"})
PERCENTS = frozenset(
    {
        "discount_percent", "document_discount_percent", "document_charge_percent", "withholding_percent",
        "tax_rate", "rate", "line_rate", "progress_percent", "previous_percent", "interest_rate",
    }
)  # fmt: skip
"""Columns of decimals that are not amounts of money."""

NOTHING = Markup("")
MINUS = Markup("−")
DELIVERING = "per_unit"
"""Billing model of those who sell goods; the others' documents are for services."""
PERFORMING = frozenset(
    {
        "architecture_office", "energy_telecom", "facility_services", "fitness_club", "it_services",
        "painting_drywall", "software_saas", "training_provider", "waste_disposal",
    }
)  # fmt: skip
"""Trades that hand nothing over, whatever they bill by the piece."""
REDUCED = "AA"
"""Tax category of a reduced rate."""

Labelled = tuple[str, Markup]


@dataclass(frozen=True, slots=True)
class Total:
    """A row of the totals."""

    css: str
    label: str
    note: Markup
    """What stands beside the label: a percentage, a base."""
    sign: str
    amount: Markup


CREDITS = frozenset({"credit_note", "corrective_invoice"})
"""Kinds of documents that take back; they have words of their own for some facts."""


def _words(invoice: Invoice) -> Mapping[str, str]:
    """The company's words; a document that takes back says `credit_number` where an invoice says `number`."""
    words = words_for(invoice.locale, invoice.identity.logo_seed)
    if invoice.kind not in CREDITS:
        return words
    own: dict[str, str] = {key.removeprefix("credit_"): words[key] for key in _CREDIT_WORDS}
    return ChainMap(own, cast("MutableMapping[str, str]", words))  # only read


_CREDIT_WORDS = frozenset({"credit_number", "credit_issue_date", "credit_amount_due", "credit_closing"})


class Cells:
    """One golden row. Calling it with a column prints that cell and marks its place."""

    __slots__ = ("_row", "_sheet", "_table", "row_key")

    def __init__(self, sheet: Sheet, table: str, row: Row) -> None:
        self._sheet, self._table, self._row = sheet, table, row
        self.row_key: str = row["row_key"]

    def __call__(self, column: str, form: str = "", wrap: Callable[[str], str] | None = None) -> Markup:
        """Print a cell.

        Args:
            column: Column of the row's table.
            form: `symbol` prints an amount with its currency.
            wrap: Breaks the text into lines, instead of the sheet's own way.
        """
        text = self._sheet.text(column, self._row[column], form, wrap)
        if not text:
            return NOTHING
        value = self._canonical(column)
        return self._sheet.log.show(self._table, self.row_key, column, text, value)

    def drawn(self, column: str, picture: Markup) -> Markup:
        """Print a cell as a picture that says its value, and mark its place."""
        return self._sheet.log.draw(self._table, self.row_key, column, picture, self._canonical(column))

    def _canonical(self, column: str) -> str:
        return tables.canonical(self._table, column, self._row[column], self._sheet.invoice.minor_units)

    def __getitem__(self, column: str) -> Any:
        """The golden value itself, for a template to decide by; never to print."""
        return self._row[column]

    def given(self, column: str) -> bool:
        """Whether the cell holds something worth a label: not empty, not zero."""
        return bool(self._row[column])


class Sheet:
    """An invoice on the way to its page. One per page; it owns the print log."""

    def __init__(self, invoice: Invoice, fold: Callable[[str], str] | None = None) -> None:
        """`fold` breaks texts into lines where a layout cannot leave it to the browser."""
        self.invoice = invoice
        self._fold = fold
        self.log = PrintLog()
        self.language = invoice.locale.split("-")[0]
        self.w = _words(invoice)
        self.habits = Draws("habits", invoice.identity.logo_seed)
        """Choices a company keeps from document to document."""
        golden = tables.rows(invoice)
        self.inv = Cells(self, "invoices", golden["invoices"][0])
        self.lines = [Cells(self, "line_items", row) for row in golden["line_items"]]
        self.taxes = [Cells(self, "tax_lines", row) for row in golden["tax_lines"]]
        self.codes = [Cells(self, "codes", row) for row in golden["codes"]]
        self.instalments = [Cells(self, "instalments", row) for row in golden["instalments"]]
        self._yen_suffix = self.language == "ja" and self.habits.chance("yen_suffix", 400)

    def text(self, column: str, value: object, form: str, wrap: Callable[[str], str] | None = None) -> str:
        """`value` as the column is printed; empty for a null."""
        locale = self.invoice.locale
        if value is None:
            return ""
        if isinstance(value, date):
            return locales.date_text(value, locale, self.invoice.identity.date_style)
        if not isinstance(value, Decimal):
            fold = wrap or self._fold
            return fold(str(value)) if fold else str(value)
        if column in PERCENTS:
            return locales.percent(value, locale)
        if column in QUANTITIES:
            return locales.number(value, locale)
        places = self.invoice.minor_units
        if column in PRICES:
            return locales.price(value, locale, places)
        if form != "symbol":
            return locales.amount(value, locale, places)
        if self._yen_suffix:
            return locales.amount(value, locale, places) + "円"
        return locales.money(value, self.invoice.currency, locale)

    def facts(self, *names: str) -> Iterator[Labelled]:
        """(label, value) of each named fact that the document has; `service` is a day or a period."""
        for name in names:
            if name == "service":
                yield from self._service()
            elif value := self.inv(name):
                yield self.w[name], value
            if name == "issue_date":
                yield from self.facts("original_number", "original_date")

    def _service(self) -> Iterator[Labelled]:
        invoice = self.invoice
        delivers = invoice.billing_model == DELIVERING and invoice.business_type not in PERFORMING
        what = "delivery" if delivers else "service"
        first, last = self.inv["service_from"], self.inv["service_to"]
        if first and last and first != last:
            between = Markup("{}").format(self.w["range"])
            yield self.w[f"{what}_period"], self.inv("service_from") + between + self.inv("service_to")
        elif first or last:
            yield self.w[f"{what}_date"], self.inv("service_from" if first else "service_to")

    def registrations(self, role: str) -> Iterator[Labelled]:
        """(label, value) of each tax or company number of the `seller` or `buyer`."""
        party = getattr(self.invoice, role)
        for entry in party.registrations if party else ():
            yield entry.label, self.inv(tables.registration_column(role, entry))

    def contacts(self, role: str) -> Iterator[Labelled]:
        """(label, value) of telephone, e-mail and web site."""
        for name in ("phone", "email", "website"):
            if value := self.inv(f"{role}_{name}"):
                yield self.w[name], value

    def account(self) -> Iterator[Labelled]:
        """(label, value) of what a payer needs to know of the bank account."""
        payment = self.invoice.payment
        for column, (label, _) in zip(payment.account_columns, payment.account, strict=True):
            yield label, self.inv(column)

    def totals(self, *, bases: bool = True, due: bool = True) -> Iterator[Total]:
        """The rows of the totals, from the lines' sum to the amount due and its instalments, without needless ones.

        Args:
            bases: Print each tax's base beside it, where there are several.
            due: Print the amount due, where it is not the gross total.
        """
        inv, w = self.inv, self.w
        extras = list(self._extras())
        if extras:
            yield Total("", w["lines_total"], NOTHING, "", inv("lines_total", "symbol"))
            yield from extras
        yield Total("net", w["net_total" if extras else "only_net_total"], NOTHING, "", inv("net_total", "symbol"))
        yield from self._tax_totals(bases=bases)
        yield Total("gross", w["gross_total"], NOTHING, "", inv("gross_total", "symbol"))
        yield from self._settlement()
        if due and self.settled:
            yield Total("due", w["amount_due"], NOTHING, "", inv("amount_due", "symbol"))
        for part in self.instalments:
            note = Markup("{} ").format(w["instalment_due"]) + part("due_date")
            label = f"{w['instalment']} {part.row_key}"
            yield Total("instalment", label, note, "", part("amount", "symbol"))

    @property
    def settled(self) -> bool:
        """Whether the amount due is not the gross total, so that the totals end with it."""
        columns = ("withholding", "tip", "rounding", "credit_used", "prepaid")
        return any(self.inv.given(column) for column in columns)

    def _extras(self) -> Iterator[Total]:
        """What is taken from and added to the lines' sum."""
        inv, w = self.inv, self.w
        if inv.given("document_discount"):
            percent = inv("document_discount_percent")
            yield Total("", w["document_discount"], percent, MINUS, inv("document_discount", "symbol"))
        if inv.given("document_charge"):
            percent = inv("document_charge_percent")
            yield Total("", inv("document_charge_label"), percent, "", inv("document_charge", "symbol"))
        if inv.given("shipping"):
            yield Total("", w["shipping"], NOTHING, "", inv("shipping", "symbol"))

    def _settlement(self) -> Iterator[Total]:
        """What stands between the gross total and the amount due."""
        inv, w = self.inv, self.w
        if inv.given("withholding"):
            percent = inv("withholding_percent")
            yield Total("", inv("withholding_label"), percent, MINUS, inv("withholding", "symbol"))
        if inv.given("tip"):
            yield Total("", w["tip"], NOTHING, "", inv("tip", "symbol"))
        if inv.given("rounding"):
            yield Total("", w["rounding"], NOTHING, "", inv("rounding", "symbol"))
        if inv.given("credit_used"):
            left = Markup("({} ").format(w["credit_left"]) + inv("credit_left", "symbol") + Markup(")")
            yield Total("prepaid", w["credit_used"], left, MINUS, inv("credit_used", "symbol"))
        if inv.given("prepaid"):
            yield Total("prepaid", w["prepaid"], NOTHING, MINUS, inv("prepaid", "symbol"))

    def _tax_totals(self, *, bases: bool) -> Iterator[Total]:
        several = len(self.taxes) > 1
        bases = bases and sum(tax["counted"] for tax in self.taxes) > 1
        for tax in self.taxes:
            plus = self.w["plus"] if tax["rate"] else ""
            label = Markup(" ").join(part for part in (plus, tax("label")) if part)
            note = Markup("{} ").format(self.w["tax_on"]) + tax("base") if several and bases else NOTHING
            yield Total("tax", label, note, "", tax("tax", "symbol"))
        if several:
            yield Total("", self.w["tax_total"], NOTHING, "", self.inv("tax_total", "symbol"))

    def reduced(self, cells: Cells, column: str) -> str:
        """The mark of a reduced rate (※ in Japan) beside the line or bucket that has one."""
        return self.w["reduced_mark"] if cells[column] == REDUCED else ""

    def tax_code(self, cells: Cells, category: str, rate: str) -> str:
        """The letter of a line's or bucket's tax, as tills print it; in Japan only the mark of a reduced rate."""
        if self.w["reduced_mark"]:
            return self.reduced(cells, category)
        buckets = [(tax["category"], tax["line_rate"]) for tax in self.taxes if tax["counted"]]
        key = cells[category], cells["line_rate" if rate == "rate" else rate]
        return chr(ord("A") + buckets.index(key))

    @staticmethod
    def one_line(text: str) -> str:
        """An address on one line, as above the window of an envelope."""
        return text.replace("\n", ", ")
