"""Invented companies: numbers that are right in form and that nobody can hold, and places that exist."""

from __future__ import annotations

import re
from uuid import UUID

import pytest
from stdnum import bic, iban, luhn
from stdnum.au import abn
from stdnum.br import cnpj
from stdnum.ca import bn
from stdnum.ch import vat as swiss_vat
from stdnum.de import handelsregisternummer, stnr
from stdnum.de import vat as german_vat
from stdnum.es import cif
from stdnum.es import iban as spanish_iban
from stdnum.fr import siren, siret, tva
from stdnum.gb import vat as british_vat
from stdnum.ie import vat as irish_vat
from stdnum.in_ import gstin, pan
from stdnum.it import codicefiscale, iva
from stdnum.jp import cn
from stdnum.kr import brn
from stdnum.mx import rfc
from stdnum.nl import btw, postcode
from stdnum.pl import nip, regon
from stdnum.se import orgnr
from stdnum.se import vat as swedish_vat
from stdnum.tr import vkn
from stdnum.us import ein, rtn

from docgen_core.draws import Draws
from docgen_core.locales import locale_of
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, LOCALES
from docgen_core.packs.invoice.jurisdictions.us import state_taxes
from docgen_core.packs.invoice.names import company_name
from docgen_core.packs.invoice.parties import buyer, customer_abroad, customer_of, seller
from docgen_core.packs.invoice.places import name_parts, places, regions

COMPANIES = range(250)
COUNTRIES = sorted(JURISDICTIONS)

LAENDER = {
    "BW": "Baden-Württemberg", "BY": "Bayern", "BE": "Berlin", "BB": "Brandenburg", "HB": "Bremen",
    "HH": "Hamburg", "HE": "Hessen", "MV": "Mecklenburg-Vorpommern", "NI": "Niedersachsen",
    "NW": "Nordrhein-Westfalen", "RP": "Rheinland-Pfalz", "SL": "Saarland", "SN": "Sachsen",
    "ST": "Sachsen-Anhalt", "SH": "Schleswig-Holstein", "TH": "Thüringen",
}  # fmt: skip


def numbers(country: str, scheme: str) -> list[str]:
    found = [
        entry.value
        for company in COMPANIES
        for entry in seller(country, company, "general").party.registrations
        if entry.scheme == scheme
    ]
    assert len(found) > 20
    return found


POSTCODES = {
    "JP": r"\d{3}-0000",
    "GB": r"[A-Z]{1,2}\d{1,2}[A-Z]? \d[ABD-HJLNP-UW-Z]{2}",
    "BR": r"\d{5}-\d{3}",
    "PL": r"\d\d-\d{3}",
    "SE": r"\d{3} \d\d",
    "CA": r"[A-CEGHJ-NPR-TVXY]\d[A-CEGHJ-NPR-TV-Z] \d[A-CEGHJ-NPR-TV-Z]\d",
    "IE": r"[AC-FHKNPRTV-Y]\d[\dW] [AC-FHKNPRTV-Y]\d[AC-FHKNPRTV-Y]\d",
    "IN": r"\d{3} \d{3}",
}
"""Of countries that write more than four to six digits."""


@pytest.mark.parametrize("country", COUNTRIES)
def test_there_are_towns_enough_each_with_its_postcode(country: str) -> None:
    towns = places(country)
    assert len({(place.city, place.region, place.facts.get("area")) for place in towns}) >= 40
    assert len({place.postcode for place in towns}) == len(towns)
    form = POSTCODES.get(country, r"\d{4,6}")
    assert all(re.fullmatch(form, place.postcode) for place in towns)


def test_every_state_with_towns_has_its_tax_and_every_land_its_form() -> None:
    assert set(regions("US")) == set(state_taxes())
    assert set(regions("DE")) == set(LAENDER)
    for place in places("US"):
        assert 0 <= float(place.facts["local_rate"]) < 8


def test_german_vat_ids_have_right_check_digits_from_a_range_not_given_out() -> None:
    for value in numbers("DE", "DE:VAT"):
        german_vat.validate(value)
        assert value.startswith("DE99")


def test_german_tax_numbers_have_their_lands_form_and_no_real_district() -> None:
    for land, name in LAENDER.items():
        for number in range(20):
            value = registrations.german_tax_number(Draws("test", number), land)
            stnr.validate(value, name)
            country_wide = stnr.to_country_number(value, name)
            assert int(country_wide[5 : 9 if land == "NW" else 8]) < 100


