"""Agreement of firing rates with the rates, and of the weight updates that follow from both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.encoding import encode, evenly_spaced
from neuro_eqprop.html_report.html import (
    Cell,
    chart,
    command,
    decimal,
    missing,
    percent,
    reproduce,
    table,
)
from neuro_eqprop.html_report.section import Json, Section, Shown, asset
from neuro_eqprop.traces.compare import SETTLED, common_samples

POINTS = 800
"""Points of a scatter plot, for each layer and phase."""
LAYERS = ["simulator", "layer", "phase", "Pearson", "RMSE", "99.9 %", "worst", "settled", "rates"]


def show(run: RunContents) -> Shown:
    """A scatter plot, and tables of updates and of layers."""
    views = [view for view in run.views() if view.name in view.run.agreements]
    if not views:
        arguments = ("--on", "rate", "--phases", "--traces", run.path / "rate.h5")
        what = "To compare rates and spikes a trace of each is needed; this records the rates:"
        return Shown(missing(what, "simulate", run.path, *arguments) if run.spikes else "")
    commands = [
        command("neuro-eqprop", "compare", view.run.path / view.run.rates[0], view.path)
        for view in views
        if view.run.rates
    ]
    return Shown(
        '<div class="controls"><label>phase <select id="phase"></select></label></div>'
        f'<div class="grid two">{chart("scatter", "Each point a unit in a sample", tall=True)}'
        f"<div>{updates_table(views)}</div></div>{layers_table(views)}{reproduce(*commands)}",
        lambda _: {"scatter": {view.key: scatter(view) for view in views}},
    )


def layers_table(views: Sequence[TraceView]) -> str:
    """Layers and phases of every simulator's trace against the rates."""
    rows: list[list[Cell]] = [
        [
            *(view.title, each.layer, each.phase),
            (each.distance.pearson, each.distance.reason or decimal(each.distance.pearson, 5)),
            *(
                (v, decimal(v))
                for v in (each.distance.rmse, each.distance.p999, each.distance.worst)
            ),
            *((time, f"{time:g} ms") for time in (each.settled_at, each.settled_at_a)),
        ]
        for view in views
        for each in view.run.agreements[view.name].layers
    ]
    note = (
        f"<p>Pooled over samples and units. 99.9 % is that percentile of the absolute error. "
        f"Settled is the time in the phase from which on the firing rate stays within {SETTLED} "
        f"(root mean square) of its final value; rates is the same for the rates.</p>"
    )
    return table("agreement", LAYERS, rows) + note


def updates_table(views: Sequence[TraceView]) -> str:
    """Hebbian updates of every connection, rates against spikes."""
    rows: list[list[Cell]] = [
        [
            *(view.title, each.connection),
            (each.cosine, each.reason or decimal(each.cosine, 5)),
            (each.sign_agreement, percent(each.sign_agreement)),
        ]
        for view in views
        for each in view.run.agreements[view.name].connections
    ]
    header = ["simulator", "connection", "cosine", "same sign"]
    title = "<h3>Hebbian updates of both sides</h3>"
    return title + table("updates", header, rows) if rows else ""


def scatter(view: TraceView) -> Json:
    """Rates and firing rates by phase and layer, of what both traces hold, thinned out evenly."""
    if view.run.rates is None:
        return {}
    compared = view.run.agreements[view.name]
    traces = common_samples(view.run.rates[1], view.trace, [])
    found: dict[str, Json] = {phase: {} for phase, _ in compared.pooled}
    for phase, layers in found.items():
        for layer in compared.rates:
            both = [trace.rate(layer, phase).ravel() for trace in traces]
            kept = evenly_spaced(len(both[0]), POINTS)
            layers[layer] = encode(np.stack([side[kept] for side in both]))
    return found


SECTION = Section("agreement", "Rates against spikes", show, asset("script/agreement.js"))
