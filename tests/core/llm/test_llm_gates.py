"""Gates on text: each rejection names its rule, and what a catalogue says of itself passes."""

from __future__ import annotations

import unicodedata
from itertools import count, permutations
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from docgen_core.errors import UsageError
from docgen_core.llm.gates import Field, Gate, Rule, check_text, meaning_key, plain_characters
from docgen_core.llm.languages import LANGUAGES
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
    ("ko", "Oil filter for common engines", Rule.SCRIPT),
    ("ko", "一般的なエンジン用のオイルフィルターです。", Rule.SCRIPT),
    ("fr", "Filtre à huile, для двигателей", Rule.SCRIPT),
    ("fr", "Oil filter for engines, with a seal.", Rule.LANGUAGE),
    ("ko", "오일 필터 for common engines, supplied with a seal.", Rule.LANGUAGE),
    ("en", "Oil filter\nspin-on type", Rule.CHARACTERS),
    ("en", "Oil fil\u200bter, spin-on", Rule.CHARACTERS),
    ("en", "Oil filter \ufffd spin-on", Rule.CHARACTERS),
    ("en", "Oil", Rule.TOO_SHORT),
    ("en", "Oil filter " * 40, Rule.TOO_LONG),
]

TURNED_DOWN_ABROAD = {
    "fr": [
        ("Bien sûr ! Le filtre convient aux moteurs courants.", Rule.PREAMBLE),
        ("Voici la description du filtre à huile", Rule.PREAMBLE),
        ("Je suis désolé, je ne peux pas décrire cet article.", Rule.PREAMBLE),
        ("En tant qu'IA, je n'ai pas de filtre", Rule.PREAMBLE),
        ("Réponds uniquement en JSON", Rule.ECHO),
        ("Rédigez une description de chaque ligne", Rule.ECHO),
        ("Produit n° 12", Rule.PLACEHOLDER),
        ("Non disponible", Rule.PLACEHOLDER),
        ("[Nom du produit] zingué", Rule.PLACEHOLDER),
        ("Monté par M. Dupont sur demande", Rule.PERSON),
        ("Monté par Mme Lefèvre", Rule.PERSON),
        ("Le meilleur filtre, commandez vite", Rule.MARKETING),
        ("Pièces au 01 99 00 12 34", Rule.PHONE),
        ("Tél : 555 0199 12", Rule.PHONE),
        ("Écrire à ventes (arobase) pieces", Rule.EMAIL),
        ("Voir pieces-auto.fr", Rule.URL),
    ],
    "es": [
        ("¡Claro! El filtro sirve para motores", Rule.PREAMBLE),
        ("Aquí tienes la descripción del filtro", Rule.PREAMBLE),
        ("Lo siento, no puedo describir este artículo.", Rule.PREAMBLE),
        ("Como modelo de lenguaje no tengo filtros", Rule.PREAMBLE),
        ("Responde solo con JSON", Rule.ECHO),
        ("Escribe una descripción de cada línea", Rule.ECHO),
        ("Artículo 3", Rule.PLACEHOLDER),
        ("No disponible", Rule.PLACEHOLDER),
        ("Montado por el Sr. García", Rule.PERSON),
        ("Montado por doña Lucía", Rule.PERSON),
        ("El mejor filtro del mercado", Rule.MARKETING),
        ("Teléfono: 555 019 912", Rule.PHONE),
        ("Detalles en recambios.es", Rule.URL),
    ],
    "it": [
        ("Certo! Il filtro è adatto ai motori", Rule.PREAMBLE),
        ("Ecco la descrizione del filtro", Rule.PREAMBLE),
        ("Mi dispiace, non posso descrivere l'articolo.", Rule.PREAMBLE),
        ("In quanto modello linguistico non ho filtri", Rule.PREAMBLE),
        ("Rispondi solo in formato JSON", Rule.ECHO),
        ("Scrivi una descrizione per ogni riga", Rule.ECHO),
        ("Prodotto 4", Rule.PLACEHOLDER),
        ("Nessuna descrizione disponibile", Rule.PLACEHOLDER),
        ("Montato dal Sig. Rossi", Rule.PERSON),
        ("Scelto dalla dott.ssa Bianchi", Rule.PERSON),
        ("Il miglior filtro, ordina subito", Rule.MARKETING),
        ("Telefono 055 5019 9123", Rule.PHONE),
    ],
    "pt": [
        ("Claro! O filtro serve para motores", Rule.PREAMBLE),
        ("Aqui está a descrição do filtro", Rule.PREAMBLE),
        ("Desculpe, não posso descrever este item.", Rule.PREAMBLE),
        ("Como modelo de linguagem não tenho filtros", Rule.PREAMBLE),
        ("Responda apenas em formato JSON", Rule.ECHO),
        ("Escreva uma descrição de cada linha", Rule.ECHO),
        ("Produto nº 7", Rule.PLACEHOLDER),
        ("Não informado", Rule.PLACEHOLDER),
        ("Montado pelo Sr. Silva", Rule.PERSON),
        ("O melhor filtro, compre já", Rule.MARKETING),
        ("Peças no (11) 95550-0199", Rule.PHONE),
        ("Telefone: 5550 0199", Rule.PHONE),
    ],
    "nl": [
        ("Natuurlijk! Het filter past op motoren", Rule.PREAMBLE),
        ("Hier is de omschrijving van het filter", Rule.PREAMBLE),
        ("Sorry, ik kan dit artikel niet beschrijven.", Rule.PREAMBLE),
        ("Als taalmodel heb ik geen filters", Rule.PREAMBLE),
        ("Antwoord alleen met JSON", Rule.ECHO),
        ("Schrijf een omschrijving van elke regel", Rule.ECHO),
        ("Artikel nr. 5", Rule.PLACEHOLDER),
        ("Niet van toepassing", Rule.PLACEHOLDER),
        ("Gemonteerd door dhr. De Vries", Rule.PERSON),
        ("Gemonteerd door mevrouw Jansen", Rule.PERSON),
        ("Het beste filter, bestel nu", Rule.MARKETING),
        ("Telefoon 020 555 0199", Rule.PHONE),
    ],
    "pl": [
        ("Oczywiście! Filtr pasuje do silników", Rule.PREAMBLE),
        ("Oto opis filtra oleju", Rule.PREAMBLE),
        ("Przepraszam, nie mogę opisać tego artykułu.", Rule.PREAMBLE),
        ("Jako model językowy nie mam filtrów", Rule.PREAMBLE),
        ("Odpowiedz tylko w formacie JSON", Rule.ECHO),
        ("Napisz opis każdej pozycji", Rule.ECHO),
        ("Produkt nr 9", Rule.PLACEHOLDER),
        ("Nie dotyczy", Rule.PLACEHOLDER),
        ("Montaż wykonuje pan Kowalski", Rule.PERSON),
        ("Projekt: dr inż. Nowak", Rule.PERSON),
        ("Najlepszy filtr, kup teraz", Rule.MARKETING),
        ("Infolinia: 555 019 912", Rule.PHONE),
    ],
    "sv": [
        ("Självklart! Filtret passar motorer", Rule.PREAMBLE),
        ("Här är beskrivningen av filtret", Rule.PREAMBLE),
        ("Tyvärr kan jag inte beskriva artikeln.", Rule.PREAMBLE),
        ("Som språkmodell har jag inga filter", Rule.PREAMBLE),
        ("Svara endast med JSON", Rule.ECHO),
        ("Skriv en beskrivning av varje rad", Rule.ECHO),
        ("Artikel 8", Rule.PLACEHOLDER),
        ("Uppgift saknas", Rule.PLACEHOLDER),
        ("Monteras av herr Lindqvist", Rule.PERSON),
        ("Det bästa filtret, köp nu", Rule.MARKETING),
        ("Reservdelar på 08-465 004 12", Rule.PHONE),
        ("Ring oss på 555 01 99 12", Rule.PHONE),
    ],
    "tr": [
        ("Tabii ki! Filtre motorlara uygundur", Rule.PREAMBLE),
        ("İşte yağ filtresinin açıklaması", Rule.PREAMBLE),
        ("Üzgünüm, bu ürünü açıklayamam.", Rule.PREAMBLE),
        ("Bir dil modeli olarak filtrem yok", Rule.PREAMBLE),
        ("Sadece JSON olarak yanıt ver", Rule.ECHO),
        ("Her satır için bir açıklama yazın", Rule.ECHO),
        ("Ürün 6", Rule.PLACEHOLDER),
        ("Belirtilmemiş", Rule.PLACEHOLDER),
        ("Montajı Ahmet Bey yapar", Rule.PERSON),
        ("Tasarım: Prof. Dr. Yılmaz", Rule.PERSON),
        ("En iyi filtre, hemen sipariş verin", Rule.MARKETING),
        ("Yedek parça (0212) 012 34 56", Rule.PHONE),
    ],
    "ko": [
        ("네, 오일 필터 설명입니다", Rule.PREAMBLE),
        ("다음은 오일 필터에 대한 설명입니다", Rule.PREAMBLE),
        ("죄송합니다. 이 품목은 설명할 수 없습니다.", Rule.PREAMBLE),
        ("인공지능 언어 모델로서 필터가 없습니다", Rule.PREAMBLE),
        ("JSON 형식으로 출력하세요", Rule.ECHO),
        ("각 줄의 제품 설명을 작성하세요", Rule.ECHO),
        ("상품 １", Rule.PLACEHOLDER),
        ("해당 없음", Rule.PLACEHOLDER),
        ("김민수 씨가 고른 공구", Rule.PERSON),
        ("박지영님의 주문품입니다", Rule.PERSON),
        ("업계 최고의 필터, 지금 구매", Rule.MARKETING),
        ("교체 부품은 02-123-4567로", Rule.PHONE),
        ("전화: 031 0123 4567", Rule.PHONE),
    ],
}

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
    ("en", Field.NAME, "Snap ring 1234567"),
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
    ("fr", Field.NAME, "T-shirt de travail, taille M. Rouge"),
    ("fr", Field.DESCRIPTION, "Puissance souscrite 9 kVA, heures de pointe et heures creuses."),
    ("es", Field.NAME, "Tornillo M8×40 DIN 933, 8.8"),
    ("es", Field.DESCRIPTION, "Artículo de papelería, 80 g/m², paquete de 500 hojas."),
    ("es", Field.DESCRIPTION, "Cápsulas de vitamina D. Conservar en lugar seco."),
    ("it", Field.DESCRIPTION, "Manodopera, ora di lavoro straordinario in cantiere."),
    ("pt", Field.DESCRIPTION, "Óleo de motor 5W-30 para motores a gasolina e etanol, frasco de 1 l."),
    ("nl", Field.NAME, "Mobiele airco 2,5 kW"),
    ("nl", Field.DESCRIPTION, "Remschijf voor de vooras, per as te vervangen."),
    ("pl", Field.NAME, "Łożysko 6204-2RS1"),
    ("pl", Field.DESCRIPTION, "Panel podłogowy 8 mm, klasa AC4, do pomieszczeń suchych."),
    ("sv", Field.DESCRIPTION, "Mobilt bredband, 40 GB per månad, utan bindningstid."),
    ("tr", Field.NAME, "İç cephe boyası, 15 l"),
    ("tr", Field.DESCRIPTION, "Örnek alma kabı, 120 ml, vidalı kapaklı."),
    ("ko", Field.NAME, "베어링 6204ZZ"),
    ("ko", Field.DESCRIPTION, "고객님이 지정한 길이로 재단한 전화선."),
    ("ko", Field.DESCRIPTION, "볶은 호박씨 1 kg, 제과 제빵용."),
]

