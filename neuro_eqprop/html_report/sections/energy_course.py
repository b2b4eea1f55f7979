"""The energy E(t) while rates and spikes settle."""

from __future__ import annotations

from html import escape

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.encoding import evenly_spaced
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.section import Section, Shown, asset
from neuro_eqprop.html_report.sections.settling import phases
from neuro_eqprop.traces.spike_statistics import counted_steps, settling_energy

MAX_POINTS = 256


def show(run: RunContents) -> Shown:
    """A sentence on the curves, and by how much each falls in its free phase."""
    drawn, falls = [], []
    for view in run.views():
        trace, model = view.trace, view.run.model
        if model is None or view.snapshots or trace.epochs:
            continue  # the weights of a trace of learning are not those of the model
        try:
            course = settling_energy(model, trace).mean(axis=0)
        except ValueError:
            continue  # not symmetric, or not all layers were recorded
        falls.append(f"{view.title}: {course[0]:.3f} to {course[trace.schedule[0].steps - 1]:.3f}")
        kept = evenly_spaced(len(course), MAX_POINTS)
        counted = counted_steps(trace)
        curve = {
            "of": len(course),
            "steps": (kept + 1).tolist(),
            "y": [round(float(course[k]), 5) if counted[k] else None for k in kept],
        }
        about = {"name": view.title, "spikes": view.spikes, "phases": phases(trace)}
        drawn.append(about | curve)
    if not drawn:
        return Shown()
    return Shown(
        "<p>The energy whose minimum is the equilibrium, averaged over the samples. That of "
        "rates decreases. That of firing rates decreases with a ripple, since they are counts over "
        "a number of steps. Counts start again with each phase; the curve goes on once they span "
        "its window. "
        f"In the free phase: {escape('; '.join(falls))}.</p>"
        f"{chart('energy-course', 'Energy over the steps')}",
        lambda _: {"energyCourse": drawn},
    )


SECTION = Section("descent", "Energy while settling", show, asset("script/energy_course.js"))
