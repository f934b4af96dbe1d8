"""The texts of every product there can be, in every language: complete, native, printable, nobody's trademark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from docgen_core.llm import languages
from docgen_core.llm.gates import Field, check_text, meaning_key
from docgen_core.packs.invoice.catalogue import content

SPOKEN = Path(content.__file__).parents[1] / "data" / "catalogue" / "languages"
COMPLETE = ("en", "de", "ja")
"""Languages that every business type is told in."""
LANGUAGES = tuple(sorted(file.stem for file in SPOKEN.iterdir()))
FEWEST_TYPES = 13
"""Of a language that is not complete."""
BILLING_MODELS = {"flat", "per_unit", "hourly", "subscription", "graduated"}
ENGLISH = re.compile(r"\b(with|and|the|from|by|for|of|each|up to|without)\b", re.I)
COMMA_LANGUAGES = tuple(name for name in LANGUAGES if content.language(name).decimal_mark == ",")
CHARACTER_SETS = {"ja": "shift_jis", "ko": "euc_kr"}
"""Where a language prints more than Latin, the set that its bundled face draws."""
NAME_LIMIT = 85
RECEIPT_NAME_LIMIT = 44
"""Two lines of an 80 mm receipt."""
DESCRIPTION_LIMIT = 170
FEWEST_PRODUCTS_OF_A_NICHE = 60

PRINTABLE = re.compile(r"[\u0020-\u007e\u00a0-\u017f\u2013\u2014\u2018\u2019\u201c-\u201e\u2022\u2026\u20acµΩ]*")
"""Latin-1, Latin Extended-A and common punctuation; Japanese adds JIS X 0208, Korean KS X 1001."""
PLACEHOLDER = re.compile(
    r"[{}<>]|\b(null|none|(?-i:TODO)|tbd|lorem|product \d|artikel \d)\b|\.\.|  | ,|、、|,,|\s$",
    re.I,
)
CONTACT = re.compile(r"@|www|https?:|\.(com|de|jp|net)\b|\bDE\d{2} ?\d{4}|\+?\d{2,4}[-/ ]\d{3,4}[-/ ]\d{4}")
MARKETING = re.compile(
    r"\b(best(?! before)|premium|ultimate|world-class|amazing|perfect|unique|leading|innovative|high-quality|"
    r"beste[rsn]?|einzigartig|hochwertig|innovativ|perfekt|führend)\b|最高級|究極|業界随一|驚き|大人気",
    re.I,
)
TRADEMARKS = re.compile(
    r"\b(skf|fag|ina|nsk|ntn|timken|bosch|rexroth|parker|festo|sandvik|iscar|kennametal|simmerring|inbus|teflon|"
    r"viton|kevlar|hailo|tesa|uhu|edding|pilot|pentel|leitz|post-it|scotch|nutella|coca|pepsi|fanta|sprite|"
    r"red bull|tempo|zewa|persil|nivea|colgate|microsoft|windows|office 365|azure|aws|google|oracle|sap|datev|"
    r"linux|vmware|cisco|citrix|kärcher|karcher|hilti|pop-tart|kleenex|velcro|tupperware)\b|"
    r"シャーピン|セロテープ|マジックテープ|ポストイット|キャタピラー|シーチキン|ウォシュレット",
    re.I,
)
LOANWORDS = frozenset(Path(__file__).with_name("german_loanwords.txt").read_text(encoding="utf-8").split())
"""Words and codes of the German trade that are English ones too; a new one is admitted here by hand."""
ROMAN_IN_KOREAN = frozenset({"kWp", "vCPU"})
ROMAN_IN_JAPANESE = frozenset({"min", "mol"})


@dataclass(frozen=True)
class Told:
    kind: str
    receipt: bool
    niche: str
    family: content.Family
    name: str
    descriptions: tuple[str, ...]


def every_product(language: str) -> Iterator[Told]:
    """Every combination that can be sold, under every name pattern."""
    for kind in content.types_in(language):
        texts = content.texts(language, kind.name)
        for niche, families in kind.niches.items():
            for family in families:
                told = texts[niche, family.name]
                for index in range(family.combinations):
                    positions = family.combination(index)
                    if not family.sold(positions):
                        continue
                    slots = {"series": "XR"} | {axis: told.axes[axis][at] for axis, at in positions.items()}
                    for pattern in told.names:
                        yield Told(
                            kind.name,
                            kind.document_kind == "receipt",
                            niche,
                            family,
                            pattern.format_map(slots).strip(),
                            tuple(text.format_map(slots).strip().replace("..", ".") for text in told.texts),
                        )


@pytest.fixture(scope="module", params=LANGUAGES)
def told(request: pytest.FixtureRequest) -> tuple[str, list[Told]]:
    return request.param, list(every_product(request.param))


def complaints(lines: Iterator[str]) -> list[str]:
    return list(islice(lines, 12))


def sentences(products: list[Told]) -> set[str]:
    return {text for product in products for text in (product.name, *product.descriptions)}


def all_notes(language: str) -> set[str]:
    return {
        note
        for kind in content.types_in(language)
        for told in content.texts(language, kind.name).values()
        for note in told.notes
    }


@pytest.mark.parametrize("language", COMPLETE)
def test_every_business_type_is_told_in_every_complete_language(language: str) -> None:
    assert {kind.name for kind in content.types_in(language)} == set(content.business_types())


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - set(COMPLETE)))
def test_a_language_tells_business_types_of_every_billing_model(language: str) -> None:
    kinds = content.types_in(language)
    assert len(kinds) >= FEWEST_TYPES
    assert {kind.billing_model for kind in kinds} == BILLING_MODELS
    assert {family.billing for kind in kinds for families in kind.niches.values() for family in families} == (
        BILLING_MODELS
    )


AMERICAN = re.compile(
    r"""[/ ×]\d+"|\d (?:oz|lbs?|gal|ct)\b|°F|\bUS\b|\b(?:[Tt]rash|[Dd]iaper|[Zz]ucchini|[Ee]levator|[Ff]aucet|color)"""
)
"""Measures, grades and words of the United States; the inches of a screen alone are everybody's."""