SENTENCES = {
    "de": "Ölfilter aus Stahl mit Papiereinsatz, der für gängige Benzinmotoren bestimmt ist.",
    "en": "A steel oil filter with a paper element that is intended for common petrol engines.",
    "es": "Filtro de aceite de acero con elemento de papel, destinado a los motores de gasolina más comunes.",
    "fr": "Filtre à huile en acier avec élément en papier, destiné aux moteurs à essence les plus courants.",
    "it": "Filtro dell'olio in acciaio con elemento in carta, destinato ai motori a benzina più comuni.",
    "ja": "紙製エレメントを備えた鋼製のオイルフィルターで、一般的なガソリンエンジンに使われます。",
    "ko": "종이 엘리먼트가 들어 있는 강철 오일 필터로, 일반 가솔린 엔진에 쓰입니다.",
    "nl": "Stalen oliefilter met een papieren element, bedoeld voor gangbare benzinemotoren.",
    "pl": "Stalowy filtr oleju z wkładem papierowym, przeznaczony do popularnych silników benzynowych.",
    "pt": "Filtro de óleo em aço com elemento de papel, destinado aos motores a gasolina mais comuns.",
    "sv": "Oljefilter av stål med pappersinsats, avsett för vanliga bensinmotorer.",
    "tr": "Kâğıt elemanlı çelik yağ filtresi, yaygın benzinli motorlar için uygundur.",
}

