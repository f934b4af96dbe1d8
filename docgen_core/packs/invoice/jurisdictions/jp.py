"""Japan: 消費税 at 10 and 8 per cent, and what a 適格請求書 must show.

A qualified invoice shows the registration number (T and thirteen digits), the date of the sale,
which items are taxed at the reduced rate, and totals and tax for each rate. Tax may be rounded
once for each rate on an invoice and never by item, so per bucket is the only policy.
"""

from __future__ import annotations

from calendar import monthrange
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
    "standard": Tax("S", Decimal(10), "消費税 (10%対象)"),
    "reduced": Tax("AA", Decimal(8), "消費税 (8%軽減税率対象)"),
}

_REDUCED_MENTION = "※印は軽減税率(8%)対象品目です。"

_NET_DAYS = (30, 45, 60)

_CLOSINGS = (
    "毎度ありがとうございます。",
    "お振込手数料は貴社にてご負担くださいますようお願い申し上げます。",
    "ご不明な点がございましたら、お手数ですがご連絡ください。",
    "",
)

_PAID = ("上記正に領収いたしました。", "現金にてお支払い済みです。", "カードにてお支払い済みです。")


class Japan:
    """Japanese law and customs."""

    code = "JP"
    locale = "ja-JP"
    paper = "A4"
    month_units = frozenset(("か月", "月"))
    holidays = frozenset(
        ((1, 1), (1, 2), (1, 3), (2, 11), (2, 23), (4, 29), (5, 3), (5, 4), (5, 5), (8, 11), (11, 3), (11, 23))
    )
    closed = frozenset(((1, 1),))

    def address(self, draws: Draws, place: Place) -> tuple[str, ...]:
        """〒, then from prefecture to block, then a building."""
        return places.japanese_address(draws, place)

    def phone(self, draws: Draws, place: Place) -> str:
        """With an exchange that is never assigned."""
        return places.japanese_phone(draws, place)

    def registrations(self, draws: Draws, place: Place, form: str, *, seller: bool) -> tuple[Registration, ...]:
        """A company's registration number is T and its 法人番号; buyers print none."""
        if not seller:
            return ()
        number = registrations.japanese_corporate_number(draws, form)
        qualified = Registration("JP:T", "登録番号", f"T{number}")
        if draws.chance("corporate number", 250):
            return (qualified, Registration("JP:CN", "法人番号", number))
        return (qualified,)

    def account(self, draws: Draws, holder: str) -> Account:
        """銀行, 支店, 種別, 口座番号, 口座名義."""
        bank = places.name_parts("ja")["bank"]
        return (
            ("bank_name", "銀行名", draws.choice("bank", bank["names"])),
            ("bank_branch", "支店名", draws.choice("branch", bank["branches"])),
            ("account_type", "預金種目", draws.weighted("account type", {"普通": 70, "当座": 30})),
            ("account_number", "口座番号", f"{draws.integer('account', 0, 9_999_999):07d}"),
            ("account_holder", "口座名義", holder),
        )

    def tax(self, tax_class: str, place: Place) -> Tax:
        """The same everywhere in the country."""
        return _TAXES[tax_class]

    def rounding(self, draws: Draws) -> RoundingPolicy:
        """Once for each rate."""
        return RoundingPolicy.PER_BUCKET

    def terms(self, draws: Draws, issued: date) -> Terms:
        """By the end of next month, or so many days."""
        if draws.chance("month end", 650):
            return Terms(
                draws.choice("terms", ("月末締め翌月末払い", "翌月末日までにお振込みください")),
                _end_of_next_month(issued),
            )
        days = draws.choice("net days", _NET_DAYS)
        return Terms(f"請求書発行日より{days}日以内にお振込みください", issued + timedelta(days=days))

    def paid(self, draws: Draws) -> str:
        """How the customer paid."""
        return draws.choice("paid", _PAID)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """What the ※ beside an item means, where there is one."""
        reduced = any(tax.category == "AA" for tax in facts.tax_lines)
        return (_REDUCED_MENTION,) if reduced else ()

    def closing(self, draws: Draws) -> str:
        """A greeting, or who bears the bank's fee."""
        return draws.choice("closing", _CLOSINGS)

    def period(self, first: date, last: date) -> str:
        """A whole month by its name, else from day to day."""
        whole_month = first.day == 1 and last == date(first.year, first.month, monthrange(first.year, first.month)[1])
        if whole_month:
            return f"{first.year}年{first.month}月分"
        return f"期間 {self._day(first)}～{self._day(last)}"

    def delivery(self, day: date) -> str:
        """The day of delivery."""
        return f"{self._day(day)} 納品分"

    def work(self, day: date) -> str:
        """The day of work."""
        return f"{self._day(day)} 作業分"

    def band(self, above: Decimal, up_to: Decimal | None, unit: str) -> str:
        """What stands in a tier's line."""
        low = locales.number(above, self.locale)
        if up_to is None:
            return f"{low}{unit}超"
        high = locales.number(up_to, self.locale)
        return f"{high}{unit}まで" if above == 0 else f"{low}{unit}超 {high}{unit}まで"

    def _day(self, day: date) -> str:
        return locales.date_text(day, self.locale, "y/MM/dd")


def _end_of_next_month(day: date) -> date:
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return date(year, month, monthrange(year, month)[1])
