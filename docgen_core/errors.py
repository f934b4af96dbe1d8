"""Every error a caller can meet, each with what to do about it.

The command line prints an error's message as one line and exits with its `exit_code`;
nothing here is ever shown as a traceback. What does not belong here: exceptions that one
module raises and catches itself.

Exit codes: 1 damage found by verify, 2 wrong use, 3 not complete, 4 cancelled, 141 nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal


class DocgenError(Exception):
    """Base of every error that is part of the interface. `str(error)` is one line."""

    exit_code = 2


class UsageError(DocgenError):
    """The caller asked for something that cannot be: a bad URI, name, number or flag."""


class MissingExtra(UsageError):
    """An optional dependency is needed and not installed; the message names the install."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs an optional part: pip install 'docgen[{extra}]'")


class SelectionRefused(UsageError):
    """A pack cannot honour what was selected; raised when the run is planned."""


class PlanConflict(UsageError):
    """The run id is taken by another spec. Names each field that differs."""

    def __init__(self, run_id: str, differences: Sequence[str]) -> None:
        self.run_id = run_id
        self.differences = tuple(differences)
        super().__init__(
            f"run {run_id!r} was planned with other parameters ({'; '.join(differences)}); "
            "use another run id, or the same parameters to resume it"
        )


class RunUnknown(UsageError):
    """No run of this id in the state store."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run {run_id!r} here; `docgen status` lists the runs there are")


class FingerprintMismatch(UsageError):
    """This worker's software would draw other bytes than the run's plan promises."""

    def __init__(self, run_id: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"this worker cannot join run {run_id!r}: {'; '.join(differences)}; "
            "install what the plan names, or plan a new run"
        )


class StateUnusable(UsageError):
    """The state store cannot be opened, or what is there is not one."""


class StorageFailed(DocgenError):
    """A store refused a read or a write: no permission, no space, not reachable."""

    exit_code = 3


class BlobMissing(StorageFailed):
    """No blob under this key."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"blob {key!r} is missing")


class BlobExists(DocgenError):
    """A create-only put met a blob that is already there. Callers compare and decide."""

    exit_code = 3

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"blob {key!r} is there already")


class LeaseLost(DocgenError):
    """The lease's generation is no longer the unit's: another worker owns it. Stop at once."""

    exit_code = 3

    def __init__(self, run_id: str, index: int, generation: int, reason: str) -> None:
        self.run_id, self.index, self.generation = run_id, index, generation
        super().__init__(f"lease on unit {index} of run {run_id!r} (generation {generation}) is lost: {reason}")


class WrongRunState(DocgenError):
    """The operation is not allowed in the state the run is in."""

    exit_code = 2


class BudgetUnset(UsageError):
    """A grant was asked for in a run that has no budget."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} has no budget; set one first, or record what is spent without grants")


class BudgetTooLow(UsageError):
    """A cap below what is spent and reserved already, both in nano-dollars. Names the least there can be."""

    def __init__(self, run_id: str, cap: int, least: int) -> None:
        self.run_id, self.cap, self.least = run_id, cap, least
        super().__init__(
            f"run {run_id!r}: {_dollars(cap)} is less than the {_dollars(least)} that are spent and reserved already; "
            "set the budget to that or more"
        )


def _dollars(nano: int) -> str:
    return f"${Decimal(nano).scaleb(-9):f}".rstrip("0").rstrip(".")


class GrantUnknown(UsageError):
    """No grant of this id in the run."""

    def __init__(self, run_id: str, grant_id: str) -> None:
        super().__init__(f"run {run_id!r} has no grant {grant_id!r}; open it first")


class RunIncomplete(DocgenError):
    """Something needs every unit done, and some are not. Names the gap by index."""

    exit_code = 3

    def __init__(self, run_id: str, gap: Iterable[int], what_to_do: str) -> None:
        self.run_id = run_id
        self.gap = tuple(gap)
        shown = ", ".join(str(index) for index in self.gap[:8]) + (", …" if len(self.gap) > 8 else "")
        units = f" (units {shown})" if self.gap else ""
        super().__init__(f"run {run_id!r} is not complete{units}: {what_to_do}")


class RunCancelled(DocgenError):
    """The run was cancelled; its units stay as they are."""

    exit_code = 4

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id!r} was cancelled")


class RootConflict(DocgenError):
    """A root manifest with other content is already there. Names both digests."""

    exit_code = 1

    def __init__(self, run_id: str, ours: str, theirs: str) -> None:
        super().__init__(
            f"run {run_id!r}: the root manifest there ({theirs}) is not the one its units give ({ours}); "
            "nothing was overwritten: run `docgen verify` to see which blobs differ"
        )


class Damage(DocgenError):
    """Published blobs do not match their manifest."""

    exit_code = 1


class RunWithdrawn(DocgenError):
    """The run carries a tombstone; no reader uses it."""

    exit_code = 3

    def __init__(self, run_id: str, consequence: str = "") -> None:
        told = consequence or "nothing of it is used any more: make its documents under another run id"
        super().__init__(f"run {run_id!r} was withdrawn; {told}")


class RecordRefused(DocgenError):
    """A record that does not reconcile refuses to exist. Names the rule it breaks."""

    exit_code = 3


class GlyphMissing(DocgenError):
    """A text holds characters that no bundled face covers; lists the code points, names the document if it is known."""

    exit_code = 3

    def __init__(self, text: str, code_points: Iterable[str], document_id: str = "") -> None:
        self.text, self.code_points = text, tuple(sorted(set(code_points)))
        listed = ", ".join(f"U+{ord(char):04X}" for char in self.code_points)
        where = f"document {document_id}: " if document_id else ""
        super().__init__(f"{where}no bundled face draws {listed} in {text!r}")


class RenderFailed(DocgenError):
    """The browser did not give a document: it hung, died, or the page was refused."""

    exit_code = 3


class BrowserMissing(UsageError):
    """No headless Chromium was found; the message says how to get one."""


class ReaderLeft(DocgenError):
    """Whoever read standard output has closed it, and there is nobody to tell. Says nothing."""

    exit_code = 141
    """128 and SIGPIPE, as a shell counts it."""
