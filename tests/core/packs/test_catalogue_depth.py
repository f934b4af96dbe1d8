"""How much there is to sell: every type in every country, deep niches, few names in common, prices one would pay."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from itertools import combinations

import pytest
from stdnum import ean

from docgen_core.llm.gates import meaning_key
from docgen_core.packs.invoice.catalogue import catalogue_rows, content
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.places import name_parts, places
from docgen_core.runs.selection import CatalogueSpec

FEWEST_TYPES = 24
FEWEST_NICHES = 4
FEWEST_NAMES_OF_A_NICHE = 60
"""So that a company of 40 products, and one of 60, keeps to its niche."""
PRODUCTS = 40

COMPARED = ("US", "DE", "JP")
COMPANIES = 1_300
"""So many that those of the compared countries make some hundred pairs of one country and niche."""
PRODUCTS_COMPARED = 24
SHARED_BY_TWO_PER_CENT = 30
"""Names that two companies of one niche and country have in common, on average over all such pairs."""
SHARED_AT_MOST_PER_CENT = 70
"""The same for the closest pair."""
PAIRS = 100

REACHED_WITHIN = 1_500
"""Companies among which every country and every type is met, and most types in most countries."""
MOST_PER_CENT = 60

HOUR = {"EUR": (22, 330), "USD": (30, 500), "JPY": (2_000, 45_000)}
"""What an hour of anybody's work costs."""
LEAST, MOST = Decimal("0.0001"), 25_000
"""Of any price of one unit, in euros of the data."""
WIDEST_FAMILY = 400
"""How often the cheapest of a family goes into the dearest: 660 cans are a family, a can and a car are not."""
AGAINST_THE_EURO = {"USD": (Decimal("0.9"), Decimal("1.7")), "JPY": (Decimal(80), Decimal(270))}
"""What one euro's worth costs elsewhere: the exchange rate, and how dear the trade is there."""


@pytest.fixture(scope="module")
def names() -> dict[tuple[str, str], list[set[str]]]:
    """The names each company sells under, by country and niche."""
    sold = defaultdict(list)
    for company_id in range(COMPANIES):
        if catalogue_rows(CatalogueSpec(products=1), company_id)["companies"][0]["jurisdiction"] not in COMPARED:
            continue
        rows = catalogue_rows(CatalogueSpec(products=PRODUCTS_COMPARED), company_id)
        company = rows["companies"][0]
        keys = [meaning_key(product["name"]) for product in rows["products"]]
        assert len(keys) == len(set(keys)) == PRODUCTS_COMPARED
        sold[company["jurisdiction"], company["niche"]].append(set(keys))
    return sold


def families() -> list[tuple[content.BusinessType, content.Family]]:
    return [
        (kind, family)
        for kind in content.business_types().values()
        for niche in kind.niches.values()
        for family in niche
    ]


def extremes(family: content.Family) -> tuple[Decimal, Decimal]:
    low = high = family.price
    for values in family.axes.values():
        low *= min(value.factor for value in values)
        high *= max(value.factor for value in values)
    return low, high


def test_there_are_many_business_types_with_several_niches_of_their_own() -> None:
    kinds = content.business_types().values()
    assert len(kinds) >= FEWEST_TYPES
    assert [kind.name for kind in kinds if len(kind.niches) < FEWEST_NICHES] == []
    niches = Counter(niche for kind in kinds for niche in kind.niches)
    assert [niche for niche, count in niches.items() if count > 1] == []


def test_every_country_and_business_type_is_met_and_none_that_its_language_does_not_tell() -> None:
    met = set()
    for company_id in range(REACHED_WITHIN):
        company = catalogue_rows(CatalogueSpec(products=1), company_id)["companies"][0]
        met.add((company["jurisdiction"], company["business_type"]))
    told = {
        (code, kind.name)
        for code, place in content.jurisdictions().items()
        for kind in content.types_in(place.language_of(place.locale))
    }
    assert met <= told
    assert len(met) * 100 >= MOST_PER_CENT * len(told)
    assert {code for code, _ in met} == set(JURISDICTIONS)
    assert {kind for _, kind in met} == set(content.business_types())


@pytest.mark.parametrize("language", ["en", "de", "ja"])
def test_every_niche_has_more_names_than_a_company_has_products(language: str) -> None:
    assert FEWEST_NAMES_OF_A_NICHE >= PRODUCTS
    for kind in content.types_in(language):
        texts = content.texts(language, kind.name)
        for niche, line in kind.niches.items():
            found = set()
            for family in line:
                told = texts[niche, family.name]
                for index in range(family.combinations):
                    positions = family.combination(index)
                    if family.sold(positions):
                        slots = {axis: told.axes[axis][at] for axis, at in positions.items()}
                        found.add(meaning_key(told.names[0].format_map({"series": "XR"} | slots)))
            assert len(found) >= FEWEST_NAMES_OF_A_NICHE, (kind.name, niche, len(found))


