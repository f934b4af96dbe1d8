"""Which tax a document's lines bear: as the goods and the buyer's place have it, or by what the deal is.

A buyer abroad makes it an export, a sale within the Union or a reverse charge; some trades are
exempt, some charge nothing because the buyer owes the tax. What does not belong here: rates and
wording (jurisdictions), amounts (arithmetic).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial

from docgen_core.draws import Draws
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions import JURISDICTIONS, Jurisdiction
from docgen_core.packs.invoice.places import Place

EXPORTERS = frozenset(
    (
        "industrial_supplies", "auto_parts", "medical_supplies", "laboratory_supplies", "hotel_supplies",
        "software_saas", "it_services", "translation_bureau", "architecture_office", "courier_logistics",
        "office_supplies", "printing",
    )
)  # fmt: skip
"""Business types that sell to companies in other countries."""

_BUILDERS = frozenset(("electrical_contractor", "plumbing_heating", "painting_drywall"))
"""Business types whose work for another builder is taxed at the buyer."""
_TEACHERS = frozenset(("training_provider",))
"""Business types some of which are exempt from value-added taxes."""

_ABROAD_PER_MILLE = 75
_REVERSED_PER_MILLE = 90
_EXEMPT_COMPANIES_PER_MILLE = 300

_WITHIN_THE_UNION_PER_MILLE = 700
"""Buyers abroad of a company in the Union who are in it too."""

GOODS, SERVICE = True, False

Maker = Callable[[Jurisdiction, Draws], "Deal"]


@dataclass(frozen=True, slots=True)
class Deal:
    """What kind of sale a document is of, before its buyer is drawn."""

    country: str | None = None
    """The buyer's, where it is not the seller's."""
    category: str | None = None
    """UNCL 5305, where it is the same for all lines: E or AE at home."""
    goods: bool | None = None
    """Whether only goods, or only services, are listed; None: what comes."""
    wanted: str | None = None
    """Category of the products that are listed, where there are such."""


@dataclass(frozen=True, slots=True)
class Treatment:
    """How the lines of a document are taxed."""

    jurisdiction: Jurisdiction
    home: Place
    """The seller's."""
    place: Place
    """Where the tax is due."""
    deal: Deal = Deal()

    def tax(self, product: Row) -> Tax:
        """The tax on a product."""
        if self.deal.country is not None:
            return self.jurisdiction.abroad(JURISDICTIONS[self.deal.country], goods=is_goods(product))
        if self.deal.category is not None:
            return self.jurisdiction.untaxed(self.deal.category)
        return self.jurisdiction.taxed(product["tax_class"], self.place, self.home)

    def on(self, day: date) -> Treatment:
        """The same, as the law was on the day."""
        return replace(self, jurisdiction=self.jurisdiction.on(day))

    def lists(self, product: Row) -> bool:
        """Whether the deal is about such a product."""
        deal = self.deal
        return (deal.goods is None or deal.goods == is_goods(product)) and (
            deal.wanted is None or self.tax(product).category == deal.wanted
        )


def is_goods(product: Row) -> bool:
    """Whether it is a thing rather than a service."""
    return product["hs_code"] is not None


def usual_deal(jurisdiction: Jurisdiction, business_type: str, habits: Draws, draws: Draws) -> Deal:
    """A sale as the company makes it."""
    if business_type in _TEACHERS and jurisdiction.european:
        return Deal(category="E") if habits.chance("exempt", _EXEMPT_COMPANIES_PER_MILLE) else Deal()
    if business_type in _BUILDERS and jurisdiction.european and draws.chance("reversed", _REVERSED_PER_MILLE):
        return Deal(category="AE")
    if business_type in EXPORTERS and draws.chance("abroad", _ABROAD_PER_MILLE):
        return Deal(country=_country(jurisdiction, draws))
    return Deal()


def wanted_deal(
    jurisdiction: Jurisdiction, mix: Mapping[str, int], products: Sequence[Row], draws: Draws, *, billed: bool
) -> Deal:
    """A sale of a category drawn by the weights of `mix`, among those the company can make."""
    possible = categories(jurisdiction, products, billed=billed)
    weights = {category: mix[category] for category in sorted(mix) if mix[category] and category in possible}
    if not weights:
        return Deal()
    return possible[draws.weighted("tax mix", weights)](jurisdiction, draws)


def categories(jurisdiction: Jurisdiction, products: Sequence[Row], *, billed: bool) -> Mapping[str, Maker]:
    """UNCL 5305 categories of sales that a company with these products can make, and how each is made.

    Who is not `billed` stands at a till, where every product bears its own tax.
    """
    if not jurisdiction.levies:
        return {"O": partial(_of_products, "O")}
    own = sorted({product["tax_category"] for product in products} & {"S", "AA", "Z", "E", "O"})
    found: dict[str, Maker] = {category: partial(_of_products, category) for category in own}
    if not billed:
        return found
    kinds = {is_goods(product) for product in products}
    found.setdefault("E", _exempt)
    if GOODS in kinds:
        found["G"] = _export
        if jurisdiction.european:
            found["K"] = _within_the_union
    if jurisdiction.european:
        found["AE"] = _reverse_charge if SERVICE in kinds else _reverse_charge_at_home
    if SERVICE in kinds:
        found.setdefault(jurisdiction.service_abroad, _service_abroad)
    return found


def _of_products(category: str, jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(wanted=category)


def _exempt(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(category="E")


def _export(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(country=_country(jurisdiction, draws, within=False), goods=GOODS)


def _within_the_union(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(country=_country(jurisdiction, draws, within=True), goods=GOODS)


def _reverse_charge(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(country=_country(jurisdiction, draws, within=True), goods=SERVICE)


def _reverse_charge_at_home(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(category="AE")


def _service_abroad(jurisdiction: Jurisdiction, draws: Draws) -> Deal:
    return Deal(country=_country(jurisdiction, draws, within=False), goods=SERVICE)


def _country(jurisdiction: Jurisdiction, draws: Draws, *, within: bool | None = None) -> str:
    """Another country, within the Union or not; by default as trade goes. Its companies' names can be read."""
    if within is None:
        within = draws.chance("within the union", _WITHIN_THE_UNION_PER_MILLE)
    within = within and jurisdiction.european
    others = [
        each
        for each in JURISDICTIONS.values()
        if each.code != jurisdiction.code and each.script in ("Latn", jurisdiction.script)
    ]
    both = jurisdiction.european
    fitting = [each.code for each in others if (both and each.european) == within]
    return draws.choice("country", fitting)
