"""Convergence of rates and firing rates, and the spike raster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.html_report.commands import recorded_by
from neuro_eqprop.html_report.contents import RunContents, TraceView, is_graded
from neuro_eqprop.html_report.encoding import encode, encode_steps, evenly_spaced
from neuro_eqprop.html_report.html import chart, missing
from neuro_eqprop.html_report.opening import answers, start_sample
from neuro_eqprop.html_report.section import Json, PageLimits, Section, Shown, asset
from neuro_eqprop.traces.trace import Trace

MAX_FEATURES = 1024
"""Largest number of inputs of a sample that goes into the page."""
SMOOTH = 16
"""Least number of steps over which spikes are averaged for a line, once that many have passed."""
MAX_STEPS = 256
"""Largest number of points along the steps of a sample."""


def show(run: RunContents) -> Shown:
    """Controls, two charts of rates, and a raster if there are spikes."""
    everything = run.views()

    def data(limits: PageLimits) -> Json:
        return chart_data(everything, limits)

    views = [view for view in everything if view.trace.layers_with_rates]
    if not views:
        hint = ("simulate", run.path, "--on", "reference", "--traces", run.path / "traces.h5")
        what = "" if run.traces else missing("No traces yet; this records some:", *hint)
        return Shown(what, data)
    spiking = any(view.spikes for view in views)
    left = len(views) > 1 or not spiking
    right = len(views) > 1 or spiking
    panels = chart("rates", "Rates", tall=True) if left else ""
    panels += chart("firing", "Firing rates", tall=True) if right else ""
    raster = chart("raster", "Spikes", tall=True) if spiking else ""
    choices = '<label>left <select id="left"></select></label>' if left else ""
    choices += '<label id="choice">right <select id="simulator"></select></label>' if right else ""
    what = (
        "The same sample during training: how its rates settle. "
        if all(view.snapshots for view in views)
        else "The same sample twice: the rates of the rate network, and the firing rates, which "
        f"are the mean of the spikes over the last part of the phase so far (at least {SMOOTH} "
        "steps), or the running sum of graded spikes. "
    )
    return Shown(
        f"<p>{what}A line is a unit and keeps its colour. The thick line is the target class. "
        "Bands are the phases: free, then nudged away from the target and towards it.</p>"
        '<div class="controls"><canvas id="image" width="32" height="32" hidden></canvas>'
        '<label class="grow"><span id="which">sample</span>'
        '<input type="range" id="sample" min="0" value="0" step="1"></label>'
        '<label class="grow"><span id="part">all phases</span>'
        '<input type="range" id="zoom" min="0" max="0" value="0" step="1"></label>'
        '<span class="line"></span>'
        f'<label>layer <select id="layer"></select></label>{choices}</div>'
        f'<p id="seen" aria-live="polite"></p><div class="grid two">{panels}</div>{raster}'
        f'<p id="left-out" class="small"></p>{recorded_by(views)}',
        data,
    )


def chart_data(views: Sequence[TraceView], limits: PageLimits) -> Json:
    """Samples by place, rates by trace and layer, spikes by trace."""
    guides = {view.place: view for view in reversed(views)}  # the first of each place
    return {
        "samples": [
            samples(guides[place], limits) if place in guides else []
            for place in range(max(guides, default=-1) + 1)
        ],
        "settling": [settling(view, guides[view.place].trace, limits) for view in views],
        "start": start_sample(guides[0].trace, limits.samples) if 0 in guides else 0,
        "rasters": {v.key: raster(v.trace, limits) for v in views if v.spikes},
    }


def samples(view: TraceView, limits: PageLimits) -> list[Json]:
    """Name, label, answer and, where there are not too many of them, the inputs of each sample."""
    trace, given = view.trace, answers(view.trace)
    size = trace.inputs.shape[1]
    return [
        {
            "index": int(trace.index[k]),
            "label": int(trace.label[k]),
            "name": view.sample_names[k],
            "answer": None if given is None else int(given[k]),
            "inputs": encode(trace.inputs[k]) | {"of": size} if size <= MAX_FEATURES else None,
        }
        for k in range(min(limits.samples, len(trace.index)))
    ]


def settling(view: TraceView, guide: Trace, limits: PageLimits) -> Json:
    """Phases of a trace, and the time course of the units that `guide` selects, by layer."""
    trace = view.trace
    layers = {
        layer: lines(trace, layer, units(guide, layer, limits.lines), limits)
        for layer in guide.layers_with_rates
        if layer in trace.layers_with_rates
    }
    about = {"place": view.place, "file": view.key, "on": view.title, "spikes": view.spikes}
    return about | {"phases": phases(trace), "layers": layers}


def phases(trace: Trace) -> list[Json]:
    """Phases as intervals of steps."""
    return [
        {"name": p.name, "beta": p.beta, "start": start, "stop": stop, "window": p.window}
        for p in trace.schedule
        for start, _, stop in (trace.span(p.name),)
    ]


def units(trace: Trace, layer: str, most: int) -> Ints:
    """The units whose rates differ most between samples, in ascending order."""
    spread = trace.rate(layer).std(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:most])


def lines(trace: Trace, layer: str, chosen: Ints, limits: PageLimits) -> Json:
    """Time course of units in every sample; `lines` are the indices of those to draw.

    For rates and graded spikes it holds as many units as the page can, because the histories of
    synapses are computed from them; binary spikes are in the raster.
    """
    course = trace.time_course(layer)[: limits.samples]
    size = course.shape[2]
    chosen = chosen[chosen < size]
    held = chosen
    if trace.kinds[layer].binary:
        course = smooth(course, widths(trace))
    else:
        held = np.union1d(chosen, units(trace, layer, limits.rows))
    course = trace.decoded(layer, course)
    kept = evenly_spaced(trace.steps, MAX_STEPS)
    return {
        "units": held.tolist(),
        "lines": np.searchsorted(held, chosen).tolist(),
        "of": size,
        "steps": (kept + 1).tolist(),
        "course": encode(course[:, kept][:, :, held].transpose(0, 2, 1)),
    }


def widths(trace: Trace) -> Ints:
    """At each step, the number of steps to average over: the window of the phase so far."""
    windows = [-(-np.arange(1, p.steps + 1) * p.window // p.steps) for p in trace.schedule]
    so_far = np.arange(1, trace.steps + 1)
    smooth: Ints = np.minimum(so_far, np.maximum(SMOOTH, np.concatenate(windows)))
    return smooth


def smooth(raster: Array, width: Ints) -> Array:
    """Mean of the last `width` steps, at each step (samples, steps, units)."""
    sums = np.concatenate([np.zeros_like(raster[:, :1]), np.cumsum(raster, axis=1)], axis=1)
    ends = np.arange(1, raster.shape[1] + 1)
    return np.asarray((sums[:, ends] - sums[:, ends - width]) / width[:, None])


def raster(trace: Trace, limits: PageLimits) -> Json:
    """Spike steps of the most active units, by layer, sample and unit."""
    layers: Json = {}
    for layer, train in trace.spikes.items():
        sent = np.bincount(train.unit, minlength=train.size)
        rows = np.sort(np.argsort(-sent, kind="stable")[: limits.rows])
        by_sample: list[list[str]] = []
        for k in range(min(limits.samples, len(trace.index))):
            spikes = trace.recording(k).spikes[layer] != 0
            by_sample.append([encode_steps(np.flatnonzero(spikes[:, row]) + 1) for row in rows])
        layers[layer] = {"units": rows.tolist(), "of": train.size, "samples": by_sample}
    return {"phases": phases(trace), "layers": layers, "graded": is_graded(trace)}


SECTION = Section("settling", "Settling", show, asset("script/settling.js"))
