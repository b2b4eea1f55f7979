"""Input codings: how data enter a spiking network.

    current  the host computes the current W x; its multiplications are counted as host work
    graded   an input unit sends theta round(x / theta) in its first step and nothing later; its
             targets sum their messages, as units of code `graded` do. Biases arrive with the
             input, as the weights of one more unit that sends 1 once, so that units send nothing
             before their input arrives
    rate     an input unit fires at the rate x, like a unit of the network's code

With `graded` and `rate` the input layer is a population, whose spikes and synaptic operations are
counted like all others. Another package can add an input coding with an entry point in the group
`neuro_eqprop.input_codings` that names an `InputCoding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.dynamics.schedules import tail
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.network import Layer, Network, Role
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.ir import Graded, Neuron, Population, Projection, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import (
    connection_synapses,
    join,
    signed_populations,
    snap,
    snapped,
    stimulate,
    to_populations,
)

ON = "on"
"""The population of the unit that sends the biases."""
THETA = 2.0**-8
"""Theta of graded input; the error of a pixel is at most 1/512."""


def unchanged(x: Array, _coding: Coding) -> Array:
    """x itself: the currents are those of the data."""
    return x


@dataclass(frozen=True)
class InputCoding:
    """How data enter a spiking network.

    Parameters
    ----------
    name
        Its name in `--input`.
    summary
        A short phrase for help texts and tables.
    neuron
        The neuron of the input units; None if the host computes the currents instead.
    encode
        The current of each input unit, from x (samples, features).
    accumulates
        The value of `Code.accumulates` that the code of the network must have; None for any.
    sends_biases
        Whether biases are the weights of one more unit, which sends once, with the input.

    """

    name: str
    summary: str
    neuron: Callable[[Layer, Coding], Neuron] | None = None
    encode: Callable[[Array, Coding], Array] = unchanged
    accumulates: bool | None = None
    sends_biases: bool = False

    CURRENT: ClassVar[InputCoding]
    GRADED: ClassVar[InputCoding]
    RATE: ClassVar[InputCoding]

    def __repr__(self) -> str:
        return f"InputCoding({self.name!r})"


def sigma_delta_input(_layer: Layer, _coding: Coding) -> Graded:
    """A unit that sends its value once."""
    return Graded(LINEAR, THETA, 1.0)


def snap_input(x: Array, _coding: Coding) -> Array:
    """x in multiples of theta."""
    return snap(x, THETA)


def rate_input(layer: Layer, coding: Coding) -> Neuron:
    """The neuron of the network's code, with rates in 0..1."""
    return coding.neuron(Layer(layer.name, layer.shape, HARD_SIGMOID))


def encode_rates(x: Array, coding: Coding) -> Array:
    """x on the grid of the coding; raises an error for values outside 0..1."""
    if x.size and not (x.min() >= 0.0 and x.max() <= 1.0):
        raise LoweringError(
            f"the data lie in {x.min():g}..{x.max():g}, and rate spikes carry 0..1; "
            "use input coding 'current', or scale the data"
        )
    return snap(x, coding.grid)


CURRENT = InputCoding.CURRENT = InputCoding("current", "computed on the host")
GRADED = InputCoding.GRADED = InputCoding(
    "graded",
    "graded spikes, sent once",
    sigma_delta_input,
    snap_input,
    accumulates=True,
    sends_biases=True,
)
RATE = InputCoding.RATE = InputCoding(
    "rate", "spikes at the rate x", rate_input, encode_rates, accumulates=False
)

INPUT_CODINGS = Registry(
    "input coding",
    InputCoding,
    {each.name: f"{__name__}:{each.name.upper()}" for each in (CURRENT, GRADED, RATE)},
    "neuro_eqprop.input_codings",
)
"""All input codings by name, including those of other packages."""


def find_input_coding(coding: str | InputCoding) -> InputCoding:
    """The input coding of that name; an `InputCoding` is returned unchanged."""
    return coding if isinstance(coding, InputCoding) else INPUT_CODINGS.find(coding)


def check_input(entry: InputCoding, code: Code) -> None:
    """Raise an error if units of the code cannot decode the input coding."""
    if entry.accumulates in (None, code.accumulates):
        return
    fitting = [
        repr(name)
        for name, each in INPUT_CODINGS.loadable().items()
        if each.accumulates in (None, code.accumulates)
    ]
    reason = (
        f"is sent once, and units of code {code.name!r} forget it after one step"
        if entry.accumulates
        else f"is sent in every step, and units of code {code.name!r} sum all messages"
    )
    raise LoweringError(
        f"input coding {entry.name!r} {reason}; use input coding {' or '.join(fitting)}, "
        "or another code"
    )


def with_input(
    network: Network,
    params: Mapping[str, Array],
    made: SpikingNetwork,
    *,
    coding: Coding,
    entry: InputCoding,
) -> SpikingNetwork:
    """The network of `lower`, with a population for the input unless the host computes currents."""
    check_input(entry, coding.code)
    if entry.neuron is None:
        return made
    layer, projections = network.input, list[Projection]()
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            synapses = snapped(connection_synapses(network, params, connection), coding.grid)
            target = signed_populations(network[connection.target], coding)
            projections += join(((layer.name, 1.0),), target, synapses)
    units = Population(layer.name, entry.neuron(layer, coding), np.zeros(layer.size))
    complete = replace(
        made,
        populations=(units, *made.populations),
        projections=(*projections, *made.projections),
    )
    return send_biases(network, complete) if entry.sends_biases else complete


def outer(network: Network) -> frozenset[str]:
    """The populations of the input, which are not moving layers of the network."""
    return frozenset({network.input.name, ON})


def send_biases(network: Network, made: SpikingNetwork) -> SpikingNetwork:
    """The network with biases as weights of a unit that sends 1 once, along with the input."""
    if any(layer.name == ON for layer in network.layers):
        raise LoweringError(f"a layer is called {ON!r}, as is the unit that sends the biases")
    depth = depths(network)
    populations = [Population(ON, Graded(LINEAR, 1.0, 1.0), np.ones(1))]
    projections = list(made.projections)
    for population in made.populations:
        if population.name in depth and population.bias.any():
            delay, weight = depth[population.name], population.bias[:, None]
            projections.append(Projection(ON, population.name, weight, delay))
            populations.append(replace(population, bias=np.zeros(population.size)))
        else:
            populations.append(population)
    return replace(made, populations=tuple(populations), projections=tuple(projections))


def depths(network: Network) -> dict[str, int]:
    """Length of the shortest path of connections from the input to each layer it reaches."""
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
    """The stimulus of samples x for a network made by `with_input`."""
    if entry.neuron is None:
        return stimulate(network, params, x, target=target, coding=coding)
    pull = {} if target is None else {network.output.name: target}
    current = {network.input.name: entry.encode(x, coding)}
    return Stimulus(len(x), current, to_populations(network, pull, coding))


def steps_needed(network: Network, coding: Coding, entry: InputCoding) -> int:
    """Least steps of a phase whose window begins after feedback from the output has arrived.

    A message takes one step per connection.
    """
    depth = depths(network)[network.output.name]
    way = 2 * depth - 1 + (entry.neuron is not None)
    return next(steps for steps in count(1) if steps - tail(steps, coding.tail) >= way)
