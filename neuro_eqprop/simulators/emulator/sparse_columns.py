"""Conversion of a sparse matrix from rows (CSR) to columns (CSC), compiled for 10^8 weights."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.jit import outer
from neuro_eqprop.simulators.emulator.kernels import Rows


@outer
def by_column(indptr: Ints, indices: Rows, data: Array, columns: int) -> tuple[Ints, Rows, Array]:
    """Column starts, row indices (increasing) and weights; zeros are dropped."""
    starts = np.zeros(columns + 1, dtype=np.int64)
    for k in range(indices.size):
        if data[k] != 0.0:
            starts[indices[k] + 1] += 1
    for j in range(columns):
        starts[j + 1] += starts[j]
    rows, weights = np.empty(starts[columns], dtype=np.int32), np.empty(starts[columns])
    next_entry = starts[:-1].copy()
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] != 0.0:
                at = next_entry[indices[k]]
                rows[at], weights[at] = i, data[k]
                next_entry[indices[k]] = at + 1
    return starts, rows, weights
