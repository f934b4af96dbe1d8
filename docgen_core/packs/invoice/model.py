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
    DEPOSIT = "deposit"
    """The refundable deposit on the bottles or crates of the item above it."""
    OVERAGE = "overage"
    """What goes beyond the number included in the item above it."""


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
class Basis:
    """What a line's amount follows from besides quantity and price. Nothing of it, on most lines.

    line_total = quantity × unit_price × factor × days / days_of, each only where it is given; or
    contract_total × progress_percent − contract_total × previous_percent, both rounded; or
    principal × interest_rate per cent × days / days_of.
    """

    factor: Decimal | None = None
    """Multiplier of a fee schedule."""
    fee_code: str | None = None
    """The schedule's number of the service."""
    days: int | None = None
    """Days of a period that are charged."""
    days_of: int | None = None
    """Days of the whole period that the price is for; days of an interest year."""
    meter_from: Decimal | None = None
    meter_to: Decimal | None = None
    """Readings; the quantity is their difference."""
    included: Decimal | None = None
    """How many the item above includes; the quantity is what goes beyond."""
    contract_total: Decimal | None = None
    progress_percent: Decimal | None = None
    """Of the contract, done by now."""
    previous_percent: Decimal | None = None
    """Of the contract, billed before."""
    principal: Decimal | None = None
    """The amount in arrears that interest is charged on."""
    interest_rate: Decimal | None = None
    """Per cent a year."""


QUANTITY_AND_PRICE = Basis()
"""A line that follows from these alone."""


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line."""

    number: int
    """From 1, in printed order; `row_key` is its decimal form."""
    kind: LineKind
    parent: int | None
    """Number of the line above that a band, a deposit or an overage belongs to."""
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
    """UNCL 5305: S standard, AA reduced, Z zero-rated, E exempt, AE reverse charge, K intra-Community
    supply, G export, O out of scope."""
    tax_rate: Decimal
    """Percent; of all taxes together, where there are several."""
    tax_amount: Decimal | None
    """Under the policy `per_line`; None under `per_bucket` and for what is not counted."""
    document_discount_share: Decimal | None = None
    """Under `per_line`, the part of the document discount that this line's tax is reduced by:
    tax_amount = (net_amount − document_discount_share + document_charge_share) × rate. None where
    `tax_amount` is."""
    document_charge_share: Decimal | None = None
    """Likewise, the part of shipping and charges that this line's tax is raised by."""
    pricing: str = "per_unit"
    """Billing model of the line."""
    basis: Basis = QUANTITY_AND_PRICE
    commodity_code: str | None = None
    """Harmonised System or services code, where it is printed: in exports, and in India."""


@dataclass(frozen=True, slots=True)
class TaxLine:
    """A tax on a bucket, which is one category and rate of the lines, in order of first appearance.

    A bucket has one tax, but for countries that print several on the same base (CGST and SGST).
    """

    number: int
    """From 1; `row_key` is its decimal form."""
    category: str
    rate: Decimal
    """Percent; of this tax alone."""
    label: str
    """As printed, e.g. `USt. 19 %`, `消費税 (10%対象)`, `State sales tax`."""
    line_total: Decimal
    """Sum of the bucket's counted net amounts."""
    discount_share: Decimal
    """This bucket's share of the document discount."""
    base: Decimal
    """line_total − discount_share + charge_share."""
    tax: Decimal
    reason: str | None = None
    """Why no tax is charged (categories E, AE, K, G and O need one), in the document's language; it
    also stands among the invoice's notes, so that it is printed."""
    charge_share: Decimal = Decimal(0)
    """This bucket's share of shipping and charges."""
    line_rate: Decimal | None = None
    """`tax_rate` of the bucket's lines, where it is not `rate`: where several taxes are on them."""
    counted: bool = True
    """Whether base and line_total count: those of a bucket's second tax do not."""

    @property
    def bucket(self) -> tuple[str, Decimal]:
        """Category and rate of the lines it is on."""
        return self.category, self.rate if self.line_rate is None else self.line_rate


@dataclass(frozen=True, slots=True)
class Totals:
    """What stands under the lines, from their sum to what is to be paid.

    net = lines − document discount + document charge + shipping; gross = net + tax;
    due = gross − withholding + tip + rounding − credit used − prepaid.
    """

    lines_total: Decimal
    document_discount_percent: Decimal | None
    document_discount: Decimal
    net_total: Decimal
    tax_total: Decimal
    gross_total: Decimal
    prepaid: Decimal
    amount_due: Decimal
    document_charge_label: str | None = None
    """What the charge is for, as printed."""
    document_charge_percent: Decimal | None = None
    """Of the lines' sum."""
    document_charge: Decimal = Decimal(0)
    shipping: Decimal = Decimal(0)
    withholding_label: str | None = None
    withholding_percent: Decimal | None = None
    """Of the net total."""
    withholding: Decimal = Decimal(0)
    """Tax that the buyer keeps back and pays for the seller."""
    tip: Decimal = Decimal(0)
    rounding: Decimal = Decimal(0)
    """What rounding to the smallest coin adds or takes."""
    credit_used: Decimal = Decimal(0)
    """Paid from a balance bought before."""
    credit_before: Decimal | None = None
    """That balance; None where there is none."""
    credit_left: Decimal | None = None
    """The balance after that; None where there is none."""


@dataclass(frozen=True, slots=True)
class Instalment:
    """A part of the amount due that is to be paid by a day of its own."""

    number: int
    """From 1; `row_key` is its decimal form."""
    due_date: date
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Original:
    """The document that a credit note or corrective invoice is about."""

    number: str
    issue_date: date


@dataclass(frozen=True, slots=True)
class Payment:
    """How the amount due is to be paid."""

    terms: str
    """As printed, e.g. `Zahlbar innerhalb von 30 Tagen ohne Abzug`."""
    method: str
    """`bank_transfer`, `paid` (a receipt), `cash` or `credit` (what the seller owes)."""
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
    """`invoice`, `receipt`, `credit_note` or `corrective_invoice`."""
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
    amount_sign: str = "positive"
    """Sign convention. `positive`: amounts are owed by the buyer, or on a credit note to the buyer.
    `negative`: a credit note whose quantities and amounts are below zero. `mixed`: a corrective
    invoice, whose lines take back what was billed and bill what is right."""
    original: Original | None = None
    """What is credited or corrected; None on every other document."""
    instalments: tuple[Instalment, ...] = ()
    """In order of their days; they add up to the amount due. Empty: it is due at once."""

    @property
    def layout(self) -> str:
        """The layout of the seller's identity."""
        return self.identity.layout