def test_the_world_buys_no_american_measures_and_grades() -> None:
    told = [
        text
        for kind in content.types_in("en-GB")
        for texts in content.texts("en-GB", kind.name).values()
        for text in (*texts.names, *texts.texts, *texts.notes, *(said for axis in texts.axes.values() for said in axis))
    ]
    assert [text for text in told if AMERICAN.search(text)] == []
    assert "Hexagon head bolt {size}, {material}" in told and "M8×40" in told


def test_a_niche_never_gives_two_products_one_name(told: tuple[str, list[Told]]) -> None:
    language, products = told
    first: dict[tuple[str, str], str] = {}
    clashes = []
    for product in products:
        texts = content.texts(language, product.kind)[product.niche, product.family.name]
        if len(texts.names) > 1:
            continue
        key = (product.niche, meaning_key(product.name))
        if key in first:
            clashes.append(f"{product.niche}: {product.name} ({product.family.name}, {first[key]})")
        first[key] = product.family.name
    assert clashes[:12] == []


def test_name_patterns_mention_every_attribute_that_varies(told: tuple[str, list[Told]]) -> None:
    language, _ = told
    for kind in content.types_in(language):
        for (niche, family), text in content.texts(language, kind.name).items():
            axes = next(f for f in kind.niches[niche] if f.name == family).axes
            varying = {axis for axis, values in axes.items() if len(values) > 1}
            for pattern in text.names:
                assert varying <= set(re.findall(r"{(\w+)}", pattern)), (language, niche, family)


def test_niches_are_deep() -> None:
    for kind in content.business_types().values():
        for niche, families in kind.niches.items():
            sold = sum(
                family.sold(family.combination(index)) for family in families for index in range(family.combinations)
            )
            assert sold >= FEWEST_PRODUCTS_OF_A_NICHE, (kind.name, niche, sold)


def test_texts_are_complete_plain_and_short(told: tuple[str, list[Told]]) -> None:
    language, products = told
    assert complaints(p.name for p in products if not p.name or PLACEHOLDER.search(p.name)) == []
    assert complaints(t for p in products for t in p.descriptions if PLACEHOLDER.search(t)) == []
    too_long = (p.name for p in products if len(p.name) > (RECEIPT_NAME_LIMIT if p.receipt else NAME_LIMIT))
    assert complaints(too_long) == []
    assert complaints(t for p in products for t in p.descriptions if not 8 <= len(t) <= DESCRIPTION_LIMIT) == []
    stop = "。" if language == "ja" else "."
    ends = {text for product in products for text in product.descriptions} | all_notes(language)
    assert complaints(text for text in sorted(ends) if not text.endswith(stop)) == []


def test_texts_carry_no_contact_marketing_or_trademark(told: tuple[str, list[Told]]) -> None:
    language, products = told
    texts = sorted(sentences(products) | all_notes(language))
    for pattern in (CONTACT, MARKETING, TRADEMARKS):
        assert complaints(text for text in texts if pattern.search(text)) == []


def test_models_can_write_in_every_language_of_the_catalogue() -> None:
    assert {language.partition("-")[0] for language in LANGUAGES} == set(languages.LANGUAGES)


def test_texts_pass_the_gates_of_their_language(told: tuple[str, list[Told]], full_figures: bool) -> None:
    language, products = told
    code, every = language[:2], 1 if full_figures else 40
    separator = content.language(language).sentence_separator
    notes = sorted(all_notes(language))
    names = sorted({product.name for product in products})[::every]
    texts = sorted({text[0].upper() + text[1:] for product in products for text in product.descriptions})[::every]
    texts += [text + separator + notes[number % len(notes)] for number, text in enumerate(texts)]
    assert complaints(name for name in names if check_text(name, code, Field.NAME)) == []
    assert complaints(text for text in texts if check_text(text, code, Field.DESCRIPTION)) == []


