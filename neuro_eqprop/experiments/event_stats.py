"""Events of a run on a simulator, and the dense pass they are held against."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.experiments.run_folder import Run
from neuro_eqprop.operators import Pooled
from neuro_eqprop.spiking.codes import Coding
from neuro_eqprop.spiking.input_coding import InputCoding, outer, steps_needed
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.lower import spelled_out
from neuro_eqprop.traces import Counts

EVENTS = (
    "spikes_per_neuron",
    "synops_per_sample",
    "input_spikes_per_sample",
    "input_synops_per_sample",
    "host_macs_per_sample",
    "dense_macs",
    "work_to_dense",
)


def dense_macs(run: Run) -> int:
    """Multiplications of one dense feed-forward pass, which takes means before it multiplies."""
    network, total = run.model.network, 0
    for connection in network.connections:
        whole, shape = connection.operator, network[connection.source].shape
        operator = whole.inner if isinstance(whole, Pooled) else whole
        if isinstance(whole, Pooled):
            shape = whole.pooled_shape(shape)
        if not connection.loops:
            weight = run.model.params[connection.name]
            total += int(np.count_nonzero(spelled_out(operator, weight, shape)))
    return total


def events(
    run: Run,
    network: SpikingNetwork,
    counts: Mapping[tuple[str, str], Counts],
    *,
    samples: int,
) -> dict[str, float]:
    """What was counted, per sample; neurons are all but those of the input, synops all there are.

    The work is synaptic operations plus the host's, which are never free.
    """
    bring, dense = outer(run.model.network), dense_macs(run)
    units = sum(p.size for p in network.populations if p.name not in bring)
    total = sum(counts.values(), Counts())
    own = sum((c for (name, _), c in counts.items() if name in bring), Counts())
    values = (
        (total.spikes - own.spikes) / (units * samples),
        total.synops / samples,
        own.spikes / samples,
        own.synops / samples,
        total.host_macs / samples,
        dense,
        (total.synops + total.host_macs) / (dense * samples),
    )
    return dict(zip(EVENTS, values, strict=True))


def too_few(run: Run, coding: Coding, steps: int, entry: InputCoding) -> list[str]:
    """A warning if the steps cannot be enough for the depth of the network."""
    needed = steps_needed(run.model.network, coding, entry)
    if steps >= needed:
        return []
    return [
        f"{steps} steps are too few for a network of this depth: rates are read before input has "
        f"reached the output and come back; take at least {needed}"
    ]
