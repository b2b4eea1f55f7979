"""Spectral norms: measured by singular values, kept in bound during training by projection."""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks import Network
from neuro_eqprop.rate.ops import Ops, Values


def norms(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, float]:
    """The largest singular value of every weight."""
    return {c.name: ops.norm(params[c.name]) for c in network.connections}


def keep_bounds(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, Values]:
    """The weights that left their bound, scaled back onto it.

    A margin of one part in a million keeps the norm below the bound after rounding.
    """
    scaled: dict[str, Values] = {}
    for connection in network.connections:
        if connection.bound is not None:
            weight = params[connection.name]
            size = ops.norm(weight)
            if size > connection.bound:
                scaled[connection.name] = weight * (connection.bound * (1 - 1e-6) / size)
    return scaled
