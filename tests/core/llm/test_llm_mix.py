"""The mix file: exact prices, and one clear line for whatever is wrong with it. Case 16 among them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.errors import UsageError
from docgen_core.llm.mix import PRESETS, Price, ProviderMix, load_mix, parse_mix

PRICED = "price: {input_per_million: 0.14, output_per_million: 0.28}"


def written(*providers: str, rest: str = "empty_reply_cap_usd: 0.01") -> str:
    return "providers:\n" + "\n".join(providers) + "\n" + rest + "\n"


def one(name: str = "alpha", extra: str = PRICED, model: str = "openai/alpha-small") -> str:
    lines = f"name: {name}\nmodel: {model}\nweight: 1\nmax_output_tokens: 2000\ntimeout_seconds: 5\n{extra}".split("\n")
    return "  - " + "\n    ".join(lines)


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as refused:
        parse_mix(text, "my.yaml")
    line = str(refused.value)
    assert "\n" not in line and refused.value.exit_code == 2 and "my.yaml" in line
    return line


def test_a_call_costs_what_its_price_says_to_the_nano_dollar() -> None:
    price = Price(input_per_million=Decimal("0.14"), output_per_million=Decimal("0.28"))
    assert price.cost(300, 2000) == 602_000, "$0.000602, as in case 13"
    assert Price(input_per_million=Decimal("0.0001"), output_per_million=Decimal("0.0001")).cost(1, 0) == 1, (
        "rounded up"
    )


@given(st.decimals(0, 1000, places=6), st.integers(0, 10**7), st.integers(0, 10**7))
@settings(deadline=None)
def test_costs_are_never_rounded_down_and_never_a_nano_dollar_too_much(price: Decimal, tokens: int, out: int) -> None:
    cost = Price(input_per_million=price, output_per_million=price).cost(tokens, out)
    assert 0 <= cost - (tokens + out) * price * 1000 < 1


def test_the_worst_case_of_a_call_has_a_margin_on_what_goes_in_and_all_that_may_come_out() -> None:
    worst = parse_mix(written(one()), "m").provider("alpha").worst_case(301)
    assert (worst.input_tokens, worst.output_tokens) == (392, 2000)
    assert worst.known_cost == 392 * 140 + 2000 * 280


def test_a_batch_costs_half_where_the_mix_does_not_say_otherwise() -> None:
    told = [
        one("half", f"{PRICED}\nbatch: true"),
        one("less", f"{PRICED}\nbatch: {{discount_percent: 12.5}}"),
        one("none"),
    ]
    mix = parse_mix(written(*told), "m")
    real, half, less, none = (
        mix.provider(name).used(301, 7, batch=name != "none") for name in ("none", "half", "less", "none")
    )
    assert real == none and real.known_cost == 301 * 140 + 7 * 280
    assert half.known_cost == real.known_cost // 2 and half.calls == 1
    assert less.known_cost == -(-real.known_cost * 875 // 1000)
    assert mix.provider("half").used(301, 7).cost == real.cost, "in real time it costs all of it"
    assert mix.provider("half").worst_case(301, batch=True).known_cost == (392 * 140 + 2000 * 280) // 2


@pytest.mark.parametrize(
    ("model", "batch", "said"),
    [
        ("gemini/gemini-3.5-flash-lite", "true", "no batches to gemini, but to anthropic, azure, mistral, openai"),
        ("openai/alpha", "{discount_percent: 100}", "less than 100"),
        ("openai/alpha", "{discount: 50}", "no such setting"),
        ("openai/alpha", "often", "batch"),
    ],
)
def test_a_batch_that_cannot_be_is_refused(model: str, batch: str, said: str) -> None:
    assert said in refusal(written(one(model=model, extra=f"{PRICED}\nbatch: {batch}")))


def three() -> list[str]:
    return [
        one(),
        one("beta", "api_base: http://127.0.0.1:1/v1", "openai/beta-unlisted"),
        one("local", "free: true", "openai/local-x"),
    ]


def test_case_16_with_a_budget_a_model_without_a_price_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"beta-unlisted has none: give it `price: .*free: true") as refused:
        parse_mix(written(*three()), "m").require_prices()
    assert "alpha" not in str(refused.value) and "local-x" not in str(refused.value)
    alpha, _, local = three()
    mix = parse_mix(written(alpha, local), "m")
    mix.require_prices()
    assert mix.provider("local").used(300, 2000).cost == 0


def test_case_16_without_a_budget_the_cost_is_unknown_and_never_zero() -> None:
    mix = parse_mix(written(*three()), "m")
    assert mix.provider("beta").used(300, 2000).cost is None
    total = mix.provider("beta").used(300, 2000) + mix.provider("alpha").used(300, 2000)
    assert (total.cost, total.unpriced_calls, total.known_cost) == (None, 1, 602_000)


def test_a_price_of_zero_must_be_meant() -> None:
    line = refusal(written(one("local", "price: {input_per_million: 0, output_per_million: 0}", "openai/local-x")))
    assert "openai/local-x has a price of zero" in line and "free: true" in line
    assert "say one of both" in refusal(written(one("local", PRICED + "\nfree: true")))
    meant = parse_mix(written(one("local", "free: true\nprice: {input_per_million: 0, output_per_million: 0}")), "m")
    assert meant.provider("local").worst_case(100).cost == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("providers: []\nempty_reply_cap_usd: 0", "providers: "),
        ("- a", "holds no `providers:`"),
        ("", "holds no `providers:`"),
        ("providers: [\n", "line 2 is not YAML"),
        ("a: 1\na: 2", "line 2: 'a' stands there twice"),
        (written(one(), one()), "provider 'alpha' stands there twice"),
        (written(one(), rest="empty_reply_cap_usd: 0\nfallback: [{to: omega, share: 1}]"), "fallback to 'omega'"),
        (written(one(), rest="empty_reply_cap_usd: 0\nfallback: [{to: alpha, share: 0}]"), "fallback alpha, share: "),
        (written(one(extra="wieght: 2")), "provider alpha, wieght: there is no such setting"),
        (written(one(model="alpha-small")), 'a model is written "vendor/model"'),
        (written(one(name="procedural")), "a name is lower-case letters"),
        (
            written(one(extra="price: {input_per_million: .nan, output_per_million: 1}")),
            "provider alpha, price, input_per_million",
        ),
        (
            written(one(extra="price: {input_per_million: -1, output_per_million: 1}")),
            "provider alpha, price, input_per_million",
        ),
        (written(one(extra="price: {input_per_million: 1}")), "output_per_million: is missing"),
        (written(one(extra="api_base: http://user:pass@host/v1")), "api_base: an api_base is http(s)://host"),
        (written(one(), rest=""), "empty_reply_cap_usd: is missing"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_with_its_place(text: str, says: str) -> None:
    assert says in refusal(text)


@pytest.mark.parametrize(
    "extra",
    [
        "api_key_env: sk-very-secret-1",
        "api_key: sk-very-secret-1",
        "extra_body: {api_key: sk-very-secret-1}",
        "extra_body: {headers: {Authorization: sk-very-secret-1}}",
        "extra_body: {tools: [{authorization: sk-very-secret-1}]}",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_shown(extra: str) -> None:
    line = refusal(written(one(extra=PRICED + "\n" + extra)))
    assert "api_key_env" in line and "environment" in line and "very-secret" not in line


def test_keys_come_from_the_environment_and_are_in_no_text_of_the_mix() -> None:
    mix = parse_mix(written(one(extra=PRICED + "\napi_key_env: ALPHA_KEY")), "m")
    provider = mix.provider("alpha")
    assert provider.key({"ALPHA_KEY": "sk-very-secret-1"}) == "sk-very-secret-1"
    assert "very-secret" not in repr(mix) + mix.model_dump_json()
    with pytest.raises(UsageError, match="needs its key in the environment variable ALPHA_KEY"):
        provider.key({"ALPHA_KEY": " "})
    assert parse_mix(written(one()), "m").provider("alpha").key({}) is None


@pytest.mark.parametrize("key", ["sk-very\nsecret", "sk-very-sécret"])
def test_what_can_be_no_key_is_told_before_a_vendors_library_shows_it(key: str) -> None:
    provider = parse_mix(written(one(extra=PRICED + "\napi_key_env: ALPHA_KEY")), "m").provider("alpha")
    with pytest.raises(UsageError, match="ALPHA_KEY of provider 'alpha' holds no key") as refused:
        provider.key({"ALPHA_KEY": key})
    assert "very" not in str(refused.value)


TENFOLD = [f"{each}: &{each} [{', '.join([f'*{before}'] * 10)}]" for before, each in zip("abcde", "bcdef", strict=True)]
LAUGHS = ", ".join(["a: &a [x]", *TENFOLD])


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("{a: {1: &x [*x]}}", "nested deeper"),
        ("&x {a: *x}", "nested deeper"),
        (f"{{{LAUGHS}}}", "more than 1000 values"),
        ("{max_tokens: 100000}", "'max_tokens' is docgen's to say"),
        ("{n: 5}", "'n' is docgen's to say"),
        ("{a: .inf}", "no number"),
        (f"{{a: 0x{'f' * 4000}}}", "63 bits"),
        (r'{a: "\ud800"}', "surrogate"),
    ],
)
def test_what_no_vendor_is_told_is_refused_at_once(body: str, says: str) -> None:
    line = refusal(written(one(extra=f"{PRICED}\nextra_body: {body}")))
    assert says in line and "more)" not in line


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_priced_sourced_and_fall_back_to_procedural_text(preset: str) -> None:
    mix = load_mix(preset)
    mix.require_prices()
    assert "procedural" in [member.to for member in mix.fallback]
    assert all(provider.api_key_env and provider.price for provider in mix.providers)
    text = (Path(__file__).parents[3] / f"docgen_core/llm/data/mixes/{preset}.yaml").read_text()
    for vendor in {provider.model.partition("/")[0] for provider in mix.providers}:
        shown = {
            "openai": "OpenAI",
            "anthropic": "Anthropic",
            "mistral": "Mistral",
            "gemini": "Google",
            "deepseek": "DeepSeek",
        }
        (line,) = (line for line in text.splitlines() if line.startswith(f"#   {shown[vendor]} "))
        assert " 2026-1" in line, "prices are dated"


def test_presets_cost_more_the_better_they_are() -> None:
    def dear(mix: ProviderMix) -> Decimal:
        total = sum(provider.weight for provider in mix.providers)
        return sum(p.weight * p.used(10**6, 10**6).known_cost for p in mix.providers) / total

    cheap, balanced, best = (dear(load_mix(preset)) for preset in PRESETS)
    assert cheap < balanced < best


def test_a_file_that_is_not_there_is_told_with_the_presets() -> None:
    with pytest.raises(UsageError, match=r"No such file.*cheap, balanced, best"):
        load_mix("nowhere.yaml")


def test_the_example_of_the_documentation_is_a_mix() -> None:
    page = (Path(__file__).parents[3] / "docs/mix.md").read_text()
    mix = parse_mix(page.partition("```yaml\n")[2].partition("```")[0], "docs")
    mix.require_prices()
    assert [provider.name for provider in mix.providers] == ["luna", "local"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_mix_as_text_is_read_back_as_the_same_mix(preset: str) -> None:
    mix = load_mix(preset)
    text = mix.as_text()
    assert parse_mix(text, "spec") == mix and parse_mix(text, "spec").as_text() == text
    assert json.loads(text)["providers"][0]["name"] == mix.providers[0].name


def test_equal_mixes_have_one_text_however_they_are_written() -> None:
    body = "extra_body: {a: 1.50, b: 1e-3}\n"
    twice = [
        parse_mix(written(one(extra=body + PRICED), rest="empty_reply_cap_usd: 0.010"), "m"),
        parse_mix(written(one(extra="extra_body: {b: 0.001, a: 1.5}\n" + PRICED)).replace("0.28", "0.280"), "m"),
    ]
    assert twice[0] == twice[1] and twice[0].as_text() == twice[1].as_text()


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text("abcde", min_size=1), _JSON, max_size=4))
@settings(deadline=None)
def test_whatever_goes_to_a_vendor_comes_back_out_of_the_text(body: dict[str, Any]) -> None:
    mix = parse_mix(written(one()), "m")
    provider = mix.providers[0].model_copy(update={"extra_body": body})
    told = mix.model_copy(update={"providers": (provider,)})
    assert parse_mix(told.as_text(), "spec") == told


def test_numbers_for_a_vendor_are_numbers_and_what_is_no_json_is_refused() -> None:
    told = parse_mix(written(one(extra="extra_body: {temperature: 0.7, deep: {top_p: [0.9]}}\n" + PRICED)), "m")
    assert json.dumps(told.providers[0].extra_body) == '{"temperature": 0.7, "deep": {"top_p": [0.9]}}'
    assert "extra_body: a date goes to no vendor; put it into quotes" in refusal(
        written(one(extra="extra_body: {since: 2026-01-01}\n" + PRICED))
    )
