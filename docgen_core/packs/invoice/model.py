"""The invoice as data: what arithmetic builds, rows are read from, and layouts print.

Everything here is final and exact before a layout sees it; a layout formats, it never computes.
Amounts are Decimals with exactly the currency's minor units; prices, quantities and rates keep
the digits they have.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum


class LineKind(StrEnum):
    """What a printed line is. Only lines with `counted` add up to the totals."""

    ITEM = "item"
    TIER_PARENT = "tier_parent"
    """A graduated price: the sum of the bands printed under it."""
    TIER_BAND = "tier_band"


REGISTRATION_COLUMNS = {
    "VAT": "tax_id",
    "EIN": "tax_id",
    "T": "tax_id",
    "TAX": "tax_number",
    "STNR": "tax_number",
    "PERMIT": "tax_number",
    "REG": "register_number",
    "HR": "register_number",
    "CN": "register_number",
}
"""What a registration's scheme ends with → its golden column, after `seller_` or `buyer_`. New countries
use VAT (the number that tax is charged under), TAX (a second tax number) and REG (a company's number)."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A tax or company number as it is printed."""

    scheme: str
    """Country and kind, e.g. `DE:VAT`, `GB:REG`, `JP:T`, `US:EIN`."""
    label: str
    """In the document's language, e.g. `USt-IdNr.`."""
    value: str

    @property
    def column(self) -> str:
        """Its golden column, after `seller_` or `buyer_`."""
        return REGISTRATION_COLUMNS[self.scheme.split(":")[1]]


@dataclass(frozen=True, slots=True)
class Party:
    """A company. Invented: no natural person is ever named."""

    name: str
    address_lines: tuple[str, ...]
    """In the order and form of the country's post."""
    country: str
    """ISO 3166-1 alpha-2."""
    registrations: tuple[Registration, ...]
    phone: str
    email: str
    website: str


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line."""

    number: int
    """From 1, in printed order; `row_key` is its decimal form."""
    kind: LineKind
    parent: int | None
    """Number of the TIER_PARENT that a TIER_BAND belongs to."""
    counted: bool
    """Whether `net_amount` counts towards the totals (a parent's bands do not)."""
    sku: str | None
    description: str
    detail: str | None
    """Second line of small print: a service period, a band's limits."""
    quantity: Decimal | None
    unit: str | None
    """As printed, in the document's language."""
    unit_code: str | None
    """UN/ECE Recommendation 20."""
    unit_price: Decimal | None
    line_total: Decimal
    """quantity × unit price, rounded to minor units, before the line discount."""
    discount_percent: Decimal | None
    discount_amount: Decimal
    """Not negative; zero where there is none."""
    net_amount: Decimal
    """line_total − discount_amount."""
    tax_category: str
    """UNCL 5305: S standard, AA reduced, Z zero-rated, E exempt, O out of scope, AE reverse charge."""
    tax_rate: Decimal
    """Percent."""
    tax_amount: Decimal | None
    """Under the policy `per_line`; None under `per_bucket` and for what is not counted."""
    document_discount_share: Decimal | None = None
    """Under `per_line`, the part of the document discount that this line's tax is reduced by:
    tax_amount = (net_amount − document_discount_share) × rate. None where `tax_amount` is."""


@dataclass(frozen=True, slots=True)
class TaxLine:
    """A tax bucket: one category and rate, in order of first appearance."""

    number: int
    """From 1; `row_key` is its decimal form."""
    category: str
    rate: Decimal
    label: str
    """As printed, e.g. `USt. 19 %`, `消費税 (10%対象)`, `State sales tax`."""
    line_total: Decimal
    """Sum of the bucket's counted net amounts."""
    discount_share: Decimal
    """This bucket's share of the document discount."""
    base: Decimal
    """line_total − discount_share."""
    tax: Decimal
    reason: str | None = None
    """Why no tax is charged (categories E, O and AE need one), in the document's language; it
    also stands among the invoice's notes, so that it is printed."""


@dataclass(frozen=True, slots=True)
class Totals:
    """gross = net + tax; net = lines − document discount; due = gross − prepaid."""

    lines_total: Decimal
    document_discount_percent: Decimal | None
    document_discount: Decimal
    net_total: Decimal
    tax_total: Decimal
    gross_total: Decimal
    prepaid: Decimal
    amount_due: Decimal


@dataclass(frozen=True, slots=True)
class Payment:
    """How the amount due is to be paid."""

    terms: str
    """As printed, e.g. `Zahlbar innerhalb von 30 Tagen ohne Abzug`."""
    method: str
    """`bank_transfer` or `paid` (a receipt)."""
    account: tuple[tuple[str, str], ...]
    """(label, value) pairs as printed: IBAN and BIC, routing and account number, 銀行 支店 口座."""
    account_columns: tuple[str, ...] = ()
    """For each pair of `account`, the column of the `invoices` table that holds its value."""


@dataclass(frozen=True, slots=True)
class Identity:
    """How a company's documents look; it keeps it from document to document."""

    layout: str
    typeface: str
    """A bundled family, by the renderer's name for it."""
    accent: str
    """CSS colour."""
    monogram: str
    logo_seed: int
    table_style: str
    date_style: str
    """Babel's `short`, `medium` or `long`, or an LDML pattern."""
    paper: str
    """`A4`, `Letter` or `receipt`."""


@dataclass(frozen=True, slots=True)
class Invoice:
    """One invoice, whole."""

    document_id: str
    index: int
    company_id: int
    catalogue_version: str
    kind: str
    """`invoice` or `receipt`."""
    number: str
    issue_date: date
    issue_time: str | None
    """`HH:MM` as a till prints it; None on an invoice."""
    due_date: date | None
    service_from: date | None
    service_to: date | None
    order_number: str | None
    customer_number: str | None
    currency: str
    minor_units: int
    locale: str
    jurisdiction: str
    """ISO 3166-1 alpha-2 of the seller."""
    business_type: str
    billing_model: str
    rounding_policy: str
    seller: Party
    buyer: Party | None
    """None on a till receipt."""
    lines: tuple[Line, ...]
    tax_lines: tuple[TaxLine, ...]
    totals: Totals
    payment: Payment
    notes: tuple[str, ...]
    """Mandatory mentions and friendly words, in the document's language."""
    identity: Identity
    condition: str

    @property
    def layout(self) -> str:
        """The layout of the seller's identity."""
        return self.identity.layout
