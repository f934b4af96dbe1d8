"""What the Launchpad may wish of a corpus is what the command line may, read by the same parser."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from docgen_core.errors import UsageError
from docgen_core.runs.selection import Selection
from docgen_core.runs.spec import spec_digest
from docgen_core.runs.wishes import WISHES, selection_of


@pytest.fixture
def corpus(defs: Any) -> Any:
    """The resource, of the one code location that the tests of a process share."""
    from docgen_assets.resources import Corpus

    return Corpus


@pytest.fixture
def companies(defs: Any) -> Any:
    from docgen_assets.partitions import CompanyRange

    return CompanyRange(0, 49)


def test_a_corpus_says_what_flags_say(corpus: Any, companies: Any) -> None:
    chosen = corpus(
        locales=["de-DE"],
        currencies=["EUR"],
        issued="2024",
        line_items="3-40",
        credit_notes="0.05",
        tax_mix={"S": 6, "K": 1},
        wear=40,
        output="png",
        labels=True,
        words=True,
        anachronism=True,
    )
    assert chosen.selection(companies) == Selection(
        locales=("de-DE",),
        conditions={"clean": 3, "light_scan": 1},
        companies=(0, 49),
        currencies=("EUR",),
        issued=(date(2024, 1, 1), date(2024, 12, 31)),
        line_items=(3, 40),
        credit_notes=50,
        tax_mix={"S": 6, "K": 1},
        wear=40,
        output="png",
        labels=True,
        words=True,
        anachronism=True,
    )


def test_flags_a_file_and_a_corpus_ask_for_the_same_in_whatever_order(
    corpus: Any, companies: Any, tmp_path: Path
) -> None:
    flags = {"locale": ["ja-JP", "de-DE,ja-JP"], "condition": ["fax=2", "clean"], "companies": "0-49", "wear": "7"}
    file = tmp_path / "wishes.yaml"
    file.write_text("wear: 7\ncompanies: 0-49\ncondition: {clean: 1, fax: 2}\nlocale: [de-DE, ja-JP]\n")
    told = corpus(locales=["ja-JP", "de-DE"], conditions={"fax": 2, "clean": 1}, wear=7).selection(companies)
    written = [each.model_dump(mode="json") for each in (selection_of(flags), selection_of({}, str(file)), told)]
    assert spec_digest(written[0]) == spec_digest(written[1]) == spec_digest(written[2])


def test_every_wish_is_a_field_of_a_corpus(corpus: Any) -> None:
    told = {name.replace("_", "-") for name in corpus.model_fields}
    plural = {"locale", "jurisdiction", "layout", "business-type", "condition"} | {"currency", "companies", "company"}
    assert set(WISHES) - plural <= told
    assert {"locales", "jurisdictions", "layouts", "business-types", "conditions", "currencies"} <= told


def test_a_corpus_without_wishes_is_planned_as_ever(corpus: Any, companies: Any) -> None:
    assert corpus().selection(companies) == Selection(conditions={"clean": 3, "light_scan": 1}, companies=(0, 49))


def test_what_is_wrong_is_said_with_its_name(corpus: Any, companies: Any) -> None:
    with pytest.raises(UsageError, match="corpus, wear 101: give a whole number from 0"):
        corpus(wear=101).selection(companies)
