"""How a run stands is read from the store and the blobs."""

from __future__ import annotations

import json
from typing import Any

from docgen_core.runs.status import iter_status, run_status
from docgen_core.runs.withdraw import withdraw


def test_a_run_is_followed_from_its_plan_to_its_root(stage: Any) -> None:
    stage.plan_catalogue(companies=7, range_width=2)
    planned = run_status(stage.state, stage.blobs, "catalogue-v1")
    assert (planned.items_done, planned.root_present, planned.over, planned.exit_code) == (0, False, False, 0)
    stage.work("catalogue-v1", within={0, 3})
    half = run_status(stage.state, stage.blobs, "catalogue-v1")
    assert half.items_done == 3, "the last unit is short"
    assert half.as_row() == ("catalogue-v1", "RUNNING", "3/7", "4", "2", "0", "2", "0", "no")
    stage.work("catalogue-v1")
    done = run_status(stage.state, stage.blobs, "catalogue-v1")
    assert done.over and done.exit_code == 0 and done.root_present and done.items_done == 7
    told = json.loads(json.dumps(done.as_json()))
    assert told["units"]["done"] == 4 and told["state"] == "COMPLETED" and told["root_digest"] == done.run.root_digest


def test_failures_cancellation_and_withdrawal_show(stage: Any) -> None:
    stage.plan_catalogue("REFUSING")
    stage.work("catalogue-v1")
    failed = run_status(stage.state, stage.blobs, "catalogue-v1")
    assert failed.over and failed.exit_code == 3
    stage.state.cancel("catalogue-v1")
    withdraw("catalogue-v1", stage.blobs)
    (ended,) = iter_status(stage.state, stage.blobs)
    assert ended.over and ended.exit_code == 4 and ended.withdrawn
    assert ended.as_row()[1] == "withdrawn"
