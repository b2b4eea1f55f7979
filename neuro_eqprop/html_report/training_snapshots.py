"""Snapshots of a training trace for the report: a few samples, evenly spaced over the training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.synapse_recording import COLUMNS, SynapseLog
from neuro_eqprop.traces import ActivityKind

MAX_SNAPSHOTS = 12


def snapshots(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """Some samples of a training trace, and their names.

    Training of rates records the same samples after every epoch: the first of them is followed.
    Learning on a chip records its first presentations.
    """
    if any(kind is not ActivityKind.RATE for kind in trace.kinds.values()):
        rows = evenly_spaced(len(trace.index))
        return select_samples(trace, rows), tuple(f"presentation {row + 1}" for row in rows)
    epochs = trace.epochs["epoch"] if "epoch" in trace.epochs else np.arange(1.0)
    each = max(1, len(trace.index) // max(1, len(epochs)))
    chosen = evenly_spaced(min(len(epochs), len(trace.index) // each))
    return (
        select_samples(trace, [each * k for k in chosen]),
        tuple(f"epoch {epochs[k]:.0f}, sample {trace.index[each * k]}" for k in chosen),
    )


def evenly_spaced(count: int) -> list[int]:
    """At most `MAX_SNAPSHOTS` indices from the first to the last."""
    indices: list[int] = np.unique(
        np.linspace(0, count - 1, min(MAX_SNAPSHOTS, count)).astype(int)
    ).tolist()
    return indices


def select_samples(trace: Trace, rows: Sequence[int]) -> Trace:
    """A trace without spikes, restricted to some samples."""

    def kept(values: Array) -> Array:
        shaped = values.reshape(len(trace.index), trace.steps, -1)[list(rows)]
        return shaped.reshape(len(rows) * trace.steps, -1)

    return replace(
        trace,
        index=trace.index[list(rows)],
        label=trace.label[list(rows)],
        inputs=trace.inputs[list(rows)],
        signals={key: kept(values) for key, values in trace.signals.items()},
        hebbian={
            name: SynapseLog(log.synapses, *(kept(getattr(log, c)) for c in COLUMNS))
            for name, log in trace.hebbian.items()
        },
    )
