"""The catalogue's content as data files: read once, checked, resolved into families.

A business type is one file under `types/`; what it is called in a language is one file under
`texts/<language>/`. A type is sold in a jurisdiction when its language has that file, so types
and languages are added as files. Nothing here draws.

Axis values are trade codes and measures (`6204`, `1.5 l`, `M8×40`), printed in every language
but for the decimal mark, or keys (`zinc_8_8`), which each language must spell out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

_ROOT = files("docgen_core.packs.invoice") / "data" / "catalogue"
KEY = re.compile(r"[a-z][a-z0-9_]*|[0-9]+_[a-z_]+")
_MEASURE = re.compile(r"(?:[\d./–+]+(?: ?[×x* ] ?[\d./]+)* [a-zA-Zµ°²³/]+|\d+/\d+|M\d+×\d+|(?:DN|Q3) \d+|A\d|DL)$")
"""A number, or several, with a unit; a calibre, a thread, a nominal size; a size of paper."""
_SHARED = "any"
"""Section of families (types) and texts that every niche of the type may take up."""

_STRICT = ConfigDict(frozen=True, extra="forbid")


class Band(BaseModel):
    """Prices below `limit` are multiples of `step`, less `less`; no limit in a rule's last band."""

    model_config = _STRICT

    limit: Decimal | None = None
    step: Decimal
    less: Decimal = Decimal(0)


class Currency(BaseModel):
    """A currency's level against the base price, and its customary prices by rule."""

    model_config = _STRICT

    scale: Decimal
    minor_units: int
    points: dict[str, tuple[Band, ...]]


class LocalUnit(BaseModel):
    """A unit traded instead of a metric one, and how many metric units one holds."""

    model_config = _STRICT

    unit: str
    holds: Decimal


_BELONGS_TO = {"sport": "service", "sewage": "energy"}
"""Kinds of product that only some countries tax otherwise than the wider kind."""


class Jurisdiction(BaseModel):
    """Where a company sits: currency, language, the tax of each kind of product, local units."""

    model_config = _STRICT

    weight: int
    locale: str
    locales: dict[str, int] = Field(default_factory=dict)
    """Where companies write in several locales, how many of them in which; else all write in `locale`."""
    language: str = ""
    """A language that its only locale shares with another's: English of Ireland is written as in Britain."""
    currency: str
    till: bool
    """Whether shops print receipts: prices are net, so not where consumer prices must be gross."""
    tax: dict[str, tuple[str, str]]
    units: dict[str, LocalUnit]

    @field_validator("tax")
    @classmethod
    def _like_others(cls, tax: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
        """A kind that the country does not single out is taxed like the one it belongs to."""
        return {**{kind: tax[wider] for kind, wider in _BELONGS_TO.items()}, **tax}

    def language_of(self, locale: str) -> str:
        """The language its companies write in `locale`."""
        return self.language or language_of(locale)


class Language(BaseModel):
    """How a language prints measures and units, and the words every business shares."""

    model_config = _STRICT

    decimal_mark: str
    space_before_unit: bool
    sentence_separator: str
    units: dict[str, tuple[str, ...]]
    words: dict[str, str]
    inflected: tuple[tuple[str, ...], ...] = ()
    """Forms of the printed units that follow a quantity (`unit_words.py`)."""
    texts_of: str | None = None
    """Language whose texts it takes, where it has none of its own: Mexican Spanish those of Spain."""
    instead: dict[str, str] = Field(default_factory=dict)
    """What it says instead of words of those texts."""
    metric: bool = False
    """Whether it prints measures as they are, where those texts turn them into others: `1 kg` for `2 lb`."""
    letters: dict[str, str] = Field(default_factory=dict)
    """What it writes instead of letters of those texts."""

    def measure(self, value: str) -> str:
        """A trade code or measure in the language's form."""
        text = re.sub(r"(?<=\d)\.(?=\d)", self.decimal_mark, value)
        return text if self.space_before_unit else re.sub(r"(?<=\d) (?=[A-Za-zµ°%])", "", text)

    def kept(self, words: dict[str, str]) -> dict[str, str]:
        """The words of texts that it takes over: all but other measures for metric ones."""
        return {key: word for key, word in words.items() if not (self.metric and _MEASURE.match(key))}

    def said(self, text: str) -> str:
        """A text with what the language says instead of some of its words."""
        for letter, other in self.letters.items():
            text = text.replace(letter, other)
        if not self.instead:
            return text
        longest_first = sorted(self.instead, key=len, reverse=True)
        words = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)")
        return words.sub(lambda found: self.instead[found.group()], text)


