"""Distribution of the weights of a network, for the metrics of an epoch."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.network import Network

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Reported quantiles, as fractions."""
MAX_WEIGHTS = 100_000
"""Most weights of a connection that are used; larger ones are subsampled evenly."""


def weight_quantiles(network: Network, params: Mapping[str, Array]) -> dict[str, list[float]]:
    """Return the `QUANTILES` of the weights of each connection."""
    found = {}
    for connection in network.connections:
        values = np.ravel(params.get(connection.name, np.zeros(0)))
        if values.size:
            part = values[:: -(-values.size // MAX_WEIGHTS)]
            found[connection.name] = [float(q) for q in np.quantile(part, QUANTILES)]
    return found
