"""Companies and what they sell: the same everywhere, exact, and as a business of that kind would sell."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stdnum import ean

from docgen_core.llm.gates import meaning_key
from docgen_core.money import minor_units
from docgen_core.packs.invoice.catalogue import CATALOGUE_TABLES, catalogue_rows, content
from docgen_core.packs.invoice.catalogue.pricing import ask, in_local_unit, quantities_in
from docgen_core.runs.selection import CatalogueSpec

COMPANIES = 200
PRODUCTS = 24
WIDELY_SOLD = 3
"""Companies that may sell a product of one name before it counts as common."""
COMMON_NAMES_PER_MILLE = 20
RESTRICTED_PREFIXES = tuple([f"02{n}" for n in range(10)] + [f"04{n}" for n in range(10)] + ["2"])
"""GS1 restricted-circulation prefixes."""

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def catalogue() -> list[Rows]:
    spec = CatalogueSpec(companies=COMPANIES, products=PRODUCTS)
    return [catalogue_rows(spec, company_id) for company_id in range(COMPANIES)]


def products_of(catalogue: list[Rows]) -> list[dict[str, Any]]:
    return [product for rows in catalogue for product in rows["products"]]


def digest_of(rows: Rows) -> str:
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def test_rows_fit_the_declared_tables(catalogue: list[Rows]) -> None:
    for table, schema in CATALOGUE_TABLES.items():
        rows = [row for company in catalogue for row in company[table]]
        assert {tuple(row) for row in rows} == {tuple(schema.names)}
        arrow = pa.Table.from_pylist(rows, schema=schema)
        arrow.validate(full=True)
        assert [field.name for field in schema if not field.nullable and arrow.column(field.name).null_count] == []
        assert arrow.to_pylist() == rows


def test_a_company_is_the_same_in_any_process_locale_and_time_zone() -> None:
    code = (
        "import hashlib; from docgen_core.packs.invoice.catalogue import catalogue_rows;"
        "from docgen_core.runs.selection import CatalogueSpec;"
        "rows = [catalogue_rows(CatalogueSpec(seed=5), i) for i in (3, 77)];"
        "print(hashlib.sha256(repr(rows).encode()).hexdigest())"
    )
    seen = set()
    for hash_seed, zone, locale in (("1", "Asia/Tokyo", "C"), ("99", "America/New_York", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "TZ": zone, "LC_ALL": locale}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1


def test_a_company_does_not_depend_on_how_many_companies_there_are() -> None:
    small = CatalogueSpec(companies=1, range_width=1, products=5)
    large = CatalogueSpec(companies=1_000_000, range_width=10_000, products=5)
    assert digest_of(catalogue_rows(small, 42)) == digest_of(catalogue_rows(large, 42))


def test_more_products_append_to_the_first_ones() -> None:
    for company_id in range(12):
        few = catalogue_rows(CatalogueSpec(products=7), company_id)
        many = catalogue_rows(CatalogueSpec(products=180), company_id)
        assert many["companies"] == few["companies"]
        assert many["products"][:7] == few["products"]
        assert many["price_tiers"][: len(few["price_tiers"])] == few["price_tiers"]


def test_another_seed_gives_other_companies() -> None:
    digests = {digest_of(catalogue_rows(CatalogueSpec(seed=seed), 1)) for seed in range(5)}
    assert len(digests) == 5


def test_a_company_gets_as_many_products_as_asked_for(catalogue: list[Rows]) -> None:
    assert {len(rows["products"]) for rows in catalogue} == {PRODUCTS}
    assert [product["product_id"] for product in catalogue[0]["products"]] == list(range(1, PRODUCTS + 1))


def test_jurisdictions_come_by_weight_and_bring_their_currency(catalogue: list[Rows]) -> None:
    companies = [rows["companies"][0] for rows in catalogue]
    settings = {(c["jurisdiction"], c["locale"], c["currency"], c["minor_units"]) for c in companies}
    assert {("US", "en-US", "USD", 2), ("DE", "de-DE", "EUR", 2), ("JP", "ja-JP", "JPY", 0)} <= settings
    for country, locale, currency, places in settings:
        terms = content.jurisdictions()[country]
        assert locale in (terms.locales or {terms.locale})
        assert (currency, places) == (terms.currency, minor_units(currency))
    counts = Counter(c["jurisdiction"] for c in companies)
    assert set(counts) == set(content.jurisdictions())
    assert counts["US"] > counts["DE"] > counts["JP"] > counts["TR"]


def test_business_types_cover_every_billing_model_and_both_documents() -> None:
    kinds = content.business_types().values()
    assert {kind.billing_model for kind in kinds} == {"flat", "per_unit", "hourly", "subscription", "graduated"}
    assert {kind.document_kind for kind in kinds} == {"invoice", "receipt"}
    for kind in kinds:
        products = {family.billing for families in kind.niches.values() for family in families}
        assert kind.billing_model in products


def test_a_company_keeps_to_its_niche(catalogue: list[Rows]) -> None:
    for rows in catalogue:
        assert {product["niche"] for product in rows["products"]} == {rows["companies"][0]["niche"]}


def test_a_very_wide_range_goes_on_with_sibling_niches() -> None:
    rows = catalogue_rows(CatalogueSpec(products=1_000), 1)
    kind = content.business_types()[rows["companies"][0]["business_type"]]
    niches = [product["niche"] for product in rows["products"]]
    assert niches[0] == rows["companies"][0]["niche"]
    assert set(niches) <= set(kind.niches)
    assert len(set(niches)) > 1
    changes = sum(1 for before, after in pairwise(niches) if before != after)
    assert changes == len(set(niches)) - 1


def test_no_company_is_older_than_its_trade(catalogue: list[Rows]) -> None:
    for rows in catalogue:
        company = rows["companies"][0]
        first, last = content.business_types()[company["business_type"]].founded[company["niche"]]
        assert first <= company["founded_year"] <= last


def test_no_name_comes_twice_in_a_company() -> None:
    for company_id in range(60):
        products = catalogue_rows(CatalogueSpec(products=150), company_id)["products"]
        keys = [meaning_key(product["name"]) for product in products]
        assert len(keys) == len(set(keys))


def test_few_names_are_sold_by_many_companies(catalogue: list[Rows]) -> None:
    sellers: Counter[str] = Counter()
    for rows in catalogue:
        sellers.update({meaning_key(product["name"]) for product in rows["products"]})
    common = sum(1 for count in sellers.values() if count > WIDELY_SOLD)
    assert common * 1000 <= COMMON_NAMES_PER_MILLE * len(sellers)


def test_item_numbers_are_unique_and_gtins_are_valid_and_restricted() -> None:
    for company_id in range(40):
        products = catalogue_rows(CatalogueSpec(products=120), company_id)["products"]
        skus = [product["sku"] for product in products]
        gtins = [product["ean"] for product in products if product["ean"]]
        assert len(set(skus)) == len(skus)
        assert len(set(gtins)) == len(gtins)
        assert all(len(gtin) == 13 and ean.is_valid(gtin) for gtin in gtins)
        assert all(gtin.startswith(RESTRICTED_PREFIXES) for gtin in gtins)


def test_goods_have_customs_codes_and_services_have_none(catalogue: list[Rows]) -> None:
    for product in products_of(catalogue):
        family = next(
            family
            for kind in content.business_types().values()
            for family in kind.niches.get(product["niche"], ())
            if family.name == product["family"]
        )
        assert (product["ean"] is not None) == (product["hs_code"] is not None) == family.goods
        if family.goods:
            assert len(product["hs_code"]) == 6
            assert product["hs_code"].isdigit()
            assert product["billing_model"] == "per_unit"
            assert product["unit_code"] not in {"HUR", "MON", "ANN"}


def test_prices_are_positive_and_quoted_with_their_places(catalogue: list[Rows]) -> None:
    for product in products_of(catalogue):
        price, places = product["unit_price"], product["price_places"]
        assert price > 0
        assert minor_units(product["currency"]) <= places <= 5
        assert price == price.quantize(Decimal(1).scaleb(-places))
    tiers = [tier for rows in catalogue for tier in rows["price_tiers"]]
    assert all(tier["unit_price"] > 0 for tier in tiers)


def test_yen_prices_are_whole_unless_metered_or_sold_by_the_hundred(catalogue: list[Rows]) -> None:
    yen = [product for product in products_of(catalogue) if product["currency"] == "JPY"]
    finer = [product for product in yen if product["price_places"]]
    assert {product["niche"] for product in finer if product["unit_price"] >= 20} <= set(
        content.business_types()["energy_telecom"].niches
    )
    assert any(product["unit_price"] != product["unit_price"].to_integral_value() for product in finer)


def test_graduated_prices_fall_from_band_to_band(catalogue: list[Rows]) -> None:
    for rows in catalogue:
        bands = defaultdict(list)
        for tier in rows["price_tiers"]:
            bands[tier["product_id"]].append(tier)
        graduated = {p["product_id"] for p in rows["products"] if p["billing_model"] == "graduated"}
        assert set(bands) == graduated
        for product in rows["products"]:
            own = bands.get(product["product_id"])
            if own is None:
                continue
            assert [tier["tier"] for tier in own] == list(range(1, len(own) + 1))
            assert own[0]["unit_price"] == product["unit_price"]
            limits = [tier["up_to"] for tier in own]
            assert limits[-1] is None
            assert limits[:-1] == sorted(set(limits[:-1]))
            assert limits[0] > 0
            prices = [tier["unit_price"] for tier in own]
            assert prices == sorted(prices, reverse=True)
            assert prices[-1] < prices[0]


def test_recurring_products_are_billed_by_the_period_they_recur_in(catalogue: list[Rows]) -> None:
    codes = {"month": {"MON", "LS"}, "year": {"ANN", "MTK"}}
    for product in products_of(catalogue):
        if product["billing_model"] == "hourly":
            assert product["unit_code"] == "HUR"
            assert product["recurring_period"] is None
        if product["billing_model"] == "subscription":
            assert product["recurring_period"] in codes
        if product["recurring_period"]:
            assert product["unit_code"] in codes[product["recurring_period"]] | {"FTK"}


def test_usual_quantities_lie_on_their_steps(catalogue: list[Rows]) -> None:
    for product in products_of(catalogue):
        low, high, step = (product[f"typical_quantity_{part}"] for part in ("min", "max", "step"))
        assert 0 < low <= high
        assert step > 0
        assert (high - low) % step == 0


def test_tax_follows_the_jurisdiction() -> None:
    expected = {
        ("DE", "apples"): ("reduced", "AA"),
        ("JP", "apples"): ("reduced", "AA"),
        ("US", "apples"): ("reduced", "AA"),
        ("US", "supplement"): ("standard", "S"),
        ("DE", "supplement"): ("reduced", "AA"),
        ("DE", "soft_drink"): ("standard", "S"),
        ("JP", "soft_drink"): ("reduced", "AA"),
        ("DE", "beer"): ("standard", "S"),
        ("JP", "beer"): ("standard", "S"),
        ("DE", "cut_flowers"): ("reduced", "AA"),
        ("JP", "cut_flowers"): ("standard", "S"),
        ("JP", "hot_drink"): ("standard", "S"),
        ("DE", "hex_bolt"): ("standard", "S"),
        ("US", "labour"): ("exempt", "E"),
    }
    families = {
        family.name: family
        for kind in content.business_types().values()
        for niche in kind.niches.values()
        for family in niche
    }
    for (code, name), tax in expected.items():
        assert content.jurisdictions()[code].tax[families[name].tax] == tax


@pytest.mark.parametrize("currency", ["EUR", "USD", "JPY"])
@pytest.mark.parametrize("rule", ["exact", "fine", "charm", "round", "metered"])
@settings(deadline=None)
@given(
    first=st.decimals(min_value="0.0001", max_value=500_000, places=4),
    second=st.decimals(min_value="0.0001", max_value=500_000, places=4),
)
def test_what_is_worth_more_never_asks_less(currency: str, rule: str, first: Decimal, second: Decimal) -> None:
    terms = content.currencies()[currency]
    low, high = (ask(amount, terms.points[rule], terms.minor_units).price for amount in sorted((first, second)))
    assert 0 < low <= high


@pytest.mark.parametrize(
    ("currency", "rule", "amount", "price", "places"),
    [
        ("EUR", "charm", "4.83", "4.79", 2),
        ("EUR", "charm", "1234", "1249.00", 2),
        ("EUR", "metered", "0.26184", "0.2618", 4),
        ("EUR", "fine", "0.08342", "0.0834", 4),
        ("JPY", "charm", "1940", "1880", 0),
        ("JPY", "charm", "1000", "998", 0),
        ("JPY", "fine", "4.52", "4.5", 1),
        ("JPY", "round", "8730", "8700", 0),
        ("JPY", "charm", "0.2", "8", 0),
    ],
)
def test_asked_prices(currency: str, rule: str, amount: str, price: str, places: int) -> None:
    terms = content.currencies()[currency]
    asked = ask(Decimal(amount), terms.points[rule], terms.minor_units)
    assert (str(asked.price), asked.places) == (price, places)


def test_quantities_move_into_local_units_as_plain_numbers() -> None:
    pound, gallon = Decimal("0.45359237"), Decimal("0.003785411784")
    assert quantities_in((Decimal(5), Decimal(120), Decimal("2.5")), pound) == (10, 265, Decimal("2.5"))
    assert in_local_unit(Decimal(50), gallon) == 13_000
    assert quantities_in((Decimal(1), Decimal(4), Decimal(1)), Decimal(1)) == (1, 4, 1)


def test_a_price_depends_on_attributes_alone_within_a_family() -> None:
    seen = 0
    for company_id in range(400):
        if catalogue_rows(CatalogueSpec(products=1), company_id)["companies"][0]["niche"] != "bearings":
            continue
        rows = catalogue_rows(CatalogueSpec(products=100), company_id)
        bearings = {p["name"]: p["unit_price"] for p in rows["products"] if p["family"] == "deep_groove"}
        for name, price in bearings.items():
            for larger in (name.replace("6204", "6205"), name.replace("6000", "6001")):
                if larger != name and larger in bearings:
                    seen += 1
                    assert bearings[larger] >= price
    assert seen > 0
