"""Networks whose feedback has weights of its own: what decays, and how well both directions agree.

Forward weights W and feedback weights B that get the same changes differ by what they were at the
start. A decay of both lets that fade (Kolen & Pollack 1994), without either reading the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import OwnFeedback


def own_feedback(network: Network) -> Iterator[tuple[Connection, Connection]]:
    """The connections whose feedback has weights of its own, each with its feedback."""
    forward = {(c.source, c.target): c for c in network.connections}
    for back in network.connections:
        if isinstance(back.operator, OwnFeedback):
            yield forward[back.target, back.source], back


def decays(network: Network) -> dict[str, float]:
    """By connection, the decay of its weights in the course of a training (`OwnFeedback`)."""
    return {
        c.name: back.operator.decay
        for forward, back in own_feedback(network)
        if isinstance(back.operator, OwnFeedback) and back.operator.decay
        for c in (forward, back)
    }


def alignment(network: Network, params: Mapping[str, Array]) -> dict[str, float | None]:
    """By connection, the cosine of its feedback with its transposed weights."""
    return {
        back.name: cosine(np.asarray(params[forward.name]).T, np.asarray(params[back.name]))
        for forward, back in own_feedback(network)
    }
