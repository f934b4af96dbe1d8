"""Spain: IVA at 21, 10 and 4 per cent, and what the Reglamento de facturación (RD 1619/2012) wants on an invoice."""

from __future__ import annotations

from decimal import Decimal

from stdnum.es import ccc, cif

from docgen_core.draws import Draws
from docgen_core.packs.invoice import registrations
from docgen_core.packs.invoice.jurisdictions.vat import ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place


class Spain(ValueAddedTax):
    """Spanish law and customs."""

    code = "ES"
    locales = ("es-ES",)
    european = True
    rates = {
        "standard": ("S", Decimal(21)),
        "reduced": ("AA", Decimal(10)),
        "press": ("AA", Decimal(4)),
    }
    bank_label = "Entidad"
    tax_names = {"es": "IVA"}
    withholdings = dict.fromkeys(("architecture_office", "translation_bureau"), ("Retención IRPF", Decimal(15)))
    withheld_forms = frozenset(("S.C.P.", "C.B."))
    """Partners are taxed for what these earn; the other companies pay their own tax."""
    holidays = frozenset(((1, 1), (1, 6), (5, 1), (8, 15), (10, 12), (11, 1), (12, 6), (12, 8), (12, 25)))
    closed = frozenset(((1, 1), (1, 6), (12, 25)))
    net_days = {30: 46, 60: 24, 15: 12, 45: 6, 0: 12}
    street = "{kind} {head} {tail}"
    address_form = ("{street}, {number}", "{postcode} {city}")

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A seller prints its NIF and, where it is in it, its place in the Registro Mercantil; a buyer its NIF."""
        nif = Registration("ES:VAT", "NIF", _nif(draws, form))
        if not seller or form in self.withheld_forms or draws.chance("no register", 250):
            return (nif,)
        return (nif, Registration("ES:REG", "Reg. Mercantil", _register_entry(draws, place.facts["registry"])))

    def iban(self, draws: Draws, bank: str) -> str:
        """A bank code from 95…, which no bank is known to have, with the account's own check digits."""
        codes = registrations.of_bank(bank)
        office = (
            f"95{registrations.drawn_digits(codes, 'bank code', 2)}{registrations.drawn_digits(codes, 'office', 4)}"
        )
        account = registrations.drawn_digits(draws, "account", 10)
        checks = ccc.calc_check_digits(f"{office}00{account}")
        return registrations.with_check_digits(self.code, f"{office}{checks}{account}")


_LETTERS = {"S.A.": "A", "C.B.": "E", "S.C.P.": "J"}
_LETTER_OF_LIMITED_COMPANIES = "B"


def _nif(draws: Draws, form: str) -> str:
    """The form's letter, then 00, where the number of a province would stand: there is none."""
    body = f"{_LETTERS.get(form, _LETTER_OF_LIMITED_COMPANIES)}00{registrations.drawn_digits(draws, 'nif', 5)}"
    return f"{body}{cif.calc_check_digits(body)[0]}"


def _register_entry(draws: Draws, registry: str) -> str:
    """From volume 90,000 on: no register has filled so many."""
    volume, folio = draws.integer("volume", 90_000, 98_999), draws.integer("folio", 1, 224)
    return f"{registry}, tomo {volume}, folio {folio}, hoja {draws.integer('sheet', 900_000, 999_999)}"
