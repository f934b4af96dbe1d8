"""Korea: 부가가치세 at 10 per cent, on statements and bills (거래명세서, 청구서).

The 전자세금계산서 itself is a record at the National Tax Service and never paper, so what is sent
is the statement that goes with it: 공급가액, 세액 and 합계, without minor units.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from stdnum.kr import brn

from docgen_core.draws import Draws
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.calendar_days import month_end, month_start
from docgen_core.packs.invoice.jurisdictions.base import Account, Terms
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_MONTH_END_TERMS = ("월말 마감 익월 말일 결제", "익월 말일까지 입금 바랍니다.")

_ACCOUNT_FORMS = ("###-###-######", "###-##-######-#", "####-###-######")


class Korea(ValueAddedTax):
    """Korean law and customs."""

    code = "KR"
    locales = ("ko-KR",)
    script = "Kore"
    rates = {"standard": ("S", Decimal(10)), "exempt": ("E", NOTHING)}
    tax_names = {"ko": "부가세"}
    service_abroad = "G"
    holidays = frozenset(((1, 1), (3, 1), (5, 5), (6, 6), (8, 15), (10, 3), (10, 9), (12, 25)))
    closed = frozenset(((1, 1),))
    net_days = {30: 5, 15: 2, 7: 2, 45: 1}
    street = "{head}{end}"
    house_numbers = (2, 320)
    address_form = ("({postcode}) {region} {city}", "{street} {number}")

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """Postcode, province and town; road and number, often building and floor."""
        town, road = super().address(draws, place)
        if draws.chance("has building", 550):
            building = draws.choice("building", places.name_parts(self.locale)["buildings"])
            road = f"{road}, {building} {draws.integer('floor', 2, 15)}층"
        return (town, road)

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """Both sides print their 사업자등록번호."""
        return (Registration("KR:VAT", "사업자등록번호", _business_number(draws)),)

    def account(self, draws: Draws, holder: str) -> Account:
        """은행, 계좌번호, 예금주."""
        bank = draws.choice("bank", places.name_parts(self.locale)["bank"]["names"])
        form = registrations.of_bank(bank).choice("account form", _ACCOUNT_FORMS)
        digits = registrations.drawn_digits(draws, "account", form.count("#"))
        return (
            ("bank_name", "은행", bank),
            ("account_number", "계좌번호", registrations.filled(form, digits)),
            ("account_holder", "예금주", holder),
        )

    def terms(self, draws: Draws, issued: date) -> Terms:
        """By the end of next month, or so many days."""
        if draws.chance("month end", 550):
            return Terms(draws.choice("terms", _MONTH_END_TERMS), month_end(month_start(issued, -1)))
        return super().terms(draws, issued)

    def period(self, first: date, last: date) -> str:
        """A whole month by its name, else from day to day."""
        whole = first.day == 1 and last == month_end(first)
        return f"{first.year}년 {first.month}월분" if whole else super().period(first, last)


_WEIGHTS = (1, 3, 7, 1, 3, 7, 1, 3)


def _business_number(draws: Draws) -> str:
    """Of a company (81 to 88), at a tax office from 900 on, where there is none; with its check digit."""
    office, kind = draws.integer("tax office", 900, 999), draws.choice("kind", (81, 86, 87, 88))
    body = f"{office}{kind}{draws.integer('business', 1, 9_999):04d}"
    total = sum(weight * int(digit) for weight, digit in zip(_WEIGHTS, body, strict=False))
    last = 5 * int(body[-1])
    return str(brn.format(f"{body}{-(total + last + last // 10) % 10}"))
