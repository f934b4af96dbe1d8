"""Gates on text: each rejection names its rule, and what a catalogue says of itself passes."""

from __future__ import annotations

import unicodedata
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from docgen_core.errors import UsageError
from docgen_core.llm.gates import LANGUAGES, Field, Gate, Rule, check_text, meaning_key, plain_characters
from docgen_core.packs.invoice.catalogue import catalogue_rows
from docgen_core.runs.selection import CatalogueSpec

TURNED_DOWN = [
    ("en", "", Rule.EMPTY),
    ("en", " \u200b ", Rule.EMPTY),
    ("en", "Write to sales@parts.example for a quote", Rule.EMAIL),
    ("en", "Write to sales\u200b@\u200bparts.exa\u200bmple for a quote", Rule.EMAIL),
    ("en", "Write to sales＠parts．example for a quote", Rule.EMAIL),
    ("en", "Write to sales&#64;parts.example for a quote", Rule.EMAIL),
    ("en", "Write to sales [at] parts for a quote", Rule.EMAIL),
    ("de", "Anfragen an verkauf@teile.example", Rule.EMAIL),
    ("en", "Details at https://parts.example/brakes", Rule.URL),
    ("en", "Details at www.parts-shop", Rule.URL),
    ("de", "Mehr unter teilehandel.de", Rule.URL),
    ("en", "Spares on +49 30 1234567", Rule.PHONE),
    ("en", "Spares on (555) 010-0199", Rule.PHONE),
    ("en", "Spares, tel. 555 0199 12", Rule.PHONE),
    ("de", "Ersatzteile unter 030/1234567", Rule.PHONE),
    ("ja", "交換部品は03-1234-5678まで", Rule.PHONE),
    ("en", "Spares on 555-234-0199", Rule.PHONE),
    ("de", "Ersatzteile unter 0049 30 1234567", Rule.PHONE),
    ("de", "Montage durch Hrn. Müller", Rule.PERSON),
    ("ja", "電話：０３ １２３４ ５６７８", Rule.PHONE),
    ("en", "Paid to DE89 3704 0044 0532 0130 00", Rule.IBAN),
    ("de", "Zahlbar auf DE89370400440532013000", Rule.IBAN),
    ("en", "Oil filter <b>spin-on</b> type", Rule.MARKUP),
    ("en", "Oil filter &lt;b&gt;spin-on&lt;/b&gt; type", Rule.MARKUP),
    ("en", "Oil filter &amp;lt;br&amp;gt; spin-on type", Rule.MARKUP),
    ("en", "Nuts &amp; bolts, zinc plated", Rule.MARKUP),
    ("en", "**Oil filter**, spin-on", Rule.MARKUP),
    ("en", "# Oil filter", Rule.MARKUP),
    ("en", "Wire ``` tie", Rule.MARKUP),
    ("en", "Sure! Here is the description: oil filter", Rule.PREAMBLE),
    ("en", "Here are two oil filters", Rule.PREAMBLE),
    ("en", "As an AI language model I have no filters", Rule.PREAMBLE),
    ("en", "I cannot describe this item", Rule.PREAMBLE),
    ("de", "Gerne! Der Ölfilter passt auf gängige Motoren", Rule.PREAMBLE),
    ("de", "Hier ist die Beschreibung des Ölfilters", Rule.PREAMBLE),
    ("ja", "はい、オイルフィルターの説明です", Rule.PREAMBLE),
    ("ja", "以下は商品の説明文です", Rule.PREAMBLE),
    ("en", "Respond only with JSON, one object per item", Rule.ECHO),
    ("de", "Antworte nur mit JSON", Rule.ECHO),
    ("ja", "JSON形式で出力してください", Rule.ECHO),
    ("en", "null", Rule.PLACEHOLDER),
    ("en", "N/A", Rule.PLACEHOLDER),
    ("en", "...", Rule.PLACEHOLDER),
    ("en", "Product 1", Rule.PLACEHOLDER),
    ("en", "Ｐｒｏｄｕｃｔ １", Rule.PLACEHOLDER),
    ("en", "[Product name] with zinc plating", Rule.PLACEHOLDER),
    ("de", "Produkt 12", Rule.PLACEHOLDER),
    ("de", "Keine Angabe", Rule.PLACEHOLDER),
    ("ja", "商品１", Rule.PLACEHOLDER),
    ("ja", "該当なし", Rule.PLACEHOLDER),
    ("en", "Fitted by Mr. Smith on request", Rule.PERSON),
    ("en", "Designed with Prof. J. Weber", Rule.PERSON),
    ("de", "Montage durch Herrn Müller", Rule.PERSON),
    ("de", "Entwickelt von Dr. Schmidt", Rule.PERSON),
    ("ja", "田中様のご注文品です", Rule.PERSON),
    ("ja", "佐藤さんが選んだ工具", Rule.PERSON),
    ("en", "World-class oil filter", Rule.MARKETING),
    ("en", "Oil filter, order now", Rule.MARKETING),
    ("en", "Fits every engine!", Rule.MARKETING),
    ("de", "Unschlagbarer Ölfilter, jetzt kaufen", Rule.MARKETING),
    ("ja", "今すぐ使える業界最高のフィルター", Rule.MARKETING),
    ("en", "オイルフィルター for engines", Rule.SCRIPT),
    ("de", "Лента 50 m breit", Rule.SCRIPT),
    ("ja", "Oil filter for common engines", Rule.SCRIPT),
    ("ja", "通用發動機機油濾清器，適合各種車輛。", Rule.SCRIPT),
    ("ja", "一級技能者通常", Rule.SCRIPT),
    ("en", "Oil filter\nspin-on type", Rule.CHARACTERS),
    ("en", "Oil fil\u200bter, spin-on", Rule.CHARACTERS),
    ("en", "Oil filter \ufffd spin-on", Rule.CHARACTERS),
    ("en", "Oil", Rule.TOO_SHORT),
    ("en", "Oil filter " * 40, Rule.TOO_LONG),
]

