"""Agreement of firing rates with the rates, and of the weight updates that follow from both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.encoding import encode
from neuro_eqprop.html_report.html import (
    Cell,
    chart,
    command,
    decimal,
    missing,
    percent,
    reproduce,
    table,
    text_cell,
)
from neuro_eqprop.html_report.section import Json, Limits, Section, asset
from neuro_eqprop.traces.compare import SETTLED

POINTS = 800
"""Points of a scatter plot, for each layer and phase."""


def compared(run: RunContents) -> list[TraceView]:
    """Traces that were compared with rates."""
    return [view for view in run.views() if view.name in view.run.agreements]


def hint(run: RunContents) -> str:
    """The command that records rates, if there are spikes to compare them with."""
    arguments = ("simulate", run.path, "--on", "rate", "--phases", "--traces", run.path / "rate.h5")
    what = "To compare rates and spikes a trace of each is needed; this records the rates:"
    return missing(what, *arguments) if run.spikes else ""


def body(run: RunContents) -> str:
    """A scatter plot, and tables of updates and of layers."""
    views = compared(run)
    commands = [
        command("neuro-eqprop", "compare", view.run.path / view.run.rates[0], view.path)
        for view in views
        if view.run.rates
    ]
    return (
        '<div class="controls"><label>phase <select id="phase"></select></label></div>'
        f'<div class="grid two">{chart("scatter", "Each point a unit in a sample", tall=True)}'
        f"<div>{updates_table(views)}</div></div>{layers_table(views)}{reproduce(*commands)}"
    )


def layers_table(views: Sequence[TraceView]) -> str:
    """Layers and phases of every simulator's trace against the rates."""
    header = ["simulator", "layer", "phase", "Pearson", "RMSE", "99.9 %", "worst", "settled"]
    rows: list[list[Cell]] = [
        [
            text_cell(view.title),
            text_cell(each.layer),
            text_cell(each.phase),
            (each.distance.pearson, number_or_reason(each.distance.pearson, each.distance.reason)),
            (each.distance.rmse, decimal(each.distance.rmse)),
            (each.distance.p999, decimal(each.distance.p999)),
            (each.distance.worst, decimal(each.distance.worst)),
            (each.settled_at, str(each.settled_at)),
            (each.settled_at_a, str(each.settled_at_a)),
        ]
        for view in views
        for each in view.run.agreements[view.name].layers
    ]
    note = (
        f"<p>Pooled over samples and units. 99.9 % is that percentile of the absolute error. "
        f"Settled is the step of the phase from which on the firing rate stays within {SETTLED} "
        f"(root mean square) of its final value; rates is the same for the rates.</p>"
    )
    return table("agreement", [*header, "rates"], rows) + note


def updates_table(views: Sequence[TraceView]) -> str:
    """Hebbian updates of every connection, rates against spikes."""
    rows: list[list[Cell]] = [
        [
            text_cell(view.title),
            text_cell(each.connection),
            (each.cosine, number_or_reason(each.cosine, each.reason)),
            (each.sign_agreement, percent(each.sign_agreement)),
        ]
        for view in views
        for each in view.run.agreements[view.name].connections
    ]
    if not rows:
        return ""
    header = ["simulator", "connection", "cosine", "same sign"]
    return "<h3>Hebbian updates of both sides</h3>" + table("updates", header, rows)


def number_or_reason(value: float | None, reason: str | None) -> str:
    """Five decimals, or why there is no number."""
    return reason or decimal(value, 5)


def data(run: RunContents, _: Limits) -> Json:
    """Points of the scatter plots, by file."""
    return {"scatter": {view.key: scatter(view) for view in compared(run)}}


def scatter(view: TraceView) -> Json:
    """Rates and firing rates by phase and layer, thinned out evenly."""
    found: Json = {}
    if view.run.rates is None:
        return found
    rates, trace = view.run.rates[1], view.trace
    for phase in trace.phases:
        found[phase] = {}
        for layer in trace.layers_with_rates:
            a, b = rates.rate(layer, phase).ravel(), trace.rate(layer, phase).ravel()
            kept = np.unique(np.linspace(0, len(a) - 1, min(POINTS, len(a))).astype(int))
            found[phase][layer] = encode(np.stack([a[kept], b[kept]]))
    return found


SECTION = Section(
    "agreement",
    "Rates against spikes",
    body,
    needs=lambda run: bool(compared(run)),
    hint=hint,
    data=data,
    script=asset("script/agreement.js"),
)
