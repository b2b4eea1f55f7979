"""Networks that standardize their input, so that they take raw samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.operators import Dense, Normalized
from neuro_eqprop.networks.operators.normalized import channel_axis


def normalize_input(
    network: Network, shape: Shape, mean: tuple[float, ...], deviation: tuple[float, ...]
) -> Network:
    """The network with (x - mean) / deviation in the place of x, channel by channel.

    `shape` is that of a sample; a network may take it flattened.
    """
    if network.input.shape != shape:
        mean, deviation = flattened(mean, shape), flattened(deviation, shape)
    connections = tuple(
        replace(c, operator=Normalized(c.operator, mean, deviation))
        if network[c.source].role is Role.INPUT and not isinstance(c.operator, Normalized)
        else c
        for c in network.connections
    )
    return replace(network, connections=connections)


def flattened(values: tuple[float, ...], shape: Shape) -> tuple[float, ...]:
    """Values by channel repeated for each feature of a flattened sample."""
    wide = [1] * len(shape)
    wide[channel_axis(shape)] = len(values)
    spread = np.broadcast_to(np.reshape(values, wide), shape)
    return tuple(float(value) for value in spread.ravel())


def folded(
    network: Network, params: Mapping[str, Array]
) -> tuple[Network, dict[str, Array]] | None:
    """The network with the normalization as part of its weights and biases, and these.

    None if the input is not normalized, or enters through other operators than matrices.
    """
    made = dict(params)
    for connection in network.connections:
        operator = connection.operator
        if isinstance(operator, Normalized) and isinstance(operator.inner, Dense):
            deviation, mean = np.array(operator.deviation), np.array(operator.mean)
            weight = made[connection.name] = params[connection.name] / deviation
            made[connection.target] = made[connection.target] - weight @ mean
        elif network[connection.source].role is Role.INPUT:
            return None
    return without_normalization(network)[0], made


def without_normalization(network: Network) -> tuple[Network, Normalized | None]:
    """The network for normalized samples, and the `Normalized` operator taken from it or None."""
    found = [c.operator for c in network.connections if isinstance(c.operator, Normalized)]
    if not found:
        return network, None
    connections = tuple(
        replace(c, operator=c.operator.inner) if isinstance(c.operator, Normalized) else c
        for c in network.connections
    )
    return replace(network, connections=connections), found[0]