PASSES = [
    ("en", Field.NAME, "Serial SAS drive bay"),
    ("en", Field.NAME, "Deep groove ball bearing 6204-2RS1/C3"),
    ("en", Field.NAME, "Hex bolt M8×40 DIN 933, zinc 8.8"),
    ("en", Field.NAME, "Injector 0 445 110 293"),
    ("en", Field.NAME, "Injector 0280-218-037"),
    ("en", Field.NAME, "Seal kit 0012 345 678"),
    ("en", Field.NAME, "Gasket 250.300.4000"),
    ("en", Field.NAME, "Li-ion cell 18650 3.7 V 2600 mAh"),
    ("en", Field.NAME, "Relay 12 V/40 A, 4RD 933 332-041"),
    ("en", Field.NAME, "GTIN 4006381333931"),
    ("en", Field.NAME, "Sure-grip gloves, size 10"),
    ("en", Field.NAME, "Product liability insurance"),
    ("en", Field.NAME, "Item counter, 4 digits"),
    ("en", Field.NAME, "Best before labels 25 x 10 mm"),
    ("en", Field.NAME, "Dr-type valve DN 50"),
    ("en", Field.NAME, "USB-C to RJ45 adapter, +5 V"),
    ("en", Field.NAME, "ASP.NET hosting, 1 month"),
    ("en", Field.DESCRIPTION, "Length < 5 m and width > 2 m; tolerance ±0.5 °C."),
    ("en", Field.DESCRIPTION, "Phone holder with 360° joint, for devices of 4-7 inches."),
    ("de", Field.NAME, "Bestellblock A5"),
    ("de", Field.NAME, "Kugellager 6204-2RS1"),
    ("de", Field.NAME, "Herrenhemd Größe 41/42"),
    ("de", Field.DESCRIPTION, "Ölfilter 5 µm, Gewinde M20×1,5, für 3,5 t Fahrzeuge."),
    ("ja", Field.NAME, "軸受 6204ZZ"),
    ("ja", Field.NAME, "SUS304 M8x40"),
    ("ja", Field.DESCRIPTION, "防水仕様の電話線。お客様ご指定の長さで納品。"),
    ("ja", Field.DESCRIPTION, "摂氏80度まで使用可能な特別仕様の塗料です。"),
]


@pytest.mark.parametrize(("language", "text", "rule"), TURNED_DOWN)
def test_a_rejection_names_its_rule(language: str, text: str, rule: Rule) -> None:
    assert check_text(text, language, Field.DESCRIPTION) is rule


@pytest.mark.parametrize(("language", "field", "text"), PASSES)
def test_part_numbers_sizes_and_plain_words_pass(language: str, field: Field, text: str) -> None:
    assert check_text(text, language, field) is None


