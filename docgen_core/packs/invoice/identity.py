"""How a company's documents look: drawn once from its id, kept from document to document.

What does not belong here: how a layout draws it (layouts).
"""

from __future__ import annotations

from collections.abc import Collection

from docgen_core.draws import Draws
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.model import Identity

RECEIPT_PAPER = "receipt"

_ACCENTS = (
    "#0b3954", "#1d3557", "#264653", "#2a6f97", "#005f73", "#0a7d5c", "#2d6a4f", "#386641", "#5a7d2a",
    "#8a6d1d", "#9c5518", "#a4452c", "#9b2226", "#7b2d43", "#6a2c70", "#4a3f7a", "#3d405b", "#444444",
)  # fmt: skip

_TYPEFACES = {
    "de": {"Docgen Sans": 55, "Docgen Serif": 25, "Docgen Condensed": 20},
    "en": {"Docgen Sans": 55, "Docgen Serif": 27, "Docgen Condensed": 18},
    "es": {"Docgen Sans": 60, "Docgen Serif": 22, "Docgen Condensed": 18},
    "fr": {"Docgen Sans": 58, "Docgen Serif": 24, "Docgen Condensed": 18},
    "it": {"Docgen Sans": 56, "Docgen Serif": 26, "Docgen Condensed": 18},
    "ja": {"Docgen JP": 62, "Docgen JP Serif": 26, "Docgen Sans": 12},
    "ko": {"Docgen KR": 82, "Docgen Sans": 18},
    "nl": {"Docgen Sans": 66, "Docgen Serif": 12, "Docgen Condensed": 22},
    "pl": {"Docgen Sans": 62, "Docgen Serif": 14, "Docgen Condensed": 24},
    "pt": {"Docgen Sans": 62, "Docgen Serif": 18, "Docgen Condensed": 20},
    "sv": {"Docgen Sans": 62, "Docgen Serif": 18, "Docgen Condensed": 20},
    "tr": {"Docgen Sans": 64, "Docgen Serif": 14, "Docgen Condensed": 22},
}
_TILL_TYPEFACE = "Docgen Mono"

_DATE_STYLES = {
    "de": {"dd.MM.y": 70, "d. MMMM y": 20, "y-MM-dd": 10},
    "en": {"MM/dd/y": 45, "MMM d, y": 25, "MMMM d, y": 22, "y-MM-dd": 8},
    "es": {"dd/MM/y": 72, "d 'de' MMMM 'de' y": 20, "dd-MM-y": 8},
    "fr": {"dd/MM/y": 72, "d MMMM y": 24, "dd.MM.y": 4},
    "it": {"dd/MM/y": 74, "d MMMM y": 20, "dd-MM-y": 6},
    "ja": {"y年M月d日": 60, "y/MM/dd": 32, "y-MM-dd": 8},
    "ko": {"y-MM-dd": 38, "y년 M월 d일": 34, "y.MM.dd": 18, "y. M. d.": 10},
    "nl": {"dd-MM-y": 74, "d MMMM y": 26},
    "pl": {"dd.MM.y": 56, "y-MM-dd": 34, "d MMMM y": 10},
    "pt": {"dd/MM/y": 82, "d 'de' MMMM 'de' y": 18},
    "sv": {"y-MM-dd": 92, "d MMMM y": 8},
    "tr": {"dd.MM.y": 62, "dd/MM/y": 22, "d MMMM y": 16},
}
"""Patterns with four-digit years: a golden date must follow from what is printed."""


def fitting_layouts(
    country: str, kind: str, billing_model: str, business_type: str, chosen: Collection[str] = ()
) -> tuple[str, ...]:
    """Layouts a company may have for documents of the kind, among `chosen` ones where there are any."""
    jurisdiction = JURISDICTIONS[country]
    return tuple(
        name
        for name, info in LAYOUTS.items()
        if (not chosen or name in chosen)
        and info.suits(
            kind=kind,
            paper=_paper(country, kind),
            language=jurisdiction.locale.split("-")[0],
            billing_model=billing_model,
            business_type=business_type,
        )
    )


def identity_of(country: str, company_id: int, kind: str, layouts: Collection[str], monogram: str) -> Identity:
    """The company's look on documents of the kind, in one of the fitting `layouts`."""
    draws = Draws("identity", country, company_id)
    language = JURISDICTIONS[country].locale.split("-")[0]
    layout = draws.choice(f"layout {kind}", tuple(layouts))
    return Identity(
        layout=layout,
        typeface=_TILL_TYPEFACE if kind == "receipt" else draws.weighted("typeface", _TYPEFACES[language]),
        accent=draws.choice("accent", _ACCENTS),
        monogram=monogram,
        logo_seed=draws.integer("logo", 0, 2**31 - 1),
        table_style=draws.choice(f"table style {layout}", LAYOUTS[layout].table_styles),
        date_style=draws.weighted("date style", _DATE_STYLES[language]),
        paper=_paper(country, kind),
    )


def _paper(country: str, kind: str) -> str:
    return RECEIPT_PAPER if kind == "receipt" else JURISDICTIONS[country].paper
