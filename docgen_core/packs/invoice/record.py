"""From a run and an index to an invoice that reconciles.

Everything follows from the run's stream, its seed, the index and the catalogue's rows. Draws are
named, so that a new one shifts no other. What does not belong here: what is added to the lines and
how a document is paid (conditions.py), and which tax lies on it (taxation.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache

from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy, minor_units
from docgen_core.packs.contract import Row, RunView
from docgen_core.packs.invoice import conditions, identity, numbering
from docgen_core.packs.invoice.arithmetic import Computation, compute
from docgen_core.packs.invoice.billing import Offer, Order, Setting, bills_by_month, compose
from docgen_core.packs.invoice.calendar_days import first_issue, till_issue_date, working_day, working_issue_date
from docgen_core.packs.invoice.corrections import (
    CORRECTIVE,
    CREDIT_NOTE,
    MIXED,
    NEGATIVE,
    POSITIVE,
    can_be_taken_back,
    corrected,
    credited,
    taken_back,
)
from docgen_core.packs.invoice.itemisation import MOST_SERVICES, with_calls
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, Facts, Jurisdiction
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.model import Identity, Instalment, Invoice, Original, Payment
from docgen_core.packs.invoice.parties import Resident, customer_abroad, customer_of, numbered, seller
from docgen_core.packs.invoice.pricing import Ways
from docgen_core.packs.invoice.reconcile import reconcile
from docgen_core.packs.invoice.taxation import Deal, Treatment, categories, usual_deal, wanted_deal
from docgen_core.packs.invoice.unit_words import inflected
from docgen_core.runs.selection import AS_PRINTED, Selection

INVOICE, RECEIPT = "invoice", "receipt"

_INVOICE_FROM_TILL_PER_MILLE = 120
"""Documents of a company with a till that are invoices all the same."""

_LINE_DISCOUNT_COMPANIES_PER_MILLE = 450
_CORRECTIVE_PER_MILLE = 250
"""Of the documents that take back."""
_NEGATIVE_COMPANIES_PER_MILLE = 350
"""Companies whose credit notes have amounts below zero."""
_CREDITED_AFTER_DAYS = (4, 60)
TILL_LINES = 20
"""A till lists a product once, and a shop of the catalogue has not many more."""
_SENDERS_TRIED = 30
"""Companies drawn at most, until one has what is asked for."""

_DIGITAL_TRADES = frozenset(("software_saas",))
_DIGITAL_SINCE = 2012


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
    niche: str

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
            niche=row["niche"],
        )

    @property
    def draws(self) -> Draws:
        """The draws of what the company keeps from document to document."""
        return Draws("habits", self.jurisdiction.code, self.company_id)

    @property
    def resident(self) -> Resident:
        """The company as a party."""
        return seller(self.jurisdiction.code, self.company_id, self.business_type, self.jurisdiction.locale, self.niche)

    @property
    def began(self) -> date:
        """The first day that a document of its can have."""
        return first_issue(self.founded_year)

    @property
    def born_digital(self) -> bool:
        """Whether it never sent paper, so that nothing of its is ever scanned."""
        return self.business_type in _DIGITAL_TRADES and self.founded_year >= _DIGITAL_SINCE

    def conditions(self, selection: Selection) -> dict[str, int]:
        """The capture conditions that its documents may be in, of those wished for, with their weights."""
        on_paper = not self.born_digital or selection.anachronism
        wished = sorted(selection.conditions.items())
        return {name: weight for name, weight in wished if weight and (on_paper or name == AS_PRINTED)}

    def looks(self, layouts: Sequence[str], fewest_lines: int = 0) -> dict[str, tuple[str, ...]]:
        """By kind of document that the company sends, the layouts it may have, among `layouts` if any.

        With `fewest_lines`, only those that have room for so many lines of items.
        """
        kinds = (RECEIPT, INVOICE) if self.document_kind == RECEIPT else (INVOICE,)
        fitting = {
            kind: identity.fitting_layouts(
                self.jurisdiction, kind, self.billing_model, self.business_type, self.niche, layouts
            )
            for kind in kinds
        }
        roomy = {
            kind: tuple(name for name in names if LAYOUTS[name].most_lines >= fewest_lines)
            for kind, names in fitting.items()
            if kind != RECEIPT or fewest_lines <= TILL_LINES
        }
        return {kind: names for kind, names in roomy.items() if names}


@lru_cache(maxsize=4096)
def _identity(company: Company, kind: str, layouts: tuple[str, ...]) -> Identity:
    monogram = company.resident.name.monogram
    return identity.identity_of(company.jurisdiction, company.company_id, kind, layouts, monogram)


@lru_cache(maxsize=4096)
def _looks(company: Company, layouts: tuple[str, ...], fewest_lines: int) -> Mapping[str, tuple[str, ...]]:
    return company.looks(layouts, fewest_lines)


def build(run: RunView, index: int) -> Invoice:
    """Document `index` of the run. Raises `RecordRefused` when it does not reconcile."""
    draws, asked = run.draws(index), run.selection.line_items
    for company in _senders(run, draws):
        looks = _looks(company, run.selection.layouts, asked[0] if asked else 0)
        serving = {kind: names for kind, names in looks.items() if _can_serve(run, company, kind)}
        kind = _kind(serving or looks, draws)
        draft = _Draft(run, index, company, kind, _identity(company, kind, looks[kind]))
        if serving and draft.bears_what_is_asked:
            break
    invoice = draft.invoice(draws.weighted("condition", draft.company.conditions(run.selection)))
    reconcile(invoice)
    return invoice


def _senders(run: RunView, draws: Draws) -> Iterator[Company]:
    """The company; and those that are drawn in its place while one has not what is asked for.

    Its products and its buyer's town decide that; only its line of business is known when a run is planned.
    """
    for attempt in range(_SENDERS_TRIED):
        chosen = draws.under("another company", attempt) if attempt else draws
        yield Company.of(run.catalogue.company(chosen.choice("company", run.companies)))


def _can_serve(run: RunView, company: Company, kind: str) -> bool:
    """Whether such a document of the company can bear a tax, and a till has the products, that are asked for."""
    wanted, lines = {name for name, weight in run.selection.tax_mix.items() if weight}, run.selection.line_items
    if not (wanted or lines):
        return True
    products = run.catalogue.rows("products", company.company_id)
    if wanted and not wanted & categories(company.jurisdiction, products, billed=kind == INVOICE).keys():
        return False
    fewest = lines[0] if lines and kind == RECEIPT else 0
    listed = Counter(product["tax_category"] if wanted else "" for product in products)
    return all(count >= fewest for name, count in listed.items() if not wanted or name in wanted)


def _kind(looks: Mapping[str, tuple[str, ...]], draws: Draws) -> str:
    if len(looks) == 1:
        return next(iter(looks))
    return INVOICE if draws.chance("invoice from till", _INVOICE_FROM_TILL_PER_MILLE) else RECEIPT


@dataclass(frozen=True, slots=True)
class _Buyer:
    """Who is billed, and how the sale to them is taxed."""

    resident: Resident
    relation: Draws
    treatment: Treatment


class _Draft:
    """A document in the making: what all of its parts follow from."""

    def __init__(self, run: RunView, index: int, company: Company, paper: str, look: Identity) -> None:
        self.run, self.index, self.company, self.look = run, index, company, look
        self.draws, self.habits, self.jurisdiction = run.draws(index), company.draws, company.jurisdiction
        self.billed = paper == INVOICE
        self.paper = paper
        self.places = minor_units(company.currency)
        self.policy: RoundingPolicy = self.jurisdiction.rounding(self.habits)
        self.ways = Ways(self.jurisdiction, company.currency, company.business_type, company.billing_model, self.habits)
        self.products = run.catalogue.rows("products", company.company_id)
        self.issued = self._issue_date()

    @property
    def bears_what_is_asked(self) -> bool:
        """Whether its lines can bear a tax that is asked for, if one is."""
        if not self.run.selection.tax_mix:
            return True
        treatment = self._buyer().treatment.on(self._original_date() or self.issued)
        return treatment.deal != Deal() and any(treatment.lists(product) for product in self.products)

    def invoice(self, condition: str) -> Invoice:
        """The document, captured in `condition`."""
        run, company, habits, draws = self.run, self.company, self.habits, self.draws
        buyer = self._buyer()
        about = self._original_date()
        buyer = replace(buyer, treatment=buyer.treatment.on(about or self.issued))
        setting = self._setting(buyer.treatment, about or self.issued)
        if LAYOUTS[self.look.layout].itemises_calls:
            few = replace(setting, most_lines=MOST_SERVICES)
            order = with_calls(compose(self._offer(), few, draws), setting, draws)
        else:
            order = compose(self._offer(), setting, draws)
        kind, sign, result = self._computed(order, about, buyer)
        takes_back = kind in (CREDIT_NOTE, CORRECTIVE)
        terms = self.jurisdiction.terms(habits, self.issued)
        owed = self.billed and not takes_back and not conditions.pays_in_cash(result.totals)
        parts = conditions.in_parts(result.totals, terms.due, company.currency, draws) if owed else ()
        facts = Facts(kind, self.issued, order.service_from, order.service_to, result.tax_lines)
        return Invoice(
            document_id=f"{run.stream}-{self.index:07d}",
            index=self.index,
            company_id=company.company_id,
            catalogue_version=run.catalogue.version,
            kind=kind,
            number=self._number(CREDIT_NOTE if takes_back else self.paper, self.issued),
            issue_date=self.issued,
            issue_time=None if self.billed else numbering.till_time(habits, self.index),
            due_date=terms.due if owed else None,
            service_from=order.service_from,
            service_to=order.service_to,
            order_number=numbering.order_number(buyer.relation, draws, self.issued) if self.billed else None,
            customer_number=numbering.customer_number(habits, buyer.relation) if self.billed else None,
            currency=company.currency,
            minor_units=self.places,
            locale=self.jurisdiction.locale,
            jurisdiction=self.jurisdiction.code,
            business_type=company.business_type,
            billing_model=company.billing_model,
            rounding_policy=self.policy.value,
            seller=company.resident.party,
            buyer=buyer.resident.party if self.billed else None,
            lines=inflected(result.lines, self.jurisdiction.locale),
            tax_lines=result.tax_lines,
            totals=result.totals,
            payment=self._payment(kind, result, parts, terms.text),
            notes=self._notes(facts),
            identity=self.look,
            condition=condition,
            amount_sign=sign,
            original=Original(self._number(INVOICE, about), about) if takes_back and about is not None else None,
            instalments=parts,
        )

    @property
    def _sells_goods(self) -> bool:
        return any(product["hs_code"] is not None for product in self.products)

    def _issue_date(self) -> date:
        founded, window = self.company.founded_year, self.run.selection.issued
        if self.billed:
            return working_issue_date(self.draws, founded, self.jurisdiction.rest, window)
        return till_issue_date(self.draws, founded, self.jurisdiction.closed, window)

    def _buyer(self) -> _Buyer:
        """At a till, anybody who is there; else a company here or abroad."""
        company, home, draws = self.company, self.company.resident, self.draws
        mix = self.run.selection.tax_mix
        deal = Deal()
        if mix:
            deal = wanted_deal(self.jurisdiction, mix, self.products, draws, billed=self.billed)
        elif self.billed:
            deal = usual_deal(self.jurisdiction, company.business_type, self.habits, draws)
        if deal.country is not None:
            resident, relation = customer_abroad(
                home, company.company_id, deal.country, draws, self.jurisdiction.locale
            )
        else:
            resident, relation = customer_of(home, company.company_id, company.size_class, draws)
            resident = numbered(resident) if deal.category == "AE" else resident
        place = home.place if deal.country is not None or not self.billed else resident.place
        return _Buyer(resident, relation, Treatment(self.jurisdiction, home.place, place, deal))

    def _original_date(self) -> date | None:
        """The day of the invoice that is taken back, where this document is to take one back."""
        if not self.billed or not self.draws.chance("credit note", self.run.selection.credit_notes):
            return None
        before = self.issued - timedelta(days=self.draws.integer("credited after", *_CREDITED_AFTER_DAYS))
        return working_day(before, self.jurisdiction.rest)

    def _offer(self) -> Offer:
        tiers: dict[int, list[Row]] = {}
        rows = self.run.catalogue.rows("price_tiers", self.company.company_id)
        for tier in sorted(rows, key=lambda row: row["tier"]):
            tiers.setdefault(tier["product_id"], []).append(tier)
        discounts = self.habits.chance("line discounts", _LINE_DISCOUNT_COMPANIES_PER_MILLE)
        return Offer(self.products, tiers, discounts)

    def _setting(self, treatment: Treatment, issued: date) -> Setting:
        return Setting(
            treatment=treatment,
            ways=self.ways,
            kind=self.paper,
            issued=issued,
            most_lines=LAYOUTS[self.look.layout].most_lines,
            lines=self.run.selection.line_items,
            by_month=bills_by_month(self.company.billing_model, self.products),
        )

    def _computed(self, order: Order, about: date | None, buyer: _Buyer) -> tuple[str, str, Computation]:
        """Kind of the document, convention of its signs, and its amounts."""
        plain = can_be_taken_back(order.sales)
        lines, draws = self.run.selection.line_items, self.draws.under("taken back")
        if about is None or len(plain) < (lines[0] if lines else 1):
            return self.paper, POSITIVE, self._charged(order, buyer)
        sales = corrected(plain, self.jurisdiction.customs.billing, lines, draws)
        if sales and draws.chance("corrective", _CORRECTIVE_PER_MILLE):
            return CORRECTIVE, MIXED, compute(sales, places=self.places, policy=self.policy, mixed=True)
        result = compute(credited(plain, lines, draws), places=self.places, policy=self.policy)
        if self.habits.chance("negative credit notes", _NEGATIVE_COMPANIES_PER_MILLE):
            return CREDIT_NOTE, NEGATIVE, taken_back(result)
        return CREDIT_NOTE, POSITIVE, result

    def _charged(self, order: Order, buyer: _Buyer) -> Computation:
        plain = compute(order.sales, places=self.places, policy=self.policy)
        sales = order.sales
        if self.billed and self._has_room(plain):
            sales += conditions.arrears_of(plain.totals.lines_total, self.ways, self.draws)
        situation = conditions.Situation(
            ways=self.ways,
            business_type=self.company.business_type,
            form=self.company.resident.name.form,
            billed=self.billed,
            at_home=buyer.treatment.deal.country is None,
            goods=self._sells_goods,
            draws=self.draws,
        )
        if len(sales) > len(order.sales):
            plain = compute(sales, places=self.places, policy=self.policy)
        extras = conditions.extras(plain.totals.lines_total, situation)
        result = compute(sales, places=self.places, policy=self.policy, extras=extras) if extras else plain
        return Computation(result.lines, result.tax_lines, conditions.settled(result.totals, situation))

    def _has_room(self, result: Computation) -> bool:
        asked = self.run.selection.line_items
        most = min(LAYOUTS[self.look.layout].most_lines, asked[1] if asked else LAYOUTS[self.look.layout].most_lines)
        return len(result.lines) < most

    def _number(self, kind: str, issued: date) -> str:
        prefixes = self.jurisdiction.customs.prefixes[kind]
        return numbering.document_number(self.habits, prefixes, kind, issued, self.index)

    def _payment(self, kind: str, result: Computation, parts: Sequence[Instalment], terms: str) -> Payment:
        words = self.jurisdiction.customs
        if kind in (CREDIT_NOTE, CORRECTIVE):
            return Payment(self.habits.choice("credit terms", words.billing.credit_terms), "credit", ())
        if not self.billed:
            return Payment(terms=self.jurisdiction.paid(self.draws), method="paid", account=())
        if conditions.pays_in_cash(result.totals):
            return Payment(terms=self.draws.choice("paid", words.paid_cash), method="cash", account=())
        account = self.jurisdiction.account(self.habits.under("account"), self.company.resident.party.name)
        return Payment(
            terms=words.billing.instalments.format(count=len(parts)) if parts else terms,
            method="bank_transfer",
            account=tuple((label, value) for _, label, value in account),
            account_columns=tuple(column for column, _, _ in account),
        )

    def _notes(self, facts: Facts) -> tuple[str, ...]:
        words = self.jurisdiction.customs.billing
        reasons = {CREDIT_NOTE: words.credit_reasons, CORRECTIVE: words.correction_reasons}.get(facts.kind)
        told = (self.draws.choice("credit reason", reasons),) if reasons else ()
        closing = self.jurisdiction.closing(self.habits, goods=self._sells_goods) if facts.kind == INVOICE else ""
        return (*told, *self.jurisdiction.mentions(facts), *((closing,) if closing else ()))
