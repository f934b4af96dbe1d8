"""What a build would ask of language models and cost at most, before anything is spent.

Counted over real prompts: of all company ranges, or of some of them, evenly spread. What does not
belong here: asking anybody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Decimal

from docgen_core.llm.items import TextItem
from docgen_core.llm.mix import PROCEDURAL, Provider, ProviderMix
from docgen_core.llm.prompts import requests_for
from docgen_core.llm.routing import route
from docgen_core.packs import load_pack
from docgen_core.runs.keys import catalogue_run_id
from docgen_core.runs.selection import CatalogueSpec
from docgen_core.runs.spec import unit_count
from docgen_core.state.budget import NANO, ModelUsage

COMPANIES_LOOKED_AT = 1_000
"""Of a larger catalogue so many companies are looked at, in whole ranges, and the rest is reckoned from them."""


@dataclass(frozen=True, slots=True)
class ModelPreview:
    """What one provider would be asked in the first round, where every call costs as much as it can."""

    provider: str
    model: str
    texts: int
    calls: int
    input_tokens: int
    """As counted here, without the margin of a worst case."""
    output_tokens: int
    """At most."""
    ceiling: int | None
    """Nano-dollars; None where the model has no price."""
    batch: bool

    def as_row(self) -> tuple[object, ...]:
        """For a table."""
        most = "unknown" if self.ceiling is None else f"${Decimal(self.ceiling) / NANO:.4f}"
        name = f"{self.model} (batch)" if self.batch else self.model
        return name, self.texts, self.calls, self.input_tokens, self.output_tokens, most


@dataclass(frozen=True, slots=True)
class TextPreview:
    """A build's texts as they would be asked for."""

    version: str
    texts: int
    companies_looked_at: int
    companies: int
    models: tuple[ModelPreview, ...]
    budget: int | None

    @property
    def ceiling(self) -> int | None:
        """Nano-dollars of all first rounds; None where a model has no price."""
        found = [model.ceiling for model in self.models]
        return None if None in found else sum(each for each in found if each is not None)

    @property
    def covered_percent(self) -> int | None:
        """Whole per cent of the texts that the budget covers even if every call costs as much as it can."""
        if self.budget is None or self.ceiling is None:
            return None
        if self.ceiling <= self.budget:
            return 100
        return int((Decimal(100) * self.budget / self.ceiling).to_integral_value(ROUND_FLOOR))

    @property
    def notes(self) -> list[str]:
        """Lines for people."""
        reckoned = self.companies_looked_at < self.companies
        lines = [f"reckoned from {self.companies_looked_at} of {self.companies} companies"] if reckoned else []
        if self.ceiling is not None:
            lines.append(f"at most ${Decimal(self.ceiling) / NANO:.2f} for {self.texts} texts, each asked for once")
        if self.covered_percent is not None:
            lines.append(f"the budget covers at least {self.covered_percent} per cent of them")
        return [*lines, "nothing was asked and nothing was spent"]

    def as_json(self) -> dict[str, object]:
        """Everything; money in whole nano-dollars, null where it is not known."""
        return {
            "version": self.version,
            "texts": self.texts,
            "companies": self.companies,
            "companies_looked_at": self.companies_looked_at,
            "models": [asdict(model) for model in self.models],
            "ceiling": self.ceiling,
            "budget": self.budget,
            "covered_percent": self.covered_percent,
        }


def preview_texts(version: str, spec: CatalogueSpec, mix: ProviderMix, budget: int | None = None) -> TextPreview:
    """What the build of a version would ask in its first round; `budget` in nano-dollars."""
    counted: dict[str, list[int]] = {provider.name: [0, 0, 0] for provider in mix.providers}
    worst = {provider.name: ModelUsage() for provider in mix.providers}
    seen = 0
    for companies in _ranges(spec):
        seen += len(companies)
        for provider, texts, tokens in _asked(version, spec, mix, companies):
            for place, number in enumerate((texts, 1, tokens)):
                counted[provider.name][place] += number
            worst[provider.name] += provider.worst_case(tokens, batch=bool(provider.batch))
    models = tuple(
        _scaled(provider, counted[provider.name], worst[provider.name], spec.companies, seen)
        for provider in mix.providers
    )
    return TextPreview(version, sum(model.texts for model in models), seen, spec.companies, models, budget)


def _scaled(provider: Provider, counted: list[int], worst: ModelUsage, all_: int, seen: int) -> ModelPreview:
    def whole(number: int) -> int:
        return -(-number * all_ // seen)

    texts, calls, tokens = map(whole, counted)
    ceiling = None if worst.cost is None else whole(worst.cost)
    output = whole(worst.output_tokens)
    return ModelPreview(provider.name, provider.model, texts, calls, tokens, output, ceiling, bool(provider.batch))


def _ranges(spec: CatalogueSpec) -> Iterator[range]:
    """Company ranges to look at: all, or some of them evenly spread."""
    width = spec.range_width
    units = unit_count(spec.companies, width)
    looked_at = min(units, max(COMPANIES_LOOKED_AT // width, 1))
    for number in range(looked_at):
        first = number * units // looked_at * width
        yield range(first, min(first + width, spec.companies))


def _asked(
    version: str, spec: CatalogueSpec, mix: ProviderMix, companies: range
) -> Iterator[tuple[Provider, int, int]]:
    """The calls for one range as a runner makes them: provider, texts, input tokens."""
    pack, build = load_pack(spec.pack), catalogue_run_id(version)
    groups: dict[tuple[str, str], list[TextItem]] = defaultdict(list)
    for company in companies:
        for item in pack.text_items(pack.catalogue_rows(spec, company)):
            groups[route(mix, build, item.id), item.language].append(item)
    for (name, _), items in groups.items():
        if name == PROCEDURAL:
            continue
        provider = mix.provider(name)
        for part, request in requests_for(provider, items, 0):
            yield provider, len(part), request.input_tokens
