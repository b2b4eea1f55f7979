"""The trace of a training as a report shows it: a few moments, evenly apart in its course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.synapse_recording import COLUMNS, SynapseLog
from neuro_eqprop.traces import Kind, Trace

MOMENTS = 12


def course_of(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """The trace at some moments, and what each is called.

    A training of rates shows the same samples after each epoch: the first of them is followed.
    Learning on a chip shows its first lessons.
    """
    if any(kind is not Kind.RATE for kind in trace.kinds.values()):
        rows = apart(len(trace.index))
        return part(trace, rows), tuple(f"lesson {row + 1}" for row in rows)
    epochs = trace.epochs["epoch"] if "epoch" in trace.epochs else np.arange(1.0)
    each = max(1, len(trace.index) // max(1, len(epochs)))
    chosen = apart(min(len(epochs), len(trace.index) // each))
    return (
        part(trace, [each * k for k in chosen]),
        tuple(f"epoch {epochs[k]:.0f}, sample {trace.index[each * k]}" for k in chosen),
    )


def apart(count: int) -> list[int]:
    """At most `MOMENTS` places from the first to the last."""
    places: list[int] = np.unique(
        np.linspace(0, count - 1, min(MOMENTS, count)).astype(int)
    ).tolist()
    return places


def part(trace: Trace, rows: Sequence[int]) -> Trace:
    """Some samples of a trace without spikes."""

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
            name: SynapseLog(story.synapses, *(kept(getattr(story, c)) for c in COLUMNS))
            for name, story in trace.hebbian.items()
        },
    )
