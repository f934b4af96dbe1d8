"""The fleet budget's records and rules: what each operation makes of a grant, and where its money goes.

Escrow: a run's cap lies in `available`; a grant takes a slice out of it, and holds it until it is
spent or given back. After every step, over all shards of `available` and all grants:

    cap + overshoot = available + held,  each shard of available >= 0,  and overshoot = 0 or available = 0

Pure functions, as transitions.py has for units. Money is whole nano-dollars everywhere. What does
not belong here: reading, writing, clocks, prices, and what a call to a language model is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation, Overflow
from enum import StrEnum
from operator import itemgetter

from docgen_core.errors import BudgetTooLow, UsageError

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""

MAX_USD = 1_000_000
"""Of a budget that a person may set."""

MAX_NAME_BYTES = 256
"""Of the id of a grant or an entry, and of a model's or provider's name."""


class GrantState(StrEnum):
    """Where a grant stands. Costs that become known later are booked in any state."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    EXPIRED = "EXPIRED"
    """Its owner gave no sign of life; what it holds is as the budget's `ExpiredGrants` says."""


class ExpiredGrants(StrEnum):
    """What a grant costs whose owner is gone, and with it the knowledge of what it has spent."""

    CHARGED = "charged"
    """All of it, since its calls may have been billed; closing it gives back what turns out to be left."""
    RETURNED = "returned"
    """What was settled; the rest is available again. A cost that becomes known later may then be overshoot."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one model did, and what it cost."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    known_cost: int = 0
    """Nano-dollars; of the calls whose cost is known."""
    unpriced_calls: int = 0
    """Of `calls`, those whose cost is unknown."""

    @property
    def cost(self) -> int | None:
        """Nano-dollars; None when the cost of any call is unknown."""
        return None if self.unpriced_calls else self.known_cost

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return ModelUsage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.known_cost + other.known_cost,
            self.unpriced_calls + other.unpriced_calls,
        )


Usage = Mapping[str, ModelUsage]
"""By model."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What a grant has been used for *so far*: totals, so that a later settlement stands for one that got lost."""

    grant_id: str
    sequence: int
    """From 1, rising. One not above the grant's last is booked already."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class Grant:
    """A slice of the budget in a worker's hands, and for good the record of what became of it."""

    run_id: str
    id: str
    owner: str
    amount: int
    """Nano-dollars that were granted."""
    held: int
    """Nano-dollars that it keeps out of `available` now."""
    sequence: int
    """Of the last settlement; 0 before the first."""
    state: GrantState
    seconds: float
    """How long it holds without a settlement; its owner counts on its own monotonic clock, from before it asked."""
    expires_at: float
    """Wall time, seconds since 1970, that says when others may try to expire it."""
    usage: Usage

    @property
    def settled(self) -> int:
        """Nano-dollars that are known to be spent."""
        return sum(usage.known_cost for usage in self.usage.values())

    @property
    def left(self) -> int:
        """Nano-dollars of the amount that are not known to be spent."""
        return max(self.amount - self.settled, 0)


SignOfLife = tuple[int, float, float]
"""What of an open grant tells whether its owner is there: sequence, expires_at, seconds."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an operator has set, and how far the run is beyond it."""

    cap: int
    expired_grants: ExpiredGrants
    overshoot: int = 0
    """Nano-dollars held by grants beyond the cap: settled above what was granted, and more than was available."""


@dataclass(frozen=True, slots=True)
class BudgetFigures:
    """A budget as it stands, in nano-dollars. cap + overshoot = available + reserved + committed."""

    cap: int
    available: int
    reserved: int
    """In open grants, and not known to be spent."""
    committed: int
    """Spent, or charged."""
    charged: int
    """Of `committed`, what expired grants hold and nobody knows to be spent."""
    overshoot: int
    open_grants: int
    expired_grants: ExpiredGrants


@dataclass(frozen=True, slots=True)
class Spend:
    """What a run has spent, by model, and its budget where it has one."""

    models: Usage
    budget: BudgetFigures | None

    @property
    def total(self) -> ModelUsage:
        """All models together."""
        return sum(self.models.values(), ModelUsage())


# Dollars ----------------------------------------------------------------------------------


def nano_dollars(text: str, what: str) -> int:
    """US dollars, exact to a nano-dollar, as whole nano-dollars. Raises `UsageError` naming `what` was given."""
    try:
        nano = Decimal(text.strip().removeprefix("$")) * NANO
    except (InvalidOperation, Overflow):
        nano = Decimal("NaN")
    if not nano.is_finite() or not 0 <= nano <= MAX_USD * NANO or nano != nano.to_integral_value():
        raise UsageError(f"{what} {text!r}: give US dollars from 0 to {MAX_USD}, e.g. 5 or 0.25")
    return int(nano)


