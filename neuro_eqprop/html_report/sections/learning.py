"""Metrics over the epochs of training."""

from __future__ import annotations

from html import escape

from neuro_eqprop.html_report.commands import learn_command
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import chart, count, missing, reproduce
from neuro_eqprop.html_report.section import Section, Shown, asset

CURVES = ("epoch", "train_accuracy", "test_accuracy", "loss", "settle_steps", "spectral")
CHARTS = {
    "loss": ("loss", "Loss over epochs"),
    "settle_steps": ("settle", "Steps to settle"),
    "spectral": ("spectral", "Spectral norms of the weights"),
    "weight_quantiles": ("weight-quantiles", "Weights over epochs (median, 5 to 95\u00a0%)"),
}
"""Charts of metrics by connection or phase: id and label."""


def show(run: RunContents) -> Shown:
    """A sentence on the rule, and the charts."""
    rows = [row for each in run.runs for row in each.metrics]
    if not rows:  # another folder, if this one holds a model
        place = run.path if run.model is None else run.path.parent / f"{run.name}-trained"
        return Shown(
            missing("No training was recorded here; this trains:", "train", "--out", place)
        )
    held = {key for key in CHARTS if any(row.get(key) for row in rows)}
    if len({str(row.get("settle_steps")) for row in rows}) == 1:
        held -= {"settle_steps"}  # without a tolerance they are the steps allowed
    curves = "".join(chart(*place) for key, place in CHARTS.items() if key in held)
    again = [learn_command(each) for each in run.runs if each.metrics]
    data = [
        {
            "run": each.name,
            "rows": [
                {k: row.get(k) for k in (*CURVES, "weight_quantiles")} for row in each.metrics
            ],
        }
        for each in run.runs
    ]
    warned = [
        f'<p class="missing">Epoch {count(each.metrics[-1].get("epoch"))} of '
        f"{escape(each.name)}: {escape(str(each.metrics[-1]['warning']))}.</p>"
        for each in run.runs
        if each.metrics and each.metrics[-1].get("warning")
    ]
    return Shown(
        f"{''.join(warned)}<p>For every sample the network settles freely and then again with its "
        "output nudged; the update of a weight is the difference of the products of the "
        "activities at its two ends.</p>"
        f'<div class="grid three">{chart("accuracy", "Accuracy over epochs")}{curves}'
        f"</div>{reproduce(*again)}",
        lambda _: {"learning": data},
    )


SECTION = Section("learning", "Learning", show, asset("script/learning.js"))
