"""How the core's refusals reach the person at the Dagster UI: their one line, no traceback.

The core's errors say what to do about them already; a step only has to pass that on, and has to
fail in a way that no retry repeats, since a refusal stays one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar

import dagster as dg

from docgen_core.errors import Damage, DocgenError, UsageError

MAX_RETRIES = "dagster/max_retries"
"""The tag by which the daemon knows how often to launch a run again."""


class Bounded(dg.Config):
    """A step's configuration whose numbers have bounds that the step itself checks.

    A bound on the field would be met while Dagster maps a graph's configuration, or builds its
    objects, and shown as an error of the code location with its stack.
    """

    bounds: ClassVar[dict[str, tuple[int, int]]] = {}
    """By field, its least and greatest value."""

    def check(self) -> None:
        """Raise `UsageError` for the first number that is out of bounds."""
        for name, (least, greatest) in self.bounds.items():
            if not least <= (value := getattr(self, name)) <= greatest:
                raise UsageError(f"{name} {value}: give a whole number from {least} to {greatest}")


@contextmanager
def said_plainly() -> Iterator[None]:
    """Raise any `DocgenError` as `dg.Failure` with the error's line as its description.

    A wrong wish and damage stay what they are: the daemon, which launches again what a sensor asked
    for, is told not to.
    """
    try:
        yield
    except DocgenError as error:
        if isinstance(error, UsageError | Damage):
            _launch_never_again()
        raise dg.Failure(
            description=str(error), metadata={"refused by": type(error).__name__}, allow_retries=False
        ) from None


def _launch_never_again() -> None:
    """Of the run whose step this is, whatever a sensor has asked for."""
    with suppress(dg.DagsterInvariantViolationError, LookupError):  # no step: somebody else's call
        step = dg.OpExecutionContext.get()
        step.instance.add_run_tags(step.run_id, {MAX_RETRIES: "0"})
