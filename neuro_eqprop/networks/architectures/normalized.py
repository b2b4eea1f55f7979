"""Networks that standardize their input, so that they take raw samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.operators import Normalized
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
