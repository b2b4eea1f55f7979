"""Initial parameters of a network."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.activations import RELU
from neuro_eqprop.networks.network import Connection, Network, Role
from neuro_eqprop.networks.operators import (
    Attention,
    Embedding,
    Normalized,
    Operator,
    OwnFeedback,
    Patches,
    PerToken,
    Sparse,
)
from neuro_eqprop.networks.ops.numpy import NumpyOps

INITIAL_COUPLING = 0.5
"""Largest initial spectral norm of a recurrent weight, whatever the feedback.

Well inside the range where settling contracts: near one or above, a network has several equilibria
and clipped outputs saturate early.
"""
INITIAL_ATTENTION_NORM = 0.8
"""Initial spectral norm of the query and key weights of attention."""
EMBEDDING_GAIN = 4.0
"""Factor on the initial token embedding, since few features of a token are nonzero."""


WORD_DEVIATION = 0.1
"""Standard deviation of the initial word vectors."""


def initialize(network: Network, rng: np.random.Generator) -> dict[str, Array]:
    """Uniform weights and zero biases, by parameter name.

    Weights have the variance 2 / (fan in + fan out) (Glorot & Bengio 2010); convolutions to relu
    layers have 2 / fan in if the input is normalized, as that assumes (He et al. 2015). Recurrent
    weights are scaled down to `INITIAL_COUPLING` and to their spectral bound, and are symmetric if
    a layer is connected to itself. Attention starts with queries equal to keys (an orthogonal
    matrix), so that tokens attend to similar tokens.
    """
    params: dict[str, Array] = {}
    standardized = any(isinstance(c.operator, Normalized) for c in network.connections)
    for connection in network.connections:
        shape = network.weight_shape(connection)
        from_input = network[connection.source].role is Role.INPUT
        if isinstance(connection.operator, Attention):
            norm = min(INITIAL_ATTENTION_NORM, connection.bound or np.inf)
            params[connection.name] = equal_orthogonal(shape, norm, rng)
            continue
        if not np.prod(shape):
            params[connection.name] = np.zeros(shape)
            continue
        if isinstance(connection.operator, Embedding):
            params[connection.name] = word_vectors(shape, rng)
            continue
        rectified = network[connection.target].activation == RELU
        if standardized and rectified and len(shape) == 4:
            limit = np.sqrt(6.0 / np.prod(shape[1:]))
        else:
            limit = np.sqrt(6.0 / fan_sum(connection.operator, shape))
        weight = rng.uniform(-limit, limit, shape)
        if connection.loops and connection.symmetric and connection.operator.matrix:
            weight = (weight + weight.T) / 2
        if from_input and isinstance(connection.operator, PerToken):
            weight = weight * EMBEDDING_GAIN
        if not from_input:
            weight = weight * coupling_factor(network, connection, weight)
        params[connection.name] = weight
    for layer in network.moving:
        params[layer.name] = np.zeros(layer.bias)
    return params


def word_vectors(shape: Shape, rng: np.random.Generator) -> Array:
    """Normally distributed word vectors; the vector of padding is zero."""
    table = WORD_DEVIATION * rng.standard_normal(shape)
    table[0] = 0.0
    return table


def equal_orthogonal(shape: Shape, norm: float, rng: np.random.Generator) -> Array:
    """`shape[0]` copies of one random orthogonal matrix, times `norm`."""
    orthogonal, _ = np.linalg.qr(rng.standard_normal(shape[1:]))
    return np.asarray(norm * np.stack([orthogonal] * shape[0]))


def fan_sum(operator: Operator, shape: Shape) -> int:
    """Fan in plus fan out of a weight."""
    if isinstance(operator, Sparse):
        return 2 * operator.fan_in
    if len(shape) < 4:
        return shape[0] + shape[-1]
    positions = int(np.prod(shape[2:]))
    # Patches do not overlap, so an input pixel drives the units of one patch only.
    reuse = 1 if isinstance(operator, Patches) else positions
    return positions * shape[1] + reuse * shape[0]


def coupling_factor(network: Network, connection: Connection, weight: Array) -> Array:
    """The factor, at most one, that scales a recurrent weight to its largest initial norm."""
    source = network[connection.source].shape
    norms = np.asarray(connection.operator.spectral_norms(NumpyOps(), weight, source))
    operator = connection.operator
    gain = operator.gain if isinstance(operator, OwnFeedback) else 1.0
    largest = min(gain * INITIAL_COUPLING, connection.bound or np.inf)
    ratio = largest / np.maximum(norms, np.finfo(float).tiny)  # a weight may reach no unit
    factors = np.asarray(np.minimum(1.0, ratio))
    return factors.reshape(-1, *[1] * (weight.ndim - 1)) if len(factors) > 1 else factors
