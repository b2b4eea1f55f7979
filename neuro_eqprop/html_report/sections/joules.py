"""Energy estimates on every chip."""

from __future__ import annotations

from neuro_eqprop.html_report import energy, multi_run
from neuro_eqprop.html_report.commands import energy_command
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import chart, missing, reproduce
from neuro_eqprop.html_report.section import Json, Limits, Section, asset


def hint(run: RunContents) -> str:
    """The command that estimates."""
    return missing("No energy estimate yet; this makes one:", "energy", run.path)


def body(run: RunContents) -> str:
    """Charts and tables of the estimate, and of several runs."""
    places = (
        chart("chips", "Joules on each chip"),
        chart("terms", "Joules by term"),
        chart("trade", "Accuracy against joules", tall=True),
    )
    several = multi_run.beside([(each.name, each.energy) for each in run.runs])
    return energy.body(run.energy, places) + several + reproduce(energy_command(run))


def data(run: RunContents, _: Limits) -> Json:
    """Bars, terms and curves."""
    return {"energy": energy.chart(run.energy)}


SECTION = Section(
    "joules",
    "Joules",
    body,
    needs=lambda run: bool(run.energy.chips),
    hint=hint,
    data=data,
    script=asset("script/joules.js"),
)
