"""The budget's operations over any backend: rows read, the rules asked, all of it written or none.

Each operation reads what it needs, lets `budget` say what becomes of it, and commits that on
condition that nothing of it has changed since; when something has, it reads again. Such a loop ends,
since each further round means that another worker's write got through. What does not belong here:
the rules (budget.py), databases, units.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256

from docgen_core.errors import BudgetUnset, GrantUnknown
from docgen_core.state import budget as rules
from docgen_core.state.budget import Budget, ExpiredGrants, Grant, GrantState, Settlement, Spend, Usage
from docgen_core.state.budget_contract import BudgetStore
from docgen_core.state.contract import Run
from docgen_core.state.primitives import Change, Entry, Posting, Primitives
from docgen_core.state.transitions import cut_error
from docgen_core.state.watch import Watch

BUDGET, AVAILABLE, GRANT, SPEND, QUARANTINE = "budget", "available", "grant", "spend", "quarantine"
"""Kinds of rows. A run has one budget, shards of what is available of it, and any number of the others."""

_CAP = "cap"
"""The id of a run's one budget."""

_PAGE_ENTRIES = 1_000
_CALM_READS = 5
"""A report looks so often for a moment at which nothing moves, and then says what it has."""

Rule = Callable[[Grant | None, Budget | None], Grant]
"""What becomes of a grant (or of none), under this budget (or none)."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """What a change of a grant starts from."""

    grant: Entry | None
    shard: Entry | None = None
    """The grant's own shard of what is available."""
    budget: Entry | None = None