def test_german_register_entries_name_a_court_that_there_is() -> None:
    for value in numbers("DE", "DE:HR"):
        court, entry = re.fullmatch(r"Amtsgericht (.+), (HR[AB] 9\d{5})", value).groups()  # type: ignore[union-attr]
        handelsregisternummer.validate(f"{court} {entry}")


def test_partnerships_stand_in_section_a() -> None:
    for company in COMPANIES:
        resident = seller("DE", company, "general")
        entry = next(item.value for item in resident.party.registrations if item.scheme == "DE:HR")
        assert ("HRA" in entry) == resident.party.name.endswith("KG")


def test_american_eins_have_a_prefix_that_was_never_issued() -> None:
    for value in numbers("US", "US:EIN"):
        assert re.fullmatch(r"\d\d-\d{7}", value)
        assert not ein.is_valid(value)


def test_american_permits_are_only_held_where_there_is_a_tax() -> None:
    for company in COMPANIES:
        resident = seller("US", company, "general")
        if any(entry.scheme == "US:PERMIT" for entry in resident.party.registrations):
            assert state_taxes()[resident.place.region].rate > 0


def test_japanese_registration_numbers_have_right_check_digits_of_no_register_office() -> None:
    for value in numbers("JP", "JP:T"):
        assert re.fullmatch(r"T\d{13}", value)
        cn.validate(value[1:])
        assert value[2:4] == "99"


@pytest.mark.parametrize("company", range(60))
def test_bank_accounts_check_and_belong_to_no_bank(company: int) -> None:
    draws = Draws("account", company)
    german = {column: value for column, _, value in JURISDICTIONS["DE"].account(draws, "X")}
    iban.validate(german["iban"])
    assert german["iban"].replace(" ", "")[4] == "9"
    bic.validate(german["bic"])
    assert german["bic"][7] == "0"
    american = {column: value for column, _, value in JURISDICTIONS["US"].account(draws, "X")}
    rtn.validate(american["routing_number"])
    prefix = int(american["routing_number"][:2])
    assert not (0 <= prefix <= 12 or 21 <= prefix <= 32 or 61 <= prefix <= 72 or prefix == 80)
    japanese = {column: value for column, _, value in JURISDICTIONS["JP"].account(draws, "X")}
    assert re.fullmatch(r"\d{7}", japanese["account_number"])


@pytest.mark.parametrize(
    ("country", "column", "code"),
    [
        ("DE", "iban", slice(5, 14)),
        ("DE", "bic", slice(None)),
        ("US", "routing_number", slice(None)),
    ],
)
def test_a_bank_has_one_code_whoever_banks_there(country: str, column: str, code: slice) -> None:
    found: dict[str, set[str]] = {}
    accounts = set()
    for company in COMPANIES:
        account = {name: value for name, _, value in JURISDICTIONS[country].account(Draws("account", company), "X")}
        found.setdefault(account["bank_name"], set()).add(account[column][code])
        accounts.add(account.get("iban") or account["account_number"])
    assert len(found) == len(name_parts(JURISDICTIONS[country].locale)["bank"]["names"])
    assert all(len(codes) == 1 for codes in found.values())
    assert len(set.union(*found.values())) == len(found)
    assert len(accounts) == len(COMPANIES)


PHONES = {
    "DE": r"030 23125 \d{3}|040 66969 \d{3}|069 90009 \d{3}|089 99998 \d{3}|0221 4710 \d{3}",
    "US": r"\(\d{3}\) 555-01\d\d",
    "JP": r"0\d{1,3}-0\d{1,3}-\d{4}",
    "AE": r"\+971 [2-9] 0\d\d \d{4}",
    "AU": r"\(0[2378]\) (5550|7010) \d{4}",
    "CA": r"\d{3}-555-01\d\d",
    "CH": r"0\d\d 0\d\d \d\d \d\d",
    "IN": r"0\d{2,3} 1\d{3} \d{3,4}",
    "ZA": r"0\d\d 0\d\d \d{4}",
    "GB": r"01632 960\d{3}|020 7946 0\d{3}|01\d1 496 0\d{3}|011\d 496 0\d{3}|0191 498 0\d{3}|029 2018 0\d{3}"
    r"|028 9649 6\d{3}",
    "FR": r"(01 99 00|02 61 91|03 53 01|04 65 71|05 36 49)( \d\d){2}",
    "ES": r"(929|940|970|989)( \d\d){3}",
    "IT": r"0\d{3} \d{6}",
    "MX": r"\d\d 0\d{3} \d{4}|\d{3} 0\d\d \d{4}",
    "BR": r"\(\d\d\) 1\d{3}-\d{4}",
    "NL": r"0\d\d - 0\d\d \d\d \d\d|0\d{3} - 0\d \d\d \d\d",
    "PL": r"\d\d 0\d\d \d\d \d\d",
    "SE": r"08-465 004 \d\d|031-390 06 \d\d|040-628 04 \d\d|0980-319 2\d\d",
    "TR": r"0[2-4]\d\d 0\d\d \d\d \d\d",
    "KR": r"0\d{1,2}-0\d\d-\d{4}",
}
"""Numbers kept for fiction, or that cannot be dialled."""


