"""What a user writes, in flags or in a YAML file: read by one parser, each wish once; refused with its place."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.errors import UsageError
from docgen_core.runs.selection import Selection
from docgen_core.runs.spec import DocumentsSpec, PinnedCatalogue, RootPin
from docgen_core.runs.wishes import (
    companies,
    issued,
    listed,
    per_mille,
    read_wishes,
    selection_from,
    selection_of,
    weights,
)

EVERYTHING = """
locale: [de-DE, ja-JP]
jurisdiction: DE
layout: ledger, letter
business-type: [grocery_retail]
condition: {clean: 3, light_scan: 1}
companies: 0-49
company: [17, 3]
currency: EUR
issued: 2024-01-01..2024-06-30
line_items: 3-40
credit-notes: 0.05
tax-mix: {S: 6, AE: 2}
wear: 40
output: png
labels: true
words: true
anachronism: true
"""
FLAGS = {
    "locale": ["de-DE,ja-JP"],
    "jurisdiction": ["DE"],
    "layout": ["ledger", "letter"],
    "business-type": ["grocery_retail"],
    "condition": ["clean=3", "light_scan"],
    "companies": "0-49",
    "company": ["17,3"],
    "currency": ["EUR"],
    "issued": "2024-01-01..2024-06-30",
    "line-items": "3-40",
    "credit-notes": "0.050",
    "tax-mix": ["S=6,AE=2"],
    "wear": "40",
    "output": "png",
    "labels": True,
    "words": True,
    "anachronism": True,
}
SELECTION = Selection(
    locales=("de-DE", "ja-JP"),
    jurisdictions=("DE",),
    layouts=("ledger", "letter"),
    business_types=("grocery_retail",),
    conditions={"clean": 3, "light_scan": 1},
    companies=(0, 49),
    company_ids=(3, 17),
    currencies=("EUR",),
    issued=(date(2024, 1, 1), date(2024, 6, 30)),
    line_items=(3, 40),
    credit_notes=50,
    tax_mix={"S": 6, "AE": 2},
    wear=40,
    output="png",
    labels=True,
    words=True,
    anachronism=True,
)


def written(folder: Path, text: str) -> str:
    (folder / "wishes.yaml").write_text(text)
    return str(folder / "wishes.yaml")


def test_flags_and_a_file_say_the_same(tmp_path: Path) -> None:
    assert selection_from(FLAGS) == SELECTION
    assert selection_of({}, written(tmp_path, EVERYTHING)) == SELECTION


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "companies: 0-49\nlocale: de-DE\nlabels: true\n")
    chosen = selection_of({"companies": "5", "locale": None, "labels": False}, file)
    assert chosen == Selection(locales=("de-DE",), company_count=5, labels=True)


def test_nothing_said_is_no_constraint(tmp_path: Path) -> None:
    assert selection_of(dict.fromkeys(FLAGS)) == Selection()
    assert selection_of({}, written(tmp_path, "locale: []\ntax-mix: {}\nwear:\n")) == Selection()


def test_documents_on_paper_are_the_same_whatever_happens_to_it() -> None:
    assert Selection(conditions={"fax": 1}).content == Selection(conditions={"light_scan": 2, "fax": 1}).content
    anyway = [Selection(conditions=each, anachronism=True).content for each in ({"fax": 1}, {"clean": 1})]
    assert anyway[0] == anyway[1]


def test_a_selection_survives_its_spec() -> None:
    assert Selection.model_validate(SELECTION.model_dump(mode="json")) == SELECTION


def test_wishes_that_say_nothing_leave_a_spec_as_it_was_before_there_were_any() -> None:
    assert Selection().model_dump(mode="json") == {
        "locales": [],
        "jurisdictions": [],
        "layouts": [],
        "business_types": [],
        "conditions": {"clean": 1},
        "companies": None,
    }


@pytest.mark.parametrize(
    ("field", "value", "same"),
    [
        ("conditions", {"clean": 1, "fax": 9}, True),
        ("conditions", {"fax": 1}, False),  # companies that never sent paper send nothing
        ("wear", 80, True),
        ("output", "tiff", True),
        ("labels", True, True),
        ("words", True, True),
        ("currencies", ("EUR",), False),
        ("company_count", 3, False),
    ],
)
def test_what_decides_files_alone_leaves_the_documents_the_same(field: str, value: object, same: bool) -> None:
    def stream(selection: Selection) -> str:
        pinned = PinnedCatalogue(version="v", pin=RootPin(root="r", content="c"))
        spec = DocumentsSpec(pack="p", pack_version="1", documents=1, seed=1, selection=selection, catalogue=pinned)
        return spec.stream

    assert (stream(Selection()) == stream(Selection(**{field: value}))) is same


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("jurisdiction: [NO]", "selection '{file}', jurisdiction [False]: YAML reads it as true, false or nothing"),
        ("locales: de-DE", "selection '{file}': no wish 'locales'; did you mean locale? there are locale,"),
        ("wear: 40\nwear: 50", "selection '{file}', line 2: 'wear' stands there twice"),
        ("[de-DE]", "holds no wishes"),
        ("locale: [", "selection '{file}', line"),
        ("labels: 1", "labels 1: write true or false"),
        ("credit-notes: 0.0005", "credit-notes '0.0005': give a share from 0 to 1"),
        ("condition: {clean: 0}", "the weight must be a whole number from 1"),
        ("layout: {a: b}", "write a name, a number or a list of them"),
        ('locale: "de\\u0000DE"', "it holds characters that cannot be printed"),
        ("layout: ''", "layout '': it names nothing; leave it out to mean all"),
        ("line-items: 3-4\nline_items: 5-6", "selection '{file}': 'line-items' stands there twice"),
        ("condition: [clean=3, fax, clean=4]", "clean has two weights, 3 and 4"),
        ("credit-notes: 1e999999", "give a share from 0 to 1"),
        ("issued: 2024-02-30", "'2024-02-30' is no day"),
        ("companies: 1:30", "companies '1:30': give FIRST-LAST"),
        (f"wear: 0x{'f' * 9999}", "the number is too long"),
        ("wear: &a [*a]", "...]]]: write a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, reason: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        selection_of({}, file)
    assert reason.format(file=file) in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_that_is_wrong_is_refused_even_where_a_flag_wins(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wear 400"):
        selection_of({"wear": "4"}, written(tmp_path, "wear: 400"))


def test_numbers_of_a_file_are_exact(tmp_path: Path) -> None:
    assert per_mille(read_wishes(written(tmp_path, "credit-notes: 0.001"))["credit-notes"]) == 1


def test_a_file_says_no_octal_numbers(tmp_path: Path) -> None:
    assert selection_of({}, written(tmp_path, "company: [010, 0017]")).company_ids == (10, 17)


def test_lists_repeat_or_have_commas_and_say_the_same_in_any_order() -> None:
    assert listed(["en-US,de-DE", " ja-JP ", "de-DE", ","]) == ("de-DE", "en-US", "ja-JP")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", date(2024, 1, 1), date(2024, 12, 31)),
        ("2024-02", date(2024, 2, 1), date(2024, 2, 29)),
        ("2023-11..2024", date(2023, 11, 1), date(2024, 12, 31)),
        ("2024-03-05", date(2024, 3, 5), date(2024, 3, 5)),
    ],
)
def test_time_is_a_day_a_month_a_year_or_from_one_to_another(text: str, first: date, last: date) -> None:
    assert issued(text) == (first, last)


@pytest.mark.parametrize(
    "text", ["", "..", "2024-13", "2024-1-1", "24", "2024..2023", "2024-01-01...2024-02-01", "0000"]
)
def test_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"give FROM\.\.TO"):
        issued(text)


@settings(deadline=None)
@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.integers(1, 10**6), min_size=1))
def test_weights_are_read_as_they_are_written(wanted: dict[str, int]) -> None:
    assert weights([",".join(f"{name}={weight}" for name, weight in wanted.items())]) == wanted == weights(wanted)


@settings(deadline=None)
@given(st.text(max_size=8))
def test_a_weight_is_a_whole_number_or_refused(text: str) -> None:
    try:
        parsed = weights([f"clean={text}"])
    except ValueError as error:
        assert "the weight must be a whole number from 1" in str(error) or not text.isprintable()
    else:
        assert all(type(weight) is int and weight >= 1 for weight in parsed.values())


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_company_ranges_hold_both_ends(one: int, other: int) -> None:
    first, last = sorted((one, other))
    assert companies(f"{first}-{last}") == {"companies": (first, last)}
    assert companies(str(last + 1)) == {"company_count": last + 1}


@pytest.mark.parametrize("range_", ["", "-", "1-", "-1", "a-b", "1-2-3", "1–2", "9-1", "0"])
def test_companies_that_are_none_are_refused(range_: str) -> None:
    with pytest.raises(ValueError, match="give FIRST-LAST"):
        companies(range_)
