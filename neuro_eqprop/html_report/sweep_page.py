"""The HTML page of a sweep: parallel coordinates, accuracy against joules, and the table.

The page is self-contained; it embeds the chart library of the HTML report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from string import Template
from typing import Any

from neuro_eqprop.html_report.page import chart_library, digest
from neuro_eqprop.html_report.section import asset
from neuro_eqprop.runs.sweeps.result import SweepResult
from neuro_eqprop.runs.sweeps.table import columns

SHOWN = 200
"""Largest number of rows on the page; the table files have all."""
LINES = 2000
"""Largest number of cells in the parallel coordinates."""
MEASURES = ("spiking_accuracy", "validation_accuracy", "test_accuracy")
HIDDEN = ("model_sha256", "parameters", "epochs", "loss", "train_accuracy", "joules_low")


def page(result: SweepResult) -> str:
    """HTML of the page of a sweep."""
    figures: dict[str, Any] = {"coordinates": parallel_coordinates(result)}
    joules = accuracy_against_joules(result)
    if joules is not None:
        figures["joules"] = joules
    library, script = chart_library(), asset("script/sweep.js")
    allowed = " ".join(f"'sha256-{digest(each)}'" for each in (library, script))
    text = json.dumps(figures, separators=(",", ":"), allow_nan=False)
    for character in "&<>":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Template(asset("sweep.html")).substitute(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; "
        f"img-src data:",
        title=escape(f"Sweep {result.path.name}"),
        style=asset("page.css"),
        lead=escape(lead(result)),
        sections="\n".join(sections(result, figures)),
        figures=text,
        library=library,
        script=script,
    )


def lead(result: SweepResult) -> str:
    """The lead of the page: number of cells, axes and the best cell."""
    failed = f", {result.failed} of them failed" if result.failed else ""
    method = result.sweep.search.method
    text = f"{result.cells} cells of a {method} search over {', '.join(result.sweep.axes)}{failed}."
    if not result.has(result.objective):
        return text
    best = result.best()
    at = ", ".join(f"{key} {best[key]}" for key in result.sweep.axes)
    return f"{text} Best {result.objective}: {best[result.objective]:.4f} at {at}."


def sections(result: SweepResult, figures: Mapping[str, Any]) -> list[str]:
    """The sections of the page."""
    captions = {
        "coordinates": "Every cell is a line through the values of its axes and its results.",
        "joules": "Accuracy as spikes against joules of an inference; the line is the Pareto "
        "front: no other cell is more accurate at fewer joules.",
    }
    titles = {"coordinates": "Parallel coordinates", "joules": "Accuracy against joules"}
    found = [
        f"<section><h2>{titles[name]}</h2><figure><div class='wide'><div id='{name}' role='img' "
        f"aria-label='{titles[name]}' style='min-width:{width(figures[name])}px'></div></div>"
        f"<figcaption>{captions[name]}</figcaption></figure></section>"
        for name in figures
    ]
    return [*found, table(result)]


def width(figure: Mapping[str, Any]) -> int:
    """Minimum width of a chart in pixels, with room for the labels of parallel coordinates."""
    axes = {name for line in figure["data"] for name in line["x"] if isinstance(name, str)}
    return max(100 * len(axes), 320)


def order(result: SweepResult) -> list[Mapping[str, Any]]:
    """The rows, best first, failed ones last."""
    if not result.has(result.objective):
        return list(result.rows)
    name, least = result.objective, bool(result.sweep.search.minimise)

    def rank(row: Mapping[str, Any]) -> tuple[bool, float]:
        value = row.get(name)
        return value is None, 0.0 if value is None else (value if least else -value)

    return sorted(result.rows, key=rank)


def table(result: SweepResult) -> str:
    """The section with the table of the best rows."""
    names = [name for name in columns(result.rows) if result.has(name) and name not in HIDDEN]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = order(result)[:SHOWN]
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(shown(row.get(name)))}</td>' for name in names)}</tr>"
        for row in rows
    )
    note = f" The first {SHOWN} of {result.cells}." if result.cells > SHOWN else ""
    files = ", ".join(path.name for path in result.files)
    return (
        f"<section><h2>Cells</h2><p>Best first.{note} All of them: {escape(files)}.</p>"
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"</div></section>"
    )


def shown(value: Any) -> str:  # noqa: ANN401
    """A value as text."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def parallel_coordinates(result: SweepResult) -> dict[str, Any]:
    """Lines through the values of the axes and the results, each scaled to its own range."""
    measures = [name for name in (*MEASURES, "joules") if result.has(name)]
    names = [*result.sweep.axes, *measures]
    rows = [row for row in order(result) if not row["error"]][:LINES]
    scales = {name: scale([row.get(name) for row in rows]) for name in names}
    lines = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": names,
            "y": [scales[name][place] for name in names],
            "text": [f"{name}: {shown(row.get(name))}" for name in names],
            "hoverinfo": "text",
            "line": {"color": colour(place, len(rows)), "width": 1.5},
            "opacity": 0.7,
            "showlegend": False,
        }
        for place, row in reversed(list(enumerate(rows)))
    ]
    layout = {
        "yaxis": {"visible": False},
        "xaxis": {"type": "category", "side": "top"},
        "margin": {"t": 60, "b": 30, "l": 40, "r": 40},
        "height": 420,
        "annotations": [
            {"x": name, "y": height, "text": text, "xanchor": "left", "xshift": 6}
            | {"showarrow": False, "font": {"size": 11}}
            for name in names
            for text, height in labels([row.get(name) for row in rows]).items()
        ],
    }
    return {"data": lines, "layout": layout}


