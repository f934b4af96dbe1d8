"""How the core's refusals reach the person at the Dagster UI: their one line, no traceback.

The core's errors say what to do about them already; a step only has to pass that on, and has to
fail in a way that no retry repeats, since a refusal stays one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from docgen_core.errors import DocgenError


@contextmanager
def said_plainly() -> Iterator[None]:
    """Raise any `DocgenError` as `dg.Failure` with the error's line as its description."""
    try:
        yield
    except DocgenError as error:
        raise dg.Failure(
            description=str(error), metadata={"refused by": type(error).__name__}, allow_retries=False
        ) from None
