"""What a catalogue wants written, and what came of it: values that packs, the runner and units share.

What does not belong here: how a model is asked (prompts.py), and who is asked when (runner.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from docgen_core.llm.gates import Rule


@dataclass(frozen=True, slots=True)
class TextItem:
    """A description that a language model may write in place of the procedural one."""

    id: str
    """Unique in a build, and the same in each: items are routed by it."""
    group: str
    """Whose texts must differ from each other: the company."""
    language: str
    """ISO 639-1 code of the language it is written in."""
    setting: str
    """Who says it, in English: the business and its line, e.g. `office supplies: writing instruments`."""
    subject: str
    """What is described, as it is printed on a line, in the language."""
    procedural: str
    """What stands there without a model."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text of a model's that passed the gates."""

    text: str
    provider: str
    model: str
    round: int


class Unfilled(StrEnum):
    """Why an item keeps its procedural text."""

    ROUTED = "routed"
    """The fallback pool gave it to the procedural text."""
    REJECTED = "rejected"
    """What models wrote in every round was turned down, or was no answer to it."""
    BUDGET = "budget"
    UNAVAILABLE = "unavailable"
    """No provider was left that could be asked."""


class CallOutcome(StrEnum):
    """What a call gave."""

    ANSWERED = "answered"
    UNUSABLE = "unusable"
    """An answer without one text that could be used."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a model, or one answer out of the cache: a row of `llm_usage` but for run, unit and attempt."""

    provider: str
    model: str
    """As the mix names it; prices go by it."""
    reported_model: str | None
    """As the vendor names it; None without an answer."""
    items: tuple[str, ...]
    """Ids of the items that were asked for."""
    round: int
    request_digest: str
    request_id: str | None
    outcome: CallOutcome
    detail: str | None
    """Why it failed, in one line without any key."""
    accepted: int
    """Texts that passed the gates."""
    rejected: int
    input_tokens: int | None
    output_tokens: int | None
    cost: int | None
    """Nano-dollars that were booked for it here; 0 out of the cache, None where the model has no price."""
    cached: bool
    batch: bool


@dataclass(slots=True)
class Filled:
    """What came of a unit's items: each is in `texts` or in `unfilled`."""

    texts: dict[str, Written] = field(default_factory=dict)
    unfilled: dict[str, Unfilled] = field(default_factory=dict)
    rejected: Counter[tuple[str, Rule]] = field(default_factory=Counter)
    """Texts of models that were turned down, by model and rule."""

    @property
    def written(self) -> Mapping[str, int]:
        """Texts by model."""
        return Counter(text.model for text in self.texts.values())