def digits_of(pattern: str) -> str:
    """The country's one pattern as a regular expression; a country without one is in `PHONES`."""
    assert "#" in pattern
    return re.escape(pattern).replace(r"\#", r"\d")


@pytest.mark.parametrize("country", COUNTRIES)
def test_nobody_can_be_called_or_written_to(country: str) -> None:
    for company in COMPANIES:
        party = seller(country, company, "general").party
        assert re.fullmatch(PHONES.get(country) or digits_of(JURISDICTIONS[country].phone_pattern), party.phone)
        if country == "JP":
            assert len(party.phone.replace("-", "")) == 10
        assert re.fullmatch(r"[a-z]+@[a-z0-9-]+\.example", party.email)
        assert party.website == f"www.{party.email.split('@')[1]}"


@pytest.mark.parametrize("country", COUNTRIES)
def test_a_company_is_the_same_whenever_it_is_asked_for_and_unlike_others(country: str) -> None:
    made = [seller(country, company, "industrial_supplies") for company in COMPANIES]
    again = seller.__wrapped__(country, 17, "industrial_supplies")
    assert again == made[17]
    assert len({resident.party.name for resident in made}) > 0.93 * len(made)
    assert len({resident.place.postcode for resident in made}) > 34
    assert len({resident.party.address_lines for resident in made}) >= 0.98 * len(made)


FORMS = {
    "de": r".+ (GmbH|GmbH & Co\. KG|KG|AG)",
    "en": r".+ (Inc\.|LLC|Co\.|Corp\.)",
    "ja": r"(株式会社|合同会社).+|.+(株式会社|合同会社)",
    "nl": r".+ ([BNC]\.V\.|V\.O\.F\.)",
    "pl": r".+ (sp\. z o\.o\.( sp\.k\.)?|S\.A\.|sp\.j\.)",
    "sv": r".+ (AB|HB|KB)",
    "tr": r".+ (Ltd\. Şti\.|A\.Ş\.)",
    "ko": r"((주식회사|유한회사) |\(주\))\S+|\S+( 주식회사|\(주\))",
}


@pytest.mark.parametrize("language", list(FORMS))
def test_names_carry_a_legal_form_of_the_country(language: str) -> None:
    for number in range(200):
        name = company_name(language, "office_supplies", Draws("name", number))
        assert re.fullmatch(FORMS[language], name.full)
        assert name.form in name.full
        assert 1 <= len(name.monogram) <= 2


@pytest.mark.parametrize("country", COUNTRIES)
def test_customers_come_back_and_keep_their_relation(country: str) -> None:
    home = seller(country, 5, "general")
    meetings = [customer_of(home, 5, "small", Draws("doc", number)) for number in range(300)]
    by_name = {resident.party.name: relation.bits("x") for resident, relation in meetings}
    assert 8 <= len(by_name) <= 20
    assert all(by_name[resident.party.name] == relation.bits("x") for resident, relation in meetings)
    assert all(resident.party.country == country for resident, _ in meetings)
    assert home.party.name not in by_name


def test_a_buyer_is_one_company_whoever_sells_to_it() -> None:
    first = buyer("DE", "BY", 12)
    assert buyer.__wrapped__("DE", "BY", 12) == first
    assert first.place.region == "BY"


def test_british_numbers_check_and_were_never_given_out() -> None:
    for value in numbers("GB", "GB:VAT"):
        assert british_vat.is_valid(value)
        assert 9_990_001 <= int(value.replace(" ", "")[2:9]) <= 9_999_999
    for company in range(40):
        account = {column: value for column, _, value in JURISDICTIONS["GB"].account(Draws("account", company), "X")}
        if "iban" in account:
            iban.validate(account["iban"])
            assert account["iban"].replace(" ", "")[8:10] == "00"
        else:
            assert re.fullmatch(r"00-\d\d-\d\d", account["routing_number"])


def accounts(country: str) -> list[dict[str, str]]:
    return [
        {column: value for column, _, value in JURISDICTIONS[country].account(Draws("account", company), "X")}
        for company in range(40)
    ]


