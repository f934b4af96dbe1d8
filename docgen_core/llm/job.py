"""One run's items: which of them still need a text, and what replies make of them.

Replies are judged in the order of the items, whichever came first. What does not belong here: who is
asked (runner.py), and what a text may be (gates.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from docgen_core.llm.attempts import Chunk
from docgen_core.llm.gates import Field, Gate, Rule, check_text, meaning_key
from docgen_core.llm.items import CallRecord, Filled, TextItem, Unfilled, Written
from docgen_core.llm.lanes import Lost
from docgen_core.llm.mix import ProviderMix
from docgen_core.llm.prompts import instructions, read_chunk
from docgen_core.llm.requests import Answer

MAX_ROUNDS = 3
"""Times that a text is asked for, where what came was turned down."""


@dataclass(slots=True)
class Pending:
    """An item without a text yet."""

    item: TextItem
    round: int = 0
    lost: set[str] = field(default_factory=set)
    """Providers that it was not answered by; they are not asked for it again in this run."""
    too_dear: set[str] = field(default_factory=set)
    """Providers that the budget could not carry, or that are as dear."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of a chunk: an answer, or why there is none."""

    chunk: Chunk
    answer: Answer | None = None
    lost: Lost = Lost.PROVIDER
    cost: int | None = 0
    """Nano-dollars that were booked for the answer here; None without a price."""
    cached: bool = False
    batch: bool = False

    @property
    def place(self) -> str:
        """The chunk's among those of a pass, which asks for an item once."""
        return self.chunk.items[0].id


class Job:
    """The state of one run. Each answer that it is told of is recorded once, with what came of its texts."""

    def __init__(self, items: Sequence[TextItem], mix: ProviderMix, on_call: Callable[[CallRecord], None]) -> None:
        self.pending = {item.id: Pending(item) for item in items}
        if len(self.pending) != len(items):
            raise ValueError("two items have one id")
        self.filled = Filled()
        self._mix, self._on_call = mix, on_call
        self._gates: dict[tuple[str, str], Gate] = {}
        """By group and language."""
        self._unrecorded: dict[str, tuple[Told, Answer]] = {}
        """Answers whose texts are not admitted yet, by place."""

    def answered(self, told: Told, answer: Answer) -> None:
        """Keep in mind that this is to be recorded, whatever happens."""
        self._unrecorded[told.place] = told, answer

    def record_rest(self) -> None:
        """Record the answers that no item will take any more, as each text is worth on its own."""
        for told, answer in self._unrecorded.values():
            rules = list(_judged(told.chunk, answer))
            self._record(told, answer, rules.count(None), len(rules))

    def end(self, waiting: Pending, reason: Unfilled) -> None:
        """The item keeps its procedural text."""
        self.filled.unfilled[waiting.item.id] = reason
        del self.pending[waiting.item.id]

    def take(self, told: Told) -> None:
        """Fill the items that have a text now, and send the others on their way."""
        chunk = told.chunk
        if told.answer is None:
            self._lose(told)
            return
        texts = read_chunk(told.answer, chunk.items)
        accepted = 0
        for item in chunk.items:
            text = texts.get(item.id)
            if text is None or self._turned_down(chunk, item, text):
                self._ask_again(item)
            else:
                self.filled.texts[item.id] = Written(text, chunk.provider.name, chunk.provider.model, chunk.round)
                del self.pending[item.id]
                accepted += 1
        del self._unrecorded[told.place]
        self._record(told, told.answer, accepted, len(texts))

    def _turned_down(self, chunk: Chunk, item: TextItem, text: str) -> bool:
        """Whether a rule turns the text down, which is counted."""
        model, company = chunk.provider.model, (item.group, item.language)
        if company not in self._gates:
            self._gates[company] = Gate(item.language, instructions=instructions(item.language))
        rule = _echo(item, text) or self._gates[company].admit(text, Field.DESCRIPTION, model)
        if rule is not None:
            self.filled.rejected[model, rule] += 1
        return rule is not None

    def _ask_again(self, item: TextItem) -> None:
        waiting = self.pending[item.id]
        waiting.round += 1
        if waiting.round == MAX_ROUNDS:
            self.end(waiting, Unfilled.REJECTED)

    def _lose(self, told: Told) -> None:
        provider, tokens = told.chunk.provider, told.chunk.request.input_tokens
        as_dear = set()
        if told.lost is Lost.BUDGET:
            worst = provider.worst_case(tokens).known_cost
            as_dear = {each.name for each in self._mix.providers if each.worst_case(tokens).known_cost >= worst}
        for item in told.chunk.items:
            if told.lost is Lost.ITEM:
                self._ask_again(item)
            else:
                self.pending[item.id].lost |= {provider.name} | as_dear
                self.pending[item.id].too_dear |= as_dear

    def _record(self, told: Told, answer: Answer, accepted: int, texts: int) -> None:
        record = told.chunk.answered
        self._on_call(record(answer, told.cost, accepted, texts - accepted, cached=told.cached, batch=told.batch))


def _judged(chunk: Chunk, answer: Answer) -> Iterator[Rule | None]:
    """The rule that turns each text of the reply down on its own; others of its company are not looked at."""
    texts = read_chunk(answer, chunk.items)
    fixed = instructions(chunk.items[0].language)
    for item in chunk.items:
        if (text := texts.get(item.id)) is not None:
            yield _echo(item, text) or check_text(text, item.language, Field.DESCRIPTION, instructions=fixed)


def is_usable(chunk: Chunk, answer: Answer) -> bool:
    """Whether any text of the reply passes the gates on its own."""
    return any(rule is None for rule in _judged(chunk, answer))


def _echo(item: TextItem, text: str) -> Rule | None:
    """A description that only repeats what was asked about says nothing."""
    told = (meaning_key(each).strip(".。") for each in (item.subject, item.setting))
    return Rule.ECHO if meaning_key(text).strip(".。") in told else None
