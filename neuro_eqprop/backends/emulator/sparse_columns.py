"""A sparse matrix by columns instead of rows, compiled: 10^8 weights in seconds."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.emulator.kernels import Rows
from neuro_eqprop.jit import outer


@outer
def by_column(indptr: Ints, indices: Rows, data: Array, columns: int) -> tuple[Ints, Rows, Array]:
    """Heads, rows and weights of the columns; rows increase, weights of zero are left out."""
    heads = np.zeros(columns + 1, dtype=np.int64)
    for k in range(indices.size):
        if data[k] != 0.0:
            heads[indices[k] + 1] += 1
    for j in range(columns):
        heads[j + 1] += heads[j]
    rows, weights = np.empty(heads[columns], dtype=np.int32), np.empty(heads[columns])
    free = heads[:-1].copy()
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0.0:
                at = free[indices[k]]
                rows[at], weights[at] = i, data[k]
                free[indices[k]] = at + 1
    return heads, rows, weights
