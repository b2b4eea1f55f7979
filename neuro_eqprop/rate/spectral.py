"""Spectral norms of the weights, and their projection onto bounds during training.

Exact singular values after every batch would cost more than the batch. During an epoch a bound is
therefore enforced by one power iteration a batch, from a vector kept with the training state
(Miyato et al. 2018), and exactly at the end of each epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.networks import Connection, Network
from neuro_eqprop.operators.base import power_iteration_step
from neuro_eqprop.ops.protocol import Ops, Values

MARGIN = 1e-6
"""Relative margin that keeps a norm below its bound after rounding."""


def norms(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, float]:
    """The largest singular value of every weight."""
    return {
        c.name: max(c.operator.spectral_norms(ops, params[c.name], network[c.source].shape))
        for c in network.connections
    }


def project_exactly(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, Values]:
    """The weights that exceed their bound, scaled back onto it."""
    scaled: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is not None:
            scaled |= project_connection(ops, network, c, params[c.name])
    return scaled


def project_connection(
    ops: Ops, network: Network, connection: Connection, weight: Values
) -> dict[str, Values]:
    """The weight of a connection by name, scaled back onto its bound if it exceeds it."""
    norms = connection.operator.spectral_norms(ops, weight, network[connection.source].shape)
    bound = connection.bound or np.inf
    factors = [min(1.0, bound * (1 - MARGIN) / norm) for norm in norms if norm > 0.0]
    if not factors or min(factors) == 1.0:
        return {}
    return {connection.name: weight * broadcast_factors(ops, factors, weight)}


def broadcast_factors(ops: Ops, factors: list[float], weight: Values) -> Values:
    """One factor for a weight, or one for each of its matrices, in a shape that broadcasts."""
    if len(factors) == 1:
        return factors[0]
    return ops.from_numpy(np.array(factors)).reshape(-1, *[1] * (weight.ndim - 1))


def project(
    ops: Ops, network: Network, params: Mapping[str, Values], vectors: dict[str, Values]
) -> dict[str, Values]:
    """As `project_exactly`, for linear operators by one power iteration that updates `vectors`."""
    scaled: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is None:
            continue
        weight = params[c.name]
        if not c.operator.linear:
            scaled |= project_connection(ops, network, c, weight)
            continue
        norm, vectors[c.name] = power_iteration_step(c.operator, ops, weight, vectors[c.name])
        if norm > c.bound:
            scaled[c.name] = weight * (c.bound * (1 - MARGIN) / norm)
    return scaled


def initial_vectors(network: Network, ops: Ops) -> dict[str, Values]:
    """The vectors at which power iterations start, equal in every run."""
    rng = np.random.default_rng(0)
    return {
        c.name: ops.from_numpy(rng.standard_normal((1, *network[c.source].shape)))
        for c in network.connections
        if c.bound is not None and c.operator.linear
    }
