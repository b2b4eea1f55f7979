"""A network with all rates in 0..1, for codes whose spikes carry no others.

Layers that clip to 0..high, and a linear output, are scaled: with s = low + span s',

    W' = W span_source / span_target            of every connection,
    b' = (b - low) / span
    b' = b' + g low_target W^T 1 / span         of a layer with feedback g of the target,
    k' = span^2 k                               of the stiffness, and so g' = g (span_t / span_s)^2

The rates s' are those of the network, free and nudged towards y' = (y - low) / span with the same
beta, as long as the output stays within its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.network import Cost, Layer, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking.codes import Coding, LoweringError

LINEAR_RANGE = (-0.5, 1.5)
"""The range of a linear output: targets of 0 and 1 become 0.25 and 0.75."""


@dataclass(frozen=True, slots=True)
class ScaledRates:
    """A network whose rates have been scaled to 0..1, with the ranges that they had."""

    original: Network
    network: Network
    ranges: Mapping[str, tuple[float, float]]
    """Lowest and highest rate of the layers that are scaled."""

    def span(self, layer: str) -> float:
        """The size of the range of a layer."""
        low, high = self.ranges.get(layer, (0.0, 1.0))
        return high - low

    def encode(self, layer: str, values: Array) -> Array:
        """Rates or targets of a layer of the original network, scaled."""
        return (values - self.ranges.get(layer, (0.0, 1.0))[0]) / self.span(layer)

    def decode(self, layer: str, rates: Array) -> Array:
        """Scaled rates of a layer as those of the original network."""
        return self.ranges.get(layer, (0.0, 1.0))[0] + self.span(layer) * rates

    def scaled(self, params: Mapping[str, Array]) -> dict[str, Array]:
        """The parameters of `network`, from those of the original one."""
        made, zero = dict(params), np.zeros(1)
        for c in self.original.connections:
            made[c.name] = params[c.name] * (self.span(c.source) / self.span(c.target))
            low = self.ranges.get(c.target, (0.0, 1.0))[0]
            if low and self.original.feeds_back(c):
                shape, gain = self.original[c.source].shape, low * self.original.feedback(c)
                ones = np.ones((1, *self.original[c.target].shape))
                constant = c.operator.backward(
                    NumpyOps(), params[c.name], ones, zero, gain=gain, shape=shape
                )
                made[c.source] = made[c.source] + constant.reshape(shape)
        return made | {name: self.encode(name, made[name]) for name in self.ranges}


def scaled_rates(network: Network, coding: Coding) -> ScaledRates | None:
    """The network with rates in 0..1; None where the code carries all rates as they are.

    None as well for networks that cannot be scaled, which `lower` refuses.
    """
    ranges = {x.name: range_of(network, x) for x in network.moving if not carries(coding, x)}
    known = {name: ends for name, ends in ranges.items() if ends is not None}
    if not known or len(known) < len(ranges):
        return None
    shifted = {name for name, (low, _) in known.items() if low}
    affected = {c.source for c in network.connections if c.target in shifted}
    layers = []
    for layer in network.layers:
        made = layer
        if layer.name in known:
            low, high = known[layer.name]
            stiffness = (high - low) ** 2 * layer.stiffness
            made = replace(made, activation=HARD_SIGMOID, stiffness=stiffness)
        if layer.name in affected and layer in network.moving:
            made = replace(made, shared=None)  # units with different feedback have their own biases
        layers.append(made)
    return ScaledRates(network, replace(network, layers=tuple(layers)), known)


def range_of(network: Network, layer: Layer) -> tuple[float, float] | None:
    """The rates of a layer that become 0 and 1; None if it cannot be scaled."""
    starts = any(c.source == layer.name for c in network.connections)
    if layer == network.output and layer.activation == LINEAR and not starts:
        return LINEAR_RANGE if network.cost is Cost.SQUARED else None
    clips = layer.activation.piecewise_linear and layer.activation.low == 0.0
    return (0.0, layer.activation.high) if clips and isfinite(layer.activation.high) else None


def carries(coding: Coding, layer: Layer) -> bool:
    """Whether the code carries the rates of a layer."""
    try:
        coding.neuron(layer)
    except LoweringError:
        return False
    return True
