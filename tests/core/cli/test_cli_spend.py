"""What `docgen spend` says of a run: exact, to people and to machines, and never 0 for what nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from docgen_core.cli.observe import dollars
from docgen_core.errors import UsageError
from docgen_core.state import open_state
from docgen_core.state.budget import ModelUsage, Settlement, nano_dollars
from docgen_core.state.contract import RunKind, RunMarker

SMALL = ModelUsage(16, 4_800, 32_000, 9_632_000)


@pytest.fixture
def desk(docgen: Any, tmp_path: Path) -> Any:
    """Commands typed beside a state store, and the store."""
    with open_state(tmp_path / "empty" / ".docgen" / "state.db") as store:
        store.create_run(RunMarker("r1", RunKind.CATALOGUE, "runs/r1", {}, "digest", 1, 1, 1))
        yield docgen, store


def test_of_a_run_that_has_spent_nothing_is_one_line(desk: Any) -> None:
    docgen, _ = desk
    said = docgen("spend", "r1")
    assert (said.code, said.out, said.err) == (0, "", "run 'r1' has spent nothing on language models\n")
    nothing = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "known_cost": 0, "unpriced_calls": 0, "cost": 0}
    assert docgen("spend", "r1", "--json").json == {
        "run": "r1",
        "complete": True,
        "total": nothing,
        "models": {},
        "budget": None,
        "quarantined": {},
    }


def test_is_by_model_with_what_they_cost_together(desk: Any) -> None:
    docgen, store = desk
    store.add_spend("r1", "u1", {"alpha-small": SMALL, "local-x": ModelUsage(2, 600, 40, 0)})
    said = docgen("spend", "r1")
    assert [line.split("\t") for line in said.out.splitlines()] == [
        ["alpha-small", "16", "4800", "32000", "$0.009632"],
        ["local-x", "2", "600", "40", "$0.00"],
        ["total", "18", "5400", "32040", "$0.009632"],
    ]
    assert (said.code, said.err) == (0, "")


def test_of_an_unknown_cost_is_null_and_incomplete_never_nothing(desk: Any) -> None:
    docgen, store = desk
    store.add_spend("r1", "u1", {"alpha-small": SMALL, "beta-unlisted": ModelUsage(3, 9, 9, 0, 3)})
    assert "beta-unlisted\t3\t9\t9\tunknown for 3 of 3 calls, the others $0.00" in docgen("spend", "r1").out
    said = docgen("spend", "r1", "--json").json
    assert not said["complete"] and said["total"]["cost"] is None and said["total"]["known_cost"] == 9_632_000
    assert said["models"]["beta-unlisted"]["cost"] is None and said["models"]["alpha-small"]["cost"] == 9_632_000


def test_shows_the_budget_and_who_is_in_quarantine(desk: Any) -> None:
    docgen, store = desk
    store.set_budget("r1", 1_000_000_000)
    assert "spent nothing" in docgen("spend", "r1").err
    store.open_grant("r1", "w", 500_000_000, "g")
    store.settle_grant("r1", Settlement("g", 1, {"alpha-small": SMALL}))
    store.quarantine_providers("r1", {"beta": "401: bad key"})
    said = docgen("spend", "r1")
    assert said.err.splitlines() == [
        "budget: cap $1.00, available $0.50, reserved $0.490368, committed $0.009632, overshoot $0.00",
        "beta is in quarantine: 401: bad key",
    ]
    said = docgen("spend", "r1", "--json").json
    assert said["budget"] == {
        "cap": 1_000_000_000,
        "available": 500_000_000,
        "reserved": 490_368_000,
        "committed": 9_632_000,
        "charged": 0,
        "overshoot": 0,
        "open_grants": 1,
        "expired_grants": "charged",
    }
    assert said["quarantined"] == {"beta": "401: bad key"}


@pytest.mark.parametrize(
    ("nano", "text"), [(0, "$0.00"), (1, "$0.000000001"), (500_000_000, "$0.50"), (12_345_678_900, "$12.3456789")]
)
def test_dollars_are_exact(nano: int, text: str) -> None:
    assert dollars(nano) == text


@pytest.mark.parametrize("given", ["1e999999", "sNaN", "-1", "1000001", "0.0000000001"])
def test_what_is_no_amount_of_dollars_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="give US dollars"):
        nano_dollars(given, "--budget-usd")
