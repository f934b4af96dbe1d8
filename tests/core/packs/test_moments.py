"""What a product's name says of its season or weekday decides when it can be sold."""

from __future__ import annotations

from datetime import date

import pytest

from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.moments import fits

JULY, JANUARY = date(2025, 7, 4), date(2025, 1, 3)
MONDAY, FRIDAY = date(2025, 7, 7), date(2025, 7, 11)


@pytest.mark.parametrize(
    ("country", "niche", "family", "name", "first", "last", "sold"),
    [
        ("FR", "festive_events", "menu", "Menu filet de bœuf, 5 plats, hiver", JULY, JULY, False),
        ("FR", "festive_events", "menu", "Menu filet de bœuf, 5 plats, hiver", JANUARY, JANUARY, True),
        ("AU", "festive_events", "menu", "Duck menu, 3 courses, winter", JULY, JULY, True),
        ("SE", "buffet_catering", "buffet", "Buffé italiensk, 4 rätter, sommar", JULY, JULY, True),
        ("SE", "buffet_catering", "dessert", "Fruktsallad, på buffé", JANUARY, JANUARY, True),
        ("IE", "canteen_service", "meal", "Light meal, regular, Monday", MONDAY, MONDAY, True),
        ("IE", "canteen_service", "meal", "Light meal, regular, Monday", FRIDAY, FRIDAY, False),
        ("IE", "canteen_service", "meal", "Light meal, regular, Wednesday", MONDAY, FRIDAY, True),
        ("IE", "canteen_service", "staff", "Chef, Sunday", MONDAY, FRIDAY, False),
        ("IE", "unheard", "of", "Winter sale, Sunday", JULY, JULY, True),
    ],
)
def test_a_product_is_sold_when_its_name_says(country, niche, family, name, first, last, sold):
    assert (
        fits({"niche": niche, "family": family, "name": name}, "event_catering", JURISDICTIONS[country], first, last)
        is sold
    )
