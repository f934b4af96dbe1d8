"""A company and what it sells, drawn by (seed, company id) from the content.

Products are drawn one after another: asking for more never changes the first ones. A company
keeps to one niche; only when the niche is exhausted do its sibling niches follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from docgen_core.draws import Draws
from docgen_core.llm.gates import meaning_key
from docgen_core.packs.invoice.catalogue import codes, content
from docgen_core.packs.invoice.catalogue.content import BusinessType, Family, FamilyText
from docgen_core.packs.invoice.catalogue.pricing import Asked, ask, in_local_unit, product_of, quantities_in
from docgen_core.runs.selection import CatalogueSpec

Row = dict[str, Any]

_PER_MILLE = Decimal("0.001")
_COMPANY_LEVEL = (880, 1150)
"""A company's price level, per mille."""
_FAMILY_LEVEL = (940, 1060)
"""A company's price level in one family, per mille; within a family only attributes decide."""
_NOTE_PER_MILLE = 450
"""How often a description has a second sentence."""
PROCEDURAL = "procedural"
"""`written_by` of texts from the data files."""


@dataclass(frozen=True, slots=True)
class _Company:
    draws: Draws
    company_id: int
    jurisdiction_code: str
    jurisdiction: content.Jurisdiction
    locale: str
    kind: BusinessType
    niche: str

    @property
    def language_code(self) -> str:
        return self.jurisdiction.language_of(self.locale)

    @property
    def language(self) -> content.Language:
        return content.language(self.language_code)

    @property
    def currency(self) -> content.Currency:
        return content.currencies()[self.jurisdiction.currency]


def catalogue_rows(spec: CatalogueSpec, company_id: int) -> dict[str, list[Row]]:
    """A company and what it sells: rows of `companies`, `products` and `price_tiers`.

    The same for any `spec.companies` and `spec.range_width`; a larger `spec.products` appends. A
    company has fewer products only where its whole business type holds no more.
    """
    company = _company(spec.seed, company_id)
    products: list[Row] = []
    tiers: list[Row] = []
    for product_id, (family, positions, name) in enumerate(_assortment(company), start=1):
        if product_id > spec.products:
            break
        product, bands = _product(company, product_id, family, positions, name)
        products.append(product)
        tiers.extend(bands)
    return {"companies": [_company_row(company)], "products": products, "price_tiers": tiers}


def _company(seed: int, company_id: int) -> _Company:
    draws = Draws("invoice/catalogue", seed, company_id)
    all_jurisdictions = content.jurisdictions()
    code = draws.weighted("jurisdiction", {key: value.weight for key, value in all_jurisdictions.items()})
    jurisdiction = all_jurisdictions[code]
    locale = draws.weighted("locale", jurisdiction.locales or {jurisdiction.locale: 1})
    kinds = {kind.name: kind for kind in content.types_in(jurisdiction.language_of(locale))}
    kind = kinds[draws.weighted("business_type", {name: kind.weight for name, kind in kinds.items()})]
    niche = draws.choice("niche", tuple(kind.niches))
    return _Company(draws, company_id, code, jurisdiction, locale, kind, niche)


def _company_row(company: _Company) -> Row:
    draws, kind = company.draws, company.kind
    return {
        "company_id": company.company_id,
        "jurisdiction": company.jurisdiction_code,
        "locale": company.locale,
        "currency": company.jurisdiction.currency,
        "minor_units": company.currency.minor_units,
        "business_type": kind.name,
        "niche": company.niche,
        "billing_model": draws.weighted("billing_model", {kind.billing_model: 100, **kind.models}),
        "document_kind": kind.document_kind if company.jurisdiction.till else "invoice",
        "size_class": draws.weighted("size_class", kind.sizes),
        "founded_year": draws.integer("founded_year", *kind.founded[company.niche]),
    }


def _assortment(company: _Company) -> Iterator[tuple[Family, dict[str, int], str]]:
    """Every product the company can sell, in drawn order: family, axis positions, name."""
    siblings = [niche for niche in company.kind.niches if niche != company.niche]
    names: set[str] = set()
    for niche in [company.niche, *company.draws.sample("siblings", siblings, len(siblings))]:
        for family, positions in _line(company.draws.under(niche), company.kind.niches[niche]):
            name = _name(company, family, positions)
            if (meaning := meaning_key(name)) not in names:
                names.add(meaning)
                yield family, positions, name


def _line(draws: Draws, families: tuple[Family, ...]) -> Iterator[tuple[Family, dict[str, int]]]:
    """The combinations of a niche's families, each once, families mixed by weight."""
    by_name = {family.name: family for family in families}
    weights = {family.name: family.weight for family in families}
    taken: dict[str, set[int]] = {name: set() for name in by_name}
    turn = 0
    while weights:
        turn += 1
        name = draws.weighted(f"family#{turn}", weights)
        family, used = by_name[name], taken[name]
        index = draws.integer(f"combination#{turn}", 0, family.combinations - 1)
        while index in used:
            index = (index + 1) % family.combinations
        used.add(index)
        if len(used) == family.combinations:
            del weights[name]
        positions = family.combination(index)
        if family.sold(positions):
            yield family, positions


