"""The mix file: which models write a catalogue, in which shares, at which price ceilings.

Prices are exact decimals in the file and whole nano-dollars, rounded up, ever after. Keys stand in
the environment only; the file names the variable. What does not belong here: which item goes to
whom (routing.py), and what may be spent (guard.py).
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from docgen_core.errors import UsageError
from docgen_core.state.budget import MAX_NAME_BYTES, ModelUsage

PROCEDURAL = "procedural"
"""In the fallback pool: the text that the catalogue has without any model."""
NANO_PER_MILLIONTH = 1_000
"""A token at $1 a million costs so many nano-dollars."""
INPUT_MARGIN = Decimal("1.3")
"""A worst case counts so many times the tokens that we count: vendors' tokenizers differ."""
BATCH_VENDORS = ("anthropic", "azure", "mistral", "openai")
"""Whose batches batch_clients.py can hand in and collect."""
BATCH_DISCOUNT_PERCENT = Decimal(50)
"""What all of these take off the price in real time."""
_PRESETS = files("docgen_core.llm") / "data" / "mixes"
PRESETS = ("cheap", "balanced", "best")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_SECRET_NAME = re.compile(r"key|secret|token$|password|authorization|credential", re.IGNORECASE)
_OURS = {
    *("model", "messages", "stream", "n", "best_of", "response_format", "batch", "mock_response"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("api_base", "base_url", "timeout", "max_retries", "num_retries", "fallbacks", "drop_params"),
}
"""Fields of a request that decide what a call costs and whom it reaches: no worst case would hold with others."""
MAX_BODY_VALUES = 1_000
"""In an `extra_body`, aliases written out: what a vendor is told is small."""
MAX_BODY_DEPTH = 20
MAX_BODY_INTEGER = 2**63
_HOW_TO_PRICE = "give it `price: {input_per_million: …, output_per_million: …}` in US dollars, or `free: true`"

_STRICT = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name) or name == PROCEDURAL:
        raise ValueError(f"a name is lower-case letters, digits and ._- and not {PROCEDURAL!r}")
    return name


def _checked_model(model: str) -> str:
    vendor, slash, name = model.partition("/")
    if not (vendor and slash and name) or not model.isprintable() or " " in model:
        raise ValueError('a model is written "vendor/model", e.g. openai/gpt-6-luna')
    if len(model.encode()) > MAX_NAME_BYTES:
        raise ValueError(f"a model's name is no longer than {MAX_NAME_BYTES} bytes")
    return model


def _checked_variable(name: str) -> str:
    # Whoever pastes a key here must not read it again in the message.
    if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,99}", name):
        raise ValueError(
            "name the environment variable that holds the key, e.g. OPENAI_API_KEY, and never a key itself"
        )
    return name


def _checked_base(url: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@?#]+(?:/[^\s@?#]*)?", url):
        raise ValueError("an api_base is http(s)://host[:port]/path, without a user, a key or a query")
    return url.rstrip("/")


def _checked_body(body: dict[str, Any]) -> dict[str, Any]:
    """The body as a vendor gets it. Raises `ValueError` for what does not belong into one."""
    if taken := sorted(_OURS & body.keys()):
        raise ValueError(f"{taken[0]!r} is docgen's to say, and decides what a call costs; leave it out")
    told: dict[str, Any] = _as_json(body, itertools.count(1), 0)
    return told


def _as_json(value: Any, seen: Iterator[int], depth: int) -> Any:
    """The value with numbers that JSON knows. Raises `ValueError` for keys of vendors, and what goes to none."""
    if next(seen) > MAX_BODY_VALUES or depth > MAX_BODY_DEPTH:
        raise ValueError(f"it holds more than {MAX_BODY_VALUES} values, or is nested deeper than {MAX_BODY_DEPTH}")
    if isinstance(value, dict):
        if any(_SECRET_NAME.search(str(name)) for name in value):
            raise ValueError("keys come from the environment only: name the variable in api_key_env")
        return {_as_json(str(name), seen, depth): _as_json(inner, seen, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner, seen, depth + 1) for inner in value]
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no number that a vendor understands")
    if isinstance(value, int) and abs(value) >= MAX_BODY_INTEGER:
        raise ValueError("an integer of more than 63 bits goes to no vendor")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("half a surrogate pair goes to no vendor")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"a {type(value).__name__} goes to no vendor; put it into quotes")


_Body = Annotated[dict[str, Any], AfterValidator(_checked_body)]
_Positive = Annotated[Decimal, Field(ge=0, allow_inf_nan=False, max_digits=18, decimal_places=9)]


