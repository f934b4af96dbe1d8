"""Brazil: commercial invoices (faturas) with ICMS on goods, by state, or ISS on services, by town.

A fatura is what is owed; the fiscal document (nota fiscal) is another, and is not imitated. Rates
are those of `data/places/br.tsv`; they are plausible for the years that documents are dated in.
"""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

from stdnum.br import cnpj

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_BASIC_FOOD = Decimal(7)
"""Per cent of ICMS on the basic basket of food."""
_NO_COMPLEMENT_PER_MILLE = 550

_NOT_FISCAL = "Esta fatura não substitui a nota fiscal correspondente."


class Brazil(ValueAddedTax):
    """Brazilian law and customs."""

    code = "BR"
    locales = ("pt-BR",)
    tax_names = {"pt": "ICMS"}
    withholdings = dict.fromkeys(
        ("architecture_office", "it_services", "translation_bureau"), ("Retenções IRRF e CSRF", Decimal("6.15"))
    )
    withheld_forms = frozenset(("Ltda.", "S.A."))
    """Small companies under the Simples Nacional are spared."""
    roundings = {RoundingPolicy.PER_BUCKET: 45, RoundingPolicy.PER_LINE: 55}
    winters = False
    southern = True
    holidays = frozenset(((1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (12, 25)))
    closed = frozenset(((1, 1), (12, 25)))
    net_days = {30: 42, 28: 20, 15: 14, 10: 8, 60: 4, 0: 12}
    street = "{kind} {head} {tail}"
    house_numbers = (12, 3480)

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Street and number, often a room or floor, the quarter, then code, town and state."""
        parts = places.name_parts(self.locale)
        line = f"{places.street(draws, self.locale, self.street)}, {draws.integer('number', *self.house_numbers)}"
        if not draws.chance("no complement", _NO_COMPLEMENT_PER_MILLE):
            line += f" - {draws.choice('complement', parts['suites'])}"
        quarter = draws.choice("quarter", parts["quarters"])
        return (line, quarter, f"CEP {place.postcode} {place.city} - {place.region}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Sellers and buyers print their CNPJ, sellers mostly their number with the town."""
        number = Registration("BR:VAT", "CNPJ", _cnpj(draws))
        if not seller or draws.chance("no town number", 300):
            return (number,)
        return (number, Registration("BR:TAX", "Inscrição Municipal", _town_number(draws)))

    def account(self, draws: Draws, holder: str) -> Account:
        """Bank, branch, account and who holds it, and mostly a random Pix key."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        branch = registrations.drawn_digits(registrations.of_bank(bank), "branch", 4)
        account = f"{draws.integer('account', 10_000, 9_999_999)}-{draws.integer('account digit', 0, 9)}"
        printed = (
            ("bank_name", "Banco", bank),
            ("bank_branch", "Agência", branch),
            ("account_number", "Conta corrente", account),
            ("account_holder", "Favorecido", holder),
        )
        return printed if draws.chance("no pix", 350) else (*printed, ("payment_key", "Chave Pix", _pix_key(draws)))

    def tax(self, tax_class: str, place: Place) -> Tax:
        """ISS on a service, ICMS on the rest, at the rates of the buyer's town and state."""
        if tax_class == "service":
            return self._named("ISS", "S", Decimal(place.facts["service_rate"]))
        if tax_class == "reduced":
            return self._named("ICMS", "AA", _BASIC_FOOD)
        return self._named("ICMS", {"standard": "S"}[tax_class], Decimal(place.facts["goods_rate"]))

    def _named(self, name: str, category: str, rate: Decimal) -> Tax:
        return Tax(category, rate, f"{name} {locales.percent(rate, self.locale)}")

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """What this paper is not."""
        reasons = super().mentions(facts)
        return reasons if facts.kind == "receipt" else (*reasons, _NOT_FISCAL)


def _cnpj(draws: Draws) -> str:
    """Head office of a company beyond 99.9 million, to where the Receita Federal has not counted."""
    body = f"999{registrations.drawn_digits(draws, 'cnpj', 5)}0001"
    return str(cnpj.format(f"{body}{cnpj.calc_check_digits(f'{body}00')}"))


def _pix_key(draws: Draws) -> str:
    """A random key (a version 4 UUID): that it is one in use is as good as impossible."""
    return str(UUID(int=draws.bits("pix") << 64 | draws.bits("pix end"), version=4))


def _town_number(draws: Draws) -> str:
    """In a shape of our own, which is no town's: 00, six digits and one more."""
    digits = registrations.drawn_digits(draws, "town number", 7)
    return f"00{digits[:1]}.{digits[1:4]}.{digits[4:6]}-{digits[6]}"
