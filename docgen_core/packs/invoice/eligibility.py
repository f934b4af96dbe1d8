"""Which companies can serve a selection, and why none can: from facts of the pack, when a run is planned.

Each wish is a constraint on companies with the reason it may fail for. What does not belong here:
how a wish is honoured (record.py), and how wishes are written (runs/wishes.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from docgen_core.errors import SelectionRefused
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice.calendar_days import EARLIEST_ISSUE, LATEST_ISSUE
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, LOCALES
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.pricing import GRADUATED
from docgen_core.packs.invoice.record import INVOICE, RECEIPT, TILL_LINES, Company
from docgen_core.packs.invoice.taxation import categories
from docgen_core.runs.selection import Selection

TAX_CATEGORIES = ("S", "AA", "Z", "E", "AE", "K", "G", "O")
"""UNCL 5305, as far as documents have them."""

_GRADUATED_LINES = 5
"""A graduated price has a line of its own and one for each band."""

_MOST_WEIGHT = 1_000_000
"""Of a capture condition or a tax category; weights only matter against each other."""


def eligible(selection: Selection, companies: Iterator[Row]) -> list[int]:
    """Company ids that can serve the selection, in id order.

    Raises `SelectionRefused` for a name that there is not, and for a combination that no company of
    the catalogue fits, saying why and naming what there is.
    """
    refuse_impossible(selection)
    constraints = _constraints(selection)
    seen, stopped, fitting = _Seen(), _Stopped(constraints), []
    for row in companies:
        seen.note(row)
        if stopped.passes(row):
            fitting.append(row["company_id"])
    seen.refuse_unknown_types(selection)
    if not fitting:
        why = stopped.reason()
        told = f": {why}; {seen.span}" if why else f"; {seen.summary()}"
        raise SelectionRefused(f"no company fits {_wish(constraints)}{told}")
    return sorted(fitting)


def refuse_impossible(selection: Selection) -> None:
    """Raise `SelectionRefused` for a name that there is not, and for what no catalogue could serve."""
    _refuse_unknown_names(selection)
    _refuse_far_days(selection)
    _refuse_what_no_layout_holds(selection)
    _refuse_foreign_layouts(selection)


# Names ---------------------------------------------------------------------------------------


def _refuse_unknown_names(selection: Selection) -> None:
    from docgen_core.render.capture import CONDITIONS

    _refuse_unknown("locale", selection.locales, {locale for spoken in LOCALES.values() for locale in spoken})
    _refuse_unknown("jurisdiction", selection.jurisdictions, JURISDICTIONS)
    _refuse_unknown("layout", selection.layouts, LAYOUTS)
    _refuse_unknown("currency", selection.currencies, {law.currency for law in content.jurisdictions().values()})
    _refuse_unknown("condition", selection.conditions, CONDITIONS)
    _refuse_unknown("tax category", selection.tax_mix, TAX_CATEGORIES)
    _refuse_weights("conditions", selection.conditions)
    if selection.tax_mix:
        _refuse_weights("tax categories", selection.tax_mix)


def _refuse_unknown(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    unknown = sorted(set(asked) - set(known))
    if unknown:
        raise SelectionRefused(f"no {what} {unknown[0]!r}; the invoice pack has {', '.join(sorted(known))}")


def _refuse_weights(what: str, weights: Mapping[str, int]) -> None:
    if not all(0 <= weight <= _MOST_WEIGHT for weight in weights.values()) or not any(weights.values()):
        given = ", ".join(f"{name}={weight}" for name, weight in sorted(weights.items())) or "none"
        raise SelectionRefused(
            f"weights of {what} are whole numbers from 0 to {_MOST_WEIGHT}, one of them above 0; given: {given}"
        )


def _refuse_far_days(selection: Selection) -> None:
    """Refuse days that no invoice like these is of, whatever else is allowed."""
    first, last = selection.issued or (EARLIEST_ISSUE, LATEST_ISSUE)
    if first < EARLIEST_ISSUE or last > LATEST_ISSUE:
        raise SelectionRefused(
            f"issued {first} to {last}: documents are dated from {EARLIEST_ISSUE} to {LATEST_ISSUE}; ask for such days"
        )


def _refuse_what_no_layout_holds(selection: Selection) -> None:
    """Refuse more lines than any layout has room for."""
    if selection.line_items is None:
        return
    most = {name: LAYOUTS[name].most_lines for name in selection.layouts or LAYOUTS}
    roomiest = max(most, key=lambda name: most[name])
    if selection.line_items[0] > most[roomiest]:
        raise SelectionRefused(
            f"no layout holds {selection.line_items[0]} lines of items: {roomiest} holds the most, {most[roomiest]}"
        )


def _refuse_foreign_layouts(selection: Selection) -> None:
    """Refuse layouts that none of the countries asked for uses: no catalogue could serve them."""
    asked = {
        locale
        for code, spoken in LOCALES.items()
        for locale in spoken
        if locale in (selection.locales or (locale,)) and code in (selection.jurisdictions or (code,))
    }
    every = [locale for spoken in LOCALES.values() for locale in spoken]
    used = {
        name: {locale for locale in every if LAYOUTS[name].written_in(locale.split("-")[0])}
        for name in selection.layouts
    }
    if asked and used and not asked & set().union(*used.values()):
        name, locales = min(used.items())
        raise SelectionRefused(
            f"layout {name} is not made in {', '.join(sorted(asked))}, only in {', '.join(sorted(locales))}: "
            "choose one of these locales or another layout"
        )


# Companies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Constraint:
    """One wish, what it asks of a company, and what is said when those it is asked of all fail."""

    wish: str
    fits: Callable[[Row, Company], bool]
    why: Callable[[Sequence[Row]], str] = lambda _: ""


def _constraints(selection: Selection) -> tuple[_Constraint, ...]:
    """The wishes that say something, the plainest first."""
    return tuple(_named(selection)) + tuple(_of_documents(selection))


def _named(selection: Selection) -> Iterator[_Constraint]:
    """Wishes about what the catalogue says of a company."""
    for name, column, values in (
        ("locale", "locale", selection.locales),
        ("jurisdiction", "jurisdiction", selection.jurisdictions),
        ("business type", "business_type", selection.business_types),
        ("currency", "currency", selection.currencies),
    ):
        if values:
            yield _Constraint(
                f"{name} {', '.join(values)}",
                lambda row, _, column=column, values=values: row[column] in values,  # type: ignore[misc]
                lambda rows, column=column: f"they have {_several(row[column] for row in rows)}",  # type: ignore[misc]
            )
    if (within := selection.companies) is not None:
        yield _Constraint(
            f"company {within[0]} to {within[1]}", lambda row, _: within[0] <= row["company_id"] <= within[1]
        )


def _of_documents(selection: Selection) -> Iterator[_Constraint]:
    """Wishes about documents: whether a company sends such."""
    layouts, lines = selection.layouts, selection.line_items
    if layouts:
        yield _Constraint(
            f"layout {', '.join(layouts)}",
            lambda _, company: bool(company.looks(layouts)),
            lambda rows: _why_no_layout(layouts, rows),
        )
    if lines is not None:
        yield _Constraint(
            f"{lines[0]} to {lines[1]} lines of items",
            lambda _, company: bool(company.looks(layouts, lines[0])) and lines[1] >= _fewest_lines(company),
            lambda rows: (
                f"their layouts hold up to {max(_most_lines(row, layouts) for row in rows)} lines, "
                f"and their prices take {min(_fewest_lines(Company.of(row)) for row in rows)} or more"
            ),
        )
    if selection.credit_notes:
        yield _Constraint(
            "credit notes",
            lambda _, company: INVOICE in company.looks(layouts),
            lambda _: "a till takes back by a receipt of its own; let a layout of invoices be among the layouts",
        )
    if selection.issued is not None and not selection.anachronism:
        last = selection.issued[1]
        yield _Constraint(
            f"issued {selection.issued[0]} to {last}",
            lambda _, company: company.began <= last,
            lambda rows: (
                f"the first of them began to write on {min(Company.of(row).began for row in rows)}; "
                "ask for later days, or for --anachronism"
            ),
        )
    if selection.on_paper_only:
        yield _Constraint(
            f"condition {', '.join(sorted(selection.conditions))}",
            lambda _, company: bool(company.conditions(selection)),
            lambda _: (
                "they were born digital, and nothing of theirs was ever on paper; let clean be among the "
                "conditions, or ask for --anachronism"
            ),
        )
    if selection.tax_mix:
        wanted = {category for category, weight in selection.tax_mix.items() if weight}
        yield _Constraint(
            f"tax category {', '.join(sorted(wanted))}",
            lambda row, company: bool(wanted & _categories(row, company, layouts)),
            lambda rows: (
                "they can charge "
                + _several(category for row in rows for category in _categories(row, Company.of(row), layouts))
            ),
        )


def _why_no_layout(layouts: Sequence[str], rows: Sequence[Row]) -> str:
    senders = {name: LAYOUTS[name].business_types for name in layouts if LAYOUTS[name].business_types}
    only = "; ".join(f"{name} is sent by {_several(types)} only" for name, types in senders.items())
    theirs = _several(name for row in rows for names in Company.of(row).looks(()).values() for name in names)
    return f"{f'{only}; ' if only else ''}they send {theirs}"


def _most_lines(row: Row, layouts: Sequence[str]) -> int:
    held = [
        min(LAYOUTS[name].most_lines, TILL_LINES) if kind == RECEIPT else LAYOUTS[name].most_lines
        for kind, names in Company.of(row).looks(layouts).items()
        for name in names
    ]
    return max(held, default=0)


def _fewest_lines(company: Company) -> int:
    """Lines that the company's shortest document may have."""
    return _GRADUATED_LINES if company.billing_model == GRADUATED else 1


