"""Which layouts there are and what each is fit for; how they look stands in their templates.

What does not belong here: the choice for a company (its identity makes it, from these facts).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

A4 = "A4"
LETTER = "Letter"
RECEIPT = "receipt"
"""A strip 80 mm wide, as long as its content."""


@dataclass(frozen=True, slots=True)
class LayoutInfo:
    """What a layout can carry; unless it says otherwise, invoices of anybody on paper of either size."""

    name: str
    most_lines: int
    """Lines up to which it stays readable; a document with more wants another layout."""
    table_styles: tuple[str, ...]
    """Values of `Identity.table_style` that it knows."""
    reading_order: str
    """What an eye meets, in order."""
    papers: tuple[str, ...] = (A4, LETTER)
    kinds: tuple[str, ...] = ("invoice",)
    """Document kinds: `invoice`, `receipt`."""
    languages: tuple[str, ...] = ()
    """Languages (`de`) in whose countries such a document is usual; empty: everywhere."""
    billing_models: tuple[str, ...] = ()
    """Billing models whose lines it has room for; empty: every model."""
    business_types: tuple[str, ...] = ()
    """Business types that send such documents; empty: every type."""
    niches: tuple[str, ...] = ()
    """Niches of those business types that send them; empty: every niche."""
    weight: int = 1
    """How often a company that it suits has it, against other layouts."""
    landscape: bool = False
    watermarks: bool = False
    """Whether it leaves white paper for one."""
    itemises_calls: bool = False
    """Whether it lists a month's calls one by one."""

    def written_in(self, language: str) -> bool:
        """Whether such documents are usual in the language's country."""
        return language in (self.languages or (language,))

    def suits(
        self, *, kind: str, paper: str, language: str, billing_model: str, business_type: str, niche: str
    ) -> bool:
        """Whether a company of this kind would send it."""
        return (
            kind in self.kinds
            and paper in self.papers
            and self.written_in(language)
            and billing_model in (self.billing_models or (billing_model,))
            and business_type in (self.business_types or (business_type,))
            and niche in (self.niches or (niche,))
        )


_ITS_OWN_TRADE = 6
"""Weight of a layout that a trade has for itself."""
_PAD_LINES = 9
"""Lines of a pad's sheet; there is no second."""
_LATIN_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv", "tr")
"""Languages that the bundled hands write."""
_HAND_TRADES = (
    "auto_parts", "bicycle_shop", "courier_logistics", "electrical_contractor", "event_catering", "equipment_rental",
    "painting_drywall", "plumbing_heating", "training_provider", "waste_disposal",
)  # fmt: skip
"""Trades whose small companies write their bills on a pad."""
_STYLES = ("ruled", "striped", "plain", "boxed")

LAYOUTS: Mapping[str, LayoutInfo] = MappingProxyType(
    {
        info.name: info
        for info in (
            LayoutInfo(
                "letter",
                60,
                _STYLES,
                "logo, buyer in the window, facts at the right, table, totals lower right, footer",
                watermarks=True,
            ),
            LayoutInfo(
                "ledger",
                2_000,
                ("ruled", "striped", "plain"),
                "title, parties, a strip of facts, dense table over pages, a strip of totals, payment",
            ),
            LayoutInfo(
                "sidebar",
                40,
                ("ruled", "striped", "plain"),
                "amount due upper left, totals and payment below it, then buyer and items at the right",
            ),
            LayoutInfo(
                "boxed",
                60,
                ("boxed",),
                "centred title, buyer left, seller with seal right, amount in a box, ruled form, totals",
            ),
            LayoutInfo(
                "banner",
                40,
                ("ruled", "striped", "plain"),
                "band with seller and title, buyer with facts and amount due, items, totals left, payment right",
                watermarks=True,
            ),
            LayoutInfo(
                "bleed",
                40,
                ("ruled", "striped", "plain"),
                "amount due upper left and title upper right, items, totals in a centred block, parties last",
            ),
            LayoutInfo(
                "minimal",
                25,
                ("ruled", "plain"),
                "name and title, facts and buyer beside their labels, items in two columns, totals at the left",
                watermarks=True,
            ),
            LayoutInfo(
                "statement",
                250,
                ("ruled", "striped", "plain"),
                "seller left, title and totals in a box at the right, a bar of facts, items, a slip to pay with last",
                watermarks=True,
            ),
            LayoutInfo(
                "utility",
                40,
                ("ruled", "striped"),
                "seller, amount due upper right, totals beside a chart of the usage, charges, payment",
                business_types=("energy_telecom",),
                niches=("electricity", "gas_heat", "water_waste"),
                weight=_ITS_OWN_TRADE,
            ),
            LayoutInfo(
                "telecom",
                2_000,
                ("ruled", "striped"),
                "a first page of totals and payment, then the lines, small and close, over many pages",
                languages=("en", "de", "ja", "fr", "es", "it", "pt", "nl", "pl", "sv", "tr", "ko"),
                business_types=("energy_telecom",),
                niches=("business_telephony",),
                weight=_ITS_OWN_TRADE,
                itemises_calls=True,
            ),
            LayoutInfo(
                "progress",
                30,
                ("boxed", "ruled"),
                "landscape: parties across, contract sums with shares done, totals right beside the signatures",
                billing_models=("milestone",),
                weight=_ITS_OWN_TRADE,
                landscape=True,
            ),
            LayoutInfo(
                "medical",
                40,
                ("ruled", "striped"),
                "a coupon to pay with first, then services by code, totals in the middle, numbers last",
                business_types=("laboratory_supplies", "medical_supplies"),
                weight=_ITS_OWN_TRADE,
                watermarks=True,
            ),
            LayoutInfo(
                "pad",
                _PAD_LINES,
                ("ruled",),
                "a printed form filled in by hand: number upper right, buyer, lines, totals, signature and stamp",
                languages=_LATIN_LANGUAGES,
                billing_models=("flat", "per_unit", "hourly"),
                business_types=_HAND_TRADES,
            ),
            LayoutInfo(
                "receipt",
                80,
                ("plain",),
                "seller centred, items with quantity × price, total, tax table, number and date last",
                papers=(RECEIPT,),
                kinds=("receipt",),
                languages=("en", "ja"),  # prices are printed net; German ones to consumers must be gross (§ 3 PAngV)
                billing_models=("flat", "per_unit"),
            ),
        )
    }
)
"""Every layout by name."""
