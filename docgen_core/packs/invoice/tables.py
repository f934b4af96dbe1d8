"""The invoice's golden tables: one declaration a column, from which all else follows.

A column is declared once, with its type, its description and the place in the invoice that it
is read from. Schemas, rows and the canonical text of a printed value (`value_of`) come from the
same declaration, so a box on the page and a cell of the golden set cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Any

import pyarrow as pa

from docgen_core.golden import DECIMAL, IDENTIFIER, KEY_FIELDS, column
from docgen_core.money import plain
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice.codes import Code, codes_of
from docgen_core.packs.invoice.declared import Column, Digits
from docgen_core.packs.invoice.model import Instalment, Invoice, Line, Party, Registration, TaxLine

INVOICE_ROW_KEY = "1"
"""The `invoices` table has one row a document; lines and buckets are keyed by their number."""


def registration_column(role: str, registration: Registration) -> str:
    """Column of the `invoices` table for a printed registration; `role` is `seller` or `buyer`."""
    return f"{role}_{registration.column}"


def _of(
    kind: pa.DataType, name: str, description: str, source: str | Callable[[Any], Any] = "", *, optional: bool = False
) -> Column:
    """A column that is no amount, read from the attribute path `source` (by default, its name)."""
    get = source if callable(source) else attrgetter(source or name)
    return Column(column(name, kind, description, nullable=optional), get)


def _text(name: str, description: str, source: str | Callable[[Any], Any] = "", *, optional: bool = False) -> Column:
    return _of(pa.string(), name, description, source, optional=optional)


def _number(
    name: str, digits: Digits, description: str, source: str | Callable[[Any], Any] = "", *, optional: bool = False
) -> Column:
    get = source if callable(source) else attrgetter(source or name)
    return Column(column(name, DECIMAL, description, nullable=optional), get, digits)


def _amount(name: str, description: str, source: str = "", *, optional: bool = False) -> Column:
    return _number(name, Digits.AMOUNT, description, source, optional=optional)


def _party(role: str, *, optional: bool) -> list[Column]:
    """The columns of the seller or the buyer; all are null where the document has no buyer."""

    def read(part: Callable[[Party], Any]) -> Callable[[Invoice], Any]:
        def get(invoice: Invoice) -> Any:
            party = getattr(invoice, role)
            return None if party is None else part(party)

        return get

    def registered(suffix: str) -> Callable[[Invoice], Any]:
        return read(lambda party: next((entry.value for entry in party.registrations if entry.column == suffix), None))

    def one(suffix: str, description: str, get: Callable[[Invoice], Any], *, empty: bool = False) -> Column:
        return _text(f"{role}_{suffix}", f"The {role}'s {description}.", get, optional=optional or empty)

    return [
        one("name", "name", read(lambda party: party.name)),
        one("address", "address as printed, lines set apart by newlines", read(lambda p: "\n".join(p.address_lines))),
        one("country", "country, ISO 3166-1 alpha-2", read(lambda party: party.country)),
        one("tax_id", "VAT number (USt-IdNr., EIN, 適格請求書発行事業者登録番号, …)", registered("tax_id"), empty=True),
        one("tax_number", "second tax number (Steuernummer, SIRET, …)", registered("tax_number"), empty=True),
        one("register_number", "company number (HRB, 法人番号, …)", registered("register_number"), empty=True),
        one("phone", "telephone number", read(lambda party: party.phone), empty=True),
        one("email", "e-mail address", read(lambda party: party.email), empty=True),
        one("website", "web site", read(lambda party: party.website), empty=True),
    ]


ACCOUNT_COLUMNS = {
    "bank_name": "Bank to pay to.",
    "bank_branch": "Branch of the bank.",
    "account_type": "Kind of account.",
    "account_holder": "Name the account is held under.",
    "iban": "IBAN, in groups of four as printed.",
    "bic": "BIC of the bank.",
    "routing_number": "Routing number, sort code, BSB, IFSC, institution and transit.",
    "account_number": "Account number.",
    "payment_key": "Random key of an instant payment (Pix).",
}
"""Columns that `Payment.account_columns` may name."""


def _account(name: str) -> Callable[[Invoice], str | None]:
    def get(invoice: Invoice) -> str | None:
        payment = invoice.payment
        named = zip(payment.account_columns, payment.account, strict=True)
        return next((value for key, (_, value) in named if key == name), None)

    return get


def _original(part: str) -> Callable[[Invoice], Any]:
    return lambda invoice: getattr(invoice.original, part, None)


_CURRENCY = _text("currency", "ISO 4217 code of the row's amounts.")
_MINOR_UNITS = _of(pa.int32(), "minor_units", "Decimal places of the currency's amounts.")

INVOICE_COLUMNS: tuple[Column, ...] = (
    _of(pa.int64(), "company_id", "Company of the catalogue that issued the document."),
    _text("jurisdiction", "The seller's country, ISO 3166-1 alpha-2."),
    _text("locale", "CLDR locale of the printed texts."),
    _CURRENCY,
    _MINOR_UNITS,
    _text("business_type", "What kind of business the seller is."),
    _text(
        "billing_model",
        "How the company mainly bills: flat, per_unit, hourly, subscription, …; a line's `pricing` says how it does.",
    ),
    _text("kind", "invoice, receipt, credit_note or corrective_invoice."),
    _text(
        "amount_sign",
        "positive; negative: a credit note with quantities and amounts below 0; mixed: lines take back and bill.",
    ),
    _text("rounding_policy", "Where tax is rounded: per_line or per_bucket."),
    _text("number", "Number of the document, unique for its seller."),
    _of(pa.date32(), "issue_date", "Date of the document."),
    _text("issue_time", "Time of the sale, HH:MM; receipts only.", optional=True),
    _of(pa.date32(), "due_date", "Day by which the amount due is to be paid.", optional=True),
    _of(pa.date32(), "service_from", "First day of delivery or service.", optional=True),
    _of(pa.date32(), "service_to", "Last day of delivery or service.", optional=True),
    _text("original_number", "Number of the document credited or corrected.", _original("number"), optional=True),
    _of(
        pa.date32(),
        "original_date",
        "Date of the document credited or corrected.",
        _original("issue_date"),
        optional=True,
    ),
    _text("order_number", "The buyer's order.", optional=True),
    _text("customer_number", "The buyer's number with the seller.", optional=True),
    *_party("seller", optional=False),
    *_party("buyer", optional=True),
    _text("payment_method", "bank_transfer, paid, cash, or credit (the seller owes it).", "payment.method"),
    _text("payment_terms", "Terms as printed.", "payment.terms"),
    *(_text(name, description, _account(name), optional=True) for name, description in ACCOUNT_COLUMNS.items()),
    _amount("lines_total", "Sum of the counted lines' net amounts.", "totals.lines_total"),
    _number(
        "document_discount_percent",
        Digits.NUMBER,
        "Discount on the whole document in per cent of lines_total, where it is given as such.",
        "totals.document_discount_percent",
        optional=True,
    ),
    _amount("document_discount", "Discount on the whole document; 0 where there is none.", "totals.document_discount"),
    _text(
        "document_charge_label",
        "What a charge on the whole document is for.",
        "totals.document_charge_label",
        optional=True,
    ),
    _number(
        "document_charge_percent",
        Digits.NUMBER,
        "Charge on the whole document in per cent of lines_total, where it is given as such.",
        "totals.document_charge_percent",
        optional=True,
    ),
    _amount("document_charge", "Charge on the whole document; 0 where there is none.", "totals.document_charge"),
    _amount("shipping", "Shipping; 0 where there is none.", "totals.shipping"),
    _amount("net_total", "lines_total − document_discount + document_charge + shipping.", "totals.net_total"),
    _amount("tax_total", "Sum of the buckets' taxes.", "totals.tax_total"),
    _amount("gross_total", "net_total + tax_total.", "totals.gross_total"),
    _text("withholding_label", "Tax that the buyer keeps back.", "totals.withholding_label", optional=True),
    _number(
        "withholding_percent", Digits.NUMBER, "In per cent of net_total.", "totals.withholding_percent", optional=True
    ),
    _amount("withholding", "What the buyer keeps back; 0 where it is nothing.", "totals.withholding"),
    _amount("tip", "Tip or gratuity, not taxed.", "totals.tip"),
    _amount("rounding", "What rounding to the smallest coin adds or takes.", "totals.rounding"),
    _amount("credit_used", "Paid from a balance bought before.", "totals.credit_used"),
    _amount("credit_before", "That balance.", "totals.credit_before", optional=True),
    _amount("credit_left", "The balance after that.", "totals.credit_left", optional=True),
    _amount("prepaid", "Paid in advance.", "totals.prepaid"),
    _amount("amount_due", "gross_total − withholding + tip + rounding − credit_used − prepaid.", "totals.amount_due"),
    _text("notes", "Mentions and notes as printed, set apart by newlines.", lambda invoice: "\n".join(invoice.notes)),
    _text("layout", "Layout the page is set in."),
)

LINE_COLUMNS: tuple[Column, ...] = (
    _of(pa.int32(), "line_number", "From 1, in printed order.", "number"),
    _text(
        "kind",
        "item, tier_parent, tier_band (a part of the parent above it), deposit or overage (of the item above it).",
        lambda line: line.kind.value,
    ),
    _of(pa.int32(), "parent", "line_number of what a tier_band, deposit or overage belongs to.", optional=True),
    _of(pa.bool_(), "counted", "Whether net_amount counts towards the totals; a tier_band's does not."),
    _text("sku", "The seller's item number.", optional=True),
    _text("commodity_code", "Harmonised System (HSN) or services (SAC) code, where it is printed.", optional=True),
    _text("description", "What was sold, as printed."),
    _text("detail", "Second line of small print.", optional=True),
    _number("quantity", Digits.NUMBER, "Quantity.", optional=True),
    _text("unit", "Unit as printed.", optional=True),
    _text("unit_code", "Unit, UN/ECE Recommendation 20.", optional=True),
    _number("unit_price", Digits.PRICE, "Price of one unit; none for a graduated price.", optional=True),
    _text(
        "pricing",
        "Billing model of the line: flat, per_unit, hourly, subscription, seats, metered, graduated, volume, "
        "milestone, fee_schedule, interest.",
    ),
    _number("factor", Digits.NUMBER, "Multiplier of a fee schedule.", "basis.factor", optional=True),
    _text("fee_code", "The fee schedule's number of the service.", "basis.fee_code", optional=True),
    _of(pa.int32(), "days", "Days of a period that are charged.", "basis.days", optional=True),
    _of(pa.int32(), "days_of", "Days of the period that the price is for.", "basis.days_of", optional=True),
    _number("meter_from", Digits.NUMBER, "First reading of a meter.", "basis.meter_from", optional=True),
    _number("meter_to", Digits.NUMBER, "Last reading of a meter.", "basis.meter_to", optional=True),
    _number("included", Digits.NUMBER, "How many the item above includes.", "basis.included", optional=True),
    _amount("contract_total", "Contract that a milestone is a share of.", "basis.contract_total", optional=True),
    _number(
        "progress_percent", Digits.NUMBER, "Of the contract, done by now.", "basis.progress_percent", optional=True
    ),
    _number(
        "previous_percent", Digits.NUMBER, "Of the contract, billed before.", "basis.previous_percent", optional=True
    ),
    _amount("principal", "Amount in arrears that interest is charged on.", "basis.principal", optional=True),
    _number("interest_rate", Digits.NUMBER, "Interest in per cent a year.", "basis.interest_rate", optional=True),
    _amount(
        "line_total",
        "quantity × unit_price × factor × days ÷ days_of (each where given), rounded half away from zero; a "
        "tier_parent's is its bands' sum; a milestone's contract_total × progress_percent − contract_total × "
        "previous_percent, each rounded; interest's principal × interest_rate × days ÷ days_of.",
    ),
    _number("discount_percent", Digits.NUMBER, "Line discount in per cent of line_total.", optional=True),
    _amount("discount_amount", "Line discount; 0 where there is none."),
    _amount("net_amount", "line_total − discount_amount."),
    _text("tax_category", "UNCL 5305: S, AA, Z, E, AE, K, G or O."),
    _number("tax_rate", Digits.NUMBER, "Tax rate in per cent; of all taxes together."),
    _amount("tax_amount", "Rounded tax of the line, under per_line.", optional=True),
    _amount(
        "document_discount_share",
        "Under per_line: tax_amount = (net_amount − document_discount_share + document_charge_share) × tax_rate.",
        optional=True,
    ),
    _amount("document_charge_share", "Under per_line: the line's part of shipping and charges.", optional=True),
)

TAX_COLUMNS: tuple[Column, ...] = (
    _text("category", "UNCL 5305: S, AA, Z, E, AE, K, G or O."),
    _number("rate", Digits.NUMBER, "Rate of this tax in per cent."),
    _number(
        "line_rate",
        Digits.NUMBER,
        "tax_rate of the lines it is on: more than rate, where several taxes are.",
        lambda tax: tax.bucket[1],
    ),
    _of(pa.bool_(), "counted", "Whether base counts towards net_total; that of a second tax on it does not."),
    _text("label", "Name of the tax as printed."),
    _amount("line_total", "Sum of the counted lines' net amounts in this category and rate."),
    _amount("discount_share", "The bucket's share of the document discount."),
    _amount("charge_share", "The bucket's share of shipping and charges."),
    _amount("base", "line_total − discount_share + charge_share."),
    _amount("tax", "Tax, rounded as the invoice's rounding_policy says."),
    _text("reason", "Why no tax is charged, as printed.", optional=True),
)

INSTALMENT_COLUMNS: tuple[Column, ...] = (
    _of(pa.int32(), "instalment", "From 1, in order of the days.", "number"),
    _of(pa.date32(), "due_date", "Day by which it is to be paid."),
    _amount("amount", "What is to be paid; all of a document add up to its amount_due."),
)


_IDENTIFIERS = re.compile(
    r"number|(order|original|customer|account|routing)_number|sku|iban|bic|.*_(tax_id|tax_number|register_number|phone)"
)
"""Columns whose values are compared by letters and digits alone when an extractor is scored."""


CODE_COLUMNS: tuple[Column, ...] = (
    _text("symbology", "code_128, ean_13 or qr."),
    _text("purpose", "number, article, amount, or credit_transfer (EPC069-12)."),
    _text("text", "What a reader decodes."),
    _of(pa.int32(), "line_number", "The line whose article it names.", optional=True),
)


def _schema(columns: Sequence[Column], *more: Column) -> pa.Schema:
    return pa.schema([*KEY_FIELDS, *(_marked(entry.field) for entry in (*columns, *more))])


def _marked(declared: pa.Field) -> pa.Field:
    if not (pa.types.is_string(declared.type) and _IDENTIFIERS.fullmatch(declared.name)):
        return declared
    return declared.with_metadata({**declared.metadata, b"holds": IDENTIFIER})


TABLES: dict[str, pa.Schema] = {
    "invoices": _schema(INVOICE_COLUMNS),
    "line_items": _schema(LINE_COLUMNS, _CURRENCY, _MINOR_UNITS),
    "tax_lines": _schema(TAX_COLUMNS, _CURRENCY, _MINOR_UNITS),
    "instalments": _schema(INSTALMENT_COLUMNS, _CURRENCY, _MINOR_UNITS),
    "codes": _schema(CODE_COLUMNS),
}

_BY_NAME: dict[str, dict[str, Column]] = {
    table: {entry.field.name: entry for entry in columns}
    for table, columns in (
        ("invoices", INVOICE_COLUMNS),
        ("line_items", LINE_COLUMNS),
        ("tax_lines", TAX_COLUMNS),
        ("instalments", INSTALMENT_COLUMNS),
        ("codes", CODE_COLUMNS),
    )
}


def rows(invoice: Invoice) -> dict[str, list[Row]]:
    """Golden rows of the invoice, in printed order, without `run_id`, which the core sets."""
    money = {"currency": invoice.currency, "minor_units": invoice.minor_units}
    return {
        "invoices": [_row(invoice, INVOICE_ROW_KEY, "invoices", invoice)],
        "line_items": [_row(invoice, str(line.number), "line_items", line) | money for line in invoice.lines],
        "tax_lines": [_row(invoice, str(tax.number), "tax_lines", tax) | money for tax in invoice.tax_lines],
        "instalments": [_row(invoice, str(part.number), "instalments", part) | money for part in invoice.instalments],
        "codes": [_row(invoice, str(code.number), "codes", code) for code in codes_of(invoice)],
    }


def value_of(invoice: Invoice, table: str, row_key: str, column: str) -> str:
    """Canonical text of one golden cell, for the print log; empty where the cell is null.

    Raises `KeyError` for a table, row or column that there is not: a layout's mistake.
    """
    return canonical(table, column, _BY_NAME[table][column].get(_source(invoice, table, row_key)), invoice.minor_units)


def canonical(table: str, column: str, value: Any, minor_units: int) -> str:
    """A cell's value as text: decimals without exponent or needless zeros, ISO dates, text as it is."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return plain(value, 0 if _BY_NAME[table][column].digits is Digits.NUMBER else minor_units)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _row(invoice: Invoice, row_key: str, table: str, source: Any) -> Row:
    return {
        "document_id": invoice.document_id,
        "catalogue_version": invoice.catalogue_version,
        "row_key": row_key,
        **{name: entry.get(source) for name, entry in _BY_NAME[table].items()},
    }


def _source(invoice: Invoice, table: str, row_key: str) -> Invoice | Line | TaxLine | Instalment | Code:
    """What a row is read from. Lines, taxes, instalments and codes are numbered by their position, from 1."""
    if table == "invoices":
        if row_key != INVOICE_ROW_KEY:
            raise KeyError(row_key)
        return invoice
    numbered: Mapping[str, Sequence[Line | TaxLine | Instalment | Code]] = {
        "line_items": invoice.lines,
        "tax_lines": invoice.tax_lines,
        "instalments": invoice.instalments,
        "codes": codes_of(invoice) if table == "codes" else (),
    }
    number = int(row_key)
    if not 1 <= number <= len(numbered[table]):
        raise KeyError(row_key)
    return numbered[table][number - 1]
