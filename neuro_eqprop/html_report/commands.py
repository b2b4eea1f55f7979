"""Commands that reproduce what a report shows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.html import command, reproduce
from neuro_eqprop.runs.rows import EvaluationRow


def learn_command(run: RunContents) -> str:
    """The command that trains the network, as rates or on a chip."""
    how = "learn" if run.chip else "train"
    return command("neuro-eqprop", how, run.path / "study.toml", "--out", "NEW")


def evaluate_command(run: RunContents, row: EvaluationRow) -> str:
    """The command that makes an evaluation."""
    given = {f"--{name}": row.get(name) for name in ("samples", "steps", "code", "bits")}
    options = [part for pair in given.items() if pair[1] is not None for part in pair]
    return command("neuro-eqprop", "evaluate", run.path, "--on", row.get("on"), *options)


def energy_command(run: RunContents) -> str:
    """The command that makes the energy estimate of a run."""
    return command("neuro-eqprop", "energy", run.path, *run.energy.options)


def recorded_by(views: Sequence[TraceView]) -> str:
    """The commands that recorded traces, as HTML."""
    found = dict.fromkeys(view.trace.origin.command for view in views if view.trace.origin.command)
    return reproduce(*(f"<code>{escape(each)}</code>" for each in found)) if found else ""
