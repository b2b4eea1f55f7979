"""The numbers behind the charts of a report, small enough to travel inside the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.energy_file import number
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.report import energy
from neuro_eqprop.report.contents import RunContents, TraceView
from neuro_eqprop.report.encoding import encode, encode_steps
from neuro_eqprop.report.synapses import synapses
from neuro_eqprop.traces import ActivityKind

Json = dict[str, Any]
FEATURES = 1024
"""The most inputs of a sample that go into the page."""
POINTS = 800
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
    """Units of a layer whose course is drawn."""
    rows: int = 200
    """Units of a layer in a raster and in a matrix of weights."""

    def smaller(self) -> Limits:
        """Fewer samples; if there are few already, fewer units."""
        if self.samples > 3:
            return replace(self, samples=max(3, self.samples * 3 // 4))
        return Limits(*(max(1, n // 2) for n in (self.samples, self.lines, self.rows)))


def charts(run: RunContents, limits: Limits) -> Json:
    """Everything the script of the page draws."""
    views = run.views()
    return {
        "learning": [{"run": each.name, **learning(each.metrics)} for each in run.runs],
        "samples": [samples(each, limits) for each in run.runs],
        "settling": [settling(view, limits) for view in views],
        "rasters": {v.key: raster(v.trace, limits) for v in views if v.spikes},
        "scatter": {v.key: scatter(v.run, v.name) for v in views if v.name in v.run.agreements},
        "synapses": synapses(run, limits.samples, limits.rows),
        "energy": energy.chart(run.bills),
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


def first_trace(run: RunContents) -> Trace | None:
    """The trace that says which samples and layers there are: rates before spikes."""
    return run.rates[1] if run.rates else next(iter(run.spikes.values()), None)


def samples(run: RunContents, limits: Limits) -> list[Json]:
    """Index, label and, where there are not too many of them, the inputs."""
    trace = first_trace(run)
    if trace is None:
        return []
    size = trace.inputs.shape[1]
    return [
        {
            "index": int(trace.index[k]),
            "label": int(trace.label[k]),
            "said": run.moments[k] if run.moments else f"sample {trace.index[k]}",
            "inputs": encode(trace.inputs[k]) | {"of": size} if size <= FEATURES else None,
        }
        for k in range(min(limits.samples, len(trace.index)))
    ]


def settling(view: TraceView, limits: Limits) -> Json:
    """Of a trace: its phases, and by layer the course of the units that its run chose."""
    trace, guide = view.trace, first_trace(view.run) or view.trace
    layers = {
        layer: lines(trace, layer, units(guide, layer, limits.lines), limits)
        for layer in guide.layers_with_rates
        if layer in trace.layers_with_rates
    }
    about = {"run": view.place, "file": view.key, "on": view.title, "spikes": view.spikes}
    return about | {"phases": phases(trace), "layers": layers}


def phases(trace: Trace) -> list[Json]:
    """The phases as intervals of steps."""
    spans = [(phase, trace.span(phase.name)) for phase in trace.schedule]
    return [
        {"name": p.name, "beta": p.beta, "start": start, "stop": stop, "window": p.window}
        for p, (start, _, stop) in spans
    ]


def units(trace: Trace, layer: str, most: int) -> Ints:
    """The units whose rates differ most between samples, in their order."""
    spread = trace.rate(layer, trace.schedule[0].name).std(axis=0)
    return np.sort(np.argsort(-spread, kind="stable")[:most])


def lines(trace: Trace, layer: str, chosen: Ints, limits: Limits) -> Json:
    """The course of units in every sample; `lines` are those to draw.

    Of rates and messages as many units as the page can hold, because synapses are told from them;
    spikes are in the raster.
    """
    whole = trace.time_course(layer)[: limits.samples]
    size = whole.shape[2]
    chosen = chosen[chosen < size]
    held = chosen
    if trace.kinds[layer] is ActivityKind.SPIKES:
        whole = smooth(whole, widths(trace))
    else:
        held = np.union1d(chosen, units(trace, layer, limits.rows))
    kept = np.unique(np.linspace(0, trace.steps - 1, min(STEPS, trace.steps)).astype(int))
    return {
        "units": held.tolist(),
        "lines": np.searchsorted(held, chosen).tolist(),
        "of": size,
        "steps": (kept + 1).tolist(),
        "course": encode(whole[:, kept][:, :, held].transpose(0, 2, 1)),
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


def raster(trace: Trace, limits: Limits) -> Json:
    """By sample and layer, the steps at which each of the busiest units sent something."""
    layers: Json = {}
    for layer, events in trace.spikes.items():
        sent = np.bincount(events.unit, minlength=events.size)
        rows = np.sort(np.argsort(-sent, kind="stable")[: limits.rows])
        by_sample: list[list[str]] = []
        for k in range(min(limits.samples, len(trace.index))):
            raster = trace.recording(k).spikes[layer] != 0
            by_sample.append([encode_steps(np.flatnonzero(raster[:, row]) + 1) for row in rows])
        layers[layer] = {"units": rows.tolist(), "of": events.size, "samples": by_sample}
    graded = any(kind is ActivityKind.GRADED for kind in trace.kinds.values())
    return {"phases": phases(trace), "layers": layers, "graded": graded}


def scatter(run: RunContents, name: str) -> Json:
    """By phase and layer, rates against firing, thinned out evenly."""
    made: Json = {}
    if run.rates is None:
        return made
    trace = run.spikes[name]
    for phase in trace.schedule:
        made[phase.name] = {}
        for layer in trace.layers_with_rates:
            a = run.rates[1].rate(layer, phase.name).ravel()
            b = trace.rate(layer, phase.name).ravel()
            kept = np.unique(np.linspace(0, len(a) - 1, min(POINTS, len(a))).astype(int))
            made[phase.name][layer] = encode(np.stack([a[kept], b[kept]]))
    return made