def test_french_numbers_agree_with_one_another_and_are_no_companys() -> None:
    for company in range(60):
        numbers = {entry.scheme: entry.value for entry in seller("FR", company, "general").party.registrations}
        number = tva.to_siren(tva.validate(numbers["FR:VAT"]))
        assert siren.is_valid(number) and number.startswith("29")
        assert siret.validate(numbers["FR:TAX"])[:9] == number
        assert numbers["FR:REG"].replace(" ", "").endswith(number)
    for account in accounts("FR"):
        digits = iban.validate(account["iban"])[4:]
        assert digits[0] == "9" and int(digits) % 97 == 0  # the RIB key makes it a multiple


def test_spanish_numbers_check_and_belong_to_no_province() -> None:
    for company in range(60):
        party = seller("ES", company, "general").party
        number = next(entry.value for entry in party.registrations if entry.scheme == "ES:VAT")
        assert cif.is_valid(number) and number[1:3] == "00"
        assert (number[0] == "A") == party.name.endswith("S.A.")
    partners = [seller("ES", company, "architecture_office") for company in range(40)]
    assert {resident.name.form: resident.party.registrations[0].value[0] for resident in partners} == {
        "S.L.P.": "B",
        "S.C.P.": "J",
        "C.B.": "E",
    }
    for account in accounts("ES"):
        assert spanish_iban.validate(account["iban"])[4:6] == "95"


def test_italian_numbers_check_and_lie_beyond_what_was_given_out() -> None:
    for company in range(60):
        resident = seller("IT", company, "general")
        number = next(entry.value for entry in resident.party.registrations if entry.scheme == "IT:VAT")
        assert iva.is_valid(number) and number[2] == "7"
        assert number[9:12] == resident.place.facts["office"]
    for account in accounts("IT"):
        digits = iban.validate(account["iban"])[4:]
        assert digits[0] == codicefiscale.calc_check_digit(digits[1:]) and digits[1:3] == "95"


def test_mexican_numbers_check_and_date_from_a_day_without_notaries() -> None:
    for number in numbers("MX", "MX:VAT"):
        assert rfc.is_valid(number, validate_check_digits=True)
        assert number[5:9] == "0101"
    for account in accounts("MX"):
        clabe = account["account_number"]
        weights = (3, 7, 1) * 6
        assert clabe.startswith("99") and len(clabe) == len(weights)
        assert sum(int(digit) * weight for digit, weight in zip(clabe, weights, strict=True)) % 10 == 0


def test_brazilian_numbers_check_and_lie_beyond_what_was_given_out() -> None:
    for number in numbers("BR", "BR:VAT"):
        assert cnpj.is_valid(number) and number.startswith("99.9") and "/0001-" in number
    keys = [account["payment_key"] for account in accounts("BR") if "payment_key" in account]
    assert len(set(keys)) == len(keys) > 10
    assert all(UUID(key).version == 4 for key in keys)


def test_dutch_numbers_check_and_lie_where_none_are_given_out() -> None:
    for number in numbers("NL", "NL:VAT"):
        assert btw.is_valid(number) and number.startswith("NL9999")
    assert all(re.fullmatch(r"00\d{6}", number) for number in numbers("NL", "NL:REG"))
    assert all(iban.is_valid(account["iban"]) for account in accounts("NL"))
    for company in COMPANIES:
        letters = seller("NL", company, "general").party.address_lines[1].split()[1]
        assert postcode.is_valid(f"1234{letters}")


def test_polish_numbers_check_and_name_no_tax_office_or_bank() -> None:
    for number in numbers("PL", "PL:VAT"):
        assert nip.is_valid(number) and nip.compact(number)[1:3] == "00"
    assert all(regon.is_valid(number) for number in numbers("PL", "PL:TAX"))
    for account in accounts("PL"):
        digits = iban.validate(account["iban"])[4:]
        assert digits[0] == "0"
        assert (
            sum(int(digit) * weight for digit, weight in zip(digits, (3, 9, 7, 1, 3, 9, 7, 1), strict=False)) % 10 == 0
        )


def test_swedish_numbers_check_and_are_of_no_kind_of_company() -> None:
    for number in numbers("SE", "SE:VAT"):
        assert swedish_vat.is_valid(number) and number[2:4] in ("57", "98")
    assert all(orgnr.is_valid(number) and int(number[2]) >= 2 for number in numbers("SE", "SE:REG"))
    for account in accounts("SE"):
        assert re.fullmatch(r"991-\d{4}", account["account_number"])
        assert luhn.is_valid(account["account_number"].replace("-", ""))
        assert iban.is_valid(account["iban"]) if "iban" in account else len(account) == 1


