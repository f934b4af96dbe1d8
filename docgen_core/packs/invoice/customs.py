"""How a country words its documents in a language: terms, mentions, small print, date patterns.

Data: `data/customs/LANG.toml` holds what the language says wherever it is written, and
`data/customs/LANG-CC.toml`, where there is one, what a country says otherwise; `data/billing`
in the same way what lines say of how they are billed. What does not belong here:
labels beside values (words), rates and numbers (jurisdictions).
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

_DATA = files("docgen_core.packs.invoice") / "data"


class Billing(BaseModel):
    """What lines and totals of a billing model say, in one language."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    deposit: str
    """On containers that come back."""
    overage: str
    """With `{included}`."""
    prorated: str
    """With `{days}` and `{days_of}`."""
    meter: str
    """With `{first}` and `{last}`."""
    contract: str
    """With `{total}`, `{progress}` and `{previous}`."""
    volume: str
    """With `{low}` and `{unit}`."""
    fee: str
    """With `{code}` and `{factor}`."""
    interest: str
    interest_untaxed: str
    """Why it is not taxed, a whole sentence."""
    interest_detail: str
    """With `{principal}`, `{rate}` and `{days}`."""
    charges: tuple[str, ...]
    """What a charge on a whole document is for; the last is of those who carry nothing, too."""
    credit_terms: tuple[str, ...]
    """How the buyer gets what a credit note owes."""
    credit_reasons: tuple[str, ...]
    correction_reasons: tuple[str, ...]
    billed: str
    """Beside a line that is taken back."""
    corrected: str
    """Beside the line that takes its place."""
    instalments: str
    """With `{count}`."""


class Customs(BaseModel):
    """The wording of one locale. Alternatives mean the same; a company or document draws one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    terms: tuple[str, ...]
    """With `{days}` and `{due}`."""
    terms_now: tuple[str, ...]
    """For what is due at once."""
    closings: tuple[str, ...]
    """Friendly words or a standing condition at the end; an empty one says nothing."""
    closings_of_goods: tuple[str, ...]
    """What only who sells goods says there besides."""
    paid_cash: tuple[str, ...]
    paid_card: tuple[str, ...]
    period: str
    """With `{first}` and `{last}`."""
    delivery: str
    """With `{day}`."""
    work: str
    """With `{day}`."""
    band_first: str
    """With `{high}` and `{unit}`."""
    band_between: str
    """With `{low}`, `{high}` and `{unit}`."""
    band_over: str
    """With `{low}` and `{unit}`."""
    day: str
    """LDML pattern of a day in small print, with four digits of the year."""
    month_units: tuple[str, ...]
    """Printed units that are the month itself."""
    mailboxes: tuple[str, ...]
    """Local parts of e-mail addresses: functions, never names."""
    date_styles: dict[str, int]
    """LDML patterns that companies choose from, with four digits of the year."""
    vat_id: str
    """What a foreign company's VAT number is called."""
    categories: dict[str, str]
    """By UNCL 5305 category that charges nothing: a word beside its rate in the totals."""
    reasons: dict[str, str]
    """By UNCL 5305 category: why nothing is charged, a whole sentence."""
    prefixes: dict[str, tuple[str, ...]]
    """By kind of document: what its number may begin with."""
    billing: Billing


@cache
def customs(locale: str) -> Customs:
    """The wording of a locale (`en-GB`). Raises KeyError for a language that has none."""
    language = locale.split("-")[0]
    general, billing = _read("customs", language), _read("billing", language)
    if general is None or billing is None:
        raise KeyError(locale)
    return Customs.model_validate(
        {**_over(general, _read("customs", locale) or {}), "billing": {**billing, **(_read("billing", locale) or {})}}
    )


def _read(folder: str, name: str) -> dict[str, Any] | None:
    file = _DATA / folder / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _over(general: dict[str, Any], special: dict[str, Any]) -> dict[str, Any]:
    """What the country says, else what the language does; `date_styles` are taken whole."""
    merged = {**general, **special}
    for key in ("categories", "reasons", "prefixes"):
        merged[key] = {**general.get(key, {}), **special.get(key, {})}
    return merged
