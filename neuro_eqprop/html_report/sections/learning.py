"""Metrics over the epochs of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuro_eqprop.html_report.commands import learn_command
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import chart, missing, reproduce
from neuro_eqprop.html_report.section import Json, Limits, Section, asset
from neuro_eqprop.html_report.values import number

CHARTS = {
    "loss": ("loss", "Loss over epochs"),
    "settle_steps": ("settle", "Steps to settle"),
    "spectral": ("spectral", "Spectral norms of the weights"),
    "weight_quantiles": ("weight-quantiles", "Weights over epochs (median, 5 to 95\u00a0%)"),
}
"""Charts of metrics by connection or phase: id and label."""


def needs(run: RunContents) -> bool:
    """Whether a run was trained."""
    return any(each.metrics for each in run.runs)


def hint(run: RunContents) -> str:
    """The command that trains; into another folder if this one holds a model."""
    place = run.path if run.model is None else run.path.parent / f"{run.name}-trained"
    return missing("No training was recorded here; this trains:", "train", "--out", place)


def body(run: RunContents) -> str:
    """A sentence on the rule, and the charts."""
    curves = chart("accuracy", "Accuracy over epochs") + "".join(
        chart(*place)
        for key, place in CHARTS.items()
        if any(row.get(key) for each in run.runs for row in each.metrics)
        and (key != "settle_steps" or settles(run))
    )
    again = [learn_command(each) for each in run.runs if each.metrics]
    return (
        "<p>For every sample the network settles freely and then again with its output nudged; the "
        "update of a weight is the difference of the products of the activities at its two "
        f'ends.</p><div class="grid three">{curves}</div>{reproduce(*again)}'
    )


def settles(run: RunContents) -> bool:
    """Whether the steps to settle vary; without a tolerance they are the steps allowed."""
    found = [str(row.get("settle_steps")) for each in run.runs for row in each.metrics]
    return len(set(found)) > 1


def data(run: RunContents, _: Limits) -> Json:
    """Curves of each run."""
    return {"learning": [{"run": each.name, **curves(each.metrics)} for each in run.runs]}


def curves(metrics: Sequence[Mapping[str, Any]]) -> Json:
    """Metrics over the epochs; a missing value leaves a gap."""

    def curve(*path: str) -> list[float | None]:
        return [number(value_at(row, path)) for row in metrics]

    def names(key: str) -> list[str]:
        found = [row[key] for row in metrics if isinstance(row.get(key), dict)]
        return list(dict.fromkeys(name for each in found for name in each))

    return {
        "epoch": curve("epoch"),
        "accuracy": {"training": curve("train_accuracy"), "test": curve("test_accuracy")},
        "loss": {"training": curve("loss")} if any(row.get("loss") for row in metrics) else {},
        "settle": {name: curve("settle_steps", name) for name in names("settle_steps")},
        "spectral": {name: curve("spectral", name) for name in names("spectral")},
        "weights": {name: quantiles(metrics, name) for name in names("weight_quantiles")},
    }


def quantiles(metrics: Sequence[Mapping[str, Any]], connection: str) -> list[list[float | None]]:
    """Over the epochs, the lowest, the middle and the highest quantile of the weights."""
    rows = [value_at(row, ("weight_quantiles", connection)) for row in metrics]
    found = [row if isinstance(row, list) and len(row) == 5 else [None] * 5 for row in rows]
    return [[number(row[k]) for row in found] for k in (0, 2, 4)]


def value_at(row: object, path: Sequence[str]) -> object:
    """Value at a path of keys, or None."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


SECTION = Section(
    "learning",
    "Learning",
    body,
    needs=needs,
    hint=hint,
    data=data,
    script=asset("script/learning.js"),
)
