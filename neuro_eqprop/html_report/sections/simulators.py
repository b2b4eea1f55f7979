"""Evaluations on the test set, on every simulator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from neuro_eqprop.html_report.commands import evaluate_command
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import Cell, count, decimal, missing, percent, reproduce, table
from neuro_eqprop.html_report.section import Section, Shown
from neuro_eqprop.runs.rows import EvaluationRow

KIND = ("on", "code", "bits", "steps", "samples")
"""Settings by which evaluations are told apart; the last one of each kind is shown."""
COLUMNS: dict[str, Callable[[object], str]] = {
    **dict.fromkeys(("bits", "steps", "samples"), count),
    "accuracy": partial(percent, digits=2),
    "agreement": partial(percent, digits=2),
    "pearson": partial(decimal, digits=5),
    "rmse": decimal,
    "spikes_per_neuron": count,
    "synops_per_sample": count,
    "seconds": partial(decimal, digits=2),
}
"""Numbers of an evaluation, and how each is written."""
TITLES = {"agreement": "same answer", "pearson": "Pearson", "rmse": "RMSE"}
TITLES |= {"spikes_per_neuron": "spikes", "synops_per_sample": "synops"}


def show(run: RunContents) -> Shown:
    """The last evaluation of each kind, of each run."""
    rows = [(each, row) for each in run.runs for row in last_evaluations(each)]
    if not rows:
        arguments = ("evaluate", run.path, "--on", "reference")
        return Shown(missing("No evaluations yet; this makes one:", *arguments))
    cells: list[list[Cell]] = [
        [
            *(each.name if run.others else None, row.get("on"), row.get("code")),
            *((row.get(name), write(row.get(name))) for name, write in COLUMNS.items()),
            *((s, decimal(s, 2)) for s in (row.get("compile_seconds") or None,)),
        ]
        for each, row in rows
    ]
    header = ["run", "on", "code", *(TITLES.get(name, name) for name in COLUMNS), "compile"]
    again = dict.fromkeys(
        evaluate_command(each, row) for each in run.runs for row in each.evaluations
    )
    return Shown(
        "<p>Same answer: the share of samples where the largest pre-activation of the output is "
        "the same unit as in the network of rates. Spikes (binary or graded) are per neuron; "
        "synops, the synapses they reach, per sample. Seconds are those of the run; compile is the "
        "time to compile the simulator, once for all runs. Click a heading to "
        "sort.</p>"
        f"{table('simulators', header, cells)}{reproduce(*again)}"
    )


def last_evaluations(run: RunContents) -> list[EvaluationRow]:
    """The last evaluation with each combination of settings."""
    last: dict[tuple[object, ...], EvaluationRow] = {}
    for row in run.evaluations:
        key = tuple(row.get(name) for name in KIND)
        last.pop(key, None)
        last[key] = row
    return list(last.values())


SECTION = Section("simulation", "Simulators", show)
