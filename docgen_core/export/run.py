"""Export: a sealed run's golden tables into a sink, whole or not at all, as often as one likes.

What does not belong here: how shards are found and checked (reader.py), how a place stores
rows (the sinks), when to export (the caller).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from docgen_core.blobs.contract import BlobStore
from docgen_core.errors import Damage, RunWithdrawn
from docgen_core.export.contract import GoldenSink
from docgen_core.export.reader import open_run
from docgen_core.runs.keys import check_name, withdrawn_key
from docgen_core.runs.manifest import refuse_withdrawn


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export left in the sink."""

    run_id: str
    sink: str
    """The sink's URI."""
    root_sha256: str
    """Digest of the root manifest that was exported."""
    rows: Mapping[str, int]
    """Rows by table: all that the sink now holds of this run."""
    leftovers: int
    """Blobs of superseded attempts and the like that were passed over."""


def export_run(
    run_id: str,
    *,
    blobs: BlobStore,
    sink: GoldenSink,
    units: Collection[int] | None = None,
    on_table: Callable[[str, int], None] | None = None,
) -> ExportReport:
    """Make the sink hold exactly the run's rows, golden or of a catalogue, or those of `units` alone.

    Replacement is per run: exporting two units and then two others leaves the latter. `on_table`
    is told each table's name and rows when it is written, before anything is published.

    Raises `RunIncomplete` (no root), `Damage` (a shard is missing or changed; the sink is as it was),
    `UsageError` (a unit there is not), what the sink raises, and `RunWithdrawn` after
    the run's rows were taken out of the sink.
    """
    check_name(run_id, "run id")
    try:
        report = _replace(run_id, blobs, sink, units, on_table)
        sink.register()
        # Withdrawn meanwhile: whoever withdrew may have looked before the rows were published.
        refuse_withdrawn(blobs, run_id)
    except (RunWithdrawn, Damage):
        # Damage: the blobs of a run that was withdrawn while it was read may be collected already.
        if not blobs.exists(withdrawn_key(run_id)):
            raise
        sink.remove(run_id)
        raise RunWithdrawn(run_id, f"none of its rows are left in {sink.uri}") from None
    return report


def _replace(
    run_id: str,
    blobs: BlobStore,
    sink: GoldenSink,
    units: Collection[int] | None,
    on_table: Callable[[str, int], None] | None,
) -> ExportReport:
    reader = open_run(run_id, blobs, units=units)
    rows: dict[str, int] = {}
    with sink.replacing(run_id, reader.root.digest):
        for name in reader.tables:
            stream = reader.stream(name)
            rows[name] = sink.write(name, stream.schema, stream.shards)
            if on_table is not None:
                on_table(name, rows[name])
    return ExportReport(run_id, sink.uri, reader.root.digest, rows, reader.leftovers)
