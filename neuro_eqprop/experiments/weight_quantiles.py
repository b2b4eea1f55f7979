"""Distribution of the weights of a network, for the metrics of an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.networks import Network

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_WEIGHTS = 100_000
"""Weights of a connection that are sorted; of more, evenly spaced ones."""


def weight_quantiles(network: Network, params: Mapping[str, Array]) -> dict[str, list[float]]:
    """By connection, the `QUANTILES` of its weights."""
    found = {}
    for connection in network.connections:
        values = np.ravel(params.get(connection.name, np.zeros(0)))
        if values.size:
            part = values[:: -(-values.size // MAX_WEIGHTS)]
            found[connection.name] = [float(q) for q in np.quantile(part, QUANTILES)]
    return found
