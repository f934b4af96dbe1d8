"""What every test may use: the size of the figures, the packs of the tests, one browser a session."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PACKS = Path(__file__).parent / "packs"
"""Document types that the tests bring along; processes find them through PYTHONPATH."""

FABRICATED = Path(__file__).parent / "fabricated"
"""Published runs written directly, for what reads them."""

SERVERS = Path(__file__).parent / "servers"
"""Servers that tests start, each as fixtures of a module of its own."""

LONGEST_FIRST = (
    "tests/e2e/deployment/",
    "tests/e2e/",
    "tests/contract/",
    "tests/assets/",
    "tests/simulator/",
    "tests/core/render/",
    "tests/",
)
"""A module goes to one process whole: a long one that came last would keep one core waiting for the other."""

# Hundreds of modules of tests and what they import: nothing of it is garbage, and to look costs each process seconds.
gc.disable()
sys.path[:0] = [str(PACKS), str(FABRICATED), str(SERVERS)]
pytest_plugins = ["blob_servers", "state_servers", "warehouse_servers", "athena_server"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules in this order, their tests as they stand."""
    items.sort(
        key=lambda item: next(place for place, rooms in enumerate(LONGEST_FIRST) if item.nodeid.startswith(rooms))
    )


def pytest_collection_finish() -> None:
    """From here on garbage is looked for among what the tests make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def full_figures() -> bool:
    """Whether the full figures are wanted (`make prove`), not the smaller ones of `make test`."""
    return os.environ.get("DOCGEN_PROVE") == "1"


@pytest.fixture(scope="session")
def packs_path() -> Path:
    """The folder of the packs of the tests."""
    return PACKS


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Prints a figure, whether or not the test passes."""
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")
    return lambda line: terminal.write_line(f"\n{line}") if terminal else None
