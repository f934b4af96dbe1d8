"""Calling a model: litellm is imported here, and only when the first call is made.

One call is one HTTP request: litellm's own retries are off, so that each attempt has a reservation
of its own. What does not belong here: whether to try again (its caller), money, and what a reply means.
"""

from __future__ import annotations

import asyncio
import email.utils
import gc
import logging
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from docgen_core.errors import MissingExtra
from docgen_core.llm.mix import Provider
from docgen_core.llm.requests import Answer, Request

RETRY_AFTER_LIMIT = 3600.0
"""Seconds; a vendor that asks for more is asked again after so long."""
CLOSING_SECONDS = 1.0
"""Later than our own time-out, litellm's would end a call, with an error that could be anything."""
REASON_CHARACTERS = 200
NAME_CHARACTERS = 200
"""Of the ids that a vendor gives."""
REPLY_CHARACTERS = 500_000
"""Of a reply are read; what is longer answers no prompt of ours."""
TOKENS_LIMIT = 1_000_000_000
"""No call uses more: a vendor that counts so has miscounted, and is booked at the worst case."""
_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else an import fetches prices over the network
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_MODE": "PRODUCTION",  # else an import reads a .env file of the working directory
}
NO_KEY = "none"
"""For a server that wants no key: without any, litellm takes one of another vendor's out of the environment."""
_GONE_FOR_GOOD = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "model_not_found",
    "invalid_api_key",
    "account_deactivated",
}
"""Codes of vendors, whatever the status they come with."""
_GONE_IN_WORDS = re.compile(
    r"credit balance is too low|insufficient (?:balance|credit|funds)|LLM Provider NOT provided"
    r"|model\b.{0,80}\b(?:does not exist|not found|has been (?:deprecated|retired|shut down))",
    re.IGNORECASE,
)
_QUARANTINED_STATUS = {401, 402, 403, 404}
_TIMED_OUT_STATUS = 408
"""Of litellm's too, where it or the connection has given up waiting."""
_TRANSIENT_STATUS = {408, 409, 425, 429}
_STATUS_OF_NO_ANSWER = {408, 500}
"""What libraries say where there was no status at all."""


class Failure(StrEnum):
    """What a failed call says about the provider."""

    TRANSIENT = "transient"
    """Try again later: 429, 5xx, time-outs, broken connections."""
    QUARANTINE = "quarantine"
    """Do not try again: the key, the model, or the money is gone."""
    ITEM = "item"
    """This very request was refused; others may pass."""


class CallFailed(Exception):
    """A call gave no answer. `str(error)` is one line without any key."""

    def __init__(
        self,
        failure: Failure,
        reason: str,
        *,
        retry_after: float | None = None,
        may_be_billed: bool = False,
        status: int | None = None,
        timed_out: bool = False,
    ) -> None:
        super().__init__(reason)
        self.failure, self.retry_after, self.status = failure, retry_after, status
        """`retry_after`: seconds that the vendor asked for; `status`: of HTTP, where the vendor answered."""
        self.may_be_billed = may_be_billed
        """Whether nobody knows: the call is charged at its worst case."""
        self.timed_out = timed_out
        """Whether the provider was silent for all of its time."""


async def call(provider: Provider, request: Request) -> Answer:
    """Ask the model once, within the provider's time-out.

    Raises `CallFailed`, `MissingExtra`, and `UsageError` where the environment has no key.
    """
    key = provider.key() or NO_KEY
    litellm = library()
    try:
        async with asyncio.timeout(provider.timeout_seconds):
            reply = await litellm.acompletion(**arguments(provider, request), api_key=key)
    except TimeoutError:
        raise CallFailed(
            Failure.TRANSIENT,
            f"no answer within {provider.timeout_seconds:g} s",
            may_be_billed=True,
            timed_out=True,
        ) from None
    except Exception as error:  # noqa: BLE001  litellm raises errors of a dozen libraries
        raise failed(error, key) from None
    return answer_of(reply)


async def close() -> None:
    """Give back the connections of this event loop, when no more calls come in it."""
    if library.cache_info().currsize:
        await library().close_litellm_async_clients()


