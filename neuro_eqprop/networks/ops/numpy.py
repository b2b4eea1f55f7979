"""The array operations of rate networks in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from neuro_eqprop.common.arrays import Array, Ints, Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.ops.array_api import StandardOps
from neuro_eqprop.networks.ops.protocol import Values


def pad(x: Values, padding: int) -> Values:
    """Images with zeros on each side."""
    return np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2)) if padding else x


def windows(x: Values, size: Shape) -> Values:
    """All windows of that size over the last two axes, as a view."""
    return sliding_window_view(x, size, axis=(2, 3))  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class NumpyOps(StandardOps):
    """NumPy arrays of one floating-point type, with what NumPy does faster than the standard."""

    dtype: type[np.floating[Any]] = np.float64

    @property
    def xp(self) -> Any:  # noqa: ANN401
        """NumPy."""
        return np

    def from_numpy(self, array: Array) -> Values:
        """The array, contiguous, at this precision."""
        return np.ascontiguousarray(array, dtype=self.dtype)

    def to_numpy(self, values: Values) -> Array:
        """The values as float64."""
        return np.asarray(values, dtype=np.float64)

    def numpy_view(self, values: Values) -> Array | None:
        """The array itself."""
        return np.asarray(values)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
        product = x @ matrix
        if gain != 1.0:
            product *= gain
        product += onto
        return product

    def addmm(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b."""
        product = np.matmul(a, b, out=into)
        if gain != 1.0:
            product *= gain
        product += onto
        return product

    def take_rows(self, table: Values, index: Values) -> Values:
        """table[index]."""
        return table[index.real.astype(np.int64)]

    def add_rows(self, values: Values, index: Values, rows: int) -> Values:
        """y[k] = the sum of `values` where the index is k."""
        total = np.zeros((rows, values.shape[-1]), dtype=values.dtype)
        flat = index.real.astype(np.int64).ravel()
        np.add.at(total, flat, values.reshape(len(flat), -1))
        return total

    def einsum(self, spec: str, *values: Values) -> Values:
        """Sum of products by index."""
        return np.einsum(spec, *values, optimize=True)

    def conv(self, x: Values, kernel: Values, padding: int = 0) -> Values:
        """y[o, i, j] = sum kernel[o, c, a, b] x[c, i + a, j + b]."""
        views = windows(pad(x, padding), kernel.shape[2:])
        return np.einsum("ncijab,ocab->noij", views, kernel, optimize=True)

    def conv_transpose(self, y: Values, kernel: Values, padding: int = 0) -> Values:
        """The transpose of `conv`: the flipped kernel over zero-padded y."""
        high, wide = kernel.shape[2] - 1, kernel.shape[3] - 1
        padded = np.pad(y, ((0, 0), (0, 0), (high, high), (wide, wide)))
        whole = self.conv(padded, kernel.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
        inside = slice(padding, -padding or None)
        return whole[:, :, inside, inside]

    def conv_weight_gradient(self, y: Values, x: Values, padding: int = 0) -> Values:
        """The gradient of y . conv(x, kernel) with respect to the kernel."""
        x = pad(x, padding)
        size = (x.shape[2] - y.shape[2] + 1, x.shape[3] - y.shape[3] + 1)
        views = windows(x, size)
        return np.einsum("noij,ncijab->ocab", y, views, optimize=True)

    def sum_at(self, values: Values, index: Ints, size: int) -> Values:
        """y[:, k] = the sum of the columns j with index[j] = k."""
        found = np.zeros((len(values), size), dtype=values.dtype)
        for sums, row in zip(found, values, strict=True):
            np.add.at(sums, index, row)
        return found

    def take_columns(self, x: Values, index: Ints) -> Values:
        """x[:, index]."""
        return x[:, index]

    def concat_columns(self, parts: Sequence[Values]) -> Values:
        """The columns of all parts, side by side."""
        return np.concatenate(parts, axis=1)

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if not activation.piecewise_linear:
            return activation.curve.value(u, np)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        rates = np.maximum(u, activation.low, out=u)
        return rates if activation.high == np.inf else np.minimum(rates, activation.high, out=rates)

    def log_softmax(self, u: Values) -> Values:
        """The logarithm of the softmax along the last axis."""
        return u - np.logaddexp.reduce(u, axis=-1, keepdims=True)

    def dots(self, a: Values, b: Values) -> Array:
        """The scalar product of each sample's values."""
        return np.asarray((a.conj() * b).reshape(len(a), -1).sum(axis=1))
