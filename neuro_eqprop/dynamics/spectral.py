"""Spectral norms of the weights, and their projection onto bounds during training.

Exact singular values after every batch would cost more than the batch. During an epoch a bound is
therefore enforced by one power iteration every few batches, from a vector kept with the training
state (Miyato et al. 2018), and exactly at the end of each epoch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators.attention import Attention
from neuro_eqprop.networks.operators.base import Operator, power_iteration_step
from neuro_eqprop.networks.operators.convolution import MaxPooled
from neuro_eqprop.networks.ops.protocol import Ops, Values

MARGIN = 1e-6
"""Relative margin that keeps a norm below its bound after rounding."""

ITERATIONS = 8
"""Power iterations per projection of attention. With fewer, its norm exceeds the bound early in
training; tokens then settle slowly and little is learned."""


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
        factor = None if c.bound is None else exact_factor(ops, network, c, params[c.name])
        if factor is not None:
            scaled[c.name] = params[c.name] * factor
    return scaled


def exact_factor(
    ops: Ops, network: Network, connection: Connection, weight: Values
) -> Values | None:
    """The factor that scales a weight down to its bound; None if the weight is within it."""
    norms = connection.operator.spectral_norms(ops, weight, network[connection.source].shape)
    bound = connection.bound or np.inf
    factors = [min(1.0, bound * (1 - MARGIN) / norm) for norm in norms if norm > 0.0]
    if not factors or min(factors) == 1.0:
        return None
    return broadcast_factors(ops, factors, weight)


def broadcast_factors(ops: Ops, factors: list[float], weight: Values) -> Values:
    """One factor for a weight, or one for each of its matrices, in a shape that broadcasts."""
    if len(factors) == 1:
        return factors[0]
    return ops.from_numpy(np.array(factors)).reshape(-1, *[1] * (weight.ndim - 1))


def bound_factors(
    ops: Ops, network: Network, params: Mapping[str, Values], vectors: dict[str, Values]
) -> dict[str, Values]:
    """Factors that keep weights within their bounds, by name.

    For linear operators and attention by one power iteration, which updates `vectors` and reads
    nothing back from the device: the factor is 1 for a weight within its bound.
    """
    factors: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is None:
            continue
        weight = params[c.name]
        if not is_iterated(c):
            factor = exact_factor(ops, network, c, weight)
            if factor is not None:
                factors[c.name] = factor
            continue
        operator = linear_part(c)
        if operator.linear:
            norm, vectors[c.name] = power_iteration_step(operator, ops, weight, vectors[c.name])
        else:
            norm, vectors[c.name] = batched_power_iterations(weight, vectors[c.name])
        most = c.bound * (1 - MARGIN)
        factors[c.name] = most / norm.clip(min=most)
    return factors


def is_iterated(connection: Connection) -> bool:
    """Whether a bound is enforced by power iterations during an epoch."""
    return linear_part(connection).linear or isinstance(connection.operator, Attention)


def linear_part(connection: Connection) -> Operator:
    """The operator of a connection, without the max pooling behind it."""
    operator = connection.operator
    return operator.inner if isinstance(operator, MaxPooled) else operator


def batched_power_iterations(matrices: Values, v: Values) -> tuple[Values, Values]:
    """|A v| and A^T A v for each matrix A of a stack and its column v, after `ITERATIONS`."""
    norm = None
    for _ in range(ITERATIONS):
        v = v / (v * v).sum(1)[:, None] ** 0.5
        y = matrices @ v
        norm, v = (y * y).sum(1)[:, None] ** 0.5, matrices.swapaxes(1, 2) @ y
    return norm, v


def initial_vectors(network: Network, ops: Ops) -> dict[str, Values]:
    """The vectors at which power iterations start, equal in every run."""
    rng = np.random.default_rng(0)
    found: dict[str, Values] = {}
    for c in network.connections:
        if c.bound is not None and is_iterated(c):
            source = network[c.source].shape
            shape = (1, *source) if linear_part(c).linear else (2, source[-1], 1)
            found[c.name] = ops.from_numpy(rng.standard_normal(shape))
    return found
