"""Units are printed in the form that their quantity asks for."""

from __future__ import annotations

from decimal import Decimal
from importlib.resources import files

import pytest

from docgen_core.packs.invoice.catalogue import content
from docgen_core.packs.invoice.unit_words import form

_LANGUAGES = [
    file.name.removesuffix(".toml")
    for file in files("docgen_core.packs.invoice").joinpath("data/catalogue/languages").iterdir()
]


@pytest.mark.parametrize(
    ("unit", "locale", "printed"),
    [
        ("mese", "it-IT", {"1": "mese", "5": "mesi", "-1": "mese", "-3": "mesi"}),
        ("ore", "it-IT", {"1": "ora", "1.5": "ore"}),
        ("día", "es-MX", {"1": "día", "2": "días"}),
        ("jours", "fr-CA", {"0.5": "jour", "1": "jour", "2": "jours"}),
        ("rolka", "pl-PL", {"1": "rolka", "3": "rolki", "5": "rolek", "12": "rolek", "22": "rolki", "2.5": "rolki"}),
        ("Tag", "de-CH", {"1": "Tag", "0.5": "Tage", "4": "Tage"}),
        ("maand", "nl-NL", {"1": "maand", "12": "maanden"}),
        ("day", "en-IN", {"1": "day", "1.00": "day", "1.5": "days"}),
        ("ay", "tr-TR", {"1": "ay", "12": "ay"}),
        ("kg", "sv-SE", {"1": "kg", "7": "kg"}),
    ],
)
def test_a_unit_follows_its_quantity(unit, locale, printed):
    assert {quantity: form(unit, Decimal(quantity), locale) for quantity in printed} == printed


@pytest.mark.parametrize("name", _LANGUAGES)
def test_a_form_belongs_to_one_unit_and_has_as_many_forms_as_the_others(name):
    inflected = content.language(name).inflected
    words = [word for forms in inflected for word in set(forms)]
    assert len(words) == len(set(words))
    assert len({len(forms) for forms in inflected}) <= 1
