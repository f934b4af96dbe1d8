"""Germany: Umsatzsteuer at 19 and 7 per cent, and what § 14 UStG wants on an invoice."""

from __future__ import annotations

from decimal import Decimal

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.jurisdictions.base import Facts
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Germany(ValueAddedTax):
    """German law and customs."""

    code = "DE"
    locales = ("de-DE",)
    european = True
    rates = {"standard": ("S", Decimal(19)), "reduced": ("AA", Decimal(7))}
    tax_names = {"de": "USt."}
    deposits = (Decimal("3.30"), Decimal("0.25"))
    holidays = frozenset(((1, 1), (5, 1), (10, 3), (12, 25), (12, 26)))
    closed = holidays
    net_days = {14: 30, 30: 40, 10: 10, 21: 10, 7: 6, 45: 4}
    bban = "9bbbbbbbaaaaaaaaaa"
    """A bank code that begins with 9: clearing areas are 1 to 8."""

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Street and number, postcode and town."""
        return places.german_address(draws, place)

    def phone(self, draws: Draws, place: Place) -> str:
        """From the blocks kept free for film and television."""
        return places.german_phone(draws, place)

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints USt-IdNr., mostly its Steuernummer, and its register; a buyer the first."""
        vat_id = Registration("DE:VAT", "USt-IdNr.", registrations.german_vat_id(draws))
        if not seller:
            return (vat_id,)
        entry = registrations.german_register_entry(draws, place.facts["court"], form)
        register = Registration("DE:HR", "Handelsregister", entry)
        if draws.chance("no tax number", 350):
            return (vat_id, register)
        number = registrations.german_tax_number(draws, place.region)
        return (vat_id, Registration("DE:STNR", "Steuernummer", number), register)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """The day of delivery must be named even where it is the day of the invoice (§ 14 Abs. 4 Nr. 6 UStG)."""
        same_day = facts.kind == "invoice" and facts.service_from == facts.service_to == facts.issue_date
        return (*super().mentions(facts), *(("Leistungsdatum entspricht dem Rechnungsdatum.",) if same_day else ()))
