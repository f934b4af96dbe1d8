"""How a company's documents look: drawn once from its id, kept from document to document.

What does not belong here: how a layout draws it (layouts).
"""

from __future__ import annotations

from collections.abc import Collection

from docgen_core.draws import Draws
from docgen_core.packs.invoice.jurisdictions import Jurisdiction
from docgen_core.packs.invoice.layouts import LAYOUTS
from docgen_core.packs.invoice.model import Identity

RECEIPT_PAPER = "receipt"

_ACCENTS = (
    "#0b3954", "#1d3557", "#264653", "#2a6f97", "#005f73", "#0a7d5c", "#2d6a4f", "#386641", "#5a7d2a",
    "#8a6d1d", "#9c5518", "#a4452c", "#9b2226", "#7b2d43", "#6a2c70", "#4a3f7a", "#3d405b", "#444444",
)  # fmt: skip

_LATIN = {"Docgen Sans": 42, "Docgen Serif": 22, "Docgen Condensed": 14, "Docgen Geometric": 12, "Docgen Slab": 10}
_TYPEFACES = {
    "es": {"Docgen Sans": 46, "Docgen Serif": 22, "Docgen Condensed": 12, "Docgen Geometric": 12, "Docgen Slab": 8},
    "fr": {"Docgen Sans": 44, "Docgen Serif": 24, "Docgen Condensed": 12, "Docgen Geometric": 12, "Docgen Slab": 8},
    "it": {"Docgen Sans": 42, "Docgen Serif": 26, "Docgen Condensed": 12, "Docgen Geometric": 12, "Docgen Slab": 8},
    "ja": {"Docgen JP": 62, "Docgen JP Serif": 26, "Docgen Sans": 12},
    "ko": {"Docgen KR": 82, "Docgen Sans": 18},
    "nl": {"Docgen Sans": 52, "Docgen Serif": 12, "Docgen Condensed": 16, "Docgen Geometric": 12, "Docgen Slab": 8},
    "pl": {"Docgen Sans": 48, "Docgen Serif": 14, "Docgen Condensed": 18, "Docgen Geometric": 12, "Docgen Slab": 8},
    "pt": {"Docgen Sans": 48, "Docgen Serif": 18, "Docgen Condensed": 14, "Docgen Geometric": 12, "Docgen Slab": 8},
    "sv": {"Docgen Sans": 48, "Docgen Serif": 18, "Docgen Condensed": 14, "Docgen Geometric": 12, "Docgen Slab": 8},
    "tr": {"Docgen Sans": 50, "Docgen Serif": 14, "Docgen Condensed": 16, "Docgen Geometric": 12, "Docgen Slab": 8},
}
_TILL_TYPEFACE = "Docgen Mono"


def fitting_layouts(
    jurisdiction: Jurisdiction,
    kind: str,
    billing_model: str,
    business_type: str,
    niche: str,
    chosen: Collection[str] = (),
) -> tuple[str, ...]:
    """Layouts a company may have for documents of the kind, among `chosen` ones where there are any."""
    return tuple(
        name
        for name, info in LAYOUTS.items()
        if (not chosen or name in chosen)
        and info.suits(
            kind=kind,
            paper=_paper(jurisdiction, kind),
            language=jurisdiction.language,
            billing_model=billing_model,
            business_type=business_type,
            niche=niche,
        )
    )


def identity_of(
    jurisdiction: Jurisdiction, company_id: int, kind: str, layouts: Collection[str], monogram: str
) -> Identity:
    """The company's look on documents of the kind, in one of the fitting `layouts`."""
    draws = Draws("identity", jurisdiction.code, company_id)
    layout = draws.weighted(f"layout {kind}", {name: LAYOUTS[name].weight for name in layouts})
    return Identity(
        layout=layout,
        typeface=_TILL_TYPEFACE
        if kind == "receipt"
        else draws.weighted("typeface", _TYPEFACES.get(jurisdiction.language, _LATIN)),
        accent=draws.choice("accent", _ACCENTS),
        monogram=monogram,
        logo_seed=draws.integer("logo", 0, 2**31 - 1),
        table_style=draws.choice(f"table style {layout}", LAYOUTS[layout].table_styles),
        date_style=draws.weighted("date style", jurisdiction.customs.date_styles),
        paper=_paper(jurisdiction, kind),
    )


def _paper(jurisdiction: Jurisdiction, kind: str) -> str:
    return RECEIPT_PAPER if kind == "receipt" else jurisdiction.paper
