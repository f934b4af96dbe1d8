"""Sweden: moms at 25, 12 and 6 per cent, and what chapter 17 of the mervärdesskattelag wants on a faktura."""

from __future__ import annotations

from decimal import Decimal

from stdnum import luhn
from stdnum.se import orgnr

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_PREFIXES = {"AB": "57", "HB": "98", "KB": "98"}
"""Begin the numbers of no company: limited ones have 55, partnerships 91 and 96."""

_APPROVED = "Godkänd för F-skatt."


class Sweden(ValueAddedTax):
    """Swedish law and customs."""

    code = "SE"
    locales = ("sv-SE",)
    european = True
    rates = {"standard": ("S", Decimal(25)), "reduced": ("AA", Decimal(12)), "low": ("AA", Decimal(6))}
    tax_names = {"sv": "Moms"}
    deposits = (Decimal(24), Decimal(1))
    holidays = frozenset(((1, 1), (1, 6), (5, 1), (6, 6), (12, 24), (12, 25), (12, 26), (12, 31)))
    closed = frozenset(((1, 1), (12, 24), (12, 25)))
    net_days = {30: 72, 20: 8, 10: 8, 15: 5, 14: 4, 45: 2, 0: 1}
    bban = "0bbaaaaaaaaaaaaaaaaa"
    """Banks' numbers begin with 1 to 9."""
    street = "{head}{end}"
    house_numbers = (1, 96)
    cash_step = Decimal(1)
    total_step = Decimal(1)
    """Öre are rounded off in most bookkeeping programs, though coins are only gone from tills."""

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its VAT number and mostly its organisationsnummer; some buyers the latter."""
        number = _company_number(draws, form)
        company = Registration("SE:REG", "Org.nr", orgnr.format(number))
        if not seller:
            return (company,) if draws.chance("number printed", 450) else ()
        vat_id = Registration("SE:VAT", "Momsreg.nr", f"SE{number}01")
        return (vat_id,) if draws.chance("no company number", 150) else (company, vat_id)

    def account(self, draws: Draws, holder: str) -> Account:
        """A bankgiro number, and at some companies IBAN and BIC for payers abroad."""
        giro = ("account_number", "Bankgiro", _bankgiro(draws))
        if not draws.chance("pays abroad", 350):
            return (giro,)
        bank, iban, bic = super().account(draws, holder)
        return (giro, bank, iban, bic)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """That the seller pays its own taxes, which frees the buyer from withholding them."""
        return (*super().mentions(facts), *(() if facts.kind == "receipt" else (_APPROVED,)))


def _company_number(draws: Draws, form: str) -> str:
    """Organisationsnummer with its check digit; the third digit is 2 or more, unlike a month."""
    body = f"{_PREFIXES[form]}{draws.integer('group', 2, 9)}{registrations.drawn_digits(draws, 'company', 6)}"
    return f"{body}{luhn.calc_check_digit(body)}"


def _bankgiro(draws: Draws) -> str:
    """Seven digits with the check digit, beginning with 991, as Bankgirot's examples do."""
    body = f"991{registrations.drawn_digits(draws, 'bankgiro', 3)}"
    return f"991-{body[3:]}{luhn.calc_check_digit(body)}"