class Codes(BaseModel):
    """What invented codes are made of."""

    model_config = _STRICT

    letters: str
    avoid: frozenset[str]
    ean_prefixes: tuple[str, ...]


class Tiers(BaseModel):
    """A graduated price: band limits, each band's share of the first price, and scales of limits."""

    model_config = _STRICT

    limits: tuple[Decimal, ...]
    factors: tuple[Decimal, ...]
    scales: tuple[int, ...]


class AxisValue(BaseModel):
    """One value of an axis and what it multiplies the price by."""

    model_config = _STRICT

    value: str
    factor: Decimal


class Family(BaseModel):
    """Products that differ by axes alone. Their number is the product of the axes' lengths."""

    model_config = _STRICT

    niche: str
    name: str
    sku: str
    weight: int = 10
    price: Decimal
    """In euros, net, for one unit, with every factor at 1."""
    points: str
    goods: bool
    hs: str | None = None
    tax: str
    unit: str
    billing: str
    period: str | None = None
    quantity: tuple[Decimal, Decimal, Decimal]
    axes: dict[str, tuple[AxisValue, ...]]
    skip: tuple[dict[str, str], ...] = ()
    tiers: Tiers | None = None
    months: tuple[int, ...] = ()
    """In which it is done where there are winters; empty: all year."""

    @property
    def combinations(self) -> int:
        """How many combinations of axis values there are, before `skip`."""
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count

    def combination(self, index: int) -> dict[str, int]:
        """Position on each axis of combination `index`."""
        positions = {}
        for axis, values in self.axes.items():
            index, positions[axis] = divmod(index, len(values))
        return positions

    def sold(self, positions: Mapping[str, int]) -> bool:
        """Whether nobody would find the combination odd."""
        return not any(
            all(self.axes[axis][positions[axis]].value == value for axis, value in pattern.items())
            for pattern in self.skip
        )


class BusinessType(BaseModel):
    """A kind of business and its niches, each a coherent line of families."""

    model_config = _STRICT

    name: str
    weight: int
    billing_model: str
    models: dict[str, int] = Field(default_factory=dict)
    """Other billing models of such companies: how many of a hundred and these together bill so."""
    document_kind: str
    founded: dict[str, tuple[int, int]]
    """First and last founding year, by niche: no older than the trade itself."""
    sizes: dict[str, int]
    level: dict[str, Decimal] = Field(default_factory=dict)
    """Price level by jurisdiction against the exchange rate; 1 where none is given."""
    niches: dict[str, tuple[Family, ...]]


class FamilyText(BaseModel):
    """What a family is called and how it is described in one language."""

    model_config = _STRICT

    names: tuple[str, ...]
    texts: tuple[str, ...]
    detail: str | None
    unit: str | None
    """Printed unit, where the language counts this thing in its own way."""
    notes: tuple[str, ...]
    """Second sentences that hold for every product of the niche."""
    axes: dict[str, tuple[str, ...]]
    """Each axis value as printed."""


def _read(*path: str) -> dict[str, Any]:
    text = _ROOT.joinpath(*path).read_text(encoding="utf-8")
    return tomllib.loads(text, parse_float=Decimal)


@lru_cache(maxsize=1)
def jurisdictions() -> dict[str, Jurisdiction]:
    """Every jurisdiction by its ISO 3166-1 code, in the file's order."""
    return {code: Jurisdiction.model_validate(data) for code, data in _read("jurisdictions.toml").items()}


@lru_cache(maxsize=1)
def currencies() -> dict[str, Currency]:
    """Every currency by its ISO 4217 code."""
    return {code: Currency.model_validate(data) for code, data in _read("currencies.toml").items()}


@lru_cache(maxsize=1)
def unit_codes() -> dict[str, str]:
    """UN/ECE Recommendation 20 code of every unit."""
    return dict(_read("units.toml"))


@lru_cache(maxsize=1)
def codes() -> Codes:
    """Letters and prefixes of invented codes."""
    return Codes.model_validate(_read("codes.toml"))


@cache
def language(name: str) -> Language:
    """A language by its ISO 639-1 code, or as a locale has it; then what it leaves out is that of `texts_of`."""
    own = _read("languages", f"{name}.toml")
    shared = _read("languages", f"{own['texts_of']}.toml") if "texts_of" in own else {}
    merged = {key: {**shared.get(key, {}), **own.get(key, {})} for key in ("units", "words")}
    return Language.model_validate({**shared, **own, **merged})


@cache
def language_of(locale: str) -> str:
    """The language that a locale's companies write: as the locale has it (`es-MX`), where that is a file, or `es`."""
    return locale if (_ROOT / "languages" / f"{locale}.toml").is_file() else locale.split("-")[0]