def test_companies_of_one_niche_have_few_names_in_common(names: dict[tuple[str, str], list[set[str]]]) -> None:
    shares = [
        len(first & second) * 100 / PRODUCTS_COMPARED
        for companies in names.values()
        for first, second in combinations(companies, 2)
    ]
    assert len(shares) >= PAIRS
    assert sum(shares) <= SHARED_BY_TWO_PER_CENT * len(shares)
    assert max(shares) <= SHARED_AT_MOST_PER_CENT


def test_every_trade_has_company_names_of_its_own() -> None:
    for language in ("en", "de", "ja"):
        assert set(content.business_types()) <= set(name_parts(language)["trades"])


def test_every_country_can_tax_what_its_companies_sell() -> None:
    kinds = {family.tax for _, family in families()}
    for code, terms in content.jurisdictions().items():
        assert kinds <= set(terms.tax)
        for tax_class, category in (terms.tax[kind] for kind in kinds):
            charged = {JURISDICTIONS[code].tax(tax_class, place).category for place in places(code)}
            assert category in charged, (code, tax_class, charged)


@pytest.mark.parametrize(
    ("kind", "family", "taxed"),
    [
        ("event_catering", "lunchbox", {"US": "standard", "DE": "reduced", "JP": "reduced"}),
        ("event_catering", "buffet", {"US": "standard", "DE": "standard", "JP": "standard"}),
        ("medical_supplies", "gloves", {"US": "standard", "DE": "standard", "JP": "standard"}),
        ("architecture_office", "hours", {"US": "exempt", "DE": "standard", "JP": "standard"}),
        ("printing", "flyer", {"US": "standard", "DE": "standard", "JP": "standard"}),
        ("equipment_rental", "excavator", {"US": "standard", "DE": "standard", "JP": "standard"}),
    ],
)
def test_tax_of_the_trades(kind: str, family: str, taxed: dict[str, str]) -> None:
    taxes = {entry.tax for each, entry in families() if (each.name, entry.name) == (kind, family)}
    assert len(taxes) == 1
    for code, tax_class in taxed.items():
        assert content.jurisdictions()[code].tax[next(iter(taxes))][0] == tax_class


def test_goods_of_every_trade_carry_codes_with_right_digits() -> None:
    seen = set()
    for company_id in range(480):
        rows = catalogue_rows(CatalogueSpec(products=12), company_id)
        kind = content.business_types()[rows["companies"][0]["business_type"]]
        goods = {family.name: family.goods for family in kind.niches[rows["companies"][0]["niche"]]}
        for product in rows["products"]:
            assert product["sku"]
            assert (product["ean"] is not None) == (product["hs_code"] is not None) == goods[product["family"]]
            if product["ean"]:
                assert ean.validate(product["ean"]) == product["ean"]
                seen.add(kind.name)
    assert {"auto_parts", "bicycle_shop", "medical_supplies", "laboratory_supplies"} <= seen


def test_prices_of_a_family_lie_in_one_band() -> None:
    for kind, family in families():
        low, high = extremes(family)
        assert LEAST <= low <= high <= MOST, (kind.name, family.niche, family.name, low, high)
        assert high <= low * WIDEST_FAMILY, (kind.name, family.niche, family.name, low, high)


def test_an_hour_costs_what_an_hour_costs() -> None:
    for kind, family in families():
        if family.unit != "hour" or family.billing != "hourly":
            continue
        low, high = extremes(family)
        for code, terms in content.jurisdictions().items():
            scale = content.currencies()[terms.currency].scale * kind.level.get(code, Decimal(1))
            rate = content.currencies()[terms.currency].scale
            least, most = HOUR.get(terms.currency) or tuple(bound * rate for bound in HOUR["EUR"])
            assert least <= low * scale, (kind.name, family.name, code, low * scale)
            assert high * scale <= most, (kind.name, family.name, code, high * scale)


def test_no_country_sells_at_another_ones_prices() -> None:
    for kind in content.business_types().values():
        for code, terms in content.jurisdictions().items():
            if terms.currency not in AGAINST_THE_EURO:
                continue
            rate = content.currencies()[terms.currency].scale * kind.level.get(code, Decimal(1))
            least, most = AGAINST_THE_EURO[terms.currency]
            assert least <= rate <= most, (kind.name, code, rate)
