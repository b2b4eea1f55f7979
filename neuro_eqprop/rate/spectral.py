"""Spectral norms: measured exactly, kept in bound during training by projection.

Measuring all singular values after each step would cost more than the step. Between epochs a
bound is therefore kept by one power iteration a step, from a vector that training carries along,
and exactly, by singular values, at the end of each epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.networks import Network
from neuro_eqprop.operators.base import stretch
from neuro_eqprop.ops.protocol import Ops, Values

MARGIN = 1e-6
"""Keeps a norm below its bound after rounding."""


def norms(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, float]:
    """The largest singular value of every weight."""
    return {
        c.name: max(c.operator.norms(ops, params[c.name], network[c.source].shape))
        for c in network.connections
    }


def keep_bounds(ops: Ops, network: Network, params: Mapping[str, Values]) -> dict[str, Values]:
    """The weights that left their bound, scaled back onto it."""
    scaled: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is not None:
            weight = params[c.name]
            sizes = c.operator.norms(ops, weight, network[c.source].shape)
            factors = [min(1.0, c.bound * (1 - MARGIN) / size) for size in sizes if size > 0.0]
            if factors and min(factors) < 1.0:
                scaled[c.name] = weight * spread(ops, factors, weight)
    return scaled


def spread(ops: Ops, factors: list[float], weight: Values) -> Values:
    """One factor for all of a weight, or one for each of its matrices."""
    if len(factors) == 1:
        return factors[0]
    return ops.bring(np.array(factors)).reshape(-1, *[1] * (weight.ndim - 1))


def follow_bounds(
    ops: Ops, network: Network, params: Mapping[str, Values], vectors: dict[str, Values]
) -> dict[str, Values]:
    """As `keep_bounds`, of linear operators by one power iteration that moves `vectors` along."""
    scaled: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is None or not c.operator.linear:
            continue
        weight = params[c.name]
        size, vectors[c.name] = stretch(c.operator, ops, weight, vectors[c.name])
        if size > c.bound:
            scaled[c.name] = weight * (c.bound * (1 - MARGIN) / size)
    rest = tuple(c for c in network.connections if not c.operator.linear)
    for c in rest:
        scaled |= keep_bounds(ops, Network(network.layers, (c,), network.cost), params)
    return scaled


def first_vectors(network: Network, ops: Ops) -> dict[str, Values]:
    """Where power iterations start: the same random vectors in every run."""
    rng = np.random.default_rng(0)
    return {
        c.name: ops.bring(rng.standard_normal((1, *network[c.source].shape)))
        for c in network.connections
        if c.bound is not None and c.operator.linear
    }