@lru_cache(maxsize=1)
def business_types() -> dict[str, BusinessType]:
    """Every business type, in the order of their names."""
    names = sorted(entry.name.removesuffix(".toml") for entry in (_ROOT / "types").iterdir())
    return {name: _business_type(name) for name in names}


@cache
def types_in(language_name: str) -> tuple[BusinessType, ...]:
    """Business types that the language has texts for."""
    folder = language(language_name).texts_of or language_name
    told = {entry.name.removesuffix(".toml") for entry in (_ROOT / "texts" / folder).iterdir()}
    return tuple(kind for name, kind in business_types().items() if name in told)


@cache
def months(type_name: str) -> dict[tuple[str, str], tuple[int, ...]]:
    """The months of families that are not for all of the year, by (niche, family)."""
    niches = business_types()[type_name].niches if type_name in business_types() else {}
    return {(niche, each.name): each.months for niche, families in niches.items() for each in families if each.months}


def _business_type(name: str) -> BusinessType:
    data = _read("types", f"{name}.toml")
    head = data.pop("type")
    shared = data.pop(_SHARED, {})
    own = {key: head.pop(key) for key in list(head) if key in BusinessType.model_fields}
    own["founded"] = {niche: body.pop("founded", own["founded"]) for niche, body in data.items()}
    niches = {
        niche: tuple(
            _family(niche, family, [head, scalars, shared.get(family, {}), section])
            for family, section in sections.items()
        )
        for niche, (scalars, sections) in ((niche, _split(body)) for niche, body in data.items())
    }
    return BusinessType(name=name, niches=niches, **own)


def _split(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A niche's own settings, and its families."""
    families = {key: value for key, value in body.items() if isinstance(value, dict)}
    return {key: value for key, value in body.items() if key not in families}, families


def _family(niche: str, name: str, layers: list[dict[str, Any]]) -> Family:
    """A family from what the type, the niche, the shared section and itself say; the last word wins."""
    merged = {key: value for layer in layers for key, value in layer.items()}
    axes = {axis: values for layer in layers for axis, values in layer.get("axes", {}).items()}
    growth = merged.pop("growth", {})
    merged["axes"] = {axis: _axis(values, growth.get(axis, Decimal(1))) for axis, values in axes.items()}
    merged["period"] = merged.get("period") or None
    merged.setdefault("billing", "per_unit")
    return Family(niche=niche, name=name, **merged)


def _axis(values: list[str], growth: Decimal) -> tuple[AxisValue, ...]:
    """Values with their factors: given after `@`, else `growth` times as much as the value before."""
    axis: list[AxisValue] = []
    for entry in values:
        value, _, given = entry.partition(" @")
        factor = Decimal(given) if given else axis[-1].factor * growth if axis else Decimal(1)
        axis.append(AxisValue(value=value, factor=factor if given or growth != 1 else Decimal(1)))
    return tuple(axis)


@cache
def texts(language_name: str, type_name: str) -> dict[tuple[str, str], FamilyText]:
    """What every family of a type is called in a language, by (niche, family)."""
    speech = language(language_name)
    data = _read("texts", speech.texts_of or language_name, f"{type_name}.toml")
    words = {**speech.words, **speech.kept(data.pop("words", {}))}
    shared = data.pop(_SHARED, {})
    told = {}
    for niche, families in business_types()[type_name].niches.items():
        section = {**shared, **data.get(niche, {})}
        for family in families:
            told[niche, family.name] = _family_text(speech, family, section, words)
    return told


def _family_text(speech: Language, family: Family, section: dict[str, Any], words: dict[str, str]) -> FamilyText:
    body = section[family.name]
    local = {**words, **speech.kept(body.get("words", {}))}
    detail, unit = body.get("detail"), body.get("unit")
    return FamilyText(
        names=tuple(map(speech.said, _alternatives(body["name"]))),
        texts=tuple(map(speech.said, _alternatives(body["text"]))),
        detail=speech.said(detail) if detail else None,
        unit=speech.said(unit) if unit else None,
        notes=tuple(map(speech.said, section["notes"])),
        axes={
            axis: tuple(_spoken(speech, entry.value, local) for entry in values) for axis, values in family.axes.items()
        },
    )


def _alternatives(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _spoken(speech: Language, value: str, words: Mapping[str, str]) -> str:
    """An axis value as printed. A key that the language does not spell out raises KeyError."""
    if value in words or KEY.fullmatch(value):
        return speech.said(words[value])
    return speech.measure(value)
