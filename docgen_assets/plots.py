"""Plots that are kept with a materialisation: what a range holds, how fast it was made, what it cost.

Drawn by pandas from the published shards or from what a drain saw, small enough to live in an event,
and never a reason to fail: whoever cannot draw one still has the figures beside it. What does not
belong here: pictures of pages (preview.py), and any figure that a check relies on.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.ticker import MaxNLocator

    from docgen_core.blobs.contract import BlobStore
    from docgen_core.export.reader import RunReader

_SIZE = (6.4, 3.2)
"""Inches."""
_DPI = 80
"""Some 15 kB of PNG: it is kept in the event log, which is read whole for every view of the asset."""
_ROW, _FRAME = 0.17, 0.8
"""Inches: a bar with its label, and what stands around the bars."""
_TICKS = 6
"""Intervals of an axis at most: the labels of more would touch."""
_CURRENCIES = 12
"""Box plots that one picture has room for: those of the most invoices."""


def documents_by_locale_and_condition(documents: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Bars: documents of each locale, by capture condition. Columns `locale` and `condition`."""
    counted = documents.groupby(["locale", "condition"]).size().unstack(fill_value=0)
    return _drawn(lambda axes: _bars(counted, axes, "documents"), "documents by locale and condition")


def totals_by_currency(invoices: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Boxes: the spread of gross totals in each currency, on a scale of tens. Columns `currency`, `gross_total`."""
    amounts = invoices.assign(gross_total=invoices["gross_total"].abs()).query("gross_total > 0")
    every = amounts["currency"].value_counts().index
    usual = every[:_CURRENCIES]
    which = "currency" if len(usual) == len(every) else f"currency: of {len(every)}, the {_CURRENCIES} of most invoices"

    def draw(axes: Axes) -> None:
        wide = {currency: amounts.loc[amounts["currency"] == currency, "gross_total"] for currency in sorted(usual)}
        frame = _frame({currency: column.reset_index(drop=True) for currency, column in wide.items()})
        frame.plot.box(ax=axes, logy=True)
        axes.set(xlabel=which, ylabel="gross total, without its sign")

    return _drawn(draw, "gross totals by currency") if len(usual) else dg.MetadataValue.md("no amounts")


def units_over_time(samples: Iterable[tuple[float, int]], total: int) -> dg.MarkdownMetadataValue:
    """Steps: units done after so many seconds of a drain, beside how many there are."""
    seconds, done = zip(*samples, strict=True)

    def draw(axes: Axes) -> None:
        frame = _frame({"done": done}).set_axis(list(seconds))
        frame.plot(ax=axes, drawstyle="steps-post", legend=False)
        axes.axhline(total, linestyle=":", color="grey")
        axes.set(xlabel="seconds", ylabel="units done", ylim=(0, 1.05 * max(total, 1)))
        axes.yaxis.set_major_locator(_ticks(whole=True))

    return _drawn(draw, "units done over time")


def spend_by_model(calls: pd.DataFrame) -> dg.MarkdownMetadataValue:
    """Bars: US dollars by model and outcome of its calls. Columns `model`, `outcome`, `cost_usd`."""
    spent = calls.groupby(["model", "outcome"])["cost_usd"].sum().unstack(fill_value=0)
    return _drawn(lambda axes: _bars(spent, axes, "US dollars"), "spend by model")


def _bars(frame: pd.DataFrame, axes: Axes, unit: str) -> None:
    """Stacked bars, one a row from above, on a picture as tall as they need; the legend beside them."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.set_figheight(max(_SIZE[1], _FRAME + _ROW * len(frame)))
    frame.iloc[::-1].plot.barh(ax=axes, stacked=True, legend=False)
    axes.set(xlabel=unit, ylabel=frame.index.name)
    axes.xaxis.set_major_locator(_ticks(whole=all(kind.kind == "i" for kind in frame.dtypes)))
    figure.legend(loc="outside right upper", fontsize="small", title=frame.columns.name)


def _ticks(*, whole: bool) -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(_TICKS, steps=[1, 2, 5, 10], integer=whole)


def _frame(columns: dict[str, object]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(columns)


def _drawn(draw: Callable[[Axes], None], name: str) -> dg.MarkdownMetadataValue:
    """The plot as an embedded PNG: the same bytes for the same figures."""
    import matplotlib

    # Before pandas looks for a display.
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    encoded = io.BytesIO()
    with matplotlib.rc_context():
        # Whatever a matplotlibrc of this machine says.
        matplotlib.rcdefaults()
        figure = Figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(encoded, format="png", metadata={"Software": None})
    return dg.MetadataValue.md(f"![{name}](data:image/png;base64,{base64.b64encode(encoded.getvalue()).decode()})")


Plot = tuple[str, tuple[str, ...], Callable[["pd.DataFrame"], dg.MarkdownMetadataValue]]
"""What it is called, the columns it needs, and what draws it."""

PLOTS: dict[str, Plot] = {
    "documents": ("by locale and condition", ("locale", "condition"), documents_by_locale_and_condition),
    "invoices": ("gross totals", ("currency", "gross_total"), totals_by_currency),
    "llm_usage": ("spend", ("model", "outcome", "cost_usd"), spend_by_model),
}
"""By table."""


def plots_of(run_id: str, blobs: BlobStore) -> dict[str, dict[str, dg.MarkdownMetadataValue]]:
    """By table, the plots of a sealed run's rows; of a table without rows there is none."""
    from docgen_core.export.reader import open_run

    reader = open_run(run_id, blobs)
    return {
        table: {name: draw(_columns_of(reader, table, columns))}
        for table, (name, columns, draw) in PLOTS.items()
        if table in reader.tables and reader.rows(table)
    }


def _columns_of(reader: RunReader, table: str, names: Sequence[str]) -> pd.DataFrame:
    """Those columns of a sealed run's table, from its shards; decimals as floats, for drawing only."""
    batches: list[pa.RecordBatch] = []
    for shard in reader.stream(table).shards:
        batches += shard.file.iter_batches(columns=list(names))
    schema = pa.schema([reader.schema(table).field(name) for name in names])
    found = pa.Table.from_batches(batches, schema)
    decimals = [name for name in names if pa.types.is_decimal(schema.field(name).type)]
    for name in decimals:
        found = found.set_column(found.schema.get_field_index(name), name, pc.cast(found[name], pa.float64()))
    frame: pd.DataFrame = found.to_pandas()
    return frame
