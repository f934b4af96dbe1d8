"""From a run and an index to an invoice that reconciles.

Everything follows from the run's stream, its seed, the index and the catalogue's rows. Draws are
named, so that a new one shifts no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from docgen_core.draws import Draws
from docgen_core.money import minor_units, percent_of, rounded
from docgen_core.packs.contract import Row, RunView
from docgen_core.packs.invoice import identity, numbering
from docgen_core.packs.invoice.arithmetic import Computation, Discount, Sale, compute
from docgen_core.packs.invoice.billing import Offer, Setting, compose
from docgen_core.packs.invoice.calendar_days import till_issue_date, working_issue_date
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, Facts, Jurisdiction
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.model import Identity, Invoice, Payment
from docgen_core.packs.invoice.parties import Resident, customer_of, seller
from docgen_core.packs.invoice.reconcile import reconcile
from docgen_core.packs.invoice.settlement import Settlement, settle

INVOICE, RECEIPT = "invoice", "receipt"

_INVOICE_FROM_TILL_PER_MILLE = 120
"""Documents of a company with a till that are invoices all the same."""

_LINE_DISCOUNT_COMPANIES_PER_MILLE = 450
_DOCUMENT_DISCOUNT_COMPANIES_PER_MILLE = 350
_DOCUMENT_DISCOUNT_PER_MILLE = 250
_DISCOUNT_PERCENTS = tuple(Decimal(text) for text in ("1.5", "2", "2", "3", "3", "5", "5", "10"))
_DISCOUNT_AMOUNT_PER_CENT = (1, 8)
"""A discount given as an amount comes to about so many per cent of the lines."""

_PREPAID_PER_MILLE = 70
_PREPAID_PER_CENT = (20, 25, 30, 40, 50)


@dataclass(frozen=True, slots=True)
class Company:
    """A company of the catalogue: what its documents have in common."""

    company_id: int
    jurisdiction: Jurisdiction
    currency: str
    business_type: str
    billing_model: str
    document_kind: str
    size_class: str
    founded_year: int

    @classmethod
    def of(cls, row: Row) -> Company:
        """The company of a row of the catalogue's `companies` table."""
        return cls(
            company_id=row["company_id"],
            jurisdiction=JURISDICTIONS[row["jurisdiction"]].speaking(row["locale"]),
            currency=row["currency"],
            business_type=row["business_type"],
            billing_model=row["billing_model"],
            document_kind=row["document_kind"],
            size_class=row["size_class"],
            founded_year=row["founded_year"],
        )

    @property
    def draws(self) -> Draws:
        """The draws of what the company keeps from document to document."""
        return Draws("habits", self.jurisdiction.code, self.company_id)

    @property
    def resident(self) -> Resident:
        """The company as a party."""
        return seller(self.jurisdiction.code, self.company_id, self.business_type, self.jurisdiction.locale)

    def looks(self, layouts: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """By kind of document that the company sends, the layouts it may have, among `layouts` if any."""
        kinds = (RECEIPT, INVOICE) if self.document_kind == RECEIPT else (INVOICE,)
        fitting = {
            kind: identity.fitting_layouts(self.jurisdiction, kind, self.billing_model, self.business_type, layouts)
            for kind in kinds
        }
        return {kind: names for kind, names in fitting.items() if names}


@lru_cache(maxsize=4096)
def _identity(company: Company, kind: str, layouts: tuple[str, ...]) -> Identity:
    monogram = company.resident.name.monogram
    return identity.identity_of(company.jurisdiction, company.company_id, kind, layouts, monogram)


@lru_cache(maxsize=4096)
def _looks(company: Company, layouts: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    return company.looks(layouts)


def build(run: RunView, index: int) -> Invoice:
    """Document `index` of the run. Raises `RecordRefused` when it does not reconcile."""
    draws = run.draws(index)
    company = Company.of(run.catalogue.company(draws.choice("company", run.companies)))
    looks = _looks(company, run.selection.layouts)
    kind = _kind(looks, draws)
    look = _identity(company, kind, looks[kind])
    conditions = {name: run.selection.conditions[name] for name in sorted(run.selection.conditions)}
    invoice = _invoice(run, index, company, kind, look, draws.weighted("condition", conditions))
    reconcile(invoice)
    return invoice


def _kind(looks: Mapping[str, tuple[str, ...]], draws: Draws) -> str:
    if len(looks) == 1:
        return next(iter(looks))
    return INVOICE if draws.chance("invoice from till", _INVOICE_FROM_TILL_PER_MILLE) else RECEIPT


def _invoice(run: RunView, index: int, company: Company, kind: str, look: Identity, condition: str) -> Invoice:
    draws, habits, jurisdiction = run.draws(index), company.draws, company.jurisdiction
    home = company.resident
    buyer, relation = customer_of(home, company.company_id, company.size_class, draws)
    billed = kind == INVOICE
    issued = (
        working_issue_date(draws, company.founded_year, jurisdiction.holidays)
        if billed
        else till_issue_date(draws, company.founded_year, jurisdiction.closed)
    )
    order = compose(
        _offer(run, company),
        Setting(
            jurisdiction=jurisdiction,
            place=buyer.place if billed else home.place,
            kind=kind,
            billing_model=company.billing_model,
            issued=issued,
            most_lines=LAYOUTS[look.layout].most_lines,
        ),
        draws,
    )
    places = minor_units(company.currency)
    policy = jurisdiction.rounding(habits)
    result = _settle(_computed(order.sales, places, company, draws), kind, places, draws)
    terms = jurisdiction.terms(habits, issued)
    facts = Facts(kind, issued, order.service_from, order.service_to, result.tax_lines)
    return Invoice(
        document_id=f"{run.stream}-{index:07d}",
        index=index,
        company_id=company.company_id,
        catalogue_version=run.catalogue.version,
        kind=kind,
        number=numbering.document_number(habits, jurisdiction.customs.prefixes[kind], kind, issued, index),
        issue_date=issued,
        issue_time=None if billed else numbering.till_time(habits, index),
        due_date=terms.due if billed else None,
        service_from=order.service_from,
        service_to=order.service_to,
        order_number=numbering.order_number(relation, draws, issued) if billed else None,
        customer_number=numbering.customer_number(habits, relation) if billed else None,
        currency=company.currency,
        minor_units=places,
        locale=jurisdiction.locale,
        jurisdiction=jurisdiction.code,
        business_type=company.business_type,
        billing_model=company.billing_model,
        rounding_policy=policy.value,
        seller=home.party,
        buyer=buyer.party if billed else None,
        lines=result.lines,
        tax_lines=result.tax_lines,
        totals=result.totals,
        payment=_payment(company, terms.text) if billed else _paid(jurisdiction, draws),
        notes=_notes(jurisdiction, facts, habits),
        identity=look,
        condition=condition,
    )


def _offer(run: RunView, company: Company) -> Offer:
    tiers: dict[int, list[Row]] = {}
    for tier in sorted(run.catalogue.rows("price_tiers", company.company_id), key=lambda row: row["tier"]):
        tiers.setdefault(tier["product_id"], []).append(tier)
    products = run.catalogue.rows("products", company.company_id)
    return Offer(products, tiers, company.draws.chance("line discounts", _LINE_DISCOUNT_COMPANIES_PER_MILLE))


def _computed(sales: Sequence[Sale], places: int, company: Company, draws: Draws) -> Computation:
    habits = company.draws
    policy = company.jurisdiction.rounding(habits)
    plain = compute(sales, places=places, policy=policy)
    discounting = habits.chance("document discounts", _DOCUMENT_DISCOUNT_COMPANIES_PER_MILLE)
    if not (discounting and draws.chance("document discount", _DOCUMENT_DISCOUNT_PER_MILLE)):
        return plain
    discount = _discount(plain.totals.lines_total, places, draws)
    return compute(sales, places=places, policy=policy, discount=discount) if discount else plain


def _discount(lines_total: Decimal, places: int, draws: Draws) -> Discount | None:
    """A percentage, or a sum without small change."""
    if draws.chance("as a percentage", 700):
        return Discount(percent=draws.choice("discount percent", _DISCOUNT_PERCENTS))
    percent = draws.integer("discount size", *_DISCOUNT_AMOUNT_PER_CENT)
    amount = rounded(percent_of(lines_total, Decimal(percent)), 0)
    return Discount(amount=rounded(amount, places)) if 0 < amount <= lines_total else None


def _settle(result: Computation, kind: str, places: int, draws: Draws) -> Computation:
    """A receipt is paid whole; some invoices follow a payment in advance, without small change."""
    gross = result.totals.gross_total
    if kind == RECEIPT:
        settlement = Settlement(paid_whole=True)
    elif draws.chance("prepaid", _PREPAID_PER_MILLE):
        share = Decimal(draws.choice("prepaid share", _PREPAID_PER_CENT))
        settlement = Settlement(prepaid=min(rounded(percent_of(gross, share), 0), gross))
    else:
        return result
    return Computation(result.lines, result.tax_lines, settle(result.totals, settlement, places))


def _payment(company: Company, terms: str) -> Payment:
    account = company.jurisdiction.account(company.draws.under("account"), company.resident.party.name)
    return Payment(
        terms=terms,
        method="bank_transfer",
        account=tuple((label, value) for _, label, value in account),
        account_columns=tuple(column for column, _, _ in account),
    )


def _paid(jurisdiction: Jurisdiction, draws: Draws) -> Payment:
    return Payment(terms=jurisdiction.paid(draws), method="paid", account=())


def _notes(jurisdiction: Jurisdiction, facts: Facts, habits: Draws) -> tuple[str, ...]:
    closing = jurisdiction.closing(habits) if facts.kind == INVOICE else ""
    return (*jurisdiction.mentions(facts), *((closing,) if closing else ()))
