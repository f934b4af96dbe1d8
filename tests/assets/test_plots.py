"""Plots: of what was published, the same bytes for the same figures, small enough for the event log."""

from __future__ import annotations

import base64
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import cv2
import dagster as dg
import matplotlib
import numpy as np
import pandas as pd
import pytest

if TYPE_CHECKING:
    from conftest import Location

FIRST = "00000-00003"
MOST_BYTES = 60_000


def pixels(plot: dg.MetadataValue) -> np.ndarray:  # type: ignore[type-arg]
    """The picture that is embedded, within bounds and not blank."""
    _, _, encoded = str(plot.value).partition("base64,")
    data = base64.b64decode(encoded.rstrip(")"))
    assert len(data) < MOST_BYTES
    drawn = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert drawn is not None and drawn.std() > 10
    return drawn


@pytest.mark.parametrize(("table", "name"), [("documents", "by locale and condition"), ("invoices", "gross totals")])
def test_a_table_is_shown_with_its_plot(made: Location, table: str, name: str):
    found = made.instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(table), asset_partitions=[FIRST]), limit=1
    )
    (record,) = found.records
    assert record.asset_materialization
    pixels(record.asset_materialization.metadata[name])


def test_a_drain_shows_its_units_over_time_and_where_the_files_are(made: Location):
    found = made.instance.fetch_materializations(dg.AssetKey("golden_shards"), limit=1)
    told = found.records[0].asset_materialization
    assert told
    assert told.metadata["root manifest"].value == str(
        made.folder / "blobs" / "runs" / f"invoices-{FIRST}/manifest.json"
    )
    from docgen_assets.plots import units_over_time

    pixels(units_over_time([(0.0, 0), (5.0, 2), (7.5, 3)], 3))


def test_equal_figures_are_equal_bytes_and_others_are_not():
    from docgen_assets.plots import spend_by_model, totals_by_currency

    calls = pd.DataFrame({"model": ["a", "b"], "outcome": ["answered", "timeout"], "cost_usd": [0.5, 0.25]})
    drawn = spend_by_model(calls)
    with matplotlib.rc_context({"font.size": 20, "savefig.dpi": 40}):
        assert spend_by_model(calls.copy()) == drawn, "whatever this machine's matplotlib is told"
    assert (pixels(spend_by_model(calls)) != pixels(spend_by_model(calls.assign(cost_usd=[0.1, 2.0])))).any()
    refund = pd.DataFrame({"currency": ["EUR", "JPY"], "gross_total": [-12.5, 0.0]})
    pixels(totals_by_currency(refund))
    assert totals_by_currency(refund.assign(gross_total=0.0)).value == "no amounts"


def test_however_many_bars_there_are_each_has_its_label_and_nothing_covers_another(monkeypatch: pytest.MonkeyPatch):
    from matplotlib.figure import Figure

    from docgen_assets.plots import documents_by_locale_and_condition

    drawn: list[Figure] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *to, **how: (drawn.append(figure), save(figure, *to, **how)))
    locales, conditions = [f"xx-{number:02d}" for number in range(30)], ["clean", "highlighter_notes"]
    rows = [{"locale": locale, "condition": each} for locale in locales for each in conditions]
    pixels(documents_by_locale_and_condition(pd.DataFrame(rows)))
    (axes,), (legend,) = drawn[0].axes, drawn[0].legends
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("documents", "locale")
    labels = sorted(axes.get_yticklabels(), key=lambda label: label.get_position()[1])
    assert [label.get_text() for label in labels] == locales[::-1], "read from above"
    boxes = [label.get_window_extent() for label in labels]
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(boxes))
    assert not legend.get_window_extent().overlaps(axes.get_window_extent())


def test_the_location_loads_without_what_draws():
    program = "import docgen_assets.definitions, sys; print([n for n in ('matplotlib', 'pandas') if n in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("store", "link"),
    [
        ("file:///data/blobs", "/data/blobs/runs/r1"),
        (
            "s3://bucket/some?region=eu-west-1",
            "https://s3.console.aws.amazon.com/s3/buckets/bucket?prefix=some/runs/r1",
        ),
        ("gs://bucket/some", "https://console.cloud.google.com/storage/browser/bucket/some/runs/r1"),
    ],
)
def test_a_link_leads_to_the_place(store: str, link: str):
    from docgen_assets.defs.common import place_of

    assert place_of(store, "runs/r1").value == link