class LedgerStore(BudgetStore):
    """The budget's part of a store; the rest of the store gives it its rows, its clock and its runs."""

    primitives: Primitives
    _watch: Watch
    _clock: Callable[[], float]

    @abstractmethod
    def _known(self, run_id: str) -> Run:
        """The run, for what never changes in it. Raises `RunUnknown`."""

    # The budget ---------------------------------------------------------------------------

    def set_budget(self, run_id: str, cap: int, *, expired_grants: ExpiredGrants | None = None) -> Budget:
        """See `BudgetStore.set_budget`."""
        self._known(run_id)
        uncovered = sum(entry.settled - entry.held for entry in self._iter_grants(run_id, SPEND))
        while True:
            row, shards = self._purse(run_id)
            before, there = (rules.budget_of(row.body) if row else None), _sum(shards)
            after, available = rules.recapped(run_id, before, there, cap, expired_grants, uncovered=uncovered)
            postings = []
            if after != before:
                postings.append(Posting.of(run_id, BUDGET, _CAP, row, rules.body_of(after)))
            if row is None or available != there:
                postings += self._poured(run_id, shards, rules.spread(available, shards))
            if not postings or self.primitives.commit(postings):
                break
        # What somebody spends without a grant meanwhile is covered by whoever of the two looks second.
        for entry in list(self._iter_grants(run_id, SPEND)):
            if entry.held < entry.settled:
                self._book(run_id, SPEND, entry.id, _covered(entry))
        (row,) = self.primitives.read_entries(run_id, [(BUDGET, _CAP)])
        assert row is not None
        return rules.budget_of(row.body)

    def add_spend(self, run_id: str, entry_id: str, usage: Usage) -> None:
        """See `BudgetStore.add_spend`."""
        self._known(run_id)
        entry = rules.spent(run_id, entry_id, usage)
        booked = self._book(run_id, SPEND, entry_id, _covered(entry))
        if booked is not None and booked.held < booked.settled:
            # Looked at again once it is there: a budget set in between has not seen it.
            self._book(run_id, SPEND, entry_id, _covered(entry))

    # Grants -------------------------------------------------------------------------------

    def open_grant(
        self, run_id: str, worker: str, amount: int, grant_id: str, *, seconds: float | None = None
    ) -> Grant | None:
        """See `BudgetStore.open_grant`."""
        length = self._known(run_id).lease_seconds if seconds is None else seconds

        def opened(grant: Grant | None, budget: Budget | None) -> Grant:
            new = rules.granted(run_id, grant_id, worker, amount, seconds=length, now=self._clock())
            if grant is not None:
                return rules.granted_again(grant, new)
            if budget is None:
                raise BudgetUnset(run_id)
            return new

        return self._book(run_id, GRANT, grant_id, opened, refusable=True)

    def settle_grant(self, run_id: str, settlement: Settlement) -> Grant:
        """See `BudgetStore.settle_grant`."""
        self._known(run_id)
        return self._settle(run_id, settlement)

    def close_grant(self, run_id: str, grant_id: str) -> int:
        """See `BudgetStore.close_grant`."""
        self._known(run_id)
        closed = self._book(run_id, GRANT, grant_id, lambda grant, _: rules.closed(_there(run_id, grant_id, grant)))
        assert closed is not None
        return closed.left

    def expire_grants(self, run_id: str) -> int:
        """See `BudgetStore.expire_grants`."""
        self._known(run_id)
        entries, is_open = self._iter_entries(run_id, GRANT), GrantState.OPEN
        rows = {entry.id: entry for entry in entries if entry.body["state"] == is_open}
        left = self._watch.grants_left(run_id, {id_: rules.sign_of(entry.body) for id_, entry in rows.items()})
        gone = (rows[grant_id] for grant_id, seconds in sorted(left.items()) if seconds < 0)
        return sum(self._expire(rules.grant_of(run_id, entry.id, entry.body)) for entry in gone)

    def grants(self, run_id: str, states: Collection[GrantState] | None = None) -> list[Grant]:
        """See `BudgetStore.grants`."""
        self._known(run_id)
        return sorted(self._iter_grants(run_id, GRANT, states), key=lambda grant: grant.id)

    # Reports ------------------------------------------------------------------------------

    def spend(self, run_id: str) -> Spend:
        """See `BudgetStore.spend`."""
        self._known(run_id)
        purse = self._purse(run_id)
        for _ in range(_CALM_READS):
            grants = [grant for kind in (GRANT, SPEND) for grant in self._iter_grants(run_id, kind)]
            after = self._purse(run_id)
            if after == purse:
                break
            purse = after
        budget, shards = purse
        figures = rules.figures(rules.budget_of(budget.body), _sum(shards), grants) if budget else None
        return Spend(rules.summed(grants), figures)

    # Quarantine ---------------------------------------------------------------------------

    def quarantine_providers(self, run_id: str, reasons: Mapping[str, str]) -> None:
        """See `BudgetStore.quarantine_providers`."""
        self._known(run_id)
        for provider, reason in sorted(reasons.items()):
            self._change_quarantine(run_id, provider, _first(cut_error(reason) or "no reason given"))

    def quarantined_providers(self, run_id: str) -> dict[str, str]:
        """See `BudgetStore.quarantined_providers`."""
        self._known(run_id)
        reasons = {entry.id: _reason(entry) for entry in self._iter_entries(run_id, QUARANTINE)}
        return {provider: reason for provider, reason in sorted(reasons.items()) if reason}

    def lift_quarantine(self, run_id: str, provider: str) -> bool:
        """See `BudgetStore.lift_quarantine`."""
        self._known(run_id)
        return self._change_quarantine(run_id, provider, lambda _: "")

    def _change_quarantine(self, run_id: str, provider: str, change: Callable[[str], str]) -> bool:
        """Store another reason, the empty one being none; whether there was one before."""
        rules.check_name(provider, "provider")
        while True:
            (row,) = self.primitives.read_entries(run_id, [(QUARANTINE, provider)])
            before = _reason(row)
            after = change(before)
            if after == before:
                return bool(before)
            if self.primitives.commit([Posting.of(run_id, QUARANTINE, provider, row, {"reason": after})]):
                return bool(before)

    # Steps --------------------------------------------------------------------------------

    def _settle(
        self, run_id: str, settlement: Settlement, unit_change: Callable[[], Change | None] = lambda: None
    ) -> Grant:
        """Settle, and change the unit in the same write. Raises what `unit_change` raises, and nothing is settled."""
        grant_id = settlement.grant_id

        def settled(grant: Grant | None, _: Budget | None) -> Grant:
            return rules.settled(_there(run_id, grant_id, grant), settlement, now=self._clock())

        grant = self._book(run_id, GRANT, grant_id, settled, unit_change=unit_change, alone=True)
        assert grant is not None
        return grant

    def _expire(self, seen: Grant) -> bool:
        """Whether the grant was as it was seen, and is expired now."""
        ours = False

        def expired(grant: Grant | None, budget: Budget | None) -> Grant:
            nonlocal ours
            there = _there(seen.run_id, seen.id, grant)
            ours = there == seen and budget is not None
            return rules.expired(there, budget.expired_grants) if ours and budget else there

        self._book(seen.run_id, GRANT, seen.id, expired)
        return ours

    def _book(
        self,
        run_id: str,
        kind: str,
        grant_id: str,
        rule: Rule,
        *,
        unit_change: Callable[[], Change | None] = lambda: None,
        refusable: bool = False,
        alone: bool = False,
    ) -> Grant | None:
        """Write what the rule makes of a grant, and move the money that it takes or sets free.

        None when that is more than is available, and may be refused. `alone`: the rule asks no budget and
        seldom moves money, so that only the grant's row is read at first.
        """
        rules.check_name(grant_id, kind)
        while True:
            unit = unit_change()
            rows = self._rows(run_id, kind, grant_id, alone)
            before = rules.grant_of(run_id, grant_id, rows.grant.body) if rows.grant else None
            after = rule(before, rules.budget_of(rows.budget.body) if rows.budget else None)
            moved = after.held - (before.held if before else 0)
            if moved and alone:
                alone = False
                continue
            moves = self._moves(run_id, grant_id, rows, moved, refusable) if moved else []
            if moves is None:
                return None
            if after != before:
                moves = [Posting.of(run_id, kind, grant_id, rows.grant, rules.body_of(after)), *moves]
            if self._commit(moves, unit):
                return after

    def _commit(self, postings: list[Posting], unit: Change | None) -> bool:
        if postings:
            return self.primitives.commit(postings, unit)
        return unit is None or self.primitives.write_units([unit])[0]

    def _rows(self, run_id: str, kind: str, grant_id: str, alone: bool) -> _Rows:
        keys = [(kind, grant_id)]
        if not alone:
            # The budget last: an overshoot that this read of it does not show will have changed the shard.
            keys += [(AVAILABLE, self._own_shard(grant_id)), (BUDGET, _CAP)]
        return _Rows(*self.primitives.read_entries(run_id, keys))

    def _moves(self, run_id: str, grant_id: str, rows: _Rows, amount: int, refusable: bool) -> list[Posting] | None:
        """Take the amount out of what is available, or put it back where it is negative.

        None when it is more than there is, and may be refused; else the rest is overshoot.
        """
        budget, shard = rows.budget, rows.shard
        assert budget is not None and shard is not None
        if amount < 0:
            return self._returned(budget, shard, -amount)
        if (there := _nano(shard)) >= amount:
            return [_holding(shard, there - amount)]
        shards = self._collected(run_id, shard, amount)
        left = rules.taken({name: _nano(entry) for name, entry in shards.items()}, shard.id, amount)
        if left is not None:
            return [_holding(shards[name], nano) for name, nano in left.items()]
        if refusable:
            return None
        # Every shard is written, those that stay empty too: nothing may come back to one of them meanwhile.
        owing = rules.budget_of(budget.body)
        owing = replace(owing, overshoot=owing.overshoot + amount - _sum(shards))
        postings = [_holding(entry, 0) for entry in shards.values()]
        return [Posting.of(run_id, BUDGET, budget.id, budget, rules.body_of(owing)), *postings]

    def _returned(self, row: Entry, shard: Entry, amount: int) -> list[Posting]:
        before = rules.budget_of(row.body)
        after, rest = rules.repaid(before, amount)
        postings = [_holding(shard, _nano(shard) + rest)] if rest else []
        if after != before:
            postings.append(Posting.of(row.run_id, BUDGET, row.id, row, rules.body_of(after)))
        return postings

    # Rows ---------------------------------------------------------------------------------

    def _shard_names(self) -> tuple[str, ...]:
        return _shard_names(self.primitives.available_shards)

    def _own_shard(self, grant_id: str) -> str:
        """By the grant, not its worker: so the shards run dry together, and nobody has to gather before that."""
        names = self._shard_names()
        return names[int.from_bytes(sha256(grant_id.encode()).digest()[:4]) % len(names)]

    def _shards(self, run_id: str) -> dict[str, Entry | None]:
        there = self.primitives.list_entries(run_id, AVAILABLE, "", _PAGE_ENTRIES)
        return {**dict.fromkeys(self._shard_names()), **{entry.id: entry for entry in there}}

    def _collected(self, run_id: str, own: Entry, enough: int) -> dict[str, Entry]:
        """All shards; where they hold less than `enough`, as they stood at one moment: two reads that agree."""
        if self.primitives.available_shards == 1:
            return {own.id: own}
        shards = self._shards(run_id)
        while _sum(shards) < enough:
            again = self._shards(run_id)
            if again == shards:
                break
            shards = again
        return {name: entry for name, entry in shards.items() if entry is not None}

    def _purse(self, run_id: str) -> tuple[Entry | None, dict[str, Entry | None]]:
        """The budget and its shards."""
        (budget,) = self.primitives.read_entries(run_id, [(BUDGET, _CAP)])
        return budget, self._shards(run_id)

    @staticmethod
    def _poured(run_id: str, shards: Mapping[str, Entry | None], nano: Mapping[str, int]) -> list[Posting]:
        return [Posting.of(run_id, AVAILABLE, name, shards[name], {"nano": held}) for name, held in nano.items()]

    def _iter_grants(self, run_id: str, kind: str, states: Collection[GrantState] | None = None) -> Iterator[Grant]:
        # By the row's own word, so that of a long run's grants only those asked for are made.
        for entry in self._iter_entries(run_id, kind):
            if states is None or entry.body["state"] in states:
                yield rules.grant_of(run_id, entry.id, entry.body)

    def _iter_entries(self, run_id: str, kind: str) -> Iterator[Entry]:
        after = ""
        while page := self.primitives.list_entries(run_id, kind, after, _PAGE_ENTRIES):
            yield from page
            after = page[-1].id


def _covered(entry: Grant) -> Rule:
    """The rule for what was spent without a grant: a budget covers it, where there is one."""

    def covered(there: Grant | None, budget: Budget | None) -> Grant:
        return (there or entry) if budget is None else rules.covered(there or entry)

    return covered


def _there(run_id: str, grant_id: str, grant: Grant | None) -> Grant:
    if grant is None:
        raise GrantUnknown(run_id, grant_id)
    return grant


@cache
def _shard_names(count: int) -> tuple[str, ...]:
    return tuple(f"{number:02d}" for number in range(count))


def _nano(entry: Entry) -> int:
    nano = entry.body["nano"]
    assert isinstance(nano, int)
    return nano


def _holding(entry: Entry, nano: int) -> Posting:
    return Posting.of(entry.run_id, AVAILABLE, entry.id, entry, {"nano": nano})


def _sum(shards: Mapping[str, Entry | None]) -> int:
    return sum(_nano(entry) for entry in shards.values() if entry is not None)


def _first(reason: str) -> Callable[[str], str]:
    """Keeps the reason that is there already."""
    return lambda there: there or reason


def _reason(entry: Entry | None) -> str:
    return str(entry.body["reason"]) if entry else ""
