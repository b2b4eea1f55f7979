"""Charts as data, drawn by matplotlib; equal data give equal bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from typing import Any


class Mark(Enum):
    """The kind of a chart."""

    LINE = "line"
    BAR = "bar"
    POINTS = "points"
    HEAT = "heat"


@dataclass(frozen=True, slots=True)
class Series:
    """y over x, with optional intervals [low, high]."""

    label: str
    x: Sequence[float] | Sequence[str]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """One pair of axes; `threshold` is a dashed line. Each series is a row of a heat map."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    mark: Mark = Mark.LINE
    log_x: bool = False
    log_y: bool = False
    threshold: float | None = None


STYLE = {"svg.hashsalt": "neuro_eqprop", "svg.fonttype": "none", "pdf.fonttype": 42}


def draw(charts: Sequence[Chart], *, form: str) -> bytes:
    """An SVG or PDF file with the charts, two in a row, without a date."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}}
    if form not in dates:
        raise ValueError(f"a figure is drawn as {' or '.join(dates)}, not as {form!r}")
    with mpl.rc_context(STYLE):
        columns = min(2, len(charts))
        rows = -(-len(charts) // columns)
        figure = Figure(figsize=(6.4 if columns == 1 else 10.0, 4.0 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        for place, chart in enumerate(charts):
            panel(figure.add_subplot(rows, columns, place + 1), chart)
        buffer = BytesIO()
        figure.savefig(buffer, format=form, metadata=dates[form])
    return buffer.getvalue()


def panel(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Draw a chart on axes."""
    categories = isinstance(chart.series[0].x[0], str)
    drawing = {Mark.BAR: bars, Mark.HEAT: heat, Mark.POINTS: dots if categories else lines}
    drawing.get(chart.mark, lines)(axes, chart)
    axes.set(xlabel=chart.x, ylabel=chart.y)
    axes.set_title(chart.title, fontsize="medium")
    if chart.threshold is not None:
        axes.axhline(chart.threshold, linestyle="--", color="black", linewidth=1)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")


def errors(series: Series) -> list[list[float]] | None:
    """Error bars for matplotlib: [y - low, high - y]; None without intervals."""
    if series.low is None or series.high is None:
        return None
    down = [max(0.0, y - low) for y, low in zip(series.y, series.low, strict=True)]
    up = [max(0.0, high - y) for y, high in zip(series.y, series.high, strict=True)]
    return [down, up]


def lines(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Draw lines or points with error bars."""
    style = "none" if chart.mark is Mark.POINTS else "-"
    for each in chart.series:
        axes.errorbar(
            each.x,
            each.y,
            yerr=errors(each),
            label=each.label,
            marker="o",
            markersize=4,
            linestyle=style,
            capsize=3,
        )
    if len(chart.series) > 1 or chart.series[0].label:
        axes.legend(fontsize="small")


def label(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Label the categories, and add a legend for several series."""
    axes.set_xticks(range(len(chart.series[0].x)), [str(x) for x in chart.series[0].x])
    axes.tick_params(axis="x", labelsize="small")
    if len(chart.series) > 1:
        axes.legend(fontsize="small")


def dots(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Draw points with intervals over categories, series side by side."""
    width = 0.5 / len(chart.series)
    for k, each in enumerate(chart.series):
        places = [n - 0.25 + width * (k + 0.5) for n in range(len(each.y))]
        axes.errorbar(
            places, each.y, yerr=errors(each), label=each.label, fmt="o", markersize=5, capsize=3
        )
    axes.margins(x=0.1)
    axes.grid(axis="y", linewidth=0.3)
    label(axes, chart)


def bars(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Draw grouped bars, a colour for each series."""
    width = 0.8 / len(chart.series)
    for k, each in enumerate(chart.series):
        places = [n - 0.4 + width * (k + 0.5) for n in range(len(each.y))]
        axes.bar(places, each.y, width, yerr=errors(each), label=each.label, capsize=3)
    label(axes, chart)


def heat(axes: Any, chart: Chart) -> None:  # noqa: ANN401
    """Draw a contour plot: x along a series, series from bottom to top."""
    columns, rows = list(map(float, chart.series[0].x)), [float(s.label) for s in chart.series]
    mesh = axes.contourf(columns, rows, [list(each.y) for each in chart.series], levels=20)
    axes.figure.colorbar(mesh)
