"""How much there is to sell: every type in every country, deep niches, few names in common, prices one would pay."""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest
from stdnum import ean

from docgen_core.draws import Draws
from docgen_core.llm.gates import meaning_key
from docgen_core.packs.invoice.catalogue import catalogue_rows, content
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, LOCALES
from docgen_core.packs.invoice.names import company_name
from docgen_core.packs.invoice.places import name_parts, places
from docgen_core.runs.selection import CatalogueSpec

FEWEST_TYPES = 24
FEWEST_NICHES = 4
FEWEST_NAMES_OF_A_NICHE = 60
"""So that a company of 40 products, and one of 60, keeps to its niche."""
PRODUCTS = 40

LANGUAGES = tuple(sorted({place.language_of(place.locale) for place in content.jurisdictions().values()}))
COMPANIES = 500
"""So many that there is a pair of one language and niche in every language."""
PRODUCTS_COMPARED = 24
SHARED_BY_TWO_PER_CENT = 30
"""Names that two companies of one niche and language have in common, on average over all such pairs."""
SHARED_AT_MOST_PER_CENT = 70
"""The same for the closest pair."""
PAIRS = 140

NAMES_THAT_SAY_A_TRADE = 0.6
"""The others say nothing but themselves."""

REACHED_WITHIN = 1_000
"""Companies among which every country, locale and type is met, and most types in most locales."""
MOST_PER_CENT = 70

HOUR = {"EUR": (22, 330), "USD": (30, 500), "JPY": (2_000, 45_000)}
"""What an hour of anybody's work costs."""
LEAST, MOST = Decimal("0.0001"), 25_000
"""Of any price of one unit, in euros of the data."""
WIDEST_FAMILY = 400
"""How often the cheapest of a family goes into the dearest: 660 cans are a family, a can and a car are not."""
AGAINST_THE_EURO = {"USD": (Decimal("0.9"), Decimal("1.7")), "JPY": (Decimal(80), Decimal(270))}
"""What one euro's worth costs elsewhere: the exchange rate, and how dear the trade is there."""


@pytest.fixture(scope="module")
def reached() -> list[dict[str, Any]]:
    """Companies, by their number."""
    return [catalogue_rows(CatalogueSpec(products=1), each)["companies"][0] for each in range(REACHED_WITHIN)]


def products_of(company: dict[str, Any], count: int = PRODUCTS_COMPARED) -> list[dict[str, Any]]:
    return catalogue_rows(CatalogueSpec(products=count), company["company_id"])["products"]


@pytest.fixture(scope="module")
def names(reached: list[dict[str, Any]]) -> dict[tuple[str, str], list[set[str]]]:
    """The names each company sells under, by language and niche."""
    sold = defaultdict(list)
    for company in reached[:COMPANIES]:
        keys = [meaning_key(product["name"]) for product in products_of(company)]
        assert len(keys) == len(set(keys)) == PRODUCTS_COMPARED
        sold[content.jurisdictions()[company["jurisdiction"]].language_of(company["locale"]), company["niche"]].append(
            set(keys)
        )
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


def test_every_country_and_business_type_is_met_and_none_that_its_language_does_not_tell(
    reached: list[dict[str, Any]],
) -> None:
    met = {(company["jurisdiction"], company["locale"], company["business_type"]) for company in reached}
    told = {
        (code, locale, kind.name)
        for code, place in content.jurisdictions().items()
        for locale in place.locales or (place.locale,)
        for kind in content.types_in(place.language_of(locale))
    }
    assert met <= told
    assert len(met) * 100 >= MOST_PER_CENT * len(told)
    assert {(code, locale) for code, locale, _ in met} == {(code, locale) for code, locale, _ in told}
    assert {code for code, _, _ in met} == set(JURISDICTIONS)
    assert {kind for _, _, kind in met} == set(content.business_types())


def test_shops_print_receipts_where_they_have_tills_and_send_invoices_elsewhere(reached: list[dict[str, Any]]) -> None:
    kinds = defaultdict(set)
    for company in reached:
        if company["business_type"] == "grocery_retail":
            kinds[company["jurisdiction"]].add(company["document_kind"])
    places = content.jurisdictions()
    assert set(kinds) == {
        code
        for code, place in places.items()
        if "grocery_retail" in {kind.name for kind in content.types_in(place.language_of(place.locale))}
    }
    for country, sent in kinds.items():
        assert sent == {"receipt" if places[country].till else "invoice"}


def test_shops_sell_at_two_rates_where_there_are_two(reached: list[dict[str, Any]]) -> None:
    shops = [
        company
        for company in reached
        if company["business_type"] == "grocery_retail" and company["jurisdiction"] in {"DE", "JP"}
    ]
    mixed = sum({"standard", "reduced"} <= {product["tax_class"] for product in products_of(shop)} for shop in shops)
    assert len(shops) >= 10
    assert mixed * 10 >= len(shops) * 7


def test_americans_buy_by_the_pound_and_germans_by_the_kilogram(reached: list[dict[str, Any]]) -> None:
    cheese = {family.niche for _, family in families() if family.name == "hard_cheese"}
    prices: dict[str, list[Decimal]] = defaultdict(list)
    for company in reached:
        for product in products_of(company, 30) if company["niche"] in cheese else ():
            if product["family"] == "hard_cheese":
                prices[product["unit_code"]].append(product["unit_price"])
                assert (product["unit_code"] == "LBR") == (product["currency"] == "USD")
    euro, dollar = (sum(prices[code]) / len(prices[code]) for code in ("KGM", "LBR"))
    assert dollar < euro


@pytest.mark.parametrize("language", LANGUAGES)
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
    assert {language for (language, _), companies in names.items() if len(companies) > 1} == set(LANGUAGES)
    assert sum(shares) <= SHARED_BY_TWO_PER_CENT * len(shares)
    assert max(shares) <= SHARED_AT_MOST_PER_CENT


def test_every_trade_has_company_names_of_its_own() -> None:
    for place in content.jurisdictions().values():
        for locale in place.locales or (place.locale,):
            told = {kind.name for kind in content.types_in(place.language_of(locale))}
            assert told <= set(name_parts(locale)["trades"]), locale


@pytest.mark.parametrize("locale", sorted({locale for spoken in LOCALES.values() for locale in spoken}))
def test_companies_are_called_after_their_own_niche(locale: str) -> None:
    """A telephone company is not called a power company, and a florist no grocer."""
    types = {niche: kind.name for kind in content.business_types().values() for niche in kind.niches}
    own = name_parts(locale)["niches"]
    special = {*content.business_types()["energy_telecom"].niches, "bakery_cafe", "garden_florist"}
    assert special <= set(own) <= set(types)
    assert not set(own["business_telephony"]) & {*own["electricity"], *own["gas_heat"], *own["water_waste"]}
    for niche, words in own.items():
        names = [company_name(locale, types[niche], Draws("name", number), niche).full for number in range(40)]
        said = [word.split(" ")[0] if name_parts(locale).get("readings") else word for word in words]
        assert sum(any(word in name for word in said) for name in names) >= NAMES_THAT_SAY_A_TRADE * len(names)


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