def in_dollars(nano: int) -> str:
    """Nano-dollars as dollars, exact: cents always, and as many more digits as there are."""
    whole, rest = divmod(nano, NANO)
    digits = f"{rest:09d}".rstrip("0")
    return f"{whole}.{digits:<02}"


# Grants -----------------------------------------------------------------------------------


def granted(run_id: str, grant_id: str, owner: str, amount: int, *, seconds: float, now: float) -> Grant:
    """A grant just opened. Raises `UsageError` for an amount that is none."""
    if type(amount) is not int or amount < 1:
        raise UsageError(f"a grant is of whole nano-dollars from 1, not {amount!r}")
    if not seconds > 0:
        raise UsageError(f"a grant holds for more than 0 seconds, not {seconds!r}")
    return Grant(run_id, grant_id, owner, amount, amount, 0, GrantState.OPEN, seconds, now + seconds, {})


def granted_again(grant: Grant, wanted: Grant) -> Grant:
    """The grant as it stands, when this is the same request again. Raises `UsageError` for another under its id."""
    if (grant.owner, grant.amount) != (wanted.owner, wanted.amount):
        raise UsageError(
            f"grant {grant.id!r} of run {grant.run_id!r} is another one, of {grant.amount} nano-dollars to "
            f"{grant.owner!r}; a new grant needs a new id"
        )
    return grant


def settled(grant: Grant, settlement: Settlement, *, now: float) -> Grant:
    """The grant with these totals, and more time while it is open. Unchanged when the settlement is booked already.

    Raises `UsageError` for an unknown cost, which no budget can carry, and for totals that went down.
    """
    if settlement.sequence <= grant.sequence:
        return grant
    usage = {model: used for model, used in sorted(settlement.usage.items()) if used != ModelUsage()}
    for model, used in usage.items():
        check_usage(model, used)
        if used.unpriced_calls:
            raise UsageError(f"grant {grant.id!r}: what {model!r} cost must be known where there is a budget")
    for model, before in grant.usage.items():
        if any(a < b for a, b in zip(_counts(usage.get(model, ModelUsage())), _counts(before), strict=True)):
            raise UsageError(f"grant {grant.id!r}: a settlement holds totals, and those of {model!r} went down")
    until = now + grant.seconds if grant.state is GrantState.OPEN else grant.expires_at
    return covered(replace(grant, usage=usage, sequence=settlement.sequence, expires_at=until))


def covered(grant: Grant) -> Grant:
    """The grant holding at least what is known to be spent."""
    return replace(grant, held=grant.settled) if grant.settled > grant.held else grant


def closed(grant: Grant) -> Grant:
    """CLOSED for good, holding what is known to be spent and no more."""
    return replace(grant, state=GrantState.CLOSED, held=grant.settled)


def expired(grant: Grant, policy: ExpiredGrants) -> Grant:
    """EXPIRED, holding what the policy says."""
    held = grant.settled if policy is ExpiredGrants.RETURNED else grant.held
    return replace(grant, state=GrantState.EXPIRED, held=held)


def spent(run_id: str, entry_id: str, usage: Usage) -> Grant:
    """What was spent without a grant, as the record of one that was of nothing; no budget covers it yet."""
    for model, used in usage.items():
        check_usage(model, used)
    return Grant(run_id, entry_id, "", 0, 0, 1, GrantState.CLOSED, 0.0, 0.0, dict(sorted(usage.items())))


def check_usage(model: str, used: ModelUsage) -> None:
    """Raise `UsageError` for counts that cannot be."""
    check_name(model, "model")
    counts = _counts(used)
    if any(type(count) is not int or count < 0 for count in counts) or used.unpriced_calls > used.calls:
        raise UsageError(f"usage of model {model!r} is of whole numbers from 0, not {used}")


def check_name(name: str, what: str) -> None:
    """Raise `UsageError` for an id that no store could keep."""
    if not name.isprintable() or not 1 <= len(name.encode()) <= MAX_NAME_BYTES:
        raise UsageError(f"the id of a {what} is 1 to {MAX_NAME_BYTES} bytes of printable text, not {name!r}")


# Available --------------------------------------------------------------------------------


