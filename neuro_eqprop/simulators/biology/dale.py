"""Networks that obey Dale's law: with pairs of neurons, or with interneurons.

In a pair, one neuron has the positive weights and the other the negative ones. Both receive the
same input, so they fire alike. The first half of a population excites, the second inhibits:

    weight  [[max(w, 0), min(w, 0)],
             [max(w, 0), min(w, 0)]]

With interneurons, the neurons of a population only excite. Each drives one inhibitory neuron with a
weight of one, which has its negative weights, so that inhibition arrives one synapse later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.spiking.ir import Projection, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.synapses import DenseSynapses, as_synapses


def paired(network: SpikingNetwork) -> SpikingNetwork:
    """The network with a pair of neurons, one for each sign of weights, in place of each neuron."""
    populations = tuple(replace(p, bias=np.tile(p.bias, 2)) for p in network.populations)
    projections = tuple(
        replace(p, synapses=DenseSynapses(pair_weights(p.weight))) for p in network.projections
    )
    return replace(network, populations=populations, projections=projections)


def pair_weights(weight: Array) -> Array:
    """Weights between pairs: one neuron of a pair excites, the other inhibits."""
    return np.tile(np.hstack([np.maximum(weight, 0), np.minimum(weight, 0)]), (2, 1))


INHIBITORY = "_inhibitory"
"""Suffix of the name of a population of interneurons."""


def with_interneurons(network: SpikingNetwork) -> SpikingNetwork:
    """The network with populations of interneurons that have all negative weights."""
    if any(p.name.endswith(INHIBITORY) for p in network.populations):
        return network
    inhibit = {p.source for p in network.projections if (p.weight < 0).any()}
    between = tuple(
        replace(p, name=f"{p.name}{INHIBITORY}", bias=np.zeros(p.size))
        for p in network.populations
        if p.name in inhibit
    )
    projections = [
        Projection(p.name.removesuffix(INHIBITORY), p.name, np.eye(p.size)) for p in between
    ]
    for p in network.projections:
        parts = [
            (p.source, np.maximum(p.weight, 0)),
            (f"{p.source}{INHIBITORY}", np.minimum(p.weight, 0)),
        ]
        projections += [
            replace(p, source=name, synapses=as_synapses(w)) for name, w in parts if w.any()
        ]
    populations = (*network.populations, *between)
    return replace(network, populations=populations, projections=tuple(projections))


def pair_stimulus(stimulus: Stimulus) -> Stimulus:
    """The same current and pull for both neurons of each pair."""

    def twice(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {name: np.tile(array, (1, 2)) for name, array in arrays.items()}

    return replace(stimulus, current=twice(stimulus.current), pull=twice(stimulus.pull))


def merge_pairs(result: Result) -> Result:
    """Firing and drive of the pairs, equal for both neurons; messages are summed over both."""
    halves = {name: array.shape[-1] // 2 for name, array in result.messages.items()}
    return Result(
        {n: a[..., : halves[n]] + a[..., halves[n] :] for n, a in result.messages.items()},
        {n: a[..., : halves[n]].copy() for n, a in result.firing.items()},
        {n: a[..., : halves[n]].copy() for n, a in result.drive.items()},
        copies=dict.fromkeys(halves, 2),
    )
