"""Spectral norms of the weights, and their projection onto bounds during training.

Exact singular values after every batch would cost more than the batch. During an epoch a bound is
therefore enforced by one power iteration a batch, from a vector kept with the training state
(Miyato et al. 2018), and exactly at the end of each epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.networks import Network
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
            weight = params[c.name]
            sizes = c.operator.spectral_norms(ops, weight, network[c.source].shape)
            factors = [min(1.0, c.bound * (1 - MARGIN) / size) for size in sizes if size > 0.0]
            if factors and min(factors) < 1.0:
                scaled[c.name] = weight * broadcast_factors(ops, factors, weight)
    return scaled


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
        if c.bound is None or not c.operator.linear:
            continue
        weight = params[c.name]
        size, vectors[c.name] = power_iteration_step(c.operator, ops, weight, vectors[c.name])
        if size > c.bound:
            scaled[c.name] = weight * (c.bound * (1 - MARGIN) / size)
    rest = tuple(c for c in network.connections if not c.operator.linear)
    for c in rest:
        scaled |= project_exactly(ops, Network(network.layers, (c,), network.cost), params)
    return scaled


def initial_vectors(network: Network, ops: Ops) -> dict[str, Values]:
    """The vectors at which power iterations start, equal in every run."""
    rng = np.random.default_rng(0)
    return {
        c.name: ops.from_numpy(rng.standard_normal((1, *network[c.source].shape)))
        for c in network.connections
        if c.bound is not None and c.operator.linear
    }
