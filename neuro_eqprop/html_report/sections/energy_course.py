"""The energy E(t) while rates and spikes settle."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.section import Json, Limits, Section, asset
from neuro_eqprop.traces.spike_statistics import settling_energy

MAX_POINTS = 256


def courses(run: RunContents) -> list[tuple[TraceView, Array]]:
    """The mean energy over the samples at each step, of every trace that has one."""
    found = []
    for view in run.views():
        if view.run.model is None or view.snapshots or view.trace.epochs:
            continue  # the weights of a trace of learning are not those of the model
        try:
            found.append((view, settling_energy(view.run.model, view.trace).mean(axis=0)))
        except ValueError:
            continue  # not symmetric, or not all layers were recorded
    return found


def body(run: RunContents) -> str:
    """A sentence on the curves, and by how much each falls in its free phase."""
    found = courses(run)
    if not found:
        return ""
    falls = "; ".join(
        f"{view.title}: {course[0]:.3f} to {course[view.trace.schedule[0].steps - 1]:.3f}"
        for view, course in found
    )
    return (
        "<p>The energy whose minimum is the equilibrium, averaged over the samples. That of "
        "rates decreases. That of firing rates decreases with a ripple, since they are counts over "
        "a number of steps, which is small at the start of a phase. "
        f"In the free phase: {falls}.</p>{chart('energy-course', 'Energy over the steps')}"
    )


def data(run: RunContents, _: Limits) -> Json:
    """Steps and energies of each trace."""
    made = []
    for view, course in courses(run):
        count = min(MAX_POINTS, len(course))
        kept = np.unique(np.linspace(0, len(course) - 1, count).astype(int))
        phases = [(p.name, *view.trace.span(p.name)) for p in view.trace.schedule]
        made.append(
            {
                "name": view.title,
                "spikes": view.spikes,
                "x": [float(100 * (k + 1) / len(course)) for k in kept],
                "y": [round(float(course[k]), 5) for k in kept],
                "phases": [
                    {"name": n, "start": 100 * a / len(course), "stop": 100 * b / len(course)}
                    for n, a, _, b in phases
                ],
            }
        )
    return {"energyCourse": made}


SECTION = Section(
    "descent",
    "Energy while settling",
    body,
    needs=lambda run: any(each.model is not None and each.traces for each in run.runs),
    data=data,
    script=asset("script/energy_course.js"),
)