def _categories(row: Row, company: Company, layouts: Sequence[str]) -> frozenset[str]:
    """The tax categories that a company's sales can have, by what its line of business sells."""
    billed = INVOICE in company.looks(layouts)
    return _categories_of(row["jurisdiction"], row["business_type"], row.get("niche"), billed)


@lru_cache(maxsize=4096)
def _categories_of(country: str, business_type: str, niche: str | None, billed: bool) -> frozenset[str]:
    niches = content.business_types()[business_type].niches
    families = niches[niche] if niche in niches else [family for found in niches.values() for family in found]
    law = content.jurisdictions()[country]
    products = [
        {"hs_code": family.hs if family.goods else None, "tax_category": law.tax[family.tax][1]} for family in families
    ]
    return frozenset(categories(JURISDICTIONS[country], products, billed=billed))


def _several(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(values)))


class _Stopped:
    """Puts the constraints to companies, and keeps those that came farthest."""

    def __init__(self, constraints: Sequence[_Constraint]) -> None:
        self._constraints = constraints
        self._farthest, self._rows = -1, list[Row]()

    def passes(self, row: Row) -> bool:
        """Whether the company fits everything."""
        company = Company.of(row)
        for place, constraint in enumerate(self._constraints):
            if not constraint.fits(row, company):
                if place > self._farthest:
                    self._farthest, self._rows = place, []
                if place == self._farthest:
                    self._rows.append(row)
                return False
        return bool(company.looks(()))

    def reason(self) -> str:
        """Why the companies that came farthest go no farther."""
        if self._farthest <= 0:
            return ""
        constraint = self._constraints[self._farthest]
        before = " with ".join(each.wish for each in self._constraints[: self._farthest])
        why = constraint.why(self._rows)
        return f"{len(self._rows)} fit {before} and not {constraint.wish}{f', since {why}' if why else ''}"


