"""What each country's law charges and says, against the public facts it stands for."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from docgen_core.draws import Draws
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, Facts
from docgen_core.packs.invoice.jurisdictions.us import state_taxes
from docgen_core.packs.invoice.model import TaxLine
from docgen_core.packs.invoice.places import Place, places

NOTHING = Decimal(0)


def town(name: str) -> Place:
    return next(place for place in places("US") if place.city == name)


def groceries_in(name: str) -> Tax:
    tax_class, _ = content.jurisdictions()["US"].tax["food"]
    return JURISDICTIONS["US"].tax(tax_class, town(name))


def mentions_of(country: str, tax: Tax, base: Decimal = Decimal(1)) -> tuple[str, ...]:
    line = TaxLine(1, tax.category, tax.rate, tax.label, base, NOTHING, base, tax.rate / 100, reason=tax.reason)
    day = date(2024, 3, 5)
    return JURISDICTIONS[country].mentions(Facts("invoice", day, day, day, [line]))


@pytest.mark.parametrize(
    ("city", "rate", "label"),
    [
        ("Nashville", "6.25", "Grocery sales tax 6.25% (TN 4% + local 2.25%)"),
        ("Richmond", "1", "VA grocery sales tax 1%"),
        ("Chicago", "1", "IL grocery sales tax 1%"),
        ("Kansas City", "5.6", "Grocery sales tax 5.6% (MO 1.225% + local 4.375%)"),
        ("Little Rock", "2.25", "Grocery sales tax 2.25% (AR 0.125% + local 2.125%)"),
        ("Wichita", "1", "Wichita grocery sales tax 1%"),
        ("Salt Lake City", "3", "UT grocery sales tax 3%"),
    ],
)
def test_groceries_are_taxed_where_a_state_or_its_towns_tax_them(city: str, rate: str, label: str) -> None:
    tax = groceries_in(city)
    assert (tax.category, str(tax.rate), tax.label, tax.reason) == ("AA", rate, label, None)
    assert mentions_of("US", tax) == ()


def test_a_state_that_taxes_groceries_like_anything_else_has_one_rate() -> None:
    assert groceries_in("Boise") == JURISDICTIONS["US"].tax("standard", town("Boise"))


@pytest.mark.parametrize("city", ["Austin", "Los Angeles", "Denver", "Phoenix", "Miami", "Boston", "Seattle"])
def test_groceries_are_exempt_where_nobody_taxes_them_and_the_note_names_the_state(city: str) -> None:
    tax, state = groceries_in(city), state_taxes()[town(city).region]
    assert (tax.category, tax.rate) == ("E", NOTHING)
    assert mentions_of("US", tax) == (f"Non-taxable items are exempt from {state.name} sales tax.",)


@pytest.mark.parametrize("place", places("US"), ids=lambda place: place.city)
def test_groceries_are_called_exempt_only_where_the_table_charges_nothing(place: Place) -> None:
    state, tax = state_taxes()[place.region], groceries_in(place.city)
    charged = state.groceries + (Decimal(place.facts["local_rate"]) if state.groceries_local else NOTHING)
    assert tax.rate == charged
    assert (tax.reason is None) == bool(charged)


@pytest.mark.parametrize("country", sorted(JURISDICTIONS))
def test_a_country_has_a_tax_for_each_class_its_products_have_and_the_category_they_name(country: str) -> None:
    for tax_class, category in content.jurisdictions()[country].tax.values():
        charged = {JURISDICTIONS[country].tax(tax_class, place).category for place in places(country)}
        assert category in charged
        assert country == "US" or charged == {category}


@pytest.mark.parametrize("country", ["DE", "JP"])
def test_law_that_no_product_is_under_is_not_there(country: str) -> None:
    used = {tax_class for tax_class, _ in content.jurisdictions()[country].tax.values()}
    for tax_class in {"standard", "reduced", "zero", "exempt"} - used:
        with pytest.raises(KeyError):
            JURISDICTIONS[country].tax(tax_class, places(country)[0])


@pytest.mark.parametrize(
    ("country", "form", "percent"),
    [
        ("ES", "C.B.", "15"),
        ("ES", "S.L.P.", None),
        ("IT", "Studio Associato", "20"),
        ("IT", "S.r.l.", None),
        ("BR", "Ltda.", "6.15"),
        ("BR", "Ltda. - ME", None),
        ("FR", "SARL", None),
    ],
)
def test_tax_is_kept_back_only_from_those_who_owe_it_so(country: str, form: str, percent: str | None) -> None:
    kept = JURISDICTIONS[country].withholding("architecture_office", form)
    assert (str(kept[1]) if kept else None) == percent


def test_towns_along_the_northern_border_of_mexico_have_half_the_rate() -> None:
    mexico = JURISDICTIONS["MX"]
    rates = {str(mexico.tax("standard", place).rate): place.region for place in places("MX")}
    assert set(rates) == {"16", "8"}
    assert all(mexico.tax("standard", place).rate == 8 for place in places("MX") if place.region == "B.C.")


def test_brazil_charges_iss_on_services_by_town_and_icms_on_goods_by_state() -> None:
    brazil = JURISDICTIONS["BR"]
    for place in places("BR"):
        service, goods = brazil.tax("service", place), brazil.tax("standard", place)
        assert service.label.startswith("ISS") and 2 <= service.rate <= 5
        assert goods.label.startswith("ICMS") and 17 <= goods.rate <= 22


def test_turkish_rates_are_those_of_the_day() -> None:
    turkiye, place = JURISDICTIONS["TR"], places("TR")[0]
    charged = {
        day: [turkiye.on(day).tax(name, place).rate for name in ("standard", "reduced", "food")]
        for day in (date(2023, 7, 9), date(2023, 7, 10))
    }
    assert charged == {date(2023, 7, 9): [18, 8, 1], date(2023, 7, 10): [20, 10, 1]}


def test_poles_print_split_payment_above_fifteen_thousand_and_swedes_their_approval_for_tax() -> None:
    day, swede = date(2024, 3, 5), JURISDICTIONS["SE"]

    def facts(net: int, kind: str = "invoice") -> Facts:
        base = Decimal(net)
        return Facts(
            kind, day, day, day, [TaxLine(1, "S", Decimal(23), "VAT 23%", base, NOTHING, base, base * 23 / 100)]
        )

    assert JURISDICTIONS["PL"].mentions(facts(12_195)) == ()
    assert JURISDICTIONS["PL"].mentions(facts(12_196)) == ("Mechanizm podzielonej płatności.",)
    assert swede.mentions(facts(100)) == ("Godkänd för F-skatt.",) != swede.mentions(facts(100, "receipt"))


def test_koreans_mostly_pay_by_the_end_of_next_month() -> None:
    korea = JURISDICTIONS["KR"]
    terms = {korea.terms(Draws("terms", company), date(2024, 1, 30)) for company in range(60)}
    assert {date(2024, 2, 29)} == {each.due for each in terms if "익월" in each.text}
    assert korea.period(date(2024, 2, 1), date(2024, 2, 29)) == "2024년 2월분"


def test_italian_exempt_sums_bear_the_stamp_duty_above_its_threshold() -> None:
    exempt = JURISDICTIONS["IT"].untaxed("E")
    assert "Imposta di bollo" not in " ".join(mentions_of("IT", exempt, Decimal("77.47")))
    assert "Imposta di bollo" in " ".join(mentions_of("IT", exempt, Decimal("77.48")))
    charged = JURISDICTIONS["IT"].tax("standard", places("IT")[0])
    assert "Imposta di bollo" not in " ".join(mentions_of("IT", charged, Decimal(100)))


def test_french_invoices_say_what_a_late_payer_owes() -> None:
    charged = JURISDICTIONS["FR"].tax("intermediate", places("FR")[0])
    assert (charged.category, charged.label.replace("\u202f", " ").replace("\u00a0", " ")) == ("AA", "TVA 10 %")
    assert "40 €" in mentions_of("FR", charged)[-1]
