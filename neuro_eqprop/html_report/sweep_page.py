"""The HTML page of a sweep: parallel coordinates, accuracy against joules, and the table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import Any

from neuro_eqprop.html_report import page
from neuro_eqprop.html_report.html import chart, setting_cell, table
from neuro_eqprop.html_report.page import Heading, PageBlock
from neuro_eqprop.html_report.section import asset
from neuro_eqprop.runs.sweeps.result import SweepResult
from neuro_eqprop.runs.sweeps.table import columns

SHOWN = 200
"""Largest number of rows on the page; the table files have all."""
LINES = 2000
"""Largest number of cells in the charts."""
MEASURES = ("spiking_accuracy", "validation_accuracy", "test_accuracy", "joules")
HIDDEN = ("model_sha256", "parameters", "epochs", "loss", "train_accuracy", "joules_low")


def render(result: SweepResult) -> str:
    """HTML of the page of a sweep."""
    rows, axes = best_first(result), list(result.sweep.axes)
    measures = [name for name in MEASURES if result.has(name)]
    blocks = [
        PageBlock(
            "parallel",
            "Parallel coordinates",
            "<p>Every cell is a line through the values of its axes and its results.</p>"
            f"<div class='wide'>{chart('coordinates', 'Parallel coordinates', tall=True)}</div>",
        )
    ]
    if "joules" in measures and "spiking_accuracy" in measures:
        what = "<p>Accuracy as spikes against joules of an inference; the line is the Pareto "
        what += "front: no other cell is more accurate at fewer joules.</p>"
        title = "Accuracy against joules"
        blocks.append(PageBlock("trade", title, what + chart("joules", title, tall=True)))
    names = [name for name in columns(result.rows) if result.has(name) and name not in HIDDEN]
    cells = [[setting_cell(row.get(name, "")) for name in names] for row in rows[:SHOWN]]
    note = f" The first {SHOWN} of {result.cells}." if result.cells > SHOWN else ""
    files = escape(", ".join(path.name for path in result.files))
    what = f"<p>Best first.{note} All of them: {files}.</p>"
    blocks.append(PageBlock("cells", "Cells", what + table("cells", names, cells)))
    drawn = [
        {name: row.get(name) for name in (*axes, *measures)} for row in rows if not row["error"]
    ]
    return page.page(
        Heading(
            "sweep", f"Sweep {result.path.name}", f'<p class="lead">{escape(lead(result))}</p>'
        ),
        blocks,
        data=page.as_json({"sweep": {"axes": axes, "measures": measures, "rows": drawn[:LINES]}}),
        scripts=[asset("script/sweep.js")],
        command=f"sweep SWEEP.toml --out {shlex.quote(str(result.path))}",
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


def best_first(result: SweepResult) -> list[Mapping[str, Any]]:
    """The rows, best first, failed ones last."""
    name, sign = result.objective, 1 if result.sweep.search.minimise else -1
    known = [row for row in result.rows if row.get(name) is not None]
    return sorted(known, key=lambda row: sign * row[name]) + [
        row for row in result.rows if row.get(name) is None
    ]