def taken(available: Mapping[str, int], first: str, amount: int) -> dict[str, int] | None:
    """What is left in the shards that give: `first` before all, then the fullest. None when all hold too little."""
    left: dict[str, int] = {}
    for shard in sorted(available, key=lambda shard: (shard != first, -available[shard], shard)):
        if amount == 0:
            break
        part = min(available[shard], amount)
        if part:
            left[shard] = available[shard] - part
            amount -= part
    return None if amount else left


def spread(total: int, shards: Iterable[str]) -> dict[str, int]:
    """The total over the shards, as evenly as whole numbers go."""
    names = list(shards)
    each, rest = divmod(total, len(names))
    return {name: each + (number < rest) for number, name in enumerate(names)}


def repaid(budget: Budget, amount: int) -> tuple[Budget, int]:
    """What comes back goes against the overshoot first; the budget, and what is available again."""
    owed = min(budget.overshoot, amount)
    return replace(budget, overshoot=budget.overshoot - owed), amount - owed


def recapped(
    run_id: str, budget: Budget | None, available: int, cap: int, policy: ExpiredGrants | None, *, uncovered: int
) -> tuple[Budget, int]:
    """The budget with another cap (or its first), and what is available then.

    `uncovered`: nano-dollars spent before there was a budget, that it will have to cover. Raises
    `BudgetTooLow` where the new cap would lie below what is committed and open.
    """
    if type(cap) is not int or cap < 0:
        raise UsageError(f"a budget is of whole nano-dollars from 0, not {cap!r}")
    before = budget or Budget(0, ExpiredGrants.CHARGED)
    held = before.cap + before.overshoot - available
    if (budget is None or cap < before.cap) and cap < held + uncovered:
        raise BudgetTooLow(run_id, cap, held + uncovered)
    after = Budget(cap, policy or before.expired_grants, max(held - cap, 0))
    return after, max(cap - held, 0)


# Reports ----------------------------------------------------------------------------------


def summed(grants: Iterable[Grant]) -> dict[str, ModelUsage]:
    """Usage of all grants together, models in order."""
    total: dict[str, ModelUsage] = {}
    for grant in grants:
        for model, used in grant.usage.items():
            total[model] = total.get(model, ModelUsage()) + used
    return dict(sorted(total.items()))


def figures(budget: Budget, available: int, grants: Iterable[Grant]) -> BudgetFigures:
    """The budget as these grants have used it."""
    reserved = committed = charged = open_grants = 0
    for grant in grants:
        unspent = grant.held - min(grant.settled, grant.held)
        if grant.state is GrantState.OPEN:
            open_grants += 1
            reserved += unspent
        else:
            charged += unspent
            committed += unspent
        committed += grant.held - unspent
    return BudgetFigures(
        budget.cap, available, reserved, committed, charged, budget.overshoot, open_grants, budget.expired_grants
    )


# Rows -------------------------------------------------------------------------------------

Body = dict[str, object]
"""A record as JSON."""

_FIELDS = {
    record: tuple(field.name for field in fields(record) if field.name not in ("run_id", "id"))
    for record in (Grant, Budget)
}
"""What of a record is in its row: all but the row's key."""


sign_of: Callable[[Mapping[str, object]], SignOfLife] = itemgetter("sequence", "expires_at", "seconds")
"""The sign of life in an open grant's row, without making the grant: whoever looks for the dead reads all of them."""


def body_of(record: Grant | Budget) -> Body:
    """The record as its row keeps it: its key is not in it."""
    body: Body = {name: getattr(record, name) for name in _FIELDS[type(record)]}
    if isinstance(record, Grant):
        body["usage"] = {model: list(_counts(used)) for model, used in record.usage.items()}
    return body


def grant_of(run_id: str, grant_id: str, body: Mapping[str, object]) -> Grant:
    """The grant that `body_of` has written."""
    stored: dict[str, object] = dict(body)
    usage: dict[str, list[int]] = stored.pop("usage")  # type: ignore[assignment]
    state = GrantState(str(stored.pop("state")))
    models = {model: ModelUsage(*counts) for model, counts in usage.items()}
    return Grant(run_id=run_id, id=grant_id, state=state, usage=models, **stored)  # type: ignore[arg-type]


def budget_of(body: Mapping[str, object]) -> Budget:
    """The budget that `body_of` has written."""
    stored: dict[str, object] = dict(body)
    policy = ExpiredGrants(str(stored.pop("expired_grants")))
    return Budget(expired_grants=policy, **stored)  # type: ignore[arg-type]


def _counts(usage: ModelUsage) -> tuple[int, int, int, int, int]:
    return usage.calls, usage.input_tokens, usage.output_tokens, usage.known_cost, usage.unpriced_calls
