"""Stuck runs, where an operator sees them: a check of the golden shards, kept up to date by a sensor.

The sensor looks at every unfinished run of the state store, also those that Dagster never started,
a bounded number a tick. It starts nothing: what to do is in what it reports.
"""

import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from docgen_assets.defs.common import GOLDEN_SHARDS, table
from docgen_assets.failures import said_plainly
from docgen_assets.resources import Stores
from docgen_assets.stuck import FOLLOWED, UNFINISHED, Trouble, Watch, look

LOOKED_AT = 20
"""Unfinished runs looked at a tick; the next one goes on behind them."""

STILL_SECONDS = 2.0
"""Between the two looks of the check that is run by hand; a worker takes less between two units."""

NO_RUN_IS_STUCK = "no_run_is_stuck"

_clock = time.time


@dg.asset_check(
    asset=GOLDEN_SHARDS,
    name=NO_RUN_IS_STUCK,
    description="No run of the state store, whoever started it, stands still: expired leases that nobody reclaims, "
    "failed units, drained and never sealed, paused. The sensor stuck_run_sensor reports here; run by hand it tells "
    "what stands still right now.",
)
def no_run_is_stuck(stores: Stores) -> dg.AssetCheckResult:
    """Look twice at the first unfinished runs; what has not moved in between stands still."""
    with said_plainly(), stores.opened() as here:
        found: list[Trouble] = []
        for pause in (0.0, STILL_SECONDS):
            if pause and found:
                time.sleep(pause)
            known = set(found)
            runs = here.state.list_runs(UNFINISHED, limit=FOLLOWED)
            found = [trouble for run in runs if (trouble := look(here.state, run)) and (not pause or trouble in known)]
    return dg.AssetCheckResult(**_told(found))


@dg.sensor(
    name="stuck_run_sensor",
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Follows every unfinished run, whoever started it. One that has stood still for a quarter of an hour "
    "(a day, where it is paused) is reported at the check no_run_is_stuck of golden_shards, with what to do.",
)
def stuck_run_sensor(context: dg.SensorEvaluationContext, stores: Stores) -> dg.SensorResult:
    """One tick: the next unfinished runs, and a report when other runs are stuck than were told."""
    watch, now = Watch.load(context.cursor), _clock()
    with stores.opened() as here:
        runs = here.state.list_runs(UNFINISHED, after=watch.after, limit=LOOKED_AT)
        troubles = [trouble for run in runs if (trouble := look(here.state, run)) is not None]
    watch.note(troubles, runs[-1].run_id if len(runs) == LOOKED_AT else "", now)
    stuck = watch.stuck(now)
    names = [trouble.run_id for trouble in stuck]
    report = []
    if names != watch.told:
        watch.told = names
        report.append(dg.AssetCheckEvaluation(GOLDEN_SHARDS, NO_RUN_IS_STUCK, **_told(stuck)))
    said = (
        f"stuck: {', '.join(names)}; see the check {NO_RUN_IS_STUCK} of golden_shards" if names else "no run is stuck"
    )
    return dg.SensorResult(skip_reason=said, cursor=watch.dump(), asset_events=report)


def _told(stuck: Sequence[Trouble]) -> dict[str, Any]:
    """The check's result."""
    if not stuck:
        return {"passed": True, "metadata": {"stuck runs": 0}, "severity": dg.AssetCheckSeverity.WARN}
    first = stuck[0]
    return {
        "passed": False,
        "severity": dg.AssetCheckSeverity.WARN,
        "description": f"runs that stand still: {len(stuck)}; {first.run_id!r}: {first.what}: {first.do}",
        "metadata": {"stuck runs": len(stuck), "what to do": table([trouble.as_row() for trouble in stuck])},
    }