def test_turkish_numbers_check_and_stand_beside_the_tax_office_of_the_place() -> None:
    for company in COMPANIES:
        resident = seller("TR", company, "general")
        told = {entry.scheme: entry.value for entry in resident.party.registrations}
        assert vkn.is_valid(told["TR:VAT"]) and told["TR:VAT"].startswith("000")
        assert told["TR:TAX"] == resident.place.facts["tax_office"]
    assert all(iban.is_valid(account["iban"]) for account in accounts("TR"))


def test_korean_business_numbers_have_the_check_digit_and_no_tax_office() -> None:
    for number in numbers("KR", "KR:VAT"):
        assert brn.is_valid(number) and number[0] == "9"
        digits = [int(digit) for digit in number if digit.isdigit()]
        weighed = sum(digit * weight for digit, weight in zip(digits, (1, 3, 7, 1, 3, 7, 1, 3, 5, 1), strict=True))
        assert (weighed + digits[8] * 5 // 10) % 10 == 0


def test_numbers_of_the_further_english_speaking_countries_check() -> None:
    for value in numbers("IE", "IE:VAT"):
        irish_vat.validate(value)
        assert value.startswith("IE999")
    for value in numbers("AU", "AU:VAT"):
        abn.validate(value)
        assert value.replace(" ", "")[2:5] == "999"
    for value in numbers("ZA", "ZA:VAT"):
        assert value.startswith("499")
        luhn.validate(value)
    for value in numbers("CA", "CA:VAT"):
        bn.validate(value)
        assert value.startswith("00")
    for value in numbers("AE", "AE:VAT"):
        assert re.fullmatch(r"999\d{12}", value)


def test_indian_numbers_check_name_their_state_and_belong_to_no_series() -> None:
    for company in COMPANIES:
        resident = seller("IN", company, "general")
        number = next(entry.value for entry in resident.party.registrations if entry.scheme == "IN:VAT")
        gstin.validate(number)
        assert number[:2] == resident.place.facts["state_code"]
        assert number[2:4] == "ZZ"
        for entry in resident.party.registrations:
            if entry.scheme == "IN:TAX":
                assert pan.validate(entry.value) == gstin.to_pan(number)


@pytest.mark.parametrize("locale", LOCALES["CH"])
def test_swiss_numbers_check_and_companies_sit_where_their_language_is_spoken(locale: str) -> None:
    towns = set()
    for company in range(60):
        resident = seller("CH", company, "general", locale)
        (number,) = (entry.value for entry in resident.party.registrations)
        swiss_vat.validate(number)
        assert number.startswith("CHE-999")
        towns.add(resident.place.region)
        account = {column: value for column, _, value in JURISDICTIONS["CH"].account(Draws("account", company), "X")}
        iban.validate(account["iban"])
    assert ("GE" in towns) == (locale == "fr-CH")
    assert ("TI" in towns) == (locale == "it-CH")


def test_quebec_writes_french_and_is_billed_in_it() -> None:
    for company in range(60):
        assert seller("CA", company, "general", "fr-CA").place.region == "QC"
        assert seller("CA", company, "general").place.region != "QC"
    assert buyer("CA", "QC", 4).party.address_lines[-1].count("(QC)") == 1


@pytest.mark.parametrize("country", COUNTRIES)
def test_a_company_abroad_has_a_number_and_its_country_in_the_sellers_language(country: str) -> None:
    home = seller("DE", 5, "general")
    if country == "DE":
        return
    resident, _ = customer_abroad(home, 5, country, Draws("doc", 1), "de-DE")
    (number,) = resident.party.registrations or (None,) if country != "KW" else (None,)
    assert country == "KW" or (number is not None and number.label == "USt-IdNr. des Empfängers")
    assert resident.party.country == country
    assert resident.party.address_lines[-1] == locale_of("de-DE").territories[country]


@pytest.mark.parametrize("country", [code for code in COUNTRIES if JURISDICTIONS[code].european and code != "NL"])
def test_a_buyer_elsewhere_in_the_union_is_known_by_its_countrys_letters(country: str) -> None:
    resident, _ = customer_abroad(seller("NL", 5, "general"), 5, country, Draws("abroad", country), "nl-NL")
    (number,) = resident.party.registrations
    assert number.label == "Btw-nummer afnemer"
    assert number.value.startswith(country)
    assert resident.party.address_lines[-1][0].isupper()
