"""What `docgen doctor` makes of a clock that is off: a warning, since nothing is lost by it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from docgen_core.cli import doctor
from docgen_core.state.sqlite import SqlitePrimitives


@pytest.fixture(autouse=True)
def healthy_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_browser", lambda: "as good as any")


def clock_of(told: Any) -> dict[str, Any]:
    (check,) = (check for check in told.json["checks"] if check["check"] == "clock")
    return dict(check)


def test_a_clock_that_is_off_the_stores_is_a_warning(docgen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = docgen("doctor")
    assert (right.code, clock_of(right)["verdict"]) == (0, "ok")
    monkeypatch.setattr(SqlitePrimitives, "read_time", lambda store: time.time() + 600)
    off = docgen("doctor")
    assert off.code == 0 and off.json["healthy"]
    assert clock_of(off)["verdict"] == "warning" and clock_of(off)["ok"]
    assert "behind the state store's, by more than 2 s: set it by NTP" in clock_of(off)["detail"]
    assert clock_of(docgen("doctor", "--state", "state.db?skew_seconds=3600"))["verdict"] == "ok"


def test_a_store_that_cannot_be_asked_has_failed_and_the_clock_has_not(docgen: Any) -> None:
    told = docgen("doctor", "--state", "/dev/null/state.db")
    assert told.code == 3
    assert [check["check"] for check in told.json["checks"] if not check["ok"]] == ["state store"]
    assert clock_of(told)["verdict"] == "warning"
