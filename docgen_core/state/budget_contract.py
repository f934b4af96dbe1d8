"""The fleet budget's part of the coordination contract: what each operation promises.

What does not belong here: the rules (budget.py), how they are kept (ledger.py), units and runs (contract.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from docgen_core.state.budget import Budget, ExpiredGrants, Grant, GrantState, Settlement, Spend, Usage


class BudgetStore(ABC):
    """Operations on a run's budget, grants, spend and quarantine.

    Money is whole nano-dollars. Each operation is one all-or-nothing conditional write; each may be
    called again when its answer did not come, and happens once. Each raises `RunUnknown` for a run
    that is not there.
    """

    @abstractmethod
    def set_budget(self, run_id: str, cap: int, *, expired_grants: ExpiredGrants | None = None) -> Budget:
        """Set what the run may spend in all, the first time or anew; absolute, so the same again changes nothing.

        `expired_grants` is what a dead worker's grant costs; without it, as it was, at first
        `CHARGED`. Raises `BudgetTooLow` for less than is committed and open.
        """

    @abstractmethod
    def open_grant(
        self, run_id: str, worker: str, amount: int, grant_id: str, *, seconds: float | None = None
    ) -> Grant | None:
        """Reserve `amount`; None when the budget cannot carry it, which is an answer and no error.

        `grant_id` is the caller's choice, new for each new grant: the same request again is given the
        same grant, as it stands. The grant holds for `seconds`, a lease length of the run without
        it, and each settlement begins them anew. Raises `BudgetUnset`, or `UsageError` for another
        grant under an id that is taken.
        """

    @abstractmethod
    def settle_grant(self, run_id: str, settlement: Settlement) -> Grant:
        """Book what the grant has been used for so far, once a sequence number; the grant as it stands then.

        What goes beyond the grant is taken out of `available` in the same write, and what that
        cannot carry is overshoot. A grant that is closed or expired books costs too, and is told so
        by the state it gets: its owner makes no more calls. Raises `GrantUnknown`.
        """

    @abstractmethod
    def close_grant(self, run_id: str, grant_id: str) -> int:
        """Give back what is not known to be spent; how much of the amount that is, also when asked again.

        An expired grant that was charged whole is closed by whoever knows what it has spent, after
        settling it. Raises `GrantUnknown`.
        """

    @abstractmethod
    def expire_grants(self, run_id: str) -> int:
        """Expire open grants whose owners give no sign of life, as leases expire; how many.

        Each by a write on condition that it is as it was read.
        """

    @abstractmethod
    def grants(self, run_id: str, states: Collection[GrantState] | None = None) -> list[Grant]:
        """The run's grants, in the order of their ids."""

    @abstractmethod
    def add_spend(self, run_id: str, entry_id: str, usage: Usage) -> None:
        """Record what was spent without a grant, once for each id: in a run without a cap.

        Where there is a budget after all, it is taken out of `available`, or is overshoot.
        """

    @abstractmethod
    def spend(self, run_id: str) -> Spend:
        """What was spent, summed over the very records of it, and the budget as it stands.

        While others open and close grants, available and reserved may be of different moments.
        """

    @abstractmethod
    def quarantine_providers(self, run_id: str, reasons: Mapping[str, str]) -> None:
        """Let no worker of the run use these providers (or models) any more. A union: what is there stays."""

    @abstractmethod
    def quarantined_providers(self, run_id: str) -> dict[str, str]:
        """Why, by provider in quarantine."""

    @abstractmethod
    def lift_quarantine(self, run_id: str, provider: str) -> bool:
        """Let the provider be used again; whether it was in quarantine."""
