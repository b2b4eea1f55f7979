"""Snapshots of a training trace for the report: a few samples, evenly spaced over the training."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.html_report.encoding import evenly_spaced
from neuro_eqprop.simulators.recordings import select_samples
from neuro_eqprop.traces.trace import Trace

MAX_SNAPSHOTS = 12


def snapshots(trace: Trace) -> tuple[Trace, tuple[str, ...]]:
    """Some samples of a training trace, and their names.

    Training of rates records the same samples after every epoch: the first of them is followed.
    Learning on a chip records its first presentations.
    """
    epochs = trace.epochs["epoch"] if "epoch" in trace.epochs else np.arange(1.0)
    each = max(1, len(trace.index) // max(1, len(epochs)))
    repeated = np.resize(trace.index[:each], len(trace.index))
    if len(epochs) == 1 < each or not np.array_equal(trace.index, repeated):
        rows = evenly_spaced(len(trace.index), MAX_SNAPSHOTS).tolist()
        return select_samples(trace, rows), tuple(f"presentation {row + 1}" for row in rows)
    chosen = evenly_spaced(min(len(epochs), len(trace.index) // each), MAX_SNAPSHOTS)
    return (
        select_samples(trace, [each * k for k in chosen]),
        tuple(f"epoch {epochs[k]:.0f}, sample {trace.index[each * k]}" for k in chosen),
    )
