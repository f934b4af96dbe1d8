"""The simulator's modules, for the tests of this folder."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Production code warns of each simulated fault; nobody reads that ten thousand times."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
