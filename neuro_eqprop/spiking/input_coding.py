"""How data enter a spiking network: as a current, as graded spikes sent once, or as rate spikes.

A current W x is worked out on the host, whose multiplications are counted as its own. In the other
two the input layer is a population of its own, whose spikes and synaptic operations are counted as
everyone's:

    graded   a unit sends theta round(x / theta) in its first step, and then nothing: its targets
             add up what they are sent, as units of code `graded` do. So that these need not tell
             what they would be without input, their biases come with it: one more unit, always
             on, sends once too, and its weights are the biases
    rate     a unit fires as a unit of the network's code with rate x does, in every step anew
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from itertools import count

import numpy as np

from neuro_eqprop.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Layer, Network, Role
from neuro_eqprop.schedules import tail
from neuro_eqprop.spiking.ir import Graded, Neuron, Population, Projection, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import (
    Code,
    Coding,
    LoweringError,
    faces,
    join,
    matrix,
    neuron,
    snap,
    stimulate,
)

ON = "on"
"""The population of the unit that is always on."""
THETA = 2.0**-8
"""Of graded input: pixels of a byte go through with an error below one part in 500."""


class InputCoding(Enum):
    """How data enter."""

    CURRENT = "current"
    GRADED = "graded"
    RATE = "rate"


def check_entry(entry: InputCoding, code: Code) -> None:
    """Refuse an input that the units of a code would misread."""
    if entry is InputCoding.GRADED and code is not Code.GRADED:
        raise LoweringError(
            f"input 'graded' is sent once, and units of code {code.value!r} forget what arrived in "
            "the step before; use --code graded, or --input rate or current"
        )
    if entry is InputCoding.RATE and code is Code.GRADED:
        raise LoweringError(
            "input 'rate' comes anew in each step, and units of code 'graded' add up all that ever "
            "arrived; use --input graded or current, or another --code"
        )


def source(network: Network, coding: Coding, entry: InputCoding) -> Neuron:
    """The neuron that sends the input."""
    if entry is InputCoding.GRADED:
        return Graded(LINEAR, THETA, 1.0)
    return neuron(Layer(network.input.name, network.input.shape, HARD_SIGMOID), coding)


def with_input(
    network: Network,
    params: Mapping[str, Array],
    made: SpikingNetwork,
    *,
    coding: Coding,
    entry: InputCoding,
) -> SpikingNetwork:
    """What `lower` has made, with a population for the input unless that is a current."""
    check_entry(entry, coding.code)
    if entry is InputCoding.CURRENT:
        return made
    layer, projections = network.input, list[Projection]()
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            weight = matrix(network, params, connection)
            target = faces(network[connection.target], coding)
            projections += join(((layer.name, 1.0),), target, snap(weight, coding.grid))
    sends = Population(layer.name, source(network, coding, entry), np.zeros(layer.size))
    given = replace(
        made,
        populations=(sends, *made.populations),
        projections=(*projections, *made.projections),
    )
    return biases_sent(network, given) if entry is InputCoding.GRADED else given


def outer(network: Network) -> frozenset[str]:
    """The populations that bring the input and are none of the network's layers."""
    return frozenset({network.input.name, ON})


def biases_sent(network: Network, made: SpikingNetwork) -> SpikingNetwork:
    """Biases as weights from a unit that is always on; each arrives when first input can."""
    if any(layer.name == ON for layer in network.layers):
        raise LoweringError(f"a layer is called {ON!r}, as is the unit that sends the biases")
    depth = depths(network)
    populations = [Population(ON, Graded(LINEAR, 1.0, 1.0), np.ones(1))]
    projections = list(made.projections)
    for population in made.populations:
        if population.name in depth and population.bias.any():
            late, weight = depth[population.name], population.bias[:, None]
            projections.append(Projection(ON, population.name, weight, late))
            populations.append(replace(population, bias=np.zeros(population.size)))
        else:
            populations.append(population)
    return replace(made, populations=tuple(populations), projections=tuple(projections))


def depths(network: Network) -> dict[str, int]:
    """Of each layer the input reaches, how many connections lie between the two at least."""
    found, edge = {network.input.name: 0}, {network.input.name}
    while edge:
        ahead = {c.target for c in network.connections if c.source in edge} - set(found)
        found |= dict.fromkeys(ahead, 1 + max(found.values()))
        edge = ahead
    return {name: depth for name, depth in found.items() if depth}


def encode_input(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    *,
    target: Array | None,
    coding: Coding,
    entry: InputCoding,
) -> Stimulus:
    """What samples x bring to a network that was made `with_input`."""
    brought = stimulate(network, params, x, target=target, coding=coding)
    if entry is InputCoding.CURRENT:
        return brought
    if entry is InputCoding.RATE and x.size and not (x.min() >= 0.0 and x.max() <= 1.0):
        raise LoweringError(
            f"the data lie in {x.min():g}..{x.max():g}, and rate spikes carry 0..1; "
            "use --input current, or scale the data"
        )
    step = THETA if entry is InputCoding.GRADED else coding.grid
    return replace(brought, current={network.input.name: snap(x, step)}, host_macs=0)


def steps_needed(network: Network, coding: Coding, entry: InputCoding) -> int:
    """The least steps of a phase whose window begins after input went to the output and back."""
    depth = depths(network)[network.output.name]
    way = 2 * depth - 1 + (entry is not InputCoding.CURRENT)
    return next(steps for steps in count(1) if steps - tail(steps, coding.tail) >= way)
