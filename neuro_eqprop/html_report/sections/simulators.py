"""Evaluations on the test set, on every simulator."""

from __future__ import annotations

from neuro_eqprop.html_report.commands import evaluate_commands
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import (
    Cell,
    count,
    decimal,
    missing,
    percent,
    reproduce,
    table,
    text_cell,
)
from neuro_eqprop.html_report.section import Section
from neuro_eqprop.html_report.values import Row


def needs(run: RunContents) -> bool:
    """Whether a run was evaluated."""
    return any(each.evaluations for each in run.runs)


def hint(run: RunContents) -> str:
    """The command that evaluates."""
    arguments = ("evaluate", run.path, "--on", "reference")
    return missing("No evaluations yet; this makes one:", *arguments)


def body(run: RunContents) -> str:
    """The last evaluation of each kind, of each run."""
    names = ["on", "code", "bits", "steps", "samples", "accuracy", "same answer", "Pearson", "RMSE"]
    header = ["run", *names, "spikes", "synops", "seconds", "compile"]
    rows = [
        [text_cell(each.name), *cells(row)] for each in run.runs for row in last_evaluations(each)
    ]
    # Columns without any value are left out.
    empty = {"run"} if not run.others else set()
    empty |= {
        name
        for k, name in enumerate(header)
        if name in ("bits", "compile") and not any(row[k][0] for row in rows)
    }
    kept = [k for k, name in enumerate(header) if name not in empty]
    header, rows = [header[k] for k in kept], [[row[k] for k in kept] for row in rows]
    again = (each_command for each in run.runs for each_command in evaluate_commands(each))
    return (
        "<p>Same answer: the share of samples where the largest pre-activation of the output is "
        "the same unit as in the network of rates. Spikes (binary or graded) are per neuron; "
        "synops, the synapses they reach, per sample. Seconds are those of the run; compile is the "
        "time to compile the simulator, once for all runs. Click a heading to "
        "sort.</p>"
        f"{table('simulators', header, rows)}{reproduce(*again)}"
    )


def cells(row: Row) -> list[Cell]:
    """The cells of an evaluation."""
    return [
        text_cell(row.get("on")),
        text_cell(row.get("code")),
        (row.get("bits"), count(row.get("bits"))),
        (row.get("steps"), count(row.get("steps"))),
        (row.get("samples"), count(row.get("samples"))),
        (row.get("accuracy"), percent(row.get("accuracy"), 2)),
        (row.get("agreement"), percent(row.get("agreement"), 2)),
        (row.get("pearson"), decimal(row.get("pearson"), 5)),
        (row.get("rmse"), decimal(row.get("rmse"))),
        (row.get("spikes_per_neuron"), count(row.get("spikes_per_neuron"))),
        (row.get("synops_per_sample"), count(row.get("synops_per_sample"))),
        (row.get("seconds"), decimal(row.get("seconds"), 2)),
        (row.get("compile_seconds"), decimal(row.get("compile_seconds"), 2)),
    ]


def last_evaluations(run: RunContents) -> list[Row]:
    """The last evaluation with each combination of settings."""
    last: dict[tuple[str, ...], Row] = {}
    for row in run.evaluations:
        key = tuple(str(row.get(name)) for name in ("on", "code", "bits", "steps", "samples"))
        last.pop(key, None)
        last[key] = row
    return list(last.values())


SECTION = Section("simulation", "Simulators", body, needs=needs, hint=hint)