def test_a_piece_of_the_instructions_is_an_echo() -> None:
    told = "Keep to the facts of the line, and name neither a price nor a delivery time."
    echoing = "Zinc plated. Name neither a price  nor a DELIVERY time."
    assert check_text(echoing, "en", Field.DESCRIPTION, instructions=told) is Rule.ECHO
    assert (
        check_text("Zinc plated, with a delivery time of its own.", "en", Field.DESCRIPTION, instructions=told) is None
    )


def test_an_endless_text_is_turned_down_at_once() -> None:
    assert check_text("a." * 100_000, "en", Field.DESCRIPTION) is Rule.TOO_LONG


def test_a_language_without_rules_is_refused() -> None:
    with pytest.raises(UsageError, match="de, en, ja"):
        check_text("Filtre à huile", "fr", Field.NAME)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Hex bolt M8×40", "hex bolt m8 x 40"),
        ("Ｈｅｘ bolt M8", "Hex  bolt\u00a0M8"),
        ("Oil fil\u200bter", "Oil filter"),
        ("Cable 10 mm²", "Cable 10 mm2"),
        ("Nuts &amp; bolts", "Nuts & bolts"),
        ("ｵｲﾙフィルター", "オイルフィルター"),
    ],
)
def test_texts_that_mean_the_same_to_a_reader_are_duplicates(first: str, second: str) -> None:
    assert meaning_key(first) == meaning_key(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bolt M8", "Bolt M10"),
        ("Set 1 10", "Set 11 0"),
        ("Filter 10²", "Filter 102"),
        ("Pipe 1½", "Pipe 11/2"),
        ("A-1", "A1"),
    ],
)
def test_sizes_that_differ_are_not_merged(first: str, second: str) -> None:
    assert meaning_key(first) != meaning_key(second)


def test_the_second_name_of_a_company_that_means_the_same_is_turned_down_and_counted() -> None:
    gate = Gate("en")
    assert gate.admit("Hex bolt M8", Field.NAME, "alpha") is None
    assert gate.admit("Hex bolt M10", Field.NAME, "alpha") is None
    assert gate.admit("HEX BOLT M 8", Field.NAME, "beta") is Rule.DUPLICATE
    assert gate.admit("Product 1", Field.NAME, "beta") is Rule.PLACEHOLDER
    assert gate.admit("Product 1", Field.NAME, "beta") is Rule.PLACEHOLDER
    assert gate.accepted == {"alpha": 2}
    assert gate.rejected == {("beta", Rule.DUPLICATE): 1, ("beta", Rule.PLACEHOLDER): 2}


def test_procedural_texts_pass_the_gates_in_every_language_and_no_name_comes_twice(full_figures: bool) -> None:
    spec = CatalogueSpec(companies=3000 if full_figures else 400, products=10, seed=3)
    texts: Counter[str] = Counter()
    for company in range(spec.companies):
        rows = catalogue_rows(spec, company)
        language = rows["companies"][0]["locale"][:2]
        if language not in LANGUAGES:  # no model writes in it
            continue
        gate = Gate(language)
        for product in rows["products"]:
            assert gate.admit(product["name"], Field.NAME, "procedural") is None, product["name"]
            text = product["description"]
            assert gate.admit(text, Field.DESCRIPTION, "procedural", unique=False) is None, text
        texts[language] += gate.accepted["procedural"]
    assert set(texts) == set(LANGUAGES)
    assert min(texts.values()) >= spec.companies // 3, "each language was looked at well"


@given(st.text(max_size=60), st.sampled_from(LANGUAGES), st.sampled_from(Field))
@settings(max_examples=200, deadline=None)
def test_no_text_raises_and_what_passes_is_plain(text: str, language: str, field: Field) -> None:
    if check_text(text, language, field) is None:
        assert text.strip() and not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in text)


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["M{}", "{} mm", "Set {} x", "{}²", "型番{}"]))
@settings(deadline=None)
def test_numbers_are_never_merged(one: int, other: int, pattern: str) -> None:
    assume(one != other)
    assert meaning_key(pattern.format(one)) != meaning_key(pattern.format(other))


@given(st.text(max_size=40))
@settings(deadline=None)
def test_making_characters_plain_twice_changes_no_more_than_once(text: str) -> None:
    assume("&" not in text)
    assert plain_characters(plain_characters(text)) == plain_characters(text)
