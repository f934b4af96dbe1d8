"""Canada: GST everywhere, and with it a province's tax, or HST in the place of both.

Nova Scotia, whose rate changed in 2025, is left out. Quebec writes French.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from stdnum import luhn

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


@dataclass(frozen=True, slots=True)
class _Province:
    """What a province has charged on a sale, in per cent."""

    taxes: tuple[tuple[str, Decimal], ...]
    """(name, rate), in printed order."""
    on_services: bool = True
    """Whether its own tax lies on services."""


_GST = ("GST", Decimal(5))
_PROVINCES: Mapping[str, _Province] = {
    "ON": _Province((("HST", Decimal(13)),)),
    "NB": _Province((("HST", Decimal(15)),)),
    "NL": _Province((("HST", Decimal(15)),)),
    "PE": _Province((("HST", Decimal(15)),)),
    "QC": _Province((_GST, ("QST", Decimal("9.975")))),
    "BC": _Province((_GST, ("PST", Decimal(7))), on_services=False),
    "SK": _Province((_GST, ("PST", Decimal(6)))),
    "MB": _Province((_GST, ("RST", Decimal(7))), on_services=False),
    "AB": _Province((_GST,)),
}

_FRENCH = {"GST": "TPS", "QST": "TVQ", "HST": "TVH", "PST": "TVP", "RST": "TVD"}

_PROVINCIAL_NUMBERS = {
    "QC": ("QST No.", "TVQ"),
    "BC": ("PST No.", "TVP"),
    "SK": ("PST No.", "TVP"),
    "MB": ("RST No.", "TVD"),
}


class Canada(ValueAddedTax):
    """Canadian law and customs."""

    code = "CA"
    locales = ("en-CA", "fr-CA")
    speakers = {"fr-CA": frozenset(("QC",))}
    paper = "Letter"
    rates = {"standard": ("S", Decimal(5)), "service": ("S", Decimal(5)), "zero": ("Z", NOTHING)}
    tax_names = {"en": "GST/HST", "fr": "TPS/TVH"}
    service_abroad = "Z"
    holidays = frozenset(((1, 1), (7, 1), (9, 30), (11, 11), (12, 25), (12, 26)))
    closed = frozenset(((1, 1), (12, 25)))
    net_days = {30: 62, 15: 14, 45: 4, 60: 4, 0: 16}
    cash_step = Decimal("0.05")
    deposits = (Decimal("2.40"), Decimal("0.10"))
    tip_percents = (15, 18, 20)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Number and street, then city, province and postcode; French streets begin with their kind."""
        number = draws.integer("number", 12, 9650)
        if self.language == "fr":
            name = places.street(draws, self.locale, "{kind} {head} {tail}")
            return (f"{number}, {name}", f"{place.city} ({place.region}) {place.postcode}")
        return (
            f"{number} {places.street(draws, self.locale, '{head} {end}')}",
            f"{place.city}, {place.region} {place.postcode}",
        )

    def phone(self, draws: Draws, place: Place) -> str:
        """A 555-01xx number of the area code, kept free for fiction."""
        return f"{place.facts['area_code']}-555-01{draws.integer('phone', 0, 99):02d}"

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its GST/HST number and its province's; a buyer prints neither."""
        if not seller:
            return ()
        french = self.language == "fr"
        federal = Registration("CA:VAT", "N° TPS/TVH" if french else "GST/HST No.", f"{_business_number(draws)} RT0001")
        label = _PROVINCIAL_NUMBERS.get(place.region)
        if label is None:
            return (federal,)
        own = registrations.drawn_digits(draws, "provincial", 7)
        number = f"999{own} TQ0001" if place.region == "QC" else f"PST-9{own[:3]}-{own[3:]}"
        return (federal, Registration("CA:TAX", f"N° {label[1]}" if french else label[0], number))

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, transit and institution, account number and who holds it."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        codes = registrations.of_bank(bank)
        transit, institution = (registrations.drawn_digits(codes, name, n) for name, n in (("transit", 5), ("bank", 2)))
        labels = _FRENCH_LABELS if self.language == "fr" else _LABELS
        values = (bank, f"{transit}-9{institution}", f"{draws.integer('account', 10**6, 10**9)}", holder)
        columns = ("bank_name", "routing_number", "account_number", "account_holder")
        return tuple(zip(columns, labels, values, strict=True))

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The taxes of the buyer's province; services are free of the province's own in some."""
        if tax_class == "zero":
            return self.charged("Z")
        province = _PROVINCES[place.region]
        taxed = province.taxes if tax_class != "service" or province.on_services else province.taxes[:1]
        parts = tuple((self._label(name, rate), rate) for name, rate in taxed)
        if len(parts) == 1:
            return Tax("S", parts[0][1], parts[0][0])
        return Tax("S", sum((rate for _, rate in parts), NOTHING), parts[0][0], parts=parts)

    def _label(self, name: str, rate: Decimal) -> str:
        spoken = _FRENCH[name] if self.language == "fr" else name
        return f"{spoken} {locales.percent(rate, self.locale)}"


_LABELS = ("Bank", "Transit / institution", "Account No.", "Account name")
_FRENCH_LABELS = ("Banque", "Transit / institution", "N° de compte", "Titulaire")


def _business_number(draws: Draws) -> str:
    """Beginning with 00: the Revenue Agency's numbers begin with 1, 7 and 8."""
    body = f"00{registrations.drawn_digits(draws, 'business number', 6)}"
    digits = f"{body}{luhn.calc_check_digit(body)}"
    return f"{digits[:5]} {digits[5:]}"
