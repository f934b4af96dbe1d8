"""Which provider writes which item: shares by weight, moved only where a weight or a quarantine moves them."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from docgen_core.llm.mix import Fallback, Price, Provider, ProviderMix
from docgen_core.llm.routing import route

PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(1))


def mix_of(weights: dict[str, int], fallback: dict[str, int] | None = None) -> ProviderMix:
    return ProviderMix(
        providers=tuple(
            Provider(
                name=name,
                model=f"openai/{name}",
                weight=Decimal(weight),
                max_output_tokens=9,
                timeout_seconds=1,
                price=PRICE,
            )
            for name, weight in weights.items()
        ),
        fallback=tuple(Fallback(to=name, share=Decimal(share)) for name, share in (fallback or {}).items()),
        empty_reply_cap_usd=Decimal(0),
    )


ITEMS = [f"{company}/{product}" for company in range(20) for product in range(5)]


def test_shares_are_as_the_weights() -> None:
    counts = Counter(route(mix_of({"a": 50, "b": 30, "c": 20}), "v1", f"{n}") for n in range(2500))
    assert all(abs(counts[name] / 2500 - share) < 0.03 for name, share in {"a": 0.5, "b": 0.3, "c": 0.2}.items())


def test_a_choice_is_the_same_everywhere_and_another_in_another_round_or_build() -> None:
    mix = mix_of({"a": 1, "b": 1})
    assert [route(mix, "v1", item) for item in ITEMS] == [route(mix_of({"b": 1, "a": 1}), "v1", item) for item in ITEMS]
    assert "".join(route(mix, "v1", f"{n}") for n in range(16)) == "abaaaabbabaabbaa", "as on any machine"
    assert [route(mix, "v1", item) for item in ITEMS] != [route(mix, "v1", item, 1) for item in ITEMS]
    assert [route(mix, "v1", item) for item in ITEMS] != [route(mix, "v2", item) for item in ITEMS]


@given(st.lists(st.integers(1, 100), min_size=2, max_size=5), st.integers(1, 100), st.integers(0, 4))
@settings(max_examples=15, deadline=None)
def test_changing_one_weight_moves_items_to_or_from_that_provider_only(
    weights: list[int], weight: int, which: int
) -> None:
    names = "abcde"[: len(weights)]
    changed = names[which % len(names)]
    before = dict(zip(names, weights, strict=True))
    after = before | {changed: weight}
    for item in ITEMS:
        was, now = route(mix_of(before), "v", item), route(mix_of(after), "v", item)
        assert was == now or (now if weight > before[changed] else was) == changed


def test_only_the_share_of_a_quarantined_provider_moves_and_goes_as_the_pool_says() -> None:
    mix = mix_of({"a": 1, "b": 1, "c": 1}, {"b": 60, "procedural": 40})
    moved: Counter[str] = Counter()
    for n in range(2000):
        was, now = route(mix, "v", f"{n}"), route(mix, "v", f"{n}", unusable={"a"})
        if was == "a":
            moved[now] += 1
        else:
            assert was == now
    assert set(moved) == {"b", "procedural"}
    assert abs(moved["b"] / moved.total() - 0.6) < 0.06


def test_where_nobody_is_left_the_text_is_procedural() -> None:
    mix = mix_of({"a": 1, "b": 1}, {"b": 1})
    assert {route(mix, "v", item, unusable={"a", "b"}) for item in ITEMS} == {"procedural"}
    assert {route(mix_of({"a": 1}), "v", item, unusable={"a"}) for item in ITEMS} == {"procedural"}
