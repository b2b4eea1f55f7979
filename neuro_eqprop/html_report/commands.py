"""Commands that reproduce what a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.html import command, reproduce
from neuro_eqprop.html_report.values import Row


def learn_command(run: RunContents) -> str:
    """The command that trains the network, as rates or on a chip."""
    how = "learn" if run.chip else "train"
    return command("neuro-eqprop", how, run.path / "study.toml", "--out", "NEW")


def evaluate_command(run: RunContents, row: Row) -> str:
    """The command that makes an evaluation."""
    arguments: list[object] = ["neuro-eqprop", "evaluate", run.path, "--on", row.get("on")]
    for name in ("samples", "steps", "code", "bits"):
        if row.get(name) is not None:
            arguments += [f"--{name}", row[name]]
    return command(*arguments)


def evaluate_commands(run: RunContents) -> list[str]:
    """The commands that make all evaluations of a run."""
    return list(dict.fromkeys(evaluate_command(run, row) for row in run.evaluations))


def energy_command(run: RunContents) -> str:
    """The command that makes the energy estimate of a run."""
    return command("neuro-eqprop", "energy", run.path, *run.energy.options)


def recorded_by(views: Sequence[TraceView]) -> str:
    """The commands that recorded traces, as HTML."""
    found = dict.fromkeys(view.trace.origin.command for view in views if view.trace.origin.command)
    return reproduce(*(f"<code>{escape(each)}</code>" for each in found)) if found else ""
