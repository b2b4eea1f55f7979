"""The numbers behind the charts of a report, small enough to travel inside the page.

Rates are sent as whole thousandths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuro_eqprop.analysis import page_joules
from neuro_eqprop.analysis.page_bills import number
from neuro_eqprop.analysis.page_data import Run
from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.traces import Kind, Trace

Json = dict[str, Any]
POINTS = 1500
"""Points of a scatter, for each layer and phase."""
SMOOTH = 16
"""The fewest steps over which spikes are averaged for a line, once so many are over."""
STEPS = 256
"""Points along the steps of a sample."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the traces goes into the page."""

    samples: int = 16
    lines: int = 16
    rows: int = 200

    def halved(self) -> Limits:
        """Half as much, at least one of each."""
        return Limits(*(max(1, n // 2) for n in (self.samples, self.lines, self.rows)))


def charts(run: Run, limits: Limits) -> Json:
    """Everything the script of the page draws."""
    return {
        "learning": learning(run.metrics),
        "samples": samples(run, limits),
        "settling": settling(run, limits),
        "rasters": {name: raster(trace, limits) for name, trace in run.spikes.items()},
        "scatter": {name: scatter(run, name) for name in run.agreements},
        "energy": page_joules.chart(run.bills),
    }


def learning(metrics: Sequence[Mapping[str, Any]]) -> Json:
    """Curves over the epochs; a value that is missing leaves a gap."""

    def curve(*path: str) -> list[float | None]:
        return [number(dig(row, path)) for row in metrics]

    def names(key: str) -> list[str]:
        found = [row[key] for row in metrics if isinstance(row.get(key), dict)]
        return list(dict.fromkeys(name for each in found for name in each))

    return {
        "epoch": curve("epoch"),
        "accuracy": {"training": curve("train_accuracy"), "test": curve("test_accuracy")},
        "settle": {name: curve("settle_steps", name) for name in names("settle_steps")},
        "spectral": {name: curve("spectral", name) for name in names("spectral")},
    }


def dig(row: object, path: Sequence[str]) -> object:
    """The value at a path of keys, or None."""
    for key in path:
        row = row.get(key) if isinstance(row, Mapping) else None
    return row


def first_trace(run: Run) -> Trace | None:
    """The trace that says which samples and layers there are: rates before spikes."""
    return run.rates[1] if run.rates else next(iter(run.spikes.values()), None)


def samples(run: Run, limits: Limits) -> list[Json]:
    """Index, label and, where the input is a square image, the image (values from 0 to 255)."""
    trace = first_trace(run)
    if trace is None:
        return []
    side = int(np.sqrt(trace.inputs.shape[1]))
    square = 1 < side <= 32 and side**2 == trace.inputs.shape[1]
    made: list[Json] = []
    for k in range(min(limits.samples, len(trace.index))):
        low, high = trace.inputs[k].min(), trace.inputs[k].max()
        grey = np.rint(255 * (trace.inputs[k] - low) / (high - low if high > low else 1.0))
        image = grey.reshape(side, side).astype(int).tolist() if square else None
        made.append({"index": int(trace.index[k]), "label": int(trace.label[k]), "image": image})
    return made


def settling(run: Run, limits: Limits) -> list[Json]:
    """Of each trace: its phases, and by layer the course of the chosen units."""
    guide = first_trace(run)
    if guide is None:
        return []
    named = ([run.rates] if run.rates else []) + list(run.spikes.items())
    made: list[Json] = []
    for name, trace in named:
        layers = {}
        for layer in guide.readable:
            chosen = units(guide, layer, limits.lines)
            if layer in trace.readable:
                layers[layer] = lines(trace, layer, chosen, limits.samples)
        spikes = any(kind is not Kind.RATE for kind in trace.kinds.values())
        on = run.simulator(name) if spikes else trace.origin.backend
        about = {"file": name, "on": on, "spikes": spikes}
        made.append(about | {"phases": phases(trace), "layers": layers})
    return made


def phases(trace: Trace) -> list[Json]:
    """The phases as intervals of steps."""
    spans = [(phase, trace.span(phase.name)) for phase in trace.schedule]
    return [
        {"name": p.name, "beta": p.beta, "start": start, "stop": stop}
        for p, (start, _, stop) in spans
    ]


def units(trace: Trace, layer: str, most: int) -> Ints:
    """The units whose rates differ most between samples, in their order."""
    spread = trace.rate(layer, trace.schedule[0].name).std(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:most])


def lines(trace: Trace, layer: str, chosen: Ints, most: int) -> Json:
    """The course of units in every sample: steps, and thousandths by sample and unit."""
    whole = trace.course(layer)[:most]
    if trace.kinds[layer] is Kind.SPIKES:
        whole = smooth(whole, widths(trace))
    kept = np.unique(np.linspace(0, trace.steps - 1, min(STEPS, trace.steps)).astype(int))
    course = thousandths(whole[:, kept][:, :, chosen[chosen < whole.shape[2]]])
    return {
        "units": chosen.tolist(),
        "of": whole.shape[2],
        "steps": (kept + 1).tolist(),
        "course": course.transpose(0, 2, 1).tolist(),
    }


def widths(trace: Trace) -> Ints:
    """At each step, over how many steps spikes are averaged: the tail of the phase so far."""
    tails = [-(-np.arange(1, p.steps + 1) * p.window // p.steps) for p in trace.schedule]
    so_far = np.arange(1, trace.steps + 1)
    return np.minimum(so_far, np.maximum(SMOOTH, np.concatenate(tails)))


def smooth(raster: Array, width: Ints) -> Array:
    """The mean of the last `width` steps, at each step (samples, steps, units)."""
    sums = np.concatenate([np.zeros_like(raster[:, :1]), np.cumsum(raster, axis=1)], axis=1)
    ends = np.arange(1, raster.shape[1] + 1)
    return np.asarray((sums[:, ends] - sums[:, ends - width]) / width[:, None])


def thousandths(values: Array) -> Ints:
    """Whole thousandths; what is not finite becomes zero, which a page can draw."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    return np.asarray(np.rint(1000 * finite), dtype=np.int64)


def raster(trace: Trace, limits: Limits) -> Json:
    """By sample and layer, the steps at which each of the busiest units sent something."""
    layers: Json = {}
    for layer, events in trace.spikes.items():
        sent = np.bincount(events.unit, minlength=events.size)
        rows = np.sort(np.argsort(-sent, kind="stable")[: limits.rows])
        by_sample: list[list[list[int]]] = []
        for k in range(min(limits.samples, len(trace.index))):
            raster = trace.recording(k).spikes[layer] != 0
            by_sample.append([(np.flatnonzero(raster[:, row]) + 1).tolist() for row in rows])
        layers[layer] = {"units": rows.tolist(), "of": events.size, "samples": by_sample}
    graded = any(kind is Kind.GRADED for kind in trace.kinds.values())
    return {"phases": phases(trace), "layers": layers, "graded": graded}


def scatter(run: Run, name: str) -> Json:
    """By phase and layer, rates against firing, thinned out evenly."""
    made: Json = {}
    if run.rates is None:
        return made
    trace = run.spikes[name]
    for phase in trace.schedule:
        made[phase.name] = {}
        for layer in trace.readable:
            a = run.rates[1].rate(layer, phase.name).ravel()
            b = trace.rate(layer, phase.name).ravel()
            kept = np.unique(np.linspace(0, len(a) - 1, min(POINTS, len(a))).astype(int))
            made[phase.name][layer] = [thousandths(a[kept]).tolist(), thousandths(b[kept]).tolist()]
    return made