def _batch_terms(told: object) -> object:
    return {True: BatchTerms(), False: None}[told] if isinstance(told, bool) else told


class Price(BaseModel):
    """US dollars for a million tokens; a ceiling where the vendor has several prices."""

    model_config = _STRICT

    input_per_million: _Positive
    output_per_million: _Positive

    def cost(self, input_tokens: int | Decimal, output_tokens: int, *, discount_percent: Decimal = Decimal(0)) -> int:
        """Whole nano-dollars, rounded up."""
        exact = input_tokens * self.input_per_million + output_tokens * self.output_per_million
        billed = exact * NANO_PER_MILLIONTH * (100 - discount_percent) / 100
        return int(billed.to_integral_value(ROUND_CEILING))


class BatchTerms(BaseModel):
    """What a call costs less in a batch."""

    model_config = _STRICT

    discount_percent: Annotated[Decimal, Field(ge=0, lt=100, allow_inf_nan=False, decimal_places=2)] = (
        BATCH_DISCOUNT_PERCENT
    )


class Provider(BaseModel):
    """One model, and how it is called."""

    model_config = _STRICT

    name: Annotated[str, AfterValidator(_checked_name)]
    model: Annotated[str, AfterValidator(_checked_model)]
    weight: Annotated[Decimal, Field(gt=0, allow_inf_nan=False, max_digits=12)]
    api_base: Annotated[str, AfterValidator(_checked_base)] | None = None
    api_key_env: Annotated[str, AfterValidator(_checked_variable)] | None = None
    extra_body: _Body = {}
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)]
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)]
    batch: Annotated[BatchTerms | None, BeforeValidator(_batch_terms)] = None
    """`true` in a file is a batch at the usual discount."""
    price: Price | None = None
    free: bool = False

    @model_validator(mode="after")
    def _priced_or_free(self) -> Provider:
        zero = self.price is not None and not (self.price.input_per_million and self.price.output_per_million)
        if zero and not self.free:
            raise ValueError(f"{self.model} has a price of zero; {_HOW_TO_PRICE}")
        if self.free and self.price is not None and (self.price.input_per_million or self.price.output_per_million):
            raise ValueError(f"{self.model} is free and has a price; say one of both")
        return self

    @model_validator(mode="after")
    def _batched_where_there_are_batches(self) -> Provider:
        if self.batch and (vendor := self.model.partition("/")[0]) not in BATCH_VENDORS:
            raise ValueError(
                f"docgen hands in no batches to {vendor}, but to {', '.join(BATCH_VENDORS)}; say batch: false"
            )
        return self

    @property
    def priced(self) -> bool:
        """Whether the cost of a call is known."""
        return self.free or self.price is not None

    def used(self, input_tokens: int, output_tokens: int, *, batch: bool = False) -> ModelUsage:
        """One call's usage, at this provider's own price: what id the vendor reports for its model does not matter."""
        cost = self._cost(input_tokens, output_tokens, batch)
        return ModelUsage(1, input_tokens, output_tokens, cost or 0, unpriced_calls=int(cost is None))

    def worst_case(self, input_tokens: int, *, batch: bool = False) -> ModelUsage:
        """The most that one call can be billed for: a margin on what goes in, and all that may come out."""
        margin = int((input_tokens * INPUT_MARGIN).to_integral_value(ROUND_CEILING))
        return self.used(margin, self.max_output_tokens, batch=batch)

    def key(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """The key of the vendor; None where none is needed. Raises `UsageError` naming the variable that lacks."""
        if self.api_key_env is None:
            return None
        if not (key := environment.get(self.api_key_env, "").strip()):
            raise UsageError(f"provider {self.name!r} needs its key in the environment variable {self.api_key_env}")
        if not (key.isascii() and key.isprintable()):
            raise UsageError(
                f"the environment variable {self.api_key_env} of provider {self.name!r} holds no key: "
                "a key is one line of printable ASCII"
            )
        return key

    def _cost(self, input_tokens: int, output_tokens: int, batch: bool) -> int | None:
        if self.free or self.price is None:
            return 0 if self.free else None
        discount = self.batch.discount_percent if batch and self.batch else Decimal(0)
        return self.price.cost(input_tokens, output_tokens, discount_percent=discount)


class Fallback(BaseModel):
    """A member of the pool that items of a quarantined provider go to."""

    model_config = _STRICT

    to: str
    share: Annotated[Decimal, Field(gt=0, allow_inf_nan=False, max_digits=12)]


class ProviderMix(BaseModel):
    """A mix file."""

    model_config = _STRICT

    providers: Annotated[tuple[Provider, ...], Field(min_length=1)]
    fallback: tuple[Fallback, ...] = ()
    empty_reply_cap_usd: Annotated[Decimal, Field(ge=0, allow_inf_nan=False, decimal_places=9)]

    @model_validator(mode="after")
    def _names_fit(self) -> ProviderMix:
        for kind, names in (
            ("provider", [p.name for p in self.providers]),
            ("fallback", [f.to for f in self.fallback]),
        ):
            if double := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{kind} {double[0]!r} stands there twice")
        known = {provider.name for provider in self.providers} | {PROCEDURAL}
        if strange := [member.to for member in self.fallback if member.to not in known]:
            raise ValueError(f"fallback to {strange[0]!r}, which is no provider; there are {', '.join(sorted(known))}")
        return self

    @property
    def empty_reply_cap(self) -> int:
        """Nano-dollars that may go on replies without a text, for each provider."""
        return int(self.empty_reply_cap_usd * 10**9)

    def provider(self, name: str) -> Provider:
        """The provider of this name. Raises `UsageError` for another."""
        for provider in self.providers:
            if provider.name == name:
                return provider
        raise UsageError(f"no provider {name!r} in the mix")

    def as_text(self) -> str:
        """Canonical JSON that `parse_mix` reads back: equal mixes have one text."""
        told = json.dumps(
            _plain(self.model_dump(exclude_none=True)),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
        return _UNREADABLE.sub(lambda char: f"\\u{ord(char[0]):04x}", told)

    def require_keys(self) -> None:
        """What calls from this machine need. Raises `UsageError` naming the first variable that lacks."""
        for provider in self.providers:
            provider.key()

    def require_prices(self) -> None:
        """What a budget needs before any call. Raises `UsageError` naming each model without a price."""
        if unpriced := [provider.model for provider in self.providers if not provider.priced]:
            raise UsageError(
                f"a budget needs the price of every model, and {', '.join(unpriced)} has none: {_HOW_TO_PRICE}"
            )


_UNREADABLE = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""What may stand in JSON as it is, and ends a line or a text in YAML."""


def _plain(value: Any) -> Any:
    """Exact numbers as texts, each in its shortest form."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def load_mix(source: str) -> ProviderMix:
    """The mix of a preset's name, or of a file. Raises `UsageError`, in one line, for what is none."""
    if source in PRESETS:
        return parse_mix((_PRESETS / f"{source}.yaml").read_text(encoding="utf-8"), f"preset {source}")
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(
            f"cannot read the mix {source!r} ({reason}); name a file, or one of {', '.join(PRESETS)}"
        ) from None
    return parse_mix(text, source)


def parse_mix(text: str, source: str) -> ProviderMix:
    """The mix that a YAML text describes. Raises `UsageError` naming the place and what to write there."""
    from docgen_core.exact_yaml import read_yaml  # a worker reads no YAML

    data = read_yaml(text, f"mix {source!r}")
    if not isinstance(data, dict):
        raise UsageError(f"mix {source!r} holds no `providers:`; a preset shows its form: {', '.join(PRESETS)}")
    try:
        return ProviderMix.model_validate(data)
    except ValidationError as refused:
        first = refused.errors(include_url=False, include_input=False)[0]
        place = _place(first["loc"], data)
        # A list whose only members are refused is told to be empty, too.
        others = sum(error["type"] != "too_short" for error in refused.errors(include_url=False)[1:])
        more = f" (and {others} more)" if others else ""
        raise UsageError(f"mix {source!r}: {place}{_told(first['type'], first['msg'], first['loc'])}{more}") from None


def _place(location: tuple[int | str, ...], data: Mapping[str, Any]) -> str:
    """Where in the file, a provider by its name where it has one."""
    parts: list[str] = []
    for step in location:
        if isinstance(step, int):
            listed = data.get(str(location[0]))
            entry = listed[step] if isinstance(listed, list) and step < len(listed) else None
            name = entry.get("name", entry.get("to")) if isinstance(entry, dict) else None
            shown = name if isinstance(name, str) and _NAME.fullmatch(name) else step + 1
            parts[-1:] = [f"{parts[-1].removesuffix('s')} {shown}"]
        else:
            parts.append(step)
    return f"{', '.join(parts)}: " if parts else ""


def _told(kind: str, message: str, location: tuple[int | str, ...]) -> str:
    """What is wrong, in words for who wrote the file."""
    if kind == "extra_forbidden":
        if _SECRET_NAME.search(str(location[-1])):
            return "keys come from the environment only: name the variable in api_key_env"
        return "there is no such setting"
    if kind == "missing":
        return "is missing"
    said = message.removeprefix("Value error, ")
    return said[:1].lower() + said[1:] if not said[:2].isupper() else said