@cache
def library() -> Any:
    """The module litellm, told to fetch nothing and to say nothing. Raises `MissingExtra`."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    collecting = gc.isenabled()
    gc.disable()  # three thousand modules are loaded, none of them garbage: to look costs half a second and more
    try:
        import litellm
    except ImportError:
        raise MissingExtra("calling a language model", "models") from None
    finally:
        if collecting:
            gc.enable()
    # Of replies with other types than a vendor's should have: several lines each, and nothing to do about them.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # it logs requests
    return litellm


def arguments(provider: Provider, request: Request) -> dict[str, Any]:
    """What `litellm.completion` is given for the request, but for the key."""
    told: dict[str, Any] = {
        "model": request.model,
        "api_base": request.api_base,
        "messages": [dict(message) for message in request.messages],
        "max_tokens": request.max_output_tokens,
        "timeout": provider.timeout_seconds + CLOSING_SECONDS,
        "max_retries": 0,
        "num_retries": 0,
        "drop_params": True,
    }
    if request.extra_body and request.model.startswith("anthropic/"):
        told.update(request.extra_body)  # to this vendor litellm would send a field of the name extra_body
    elif request.extra_body:
        told["extra_body"] = dict(request.extra_body)
    if request.schema is not None:
        told["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "items", "schema": dict(request.schema), "strict": True},
        }
    return told


def answer_of(reply: Any) -> Answer:
    """What litellm's form of a reply holds."""
    choice = reply.choices[0] if reply.choices else None
    usage = getattr(reply, "usage", None)
    counted = (usage.prompt_tokens or 0, usage.completion_tokens or 0) if usage else (0, 0)
    # litellm makes 0 of what a vendor does not say; and no vendor's mistake is booked as money.
    known = all(type(count) is int and 0 <= count <= TOKENS_LIMIT for count in counted) and counted[0] > 0
    text = _whole_characters((choice.message.content or "") if choice else "")
    return Answer(
        text=text[:REPLY_CHARACTERS],
        cut=bool(choice and choice.finish_reason == "length") or len(text) > REPLY_CHARACTERS,
        input_tokens=counted[0] if known else None,
        output_tokens=counted[1] if known else None,
        model=_whole_characters(reply.model)[:NAME_CHARACTERS],
        request_id=_whole_characters(reply.id)[:NAME_CHARACTERS],
    )


def _whole_characters(told: object) -> str:
    """The text, half surrogate pairs replaced: no store takes them."""
    return str(told or "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Failures ---------------------------------------------------------------------------------------


def failed(error: Exception, key: str) -> CallFailed:
    """What an error of litellm, or of a vendor's client, says."""
    chain = list(_chain(error))
    status = int(getattr(error, "status_code", None) or 500)
    codes = {str(code) for each in chain for code in _codes(each)}
    words = str(error)
    answered = any(type(each).__name__ == "HTTPStatusError" for each in chain)
    never_sent = any(type(each).__name__ in {"ConnectError", "ConnectTimeout"} for each in chain)
    if status in _QUARANTINED_STATUS or codes & _GONE_FOR_GOOD or _GONE_IN_WORDS.search(words):
        failure = Failure.QUARANTINE
    elif status in _TRANSIENT_STATUS or status >= 500:
        failure = Failure.TRANSIENT
    else:
        failure = Failure.ITEM
    return CallFailed(
        failure,
        one_line(f"{type(error).__name__} {status}: {words}", key),
        retry_after=next((after for each in chain if (after := _retry_after(each)) is not None), None),
        may_be_billed=failure is Failure.TRANSIENT and not answered and not never_sent,
        status=status if answered or status not in _STATUS_OF_NO_ANSWER else None,
        timed_out=status == _TIMED_OUT_STATUS and not answered,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__


def _codes(error: BaseException) -> Iterator[object]:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else {}
    if isinstance(inner, dict):
        yield inner.get("code")
        yield inner.get("type")
    yield getattr(error, "code", None)


def _retry_after(error: BaseException) -> float | None:
    for said in (getattr(error, "response", None), error):
        headers = getattr(said, "headers", None)
        if isinstance(headers, Mapping) and (after := read_retry_after(headers, now=datetime.now(UTC))) is not None:
            return after
    return None


def read_retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds, or a date); None without any."""
    seconds = math.nan
    try:
        if milliseconds := headers.get("retry-after-ms"):
            seconds = float(milliseconds) / 1000
        elif after := headers.get("retry-after"):
            if re.fullmatch(r"\s*\d+(?:\.\d*)?\s*", after):
                seconds = float(after)
            else:
                seconds = (email.utils.parsedate_to_datetime(after) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), RETRY_AFTER_LIMIT)


def one_line(reason: str, key: str) -> str:
    """Short, and without the key, also where the vendor shows parts of it."""
    if key != NO_KEY:
        reason = reason.replace(key, "***")
    reason = re.sub(r"\b(?:sk|pk|key|gsk|AIza)[-_]?[\w*.-]{12,}", "***", reason)
    return " ".join(reason.split())[:REASON_CHARACTERS]
