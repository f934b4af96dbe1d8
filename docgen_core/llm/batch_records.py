"""What is written down of a batch: three blobs, each created once, so that each step has one outcome for everybody.

An *intent* before anything is asked of the vendor, a *placing* that names the batch or says that
there is none, and an *outcome* once its money is booked. Whoever creates a blob second reads the first.
What does not belong here: what a step does (batches.py).
"""

from __future__ import annotations

from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from docgen_core.blobs.contract import BlobStore
from docgen_core.canonical import canonical_json
from docgen_core.errors import BlobExists, BlobMissing, Damage
from docgen_core.llm.cache import PREFIX
from docgen_core.state.budget import ModelUsage

_STRICT = ConfigDict(frozen=True, extra="forbid")


class Worst(BaseModel):
    """The most that one request can be billed for."""

    model_config = _STRICT

    input_tokens: int
    output_tokens: int
    cost: int | None
    """Nano-dollars; None where the model has no price."""

    @property
    def usage(self) -> ModelUsage:
        """As the budget counts it."""
        return ModelUsage(1, self.input_tokens, self.output_tokens, self.cost or 0, int(self.cost is None))


class Intent(BaseModel):
    """Somebody is about to hand in a batch; nobody else will."""

    model_config = _STRICT

    format: Literal[1] = 1
    grant: str
    """Its grant's id, and the key under which the vendor may know the batch: new for each intent."""
    run_id: str
    worker: str
    model: str
    at: int
    """Seconds since 1970."""
    requests: dict[str, Worst]
    """By the requests' digests, which are the lines' ids."""

    @property
    def worst(self) -> ModelUsage:
        """All lines together."""
        return sum((worst.usage for worst in self.requests.values()), ModelUsage())


class Placing(BaseModel):
    """What came of handing it in: the vendor's id, or why there is none."""

    model_config = _STRICT

    format: Literal[1] = 1
    at: int
    """Seconds since 1970."""
    batch: str | None = None
    reason: str | None = None
    charged: bool = False
    """Without an id: whether a batch may be at work all the same, so that its worst case is spent."""


class Settled(BaseModel):
    """A line as it was booked."""

    model_config = _STRICT

    answered: bool
    cost: int | None
    detail: str | None


class Outcome(BaseModel):
    """The batch is over: its answers are in the cache, and its money is booked."""

    model_config = _STRICT

    format: Literal[1] = 1
    at: int
    """Seconds since 1970."""
    lines: dict[str, Settled]


_Record = TypeVar("_Record", Intent, Placing, Outcome)


class BatchRecord:
    """The blobs of one unit's batch at one provider."""

    def __init__(self, blobs: BlobStore, run_id: str, unit: int, provider: str) -> None:
        self._blobs = blobs
        self._folder = f"{PREFIX}/batches/{run_id}/unit-{unit:06d}/{provider}"

    def intent(self) -> Intent | None:
        """What somebody was about to hand in."""
        return self._read("intent", Intent)

    def placing(self) -> Placing | None:
        """What came of it."""
        return self._read("placing", Placing)

    def outcome(self) -> Outcome | None:
        """How it ended."""
        return self._read("outcome", Outcome)

    def begin(self, intent: Intent) -> bool:
        """Whether this is the intent that stands."""
        return self._first("intent", intent) == intent

    def place(self, placing: Placing) -> Placing:
        """The placing that stands."""
        return self._first("placing", placing)

    def end(self, outcome: Outcome) -> None:
        """Write how it ended, where nobody has."""
        self._first("outcome", outcome)

    def _first(self, name: str, record: _Record) -> _Record:
        try:
            self._blobs.put(self._key(name), canonical_json(record.model_dump()), create_only=True)
        except BlobExists:
            return self._read(name, type(record)) or record
        return record

    def _read(self, name: str, kind: type[_Record]) -> _Record | None:
        try:
            return kind.model_validate_json(self._blobs.get(self._key(name)))
        except BlobMissing:
            return None
        except ValidationError:
            raise Damage(
                f"the record {self._key(name)} is none of this docgen's; look the batch up at the vendor, and delete "
                f"the folder {self._folder}"
            ) from None

    def _key(self, name: str) -> str:
        return f"{self._folder}/{name}.json"