def test_texts_are_printable_with_the_bundled_faces(told: tuple[str, list[Told]]) -> None:
    language, products = told
    units = {unit for forms in content.language(language).units.values() for unit in forms}
    for char in sorted(set().union(*sentences(products), *all_notes(language), *units)):
        if PRINTABLE.fullmatch(char):
            continue
        assert language in CHARACTER_SETS, char
        char.encode(CHARACTER_SETS[language])


def test_german_texts_hold_no_english() -> None:
    words = re.compile(r"[A-Za-zÄÖÜäöüßéèç]{4,}")
    english = {
        word.lower()
        for product in every_product("en")
        for text in (product.name, *product.descriptions)
        for word in words.findall(text)
    }
    found: dict[str, str] = {}
    for product in every_product("de"):
        for text in (product.name, *product.descriptions):
            for word in words.findall(text):
                if word.lower() in english and word.lower() not in LOANWORDS:
                    found.setdefault(word.lower(), product.name)
    assert found == {}


def test_other_european_texts_hold_no_english(told: tuple[str, list[Told]]) -> None:
    language, products = told
    texts = () if language.startswith("en") else sorted(sentences(products) | all_notes(language))
    assert complaints(text for text in texts if ENGLISH.search(text)) == []


@pytest.mark.parametrize("language", COMMA_LANGUAGES)
def test_measures_have_a_decimal_comma(language: str) -> None:
    strength_or_thousands = re.compile(r"\b(4\.8|8\.8|10\.9|12\.9|1\.4571|[1-9]\d{0,2}\.\d{3})\b")
    for product in every_product(language):
        rest = strength_or_thousands.sub("", product.name)
        assert not re.search(r"\d\.\d", rest), product.name


def test_korean_texts_are_korean() -> None:
    hangul = re.compile(r"[\uac00-\ud7a3]")
    foreign = re.compile(r"[A-Za-z]*[a-z]{3,}[A-Za-z]*")
    for product in every_product("ko"):
        assert hangul.search(product.name), product.name
        for text in (product.name, *product.descriptions):
            assert set(foreign.findall(text)) <= ROMAN_IN_KOREAN, text


def test_japanese_texts_are_japanese() -> None:
    kana_or_kanji = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]")
    foreign = re.compile(r"[A-Za-z]*[a-z]{3,}[A-Za-z]*")
    for product in every_product("ja"):
        assert kana_or_kanji.search(product.name), product.name
        for text in (product.name, *product.descriptions):
            words = {word.lower() for word in foreign.findall(text)} - ROMAN_IN_JAPANESE
            assert not words, (text, words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_units_are_printed_as_the_language_prints_them(language: str) -> None:
    traded = {
        local.unit if (local := place.units.get(family.unit)) else family.unit
        for place in content.jurisdictions().values()
        if language in map(place.language_of, place.locales or (place.locale,))
        for kind in content.types_in(language)
        for families in kind.niches.values()
        for family in families
    }
    speech = content.language(language)
    assert traded <= set(speech.units)
    assert traded <= set(content.unit_codes())
    if language == "ja":
        own = {
            text.unit
            for kind in content.types_in("ja")
            for text in content.texts("ja", kind.name).values()
            if text.unit is not None
        }
        assert all(re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", unit) for unit in own)


@pytest.mark.parametrize(
    ("language", "unit", "forms"),
    [
        ("de", "piece", {"Stk.", "Stück", "St."}),
        ("en", "piece", {"pcs", "ea", "each"}),
        ("ja", "piece", {"個"}),
        ("ja", "hour", {"時間"}),
        ("de", "hour", {"Std.", "h"}),
    ],
)
def test_common_units(language: str, unit: str, forms: set[str]) -> None:
    assert set(content.language(language).units[unit]) == forms


def test_customs_chapters_suit_the_trade() -> None:
    chapters = {
        "industrial_supplies": {"27", "34", "40", "73", "82", "84"},
        "food_wholesale": {"02", "03", "04", "07", "08", "09", "11", "16", "17", "18", "20", "21", "22"},
        "office_supplies": {"38", "39", "44", "48", "82", "83", "94", "96"},
    }
    for name, allowed in chapters.items():
        for families in content.business_types()[name].niches.values():
            assert {family.hs[:2] for family in families if family.goods and family.hs} <= allowed


def test_measures_take_the_language_form() -> None:
    assert content.language("de").measure("1.5 l") == "1,5 l"
    assert content.language("ja").measure("1.5 mm") == "1.5mm"
    assert content.language("ja").measure("DN 25") == "DN 25"
    assert content.language("en").measure("1.5 mm") == "1.5 mm"
