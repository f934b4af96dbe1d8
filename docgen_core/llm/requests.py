"""What is asked of a model and what came back: values that cache, calls and budget share.

What does not belong here: how a vendor is called (calls.py), and what a reply means (replies.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from docgen_core.canonical import canonical_json, sha256_hex
from docgen_core.llm.mix import Provider

ASCII_A_TOKEN = 3
"""Characters; vendors' tokenizers take more of plain English into one, and fewer of names and codes."""
TOKENS_A_CHARACTER = 2
"""Of other scripts, at most, in the tokenizers in use."""
TOKENS_A_MESSAGE = 8
"""What the form of a chat adds."""


class Message(TypedDict):
    """One message of a chat."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a model, as far as it decides the reply."""

    model: str
    api_base: str | None
    messages: tuple[Message, ...]
    max_output_tokens: int
    extra_body: Mapping[str, Any]
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply, for vendors that keep to one."""
    round: int = 0
    """A request is made again in another round, so that it is not answered out of the cache."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical request: no key, no clock, and no name of ours is in it."""
        told = {
            "model": self.model,
            "api_base": self.api_base,
            "messages": [dict(message) for message in self.messages],
            "max_output_tokens": self.max_output_tokens,
            "extra_body": _exact(self.extra_body),
            "schema": _exact(self.schema),
            "round": self.round,
        }
        return sha256_hex(canonical_json(told))

    @property
    def input_tokens(self) -> int:
        """How many tokens go in, counted without any vendor's tokenizer and rather too many than too few."""
        texts = [text for message in self.messages for text in (message["role"], message["content"])]
        if self.schema is not None:
            texts.append(canonical_json(_exact(self.schema)).decode())
        return sum(map(_tokens, texts)) + TOKENS_A_MESSAGE * (len(self.messages) + 1)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model gave back for a request."""

    text: str
    cut: bool
    """Whether the vendor says that it was cut off (finish reason "length")."""
    input_tokens: int | None
    """As the vendor has counted; None when it did not say, and the call is charged at its worst case."""
    output_tokens: int | None
    model: str
    """As the vendor names it; prices go by the mix and not by this."""
    request_id: str


def request_for(
    provider: Provider, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, round_: int = 0
) -> Request:
    """The request that asks this provider."""
    return Request(
        provider.model,
        provider.api_base,
        tuple(messages),
        provider.max_output_tokens,
        provider.extra_body,
        schema,
        round_,
    )


def _tokens(text: str) -> int:
    plain = sum(char.isascii() for char in text)
    return -(-plain // ASCII_A_TOKEN) + TOKENS_A_CHARACTER * (len(text) - plain)


def _exact(value: Any) -> Any:
    """The value with its fractions as text, since canonical JSON has none."""
    if isinstance(value, Mapping):
        return {str(key): _exact(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(inner) for inner in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
