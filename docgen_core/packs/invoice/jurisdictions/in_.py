"""India: CGST and SGST within a state, IGST between states, each at its share of one rate.

What rule 46 of the CGST Rules wants on a tax invoice: both GSTINs, HSN or SAC codes, the taxes one by
one. Electricity, water and books bear no GST.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache

from stdnum import luhn

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.packs.contract import Row
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Jurisdiction
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_SERVICE_CODES = {
    "it_services": "998313",
    "software_saas": "998315",
    "facility_services": "998533",
    "energy_telecom": "998413",
    "courier_logistics": "996812",
    "training_provider": "999293",
    "architecture_office": "998321",
    "translation_bureau": "998395",
    "fitness_club": "999723",
    "waste_disposal": "999423",
    "equipment_rental": "997313",
    "event_catering": "996334",
    "printing": "998912",
    "electrical_contractor": "995461",
    "plumbing_heating": "995462",
    "painting_drywall": "995473",
}
"""Services Accounting Codes by business type."""
_OTHER_SERVICES = "999799"


class India(ValueAddedTax):
    """Indian law and customs, as English documents follow them."""

    code = "IN"
    locales = ("en-IN",)
    rates = {
        "standard": ("S", Decimal(18)),
        "middle": ("AA", Decimal(12)),
        "reduced": ("AA", Decimal(5)),
        "exempt": ("E", NOTHING),
    }
    tax_names = {"en": "GST"}
    exemptions = {"en-IN": "Exempt from GST (Notification No. 2/2017 and 12/2017 Central Tax (Rate))."}
    service_abroad = "G"
    winters = False
    holidays = frozenset(((1, 26), (5, 1), (8, 15), (10, 2), (12, 25)))
    closed = frozenset(((1, 26), (8, 15)))
    net_days = {30: 48, 15: 18, 45: 14, 60: 6, 7: 6, 0: 8}
    total_step = Decimal(1)
    withholdings = {
        "architecture_office": ("TDS u/s 194J", Decimal(10)),
        "translation_bureau": ("TDS u/s 194J", Decimal(10)),
        "it_services": ("TDS u/s 194J", Decimal(2)),
        "facility_services": ("TDS u/s 194C", Decimal(2)),
        "courier_logistics": ("TDS u/s 194C", Decimal(2)),
    }
    house_numbers = (2, 480)
    address_form = ("{number}, {street}", "{city} {postcode}", "{region}")

    def on(self, day: date) -> Jurisdiction:
        """On 22 September 2025 the rate of 12 per cent was given up."""
        return self if day < _SIMPLIFIED else _after()

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both print their GSTIN, whose middle is their PAN; a seller mostly prints that too."""
        pan = _pan(draws, form)
        number = Registration("IN:VAT", "GSTIN", _gstin(place.facts["state_code"], pan))
        if not seller or draws.chance("no pan", 350):
            return (number,)
        return (number, Registration("IN:TAX", "PAN", pan))

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, IFSC, account number and who holds it."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        branch = registrations.drawn_digits(registrations.of_bank(bank), "bank code", 5)
        return (
            ("bank_name", "Bank", bank),
            ("routing_number", "IFSC", f"{registrations.bank_letters(bank, 4)}09{branch}"),
            ("account_number", "A/c No.", f"{draws.integer('account', 10**11, 10**12 - 1)}"),
            ("account_holder", "A/c name", holder),
        )

    def taxed(self, tax_class: str, place: Place, home: Place) -> Tax:
        """Half to the Union and half to the state within one; else all of it as IGST."""
        tax = self.tax(tax_class, place)
        if not tax.rate:
            return tax
        if place.region != home.region:
            return Tax(tax.category, tax.rate, f"IGST {locales.percent(tax.rate, self.locale)}")
        half = tax.rate / 2
        percent = locales.percent(half, self.locale)
        parts = ((f"CGST {percent}", half), (f"SGST {percent}", half))
        return Tax(tax.category, tax.rate, tax.label, parts=parts)

    def commodity_code(self, product: Row, business_type: str) -> str | None:
        """HSN of goods, SAC of services: every line names it."""
        return product["hs_code"] or _SERVICE_CODES.get(business_type, _OTHER_SERVICES)


def _pan(draws: Draws, form: str) -> str:
    """From ZZ…, a series that the Income Tax Department has not come to; C a company, F a partnership."""
    letters = registrations.drawn_digits(draws, "pan letters", 4)
    first, name = (chr(ord("A") + int(letters[at : at + 2]) % 26) for at in (0, 2))
    check = chr(ord("A") + draws.integer("pan check", 0, 25))
    return f"ZZ{first}{'F' if form == 'LLP' else 'C'}{name}{draws.integer('pan', 1, 9999):04d}{check}"


def _gstin(state: str, pan: str) -> str:
    """The first registration of the PAN in the state."""
    body = f"{state}{pan}1Z"
    return f"{body}{luhn.calc_check_digit(body, _ALPHABET)}"


_SIMPLIFIED = date(2025, 9, 22)


class _After(India):
    """Indian law since there are two rates for most things."""

    rates = {**India.rates, "middle": ("AA", Decimal(5))}


@cache
def _after() -> India:
    return _After()
