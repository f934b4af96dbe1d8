"""Japan: 消費税 at 10 and 8 per cent, and what a 適格請求書 must show.

A qualified invoice shows the registration number (T and thirteen digits), the date of the sale,
which items are taxed at the reduced rate, and totals and tax for each rate. Tax may be rounded
once for each rate on an invoice and never by item, so per bucket is the only policy.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import replace
from datetime import date
from decimal import Decimal

from docgen_core import locales
from docgen_core.draws import Draws
from docgen_core.money import RoundingPolicy
from docgen_core.packs.invoice import places, registrations
from docgen_core.packs.invoice.arithmetic import Tax
from docgen_core.packs.invoice.jurisdictions.base import Account, Facts, Terms
from docgen_core.packs.invoice.jurisdictions.vat import NOTHING, ValueAddedTax
from docgen_core.packs.invoice.model import Registration
from docgen_core.packs.invoice.places import Place

_REDUCED_MENTION = "※印は軽減税率(8%)対象品目です。"

_LABELS = {"S": "消費税 ({rate}対象)", "AA": "消費税 ({rate}軽減税率対象)"}


class Japan(ValueAddedTax):
    """Japanese law and customs."""

    code = "JP"
    locales = ("ja-JP",)
    script = "Jpan"
    rates = {"standard": ("S", Decimal(10)), "reduced": ("AA", Decimal(8))}
    tax_names = {"ja": "消費税"}
    service_abroad = "G"
    roundings = {RoundingPolicy.PER_BUCKET: 1}
    """Once for each rate."""
    holidays = frozenset(
        ((1, 1), (1, 2), (1, 3), (2, 11), (2, 23), (4, 29), (5, 3), (5, 4), (5, 5), (8, 11), (11, 3), (11, 23))
    )
    closed = frozenset(((1, 1),))
    net_days = {30: 1, 45: 1, 60: 1}

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
        bank = places.name_parts(self.locale)["bank"]
        return (
            ("bank_name", "銀行名", draws.choice("bank", bank["names"])),
            ("bank_branch", "支店名", draws.choice("branch", bank["branches"])),
            ("account_type", "預金種目", draws.weighted("account type", {"普通": 70, "当座": 30})),
            ("account_number", "口座番号", f"{draws.integer('account', 0, 9_999_999):07d}"),
            ("account_holder", "口座名義", holder),
        )

    def charged(self, category: str, rate: Decimal = NOTHING) -> Tax:
        """A qualified invoice names the rate that a total is for."""
        tax = super().charged(category, rate)
        label = _LABELS.get(category)
        return replace(tax, label=label.format(rate=locales.percent(rate, self.locale))) if label else tax

    def terms(self, draws: Draws, issued: date) -> Terms:
        """By the end of next month, or so many days."""
        if draws.chance("month end", 650):
            return Terms(
                draws.choice("terms", ("月末締め翌月末払い", "翌月末日までにお振込みください")),
                _end_of_next_month(issued),
            )
        return super().terms(draws, issued)

    def mentions(self, facts: Facts) -> tuple[str, ...]:
        """What the ※ beside an item means, where there is one."""
        reduced = any(tax.category == "AA" for tax in facts.tax_lines)
        return (*((_REDUCED_MENTION,) if reduced else ()), *super().mentions(facts))

    def period(self, first: date, last: date) -> str:
        """A whole month by its name, else from day to day."""
        whole_month = first.day == 1 and last == date(first.year, first.month, monthrange(first.year, first.month)[1])
        return f"{first.year}年{first.month}月分" if whole_month else super().period(first, last)


def _end_of_next_month(day: date) -> date:
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return date(year, month, monthrange(year, month)[1])
