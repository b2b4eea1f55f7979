"""Figures of a recorded trace: spike raster, convergence of the rates, history of a synapse."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.simulators.synapse_recording import COLUMNS, Synapse

Axes: TypeAlias = Any
"""matplotlib.axes.Axes; matplotlib is imported when a figure is drawn."""


def plot_raster(trace: TraceData, layer: str, sample: int = 0, *, ax: Axes | None = None) -> Axes:
    """Spike raster of a layer in one sample: time along x, units along y."""
    axes = ax if ax is not None else new_axes()
    step, unit = np.nonzero(trace.recording(at(trace, sample)).spikes[layer])
    axes.plot((step + 1) * milliseconds(trace), unit, "|", markersize=4, color="black")
    axes.set_ylabel(f"{layer}, unit")
    axes.set_ylim(-0.5, trace.sizes[layer] - 0.5)
    return finish(axes, trace, sample)


def plot_settling(
    trace: TraceData, layer: str, sample: int = 0, *, units: int = 10, ax: Axes | None = None
) -> Axes:
    """Rates of a layer over time; for spikes, the running rate of the phase."""
    if units < 1:
        raise ValueError(f"units is {units}; draw at least one")
    axes = ax if ax is not None else new_axes()
    place = at(trace, sample)
    phases = [trace.running_rate(layer, phase)[place] for phase in trace.phases]
    rates: Array = np.concatenate(phases)
    for unit in np.sort(np.argsort(-np.ptp(rates, axis=0), kind="stable")[:units]):
        axes.plot(times(trace), rates[:, unit], label=str(unit))
    axes.set_ylabel(f"{layer}, rate")
    axes.legend(title="unit", loc="upper right", fontsize="small")
    return finish(axes, trace, sample)


def plot_synapse(
    trace: TraceData, connection: str, synapse: Synapse | None = None, sample: int = 0
) -> list[Axes]:
    """History of a synapse in one sample: one axes for each of `COLUMNS`."""
    from matplotlib import pyplot

    log = trace.recording(at(trace, sample)).hebbian[connection]
    if synapse is None:
        synapse = log.synapses[int(np.argmax(np.abs(log.tag).max(axis=0)))]
    if tuple(synapse) not in log.synapses:
        raise ValueError(
            f"synapse {list(synapse)} of {connection!r} was not recorded; "
            f"recorded: {', '.join(str(list(each)) for each in log.synapses)}"
        )
    column = log.synapses.index((synapse[0], synapse[1]))
    figure, grid = pyplot.subplots(len(COLUMNS), sharex=True, layout="constrained")
    for axes, name in zip(grid, COLUMNS, strict=True):
        values = getattr(log, name)[:, column]
        axes.step(times(trace), values, where="mid", color="black")
        axes.set_ylabel(name)
        finish(axes, trace, sample)
        axes.set_xlabel("")
    for axes in grid[1:]:  # only the first axes name the phases and the sample
        axes.set_title("")
        for name in list(axes.texts):
            name.remove()
    grid[-1].set_xlabel("time (ms)")
    figure.suptitle(f"{connection}: unit {synapse[1]} to unit {synapse[0]}")
    return list(grid)


def phase_colour(beta: float) -> str:
    """The colour of a phase, as in the report: free, nudged towards the target, or away from it."""
    return "#ffffff" if beta == 0 else "#007a5a" if beta > 0 else "#a8518a"


def milliseconds(trace: TraceData) -> float:
    """The duration of a recorded step in milliseconds."""
    return trace.step_seconds * 1e3


def times(trace: TraceData) -> Array:
    """The end of every step of a sample, in milliseconds from its start."""
    return np.asarray(np.arange(1, trace.steps + 1) * milliseconds(trace), dtype=np.float64)


def new_axes() -> Axes:
    """Axes of a new figure."""
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def at(trace: TraceData, sample: int) -> int:
    """Position of a sample; negative numbers count from the last one."""
    if not -trace.samples <= sample < trace.samples:
        raise ValueError(f"sample {sample} is out of range: the trace has {trace.samples} samples")
    return sample % trace.samples


def finish(axes: Axes, trace: TraceData, sample: int) -> Axes:
    """Label the time axis, and shade and name the phases."""
    start, unit = 0, milliseconds(trace)
    for phase in trace.schedule:
        if phase.beta:
            ends = (start + 0.5) * unit, (start + phase.steps + 0.5) * unit
            axes.axvspan(*ends, color=phase_colour(phase.beta), alpha=0.13, lw=0)
        middle = (start + phase.steps / 2) * unit
        axes.text(
            middle, 1.0, phase.name, transform=axes.get_xaxis_transform(), ha="center", va="bottom"
        )
        start += phase.steps
    axes.set_xlim(0.5 * unit, (trace.steps + 0.5) * unit)
    axes.set_xlabel("time (ms)")
    place = at(trace, sample)
    axes.set_title(f"sample {trace.index[place]}, label {trace.label[place]}", pad=18)
    return axes