def _wish(constraints: Sequence[_Constraint]) -> str:
    """The selection as a user wrote it."""
    return " with ".join(constraint.wish for constraint in constraints) or "the selection"


@dataclass(slots=True)
class _Seen:
    """What the catalogue holds, to name it when nothing fits."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None

    def note(self, row: Row) -> None:
        """Count a company."""
        company_id = row["company_id"]
        self.kinds[row["locale"], row["document_kind"]] += 1
        self.types.add(row["business_type"])
        self.first = company_id if self.first is None else min(self.first, company_id)
        self.last = company_id if self.last is None else max(self.last, company_id)

    def refuse_unknown_types(self, selection: Selection) -> None:
        """Raise `SelectionRefused` for a business type that no company has."""
        if self.types:
            _refuse_unknown("business type", selection.business_types, self.types)

    @property
    def span(self) -> str:
        """The ids that were looked at."""
        return f"companies {self.first} to {self.last} were looked at"

    def summary(self) -> str:
        """What there is to choose from, in one clause."""
        if self.first is None:
            return "the catalogue has no company: build one first"
        kinds = ", ".join(
            f"{count} in {locale} sending {kind}s" for (locale, kind), count in sorted(self.kinds.items())
        )
        return f"{self.span}: {kinds}; types {', '.join(sorted(self.types))}"
