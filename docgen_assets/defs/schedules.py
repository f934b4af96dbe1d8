"""What happens by the clock: once a day, what no manifest names and nobody will finish is removed.

The schedule is off until somebody turns it on. Whatever else docgen does, it adds; this is the one
thing that deletes, from a store that several installations may share, so the first look is a dry
run by hand: the job collect_garbage with `dry_run`.
"""

from typing import ClassVar

import dagster as dg
from pydantic import Field

from docgen_assets.defs.common import table
from docgen_assets.failures import Bounded, said_plainly
from docgen_assets.resources import Stores

_LISTED = 50
"""Removed blobs that are listed; their number and bytes stand beside them."""

AT_NIGHT = "30 3 * * *"
"""Every day at half past three, UTC."""


class Collect(Bounded):
    """What counts as garbage."""

    bounds: ClassVar[dict[str, tuple[int, int]]] = {"older_than_hours": (1, 100_000)}

    older_than_hours: int = Field(
        default=24, description="Only unfinished uploads and temporary files at least this old: no worker's own."
    )
    withdrawn: bool = Field(
        default=False, description="Also every blob of withdrawn runs. They cannot be had back; their tombstones stay."
    )
    dry_run: bool = Field(default=False, description="Say what would go, and leave it.")


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Removes temporary files of writers that died, and superseded attempts. Nothing that a sealed manifest "
    "names is touched.",
)
def collect_one_store(context: dg.OpExecutionContext, config: Collect, stores: Stores) -> None:
    """Collect the blob store's garbage and say what went, and why."""
    from docgen_core.runs.gc import collect

    with said_plainly(), stores.opened() as here:
        config.check()
        collected = collect(
            here.blobs,
            older_than_seconds=config.older_than_hours * 3600.0,
            withdrawn=config.withdrawn,
            dry_run=config.dry_run,
        )
    done = "would be removed" if config.dry_run else "removed"
    told: dict[str, object] = {"dry run": config.dry_run, done: collected.removed, "bytes": collected.bytes}
    for reason in sorted({item.reason for item in collected.garbage}):
        told[f"{reason}, bytes"] = sum(item.bytes for item in collected.garbage if item.reason == reason)
    if collected.garbage:
        first = collected.garbage[:_LISTED]
        told["the first"] = table([{"key": each.key, "bytes": each.bytes, "reason": each.reason} for each in first])
    context.log.info(f"{collected.removed} blobs and temporary files of {collected.bytes} bytes {done}")
    context.add_output_metadata(told)


@dg.job(
    description="Removes what no manifest names and nobody will finish: temporary files, superseded attempts, and on "
    "request the blobs of withdrawn runs. With `dry_run` it only says what would go."
)
def collect_garbage() -> None:
    """The one step."""
    collect_one_store()


collect_garbage_daily = dg.ScheduleDefinition(
    name="collect_garbage_daily",
    job=collect_garbage,
    cron_schedule=AT_NIGHT,
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="collect_garbage every night, without the blobs of withdrawn runs. Off until it is turned on: look at "
    "a dry run first.",
)
