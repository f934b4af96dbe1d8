"""The simulator's modules, for the tests of this folder."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Production code warns of each simulated fault; nobody reads that ten thousand times."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a figure, whether or not the test passes."""
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")
    return lambda line: terminal.write_line(f"\n{line}") if terminal else None
