"""The sample that the page opens on: correctly classified, and moved most by the nudge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.simulators.biology.dale import INHIBITORY
from neuro_eqprop.simulators.recordings import select_samples
from neuro_eqprop.traces.compare import has_nudged_phases
from neuro_eqprop.traces.trace import Trace


def answers(trace: Trace) -> Ints | None:
    """The class of the largest rate of the last layer in the free phase; None if not recorded."""
    layers = [layer for layer in trace.layers if not layer.endswith(INHIBITORY)]
    if not layers or layers[-1] not in trace.layers_with_rates:
        return None
    return np.asarray(trace.rate(layers[-1]).argmax(axis=1))


def output_change(trace: Trace, samples: int) -> Array:
    """L1 norm of the change of the output by the nudge, by sample; zeros without a nudge."""
    output = [layer for layer in trace.layers_with_rates if not layer.endswith(INHIBITORY)][-1]
    change = np.zeros_like(trace.rate(output)[:samples])
    if has_nudged_phases(trace.schedule):
        for phase, part in contrast(trace.schedule).items():
            change += part * trace.rate(output, phase)[:samples]
    sizes: Array = np.abs(change).sum(axis=1)
    return sizes


def start_sample(trace: Trace, samples: int) -> int:
    """The correctly classified sample that the nudge moves most; the first one if none is."""
    given = answers(trace)
    if given is None:
        return 0
    right = (given == trace.label)[:samples]
    return int(np.argmax(np.where(right, 1.0 + output_change(trace, samples), 0.0)))


def start_first(traces: Mapping[str, Trace], samples: int) -> dict[str, Trace]:
    """Traces of the same samples, with the one to start with first if a page would leave it out."""
    guide = next(iter(traces.values()), None)
    if guide is None or any(not np.array_equal(t.index, guide.index) for t in traces.values()):
        return dict(traces)
    start = start_sample(guide, len(guide.index))
    if start < samples:
        return dict(traces)
    rows = [start, *(row for row in range(len(guide.index)) if row != start)]
    return {name: select_samples(trace, rows) for name, trace in traces.items()}
