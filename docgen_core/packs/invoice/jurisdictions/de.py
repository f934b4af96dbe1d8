"""Germany: Umsatzsteuer at 19 and 7 per cent, and what § 14 UStG wants on an invoice."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts, Terms
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_TAXES = {
    "standard": Tax("S", Decimal(19), "USt. 19 %"),
    "reduced": Tax("AA", Decimal(7), "USt. 7 %"),
}

_NET_DAYS = {14: 30, 30: 40, 10: 10, 21: 10, 7: 6, 45: 4}
"""Days to pay, with how usual they are."""

_TERMS = (
    "Zahlbar innerhalb von {days} Tagen ohne Abzug.",
    "Zahlungsziel: {days} Tage netto.",
    "Bitte überweisen Sie den Betrag innerhalb von {days} Tagen.",
    "Zahlbar bis {due} ohne Abzug.",
)

_CLOSINGS = (
    "Vielen Dank für Ihren Auftrag.",
    "Wir danken für Ihr Vertrauen.",
    "Es gelten unsere Allgemeinen Geschäftsbedingungen.",
    "Die Ware bleibt bis zur vollständigen Bezahlung unser Eigentum.",
    "",
)

_PAID = ("Betrag dankend erhalten.", "Bar bezahlt.", "Bezahlt mit Karte.", "Bezahlt mit girocard.")


class Germany:
    """German law and customs."""

    code = "DE"
    locale = "de-DE"
    paper = "A4"
    month_units = frozenset(("Monat", "Mon."))
    holidays = frozenset(((1, 1), (5, 1), (10, 3), (12, 25), (12, 26)))
    closed = holidays

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

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, IBAN and BIC."""
        bank = draws.choice("bank", places.name_parts("de")["bank"]["names"])
        return (
            ("bank_name", "Bank", bank),
            ("iban", "IBAN", registrations.german_iban(draws, bank)),
            ("bic", "BIC", registrations.german_bic(bank)),
        )

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The same everywhere in the country (§ 12 UStG)."""
        return _TAXES[tax_class]

    def rounding(self, draws: Draws) -> RoundingPolicy:
        """Either is allowed; per bucket is more usual."""
        return draws.weighted("rounding", {RoundingPolicy.PER_BUCKET: 70, RoundingPolicy.PER_LINE: 30})

    def terms(self, draws: Draws, issued: date) -> Terms:
        """So many days net."""
        days = draws.weighted("net days", _NET_DAYS)
        due = issued + timedelta(days=days)
        text = draws.choice("terms", _TERMS).format(days=days, due=self._day(due))
        return Terms(text, due)

    def paid(self, draws: Draws) -> str:
        """How the customer paid at the till."""
        return draws.choice("paid", _PAID)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """The day of delivery must be named even where it is the day of the invoice (§ 14 Abs. 4 Nr. 6 UStG)."""
        same_day = facts.kind == "invoice" and facts.service_from == facts.service_to == facts.issue_date
        return ("Leistungsdatum entspricht dem Rechnungsdatum.",) if same_day else ()

    def closing(self, draws: Draws) -> str:
        """Thanks, or a reservation of title."""
        return draws.choice("closing", _CLOSINGS)

    def period(self, first: date, last: date) -> str:
        """From day to day."""
        return f"Leistungszeitraum {self._day(first)} – {self._day(last)}"

    def delivery(self, day: date) -> str:
        """The day of delivery."""
        return f"Lieferung vom {self._day(day)}"

    def work(self, day: date) -> str:
        """The day of work."""
        return f"Leistung vom {self._day(day)}"

    def band(self, above: Decimal, up_to: Decimal | None, unit: str) -> str:
        """What stands in a tier's line."""
        low = locales.number(above, self.locale)
        if up_to is None:
            return f"Staffel über {low} {unit}"
        high = locales.number(up_to, self.locale)
        return f"Staffel bis {high} {unit}" if above == 0 else f"Staffel über {low} bis {high} {unit}"

    def _day(self, day: date) -> str:
        return locales.date_text(day, self.locale, "dd.MM.y")
