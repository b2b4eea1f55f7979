"""From rates to spikes: the only place that knows both descriptions.

The nudge beta (y - s) of a rate network's output becomes a pull towards y and a self-projection of
weight -1, both with a gain of beta. Weights, biases and currents are put on a dyadic grid, so that
sums of spikes are exact in any order and every simulator gives the same spikes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from neuro_eqprop.activations import HARD_SIGMOID, Curve
from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Layer, Network, Role, check_parameters
from neuro_eqprop.operators import Dense, Operator
from neuro_eqprop.schedules import TAIL
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)


class LoweringError(ValueError):
    """A network cannot become spikes; the message names the layer and the reason."""


class Code(Enum):
    """How a rate becomes spikes."""

    RATE = "rate"
    """Binary spikes of an integrator that resets by subtraction: it fires at its drive in 0..1."""
    GRADED = "graded"
    """Sigma-delta: messages of what changed, quiet at equilibrium; carries any activation."""


@dataclass(frozen=True, slots=True)
class Coding:
    """A code with its constants."""

    code: Code
    grid: float = 2.0**-12
    """Weights, biases and currents are multiples of this."""
    theta: float = 2.0**-6
    """Graded messages are multiples of this."""
    damping: float = 0.5
    """How much of the way to its activation a graded unit goes in a step."""

    @property
    def tail(self) -> float:
        """The part of a phase over which rates are measured.

        A firing rate needs a long mean; what a graded unit has sent is best read late.
        """
        return TAIL if self.code is Code.RATE else 0.25


def neuron(layer: Layer, coding: Coding) -> Neuron:
    """The neuron that carries a layer's rates."""
    if coding.code is Code.GRADED:
        return Graded(layer.activation, coding.theta, coding.damping)
    rate = layer.activation
    if rate.curve is not Curve.CLIP or (rate.low, rate.high) != (0.0, 1.0):
        raise LoweringError(
            f"layer {layer.name!r} has activation {rate.name!r} with range {rate.low}..{rate.high},"
            f" and spikes of code 'rate' carry only {HARD_SIGMOID.name} (0..1); use code 'graded',"
            f" or train with --activation hard_sigmoid --output hard_sigmoid"
        )
    # A ceiling at the threshold would cost a unit that fires almost always some of its spikes.
    return Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)


def snap(values: Array, grid: float) -> Array:
    """The nearest multiples of `grid`."""
    return np.asarray(np.rint(values / grid) * grid)


def matrix(operator: Operator, weight: Array, name: str) -> Array:
    """The operator as a matrix from flat source to flat target."""
    if not isinstance(operator, Dense):
        raise LoweringError(f"connection {name!r} has operator {operator}, which is not linear")
    return weight


def lower(
    network: Network, params: Mapping[str, Array], *, dt: float, coding: Coding, nudged: bool
) -> SpikingNetwork:
    """The spiking network whose rates settle where the network's do.

    The input layer becomes currents (`stimulate`) and is no population. Only a network that is to
    be `nudged` gets the synapses for it: inference does not pay for them.
    """
    check_parameters(network, params)
    populations = tuple(
        Population(layer.name, neuron(layer, coding), snap(params[layer.name].ravel(), coding.grid))
        for layer in network.moving
    )
    projections: list[Projection] = []
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            continue
        weight = matrix(connection.operator, params[connection.name], connection.name)
        weight = snap(weight, coding.grid)
        projections.append(Projection(connection.source, connection.target, weight))
        if network.feeds_back(connection):
            back = snap(network.feedback(connection) * weight.T, coding.grid)
            projections.append(Projection(connection.target, connection.source, back))
    out = network.output
    if nudged:
        projections.append(Projection(out.name, out.name, -np.eye(out.size), gain=Gain.BETA))
    return SpikingNetwork(dt, populations, tuple(projections), out.name)


def stimulate(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    *,
    target: Array | None,
    coding: Coding,
) -> Stimulus:
    """What samples x bring: W x as a current, worked out on the host, and the pull of targets."""
    current: dict[str, Array] = {}
    macs = 0
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            weight = matrix(connection.operator, params[connection.name], connection.name)
            brought = x @ weight.T
            current[connection.target] = current.get(connection.target, 0.0) + brought
            macs += int(np.count_nonzero(weight))
    current = {name: snap(values, coding.grid) for name, values in current.items()}
    pull = {} if target is None else {network.output.name: snap(target, coding.grid)}
    return Stimulus(len(x), current, pull, macs)