COMPANIES, PRODUCTS = 6, 10
"""Companies of each language that are looked at, and products of each."""
LONGEST, TOLD_PER_CENT = 40, 85
"""Descriptions of a language that are long enough to tell it, and how many of them each other language refuses:
catalogues are terse, and `Visita de obra` is Spanish as well as Portuguese."""


@pytest.mark.parametrize(
    ("language", "text", "rule"),
    [*TURNED_DOWN, *((code, text, rule) for code, told in TURNED_DOWN_ABROAD.items() for text, rule in told)],
)
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
    with pytest.raises(UsageError, match="de, en, es, fr, it, ja, ko, nl, pl, pt, sv, tr"):
        check_text("Öljynsuodatin", "fi", Field.NAME)


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


@pytest.fixture(scope="module")
def sold(full_figures: bool) -> dict[str, list[list[dict[str, Any]]]]:
    """Products of some companies of each language."""
    wanted = COMPANIES * (10 if full_figures else 1)
    found: dict[str, list[list[dict[str, Any]]]] = {code: [] for code in LANGUAGES}
    for company in count():
        if min(map(len, found.values())) == wanted:
            return found
        (told,) = catalogue_rows(CatalogueSpec(products=1), company)["companies"]
        if len(companies := found[told["locale"][:2]]) < wanted:
            companies.append(catalogue_rows(CatalogueSpec(products=PRODUCTS), company)["products"])
    raise AssertionError


