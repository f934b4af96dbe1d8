"""The code location: one explicit set of definitions, loaded from `docgen_assets.defs`."""

from __future__ import annotations

import dagster as dg

from docgen_assets.defs import catalogue, checks, exports, jobs, runs, schedules, sensors, stuck
from docgen_assets.resources import Corpus, Stores

defs = dg.Definitions(
    assets=[*dg.load_assets_from_modules([catalogue, runs, exports]), *exports.CATALOGUE_SPECS],
    asset_checks=dg.load_asset_checks_from_modules([checks, stuck]),
    jobs=[
        jobs.generate_corpus,
        jobs.export_catalogue,
        jobs.export_ranges,
        jobs.export_run,
        jobs.remove_run,
        jobs.add_workers,
        jobs.resume_run,
        jobs.cancel_run,
        jobs.verify_run,
        schedules.collect_garbage,
    ],
    sensors=[sensors.root_manifest_sensor, sensors.withdrawn_run_sensor, stuck.stuck_run_sensor],
    schedules=[schedules.collect_garbage_daily],
    resources={"corpus": Corpus(), "stores": Stores()},
    # Steps only wait and watch: the work is done by worker processes. One process a run is enough, and is what is
    # killed and watched as one.
    executor=dg.in_process_executor,
)
