"""Conversion of the linear operators of a rate network to synapses, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.operators import (
    Conv2d,
    DelayedFeedback,
    Dense,
    Embedding,
    Identity,
    Normalized,
    Operator,
    OwnFeedback,
    Pooled,
    Sparse,
)
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    DiagonalSynapses,
    SparseSynapses,
    Synapses,
    csr,
)

FEW = 0.1
"""Fraction of nonzero weights below which a pruned matrix is stored as sparse."""
DENSE = 0.2
"""Fraction of nonzero weights from which a dense matrix needs less memory than a sparse one."""


def operator_synapses(operator: Operator, weight: Array, source: Shape) -> Synapses:
    """The synapses of a linear operator with that weight, from a layer of shape `source`."""
    if isinstance(operator, OwnFeedback):
        weight = operator.gain * weight
    if isinstance(operator, Dense | OwnFeedback):
        few = np.count_nonzero(weight) < FEW * weight.size
        return csr(weight) if few else DenseSynapses(weight)
    if isinstance(operator, Sparse):
        return sparse(operator, weight, int(np.prod(source)))
    if isinstance(operator, Conv2d):
        return ConvolutionSynapses(weight, source, stride=operator.stride, padding=operator.padding)
    if isinstance(operator, Identity | DelayedFeedback):
        value = 1.0 if isinstance(operator, Identity) else weight[0] * sum(operator.parts)
        return DiagonalSynapses(np.full(int(np.prod(source)), value))
    found = pooled(operator, weight, source) if isinstance(operator, Pooled) else None
    return by_unit_vectors(operator, weight, source) if found is None else found


def sparse(operator: Sparse, weight: Array, sources: int) -> SparseSynapses:
    """The weights as a sparse matrix, plus its transpose if the operator is symmetric."""
    targets, fan_in = weight.shape
    made = SparseSynapses(
        (targets, sources),
        np.arange(targets + 1) * fan_in,
        operator.sources(targets, sources).astype(np.int32).ravel(),
        weight.ravel(),
    )
    return made.plus(made.T) if operator.symmetric else made


def pooled(operator: Pooled, weight: Array, source: Shape) -> ConvolutionSynapses | None:
    """Average pooling followed by a convolution, or by a matrix as a kernel of the image size."""
    share, small = 1.0 / operator.size**2, operator.pooled_shape(source)
    inner = operator_synapses(operator.inner, weight, small)
    if isinstance(inner, ConvolutionSynapses):
        pool = inner.pool * operator.size
        return replace(inner, kernel=inner.kernel * share, image=source, pool=pool)
    if isinstance(inner, DenseSynapses):
        return ConvolutionSynapses(weight.reshape(-1, *small) * share, source, pool=operator.size)
    return None


def unit_vectors(source: Shape) -> Iterator[tuple[slice, Array]]:
    """One-hot states of a layer in batches of up to 512, each with its slice of units."""
    size = int(np.prod(source))
    for start in range(0, size, 512):
        part = slice(start, min(start + 512, size))
        yield part, np.eye(part.stop - start, size, start).reshape(-1, *source)


def by_unit_vectors(operator: Operator, weight: Array, source: Shape) -> Synapses:
    """The synapses of any linear operator, from its outputs for one-hot states of its source."""
    parts = []
    for _, x in unit_vectors(source):
        rows = operator.forward(NumpyOps(), weight, x, np.zeros(1))
        parts.append(csr(rows.reshape(len(rows), -1)))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.indptr) for p in parts]))])
    targets = parts[0].shape[1]
    backwards = SparseSynapses(
        (int(np.prod(source)), targets),
        indptr,
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.data for part in parts]),
    )
    found = backwards.T
    full = len(found.data) >= DENSE * found.shape[0] * found.shape[1]
    return DenseSynapses(found.dense()) if full else found


def operator_matrix(operator: Operator, weight: Array, source: Shape) -> Array:
    """A linear operator as a matrix from flat source to flat target."""
    return operator_synapses(operator, weight, source).dense()


def weight_from_synapses(
    operator: Operator, synapses: Synapses, shapes: tuple[Shape, Shape]
) -> Array:
    """The weight of a linear operator between layers of these shapes, from its synapses."""
    if isinstance(synapses, ConvolutionSynapses):
        weight = synapses.kernel * float(synapses.pool**2)
        return weight.reshape(operator.weight_shape(*shapes))
    return weight_from_matrix(operator, synapses.dense(), shapes)


def weight_from_matrix(operator: Operator, matrix: Array, shapes: tuple[Shape, Shape]) -> Array:
    """The weight of a linear operator between layers of these shapes, from its matrix.

    The matrix is A = sum over k of w_k B_k. Entries of different weights do not overlap, so
    w_k = <B_k, A> / <B_k, B_k>, where a weight of ones gives the sum of all B_k.
    """
    if isinstance(operator, Dense):
        return matrix
    source, target = shapes
    ones = np.ones(operator.weight_shape(source, target))
    found, unit = np.zeros_like(ones), np.zeros_like(ones)
    for part, x in unit_vectors(source):
        own = operator.forward(NumpyOps(), ones, x, np.zeros(1))
        given = matrix[:, part].T.reshape(own.shape)
        found += operator.weight_gradient(NumpyOps(), ones, given, x)
        unit += operator.weight_gradient(NumpyOps(), ones, own, x)
    return np.asarray(found / unit)


def dense_macs(network: Network, params: Mapping[str, Array]) -> int:
    """Multiplications of one dense feed-forward pass, after normalisation and average pooling.

    The table of an embedding is looked up, which takes none.
    """
    total = 0
    for connection in network.connections:
        operator, shape = connection.operator, network[connection.source].shape
        while isinstance(operator, Normalized | Pooled):
            if isinstance(operator, Pooled):
                shape = operator.pooled_shape(shape)
            operator = operator.inner
        if not connection.loops and not isinstance(operator, Embedding):
            total += operator_synapses(operator, params[connection.name], shape).count
    return total