@pytest.mark.parametrize("language", LANGUAGES)
def test_procedural_texts_pass_the_gates_in_every_language_and_no_name_comes_twice(
    sold: dict[str, list[list[dict[str, Any]]]], language: str
) -> None:
    for products in sold[language]:
        gate = Gate(language)
        for product in products:
            assert gate.admit(product["name"], Field.NAME, "procedural") is None, product["name"]
            text = product["description"]
            assert gate.admit(text, Field.DESCRIPTION, "procedural", unique=False) is None, text
        assert gate.accepted["procedural"] == 2 * PRODUCTS


@pytest.mark.parametrize(("language", "other"), list(permutations(LANGUAGES, 2)))
def test_a_text_in_another_language_is_turned_down(
    sold: dict[str, list[list[dict[str, Any]]]], language: str, other: str
) -> None:
    assert check_text(SENTENCES[language], language, Field.DESCRIPTION) is None
    assert check_text(SENTENCES[language], other, Field.DESCRIPTION) in {Rule.SCRIPT, Rule.LANGUAGE}
    told = {product["description"] for products in sold[language] for product in products}
    longest = sorted(told, key=lambda text: (-len(text), text))[:LONGEST]
    passed = [text for text in longest if check_text(text, other, Field.DESCRIPTION) is None]
    assert len(passed) * 100 <= (100 - TOLD_PER_CENT) * len(longest), passed


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
