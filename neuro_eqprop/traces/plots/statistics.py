"""Figures of firing, weights and agreement: PSTH, weight matrices, comparisons, energy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.plots.traces import Axes, at, finish, milliseconds, new_axes, times


def plot_psth(
    trace: TraceData,
    layer: str,
    *,
    bins: int = 32,
    label: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Peri-stimulus time histogram: the mean rate of a layer in hertz over the samples.

    `label` restricts it to the samples of a class.
    """
    if bins < 1:
        raise ValueError(f"bins is {bins}; a histogram needs at least one")
    axes = ax if ax is not None else new_axes()
    if layer not in trace.spikes:
        raise ValueError(f"the spikes of {layer!r} were not recorded in this trace")
    chosen = np.ones(trace.samples, dtype=bool) if label is None else trace.label == label
    if not chosen.any():
        raise ValueError(f"the trace has no sample of class {label}")
    course = (trace.time_course(layer) != 0)[chosen].mean(axis=(0, 2))
    parts = np.array_split(course, min(bins, len(course)))
    edges = np.cumsum([0, *(len(part) for part in parts)])
    rates = [part.mean() / trace.step_seconds for part in parts]
    axes.stairs(rates, (edges + 0.5) * milliseconds(trace), fill=True, color="0.4")
    axes.set_ylabel(f"{layer}, mean rate (Hz)")
    finish(axes, trace, 0)
    axes.set_title(
        f"{int(chosen.sum())} samples" + ("" if label is None else f" of class {label}"), pad=18
    )
    return axes


def plot_weights(trace: TraceData, connection: str, *, ax: Axes | None = None) -> Axes:
    """Weights of a connection: after the run if it learned, else before it; red is positive."""
    axes = ax if ax is not None else new_axes()
    held = trace.weights[connection]
    weight = held.before if held.after is None else held.after
    matrix = np.reshape(weight, (len(weight), -1))
    size = float(np.abs(matrix).max()) or 1.0
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-size, vmax=size, aspect="auto")
    axes.figure.colorbar(image, ax=axes, label="weight")
    source, target = connection.split("->")
    axes.set_xlabel(f"{source}, unit")
    axes.set_ylabel(f"{target}, unit")
    axes.set_title(f"{connection} {'before' if held.after is None else 'after'} the run")
    return axes


def plot_agreement(
    a: Sequence[Array], b: Sequence[Array], labels: Sequence[str], *, ax: Axes | None = None
) -> Axes:
    """Scatter plot of rates b against rates a, a colour for each label."""
    axes = ax if ax is not None else new_axes()
    for x, y, label in zip(a, b, labels, strict=True):
        axes.plot(np.ravel(x), np.ravel(y), ".", markersize=3, alpha=0.5, label=label)
    low = min(float(np.min(each)) for each in (*a, *b))
    high = max(float(np.max(each)) for each in (*a, *b))
    axes.plot([low, high], [low, high], color="black", linewidth=0.8)
    axes.set_aspect("equal")
    axes.legend(fontsize="small")
    return axes


def plot_energy(
    trace: TraceData, course: Array, sample: int = 0, *, ax: Axes | None = None
) -> Axes:
    """Energy E(t) of a sample (one row of `course`) over time."""
    axes = ax if ax is not None else new_axes()
    values = course[at(trace, sample)]
    axes.plot(times(trace), values, label=trace.origin.backend)
    axes.set_ylabel("energy E")
    axes.legend(fontsize="small")
    return finish(axes, trace, sample)