def _text(company: _Company, family: Family) -> FamilyText:
    return content.texts(company.language_code, company.kind.name)[family.niche, family.name]


def _slots(company: _Company, family: Family, positions: dict[str, int]) -> dict[str, str]:
    told = _text(company, family)
    slots = {axis: told.axes[axis][position] for axis, position in positions.items()}
    if "series" not in slots:
        slots["series"] = codes.series(company.draws, f"{family.niche}/{family.name}")
    return slots


def _sentence(pattern: str, slots: dict[str, str]) -> str:
    """The pattern filled in, its first word in capitals where it is a plain word.

    A word that ends with a point of its own (`Std.`) ends the sentence too.
    """
    text = pattern.format_map(slots).strip().replace("..", ".")
    return text[0].upper() + text[1:] if text[:2].islower() and text[:2].isalpha() else text


def _name(company: _Company, family: Family, positions: dict[str, int]) -> str:
    pattern = company.draws.choice(f"name/{family.niche}/{family.name}", _text(company, family).names)
    return _sentence(pattern, _slots(company, family, positions))


def _product(
    company: _Company, product_id: int, family: Family, positions: dict[str, int], name: str
) -> tuple[Row, list[Row]]:
    """A row of `products`, and the rows of `price_tiers` where its price is graduated."""
    draws = company.draws.under(product_id)
    local = company.jurisdiction.units.get(family.unit)
    holds = local.holds if local else Decimal(1)
    unit = local.unit if local else family.unit
    tax_class, tax_category = company.jurisdiction.tax[family.tax]
    bands = _bands(company, family, positions, holds)
    smallest, largest, step = quantities_in(family.quantity, holds)
    row = {
        "company_id": company.company_id,
        "product_id": product_id,
        "niche": family.niche,
        "family": family.name,
        "sku": codes.sku(company.draws, family.sku, family.name, product_id),
        "ean": codes.gtin(company.draws, product_id) if family.goods else None,
        "hs_code": family.hs if family.goods else None,
        "name": name,
        **_description(company, draws, family, positions),
        "written_by": PROCEDURAL,
        "unit": _printed_unit(company, family, unit),
        "unit_code": content.unit_codes()[unit],
        "currency": company.jurisdiction.currency,
        "unit_price": bands[0][1].price,
        "price_places": max(asked.places for _, asked in bands),
        "tax_class": tax_class,
        "tax_category": tax_category,
        "billing_model": family.billing,
        "recurring_period": family.period,
        "typical_quantity_min": smallest,
        "typical_quantity_max": largest,
        "typical_quantity_step": step,
    }
    return row, [
        {
            "company_id": company.company_id,
            "product_id": product_id,
            "tier": tier,
            "up_to": up_to,
            "unit_price": asked.price,
        }
        for tier, (up_to, asked) in enumerate(bands, start=1)
        if family.tiers is not None
    ]


def _description(company: _Company, draws: Draws, family: Family, positions: dict[str, int]) -> Row:
    told = _text(company, family)
    slots = _slots(company, family, positions)
    text = _sentence(draws.choice("text", told.texts), slots)
    if draws.chance("note", _NOTE_PER_MILLE):
        text += company.language.sentence_separator + draws.choice("which_note", told.notes)
    return {"description": text, "detail": told.detail.format_map(slots) if told.detail else None}


def _printed_unit(company: _Company, family: Family, unit: str) -> str:
    """One way of writing a unit for each company; a family's own word where a language has one."""
    own = _text(company, family).unit
    return own if own else company.draws.choice(f"unit/{unit}", company.language.units[unit])


def _bands(
    company: _Company, family: Family, positions: dict[str, int], holds: Decimal
) -> list[tuple[Decimal | None, Asked]]:
    """(up to, price) for each band of the price; a price that is not graduated has one, without end."""
    draws = company.draws
    points = company.currency.points[family.points]
    first = product_of(
        [
            family.price,
            *(family.axes[axis][position].factor for axis, position in positions.items()),
            company.kind.level.get(company.jurisdiction_code, Decimal(1)),
            draws.integer("level", *_COMPANY_LEVEL) * _PER_MILLE,
            draws.integer(f"level/{family.niche}/{family.name}", *_FAMILY_LEVEL) * _PER_MILLE,
            company.currency.scale,
            holds,
        ]
    )
    if family.tiers is None:
        return [(None, ask(first, points, company.currency.minor_units))]
    scale = draws.choice(f"tier_scale/{family.niche}/{family.name}", family.tiers.scales)
    limits = [in_local_unit(limit * scale, holds) for limit in family.tiers.limits]
    return [
        (up_to, ask(product_of([first, factor]), points, company.currency.minor_units))
        for up_to, factor in zip([*limits, None], family.tiers.factors, strict=True)
    ]
