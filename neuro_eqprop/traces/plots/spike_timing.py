"""Figures of spike timing: the kernel of a pair of spikes, and weight changes against the lag."""

from __future__ import annotations

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.traces.plots.traces import Axes, new_axes


def plot_spike_timing(
    seconds: Array, change: Array, error: Array, window: Array, *, ax: Axes | None = None
) -> Axes:
    """Weight change against the lag with its standard error, and a scaled STDP window."""
    axes = frame(ax)
    lag = 1e3 * seconds
    axes.fill_between(lag, change - error, change + error, color="C0", alpha=0.25, lw=0)
    axes.plot(lag, change, color="C0", label="measured change")
    before, after = lag < 0, lag > 0
    for side, label in ((before, "exponential STDP window, scaled"), (after, None)):
        axes.plot(lag[side], window[side], color="C3", linestyle="--", label=label)
    axes.set_ylabel("mean change of the synapse")
    axes.margins(y=0.2)
    axes.legend(loc="upper left", fontsize="small")
    return axes


def plot_pairs(
    seconds: Array, tag: Array, kernel: Array, label: str, *, ax: Axes | None = None
) -> Axes:
    """Tags of isolated pairs of spikes as points, and the kernel of the rule as a line."""
    axes = frame(ax)
    axes.plot(1e3 * seconds, kernel, color="0.35", linewidth=1, label=None)
    axes.plot(1e3 * seconds, tag, ".", markersize=4, label=label)
    axes.set_ylabel("tag of one pair")
    axes.legend(fontsize="small")
    return axes


def frame(ax: Axes | None) -> Axes:
    """Axes with lines at lag zero and change zero."""
    axes = ax if ax is not None else new_axes()
    axes.axvline(0.0, color="0.8", linewidth=0.8)
    axes.axhline(0.0, color="0.8", linewidth=0.8)
    axes.set_xlabel("post spike after pre spike (ms)")
    return axes
