"""The energy whose minima are the equilibria of a network with symmetric connections.

    E(s) = sum over layers of k_l (G(s_l) - b_l . s_l)
           - sum over connections of k_target s_target . W s_source     (half of it for a loop)

with k the layer stiffness (Hopfield 1984; Scellier & Bengio 2017). The nudge adds beta k_output
times the cost. G is the integral of the inverse activation: 1/2 s^2 within the range of a piecewise
linear one, s artanh(s) + 1/2 log(1 - s^2) for tanh. Attention adds -k A(s) instead of a product. A
readout (cross-entropy cost) does not contribute to E.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import shape_input, with_padding_mask
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.operators import Attention
from neuro_eqprop.networks.ops.numpy import NumpyOps


def energy(
    network: Network, params: Mapping[str, Array], x: Array, state: Mapping[str, Array]
) -> Array:
    """E for each sample (batch,)."""
    ops, rates = NumpyOps(), {network.input.name: shape_input(network, x), **state}
    network = with_padding_mask(ops, network, rates[network.input.name])
    readout = network.output.name if network.cost is Cost.CROSS_ENTROPY else None
    total = np.zeros(len(x))
    for layer in network.moving:
        if layer.name == readout:
            continue
        s = rates[layer.name]
        cost = layer.stiffness * (layer.activation.energy(s) - params[layer.name] * s)
        total += cost.reshape(len(x), -1).sum(axis=1)
    for connection in network.connections:
        if not connection.symmetric:
            raise ValueError(
                f"connection {connection.name!r} is not symmetric, so the network has no energy"
            )
        if connection.target == readout:
            continue
        stiffness = network[connection.target].stiffness
        weight, source = params[connection.name], rates[connection.source]
        if isinstance(connection.operator, Attention):
            total -= stiffness * connection.operator.energy(ops, weight, source)
            continue
        drive = connection.operator.forward(ops, weight, source, np.zeros(1))
        product = (rates[connection.target] * drive).reshape(len(x), -1).sum(axis=1)
        total -= (0.5 if connection.loops else 1.0) * stiffness * product
    return total