def labels(values: Sequence[Any]) -> dict[str, float]:
    """Tick labels of an axis with their heights: all values if there are few, else the ends."""
    heights = {
        shown(value): height
        for value, height in zip(values, scale(values), strict=True)
        if height is not None
    }
    if len(heights) <= 6:
        return heights
    return {text: height for text, height in heights.items() if height in (0.0, 1.0)}


def colour(place: int, total: int) -> str:
    """Line colour of a row: from blue for the best to light grey for the last."""
    part = place / max(total - 1, 1)
    low, high = (31, 98, 176), (190, 190, 190)
    mixed = (round(a + part * (b - a)) for a, b in zip(low, high, strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def scale(values: Sequence[Any]) -> list[float | None]:
    """Values scaled to [0, 1]: numbers by size, others by order of appearance."""
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) != sum(value is not None for value in values):
        texts = list(dict.fromkeys(json.dumps(value) for value in values))
        last = max(len(texts) - 1, 1)
        return [texts.index(json.dumps(value)) / last for value in values]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    span = (high - low) or 1.0
    return [None if value is None else float((value - low) / span) for value in values]


def accuracy_against_joules(result: SweepResult) -> dict[str, Any] | None:
    """Scatter plot of accuracy against joules with its Pareto front; None without joules."""
    both = ("joules", "spiking_accuracy")
    rows = [row for row in result.rows if all(row.get(name) is not None for name in both)]
    if not rows:
        return None
    front: list[Mapping[str, Any]] = []
    for row in sorted(rows, key=lambda each: (each["joules"], -each["spiking_accuracy"])):
        if not front or row["spiking_accuracy"] > front[-1]["spiking_accuracy"]:
            front.append(row)
    points = {
        "type": "scatter",
        "mode": "markers",
        "name": "cells",
        "x": [row["joules"] for row in rows],
        "y": [row["spiking_accuracy"] for row in rows],
        "text": [
            "<br>".join(f"{key}: {shown(row.get(key))}" for key in result.sweep.axes)
            for row in rows
        ],
        "marker": {"color": "rgb(120,120,120)"},
    }
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "front",
        "x": [row["joules"] for row in front],
        "y": [row["spiking_accuracy"] for row in front],
        "line": {"color": "rgb(31,98,176)"},
    }
    layout = {
        "xaxis": {"type": "log", "title": {"text": "joules of an inference"}},
        "yaxis": {"title": {"text": "accuracy as spikes"}, "tickformat": ".1%"},
        "height": 420,
    }
    return {"data": [points, line], "layout": layout}
