"""Sparse matrices by column, in words of 16 bits of the target and 16 bits of the weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.common.jit import outer
from neuro_eqprop.simulators.emulator.kernels import Rows, Units
from neuro_eqprop.spiking.synapses import SparseSynapses

REACH = 2**16
"""Targets of a block, which 16 bits tell apart."""
COMPILED = 2**18
"""Number of weights above which sorting them is compiled."""


class SparseColumns(NamedTuple):
    """The columns of a sparse matrix, by block of targets and source."""

    heads: Units
    """Where each column begins, and where the last one ends."""
    words: Rows
    weights: Array
    """Empty if the words hold the weights."""


def sparse_columns(synapses: SparseSynapses, scale: float | None) -> SparseColumns:
    """The columns of a sparse matrix; weights times the scale are 16-bit integers, unless None."""
    targets, sources = synapses.shape
    if len(synapses.data) >= 2**32:
        raise ValueError(f"{len(synapses.data)} synapses in one projection are more than 2^32")
    if len(synapses.data) <= COMPILED:
        return sorted_columns(synapses, scale)
    matrix = (synapses.indptr.astype(np.int64), synapses.indices, synapses.data)
    return SparseColumns(*by_column(*matrix, sources, -(-targets // REACH), scale or 0.0))


def sorted_columns(synapses: SparseSynapses, scale: float | None) -> SparseColumns:
    """As `by_column`, of a small matrix."""
    targets, sources = synapses.shape
    rows = np.repeat(np.arange(targets), np.diff(synapses.indptr))
    kept = synapses.data != 0.0
    rows, columns, data = rows[kept], synapses.indices[kept], synapses.data[kept]
    key = rows // REACH * sources + columns
    order = np.argsort(key, kind="stable")
    heads = np.zeros(-(-targets // REACH) * sources + 1, dtype=np.uint32)
    heads[1:] = np.cumsum(np.bincount(key, minlength=heads.size - 1))
    words = (rows % REACH)[order]
    if scale is None:
        return SparseColumns(heads, words.astype(np.int32), data[order])
    words |= (data[order] * scale).astype(np.int64) << 16
    return SparseColumns(heads, words.astype(np.int32), np.zeros(0))


@outer
def by_column(
    indptr: npt.NDArray[np.int64],
    indices: Rows,
    data: Array,
    sources: int,
    blocks: int,
    scale: float,
) -> tuple[Any, Any, Any]:
    """Heads, words and weights of the columns, targets increasing; zeros are dropped."""
    heads = np.zeros(blocks * sources + 1, dtype=np.uint32)
    for i in range(indptr.size - 1):
        first = i // REACH * sources + 1
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0.0:
                heads[first + indices[k]] += np.uint32(1)
    for j in range(heads.size - 1):
        heads[j + 1] += heads[j]
    words = np.empty(heads[-1], dtype=np.int32)
    weights = np.empty(0 if scale != 0.0 else words.size)
    following = heads[:-1].copy()
    for i in range(indptr.size - 1):
        first = i // REACH * sources
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0.0:
                at = following[first + indices[k]]
                following[first + indices[k]] = at + np.uint32(1)
                words[at] = i % REACH
                if scale != 0.0:
                    words[at] |= np.int32(data[k] * scale) << np.int32(16)
                else:
                    weights[at] = data[k]
    return heads, words, weights
