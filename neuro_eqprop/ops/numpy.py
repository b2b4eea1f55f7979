"""The operations of rate networks in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from neuro_eqprop.activations import Activation, ActivationKind
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.ops.protocol import Values

STEADY = 1e-5
"""Added to a variance before its root is divided by."""


def windows(x: Values, size: Shape) -> Values:
    """Every window of that size over the last two axes, without a copy."""
    return sliding_window_view(x, size, axis=(2, 3))  # type: ignore[call-overload]


@dataclass(frozen=True, slots=True)
class NumpyOps:
    """NumPy at a precision."""

    dtype: type[np.floating] = np.float64  # type: ignore[type-arg]

    def bring(self, array: Array) -> Values:
        """The array at this precision."""
        return np.ascontiguousarray(array, dtype=self.dtype)

    def numpy(self, values: Values) -> Array:
        """The values in float64."""
        return np.asarray(values, dtype=np.float64)

    def shared(self, values: Values) -> Array | None:
        """The values themselves."""
        return np.asarray(values)

    def room(self, shape: Shape) -> Values:
        """Values that are not set yet."""
        return np.empty(shape, dtype=self.dtype)

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        return np.zeros(shape, dtype=self.dtype)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
        brought = x @ matrix
        if gain != 1.0:
            brought *= gain
        brought += onto
        return brought

    def add_product(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b."""
        brought = np.matmul(a, b, out=into)
        if gain != 1.0:
            brought *= gain
        brought += onto
        return brought

    def einsum(self, spec: str, *values: Values) -> Values:
        """Products summed by index."""
        return np.einsum(spec, *values, optimize=True)

    def convolve(self, x: Values, kernel: Values) -> Values:
        """y[o, i, j] = sum of kernel[o, c, a, b] x[c, i + a, j + b]."""
        views = windows(x, kernel.shape[2:])
        return np.einsum("ncijab,ocab->noij", views, kernel, optimize=True)

    def convolve_back(self, y: Values, kernel: Values) -> Values:
        """The transpose: the turned kernel over y with a margin of zeros."""
        high, wide = kernel.shape[2] - 1, kernel.shape[3] - 1
        padded = np.pad(y, ((0, 0), (0, 0), (high, high), (wide, wide)))
        return self.convolve(padded, kernel.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])

    def convolve_slope(self, y: Values, x: Values) -> Values:
        """The gradient of y . convolve(x, kernel) by kernel."""
        size = (x.shape[2] - y.shape[2] + 1, x.shape[3] - y.shape[3] + 1)
        views = windows(x, size)
        return np.einsum("noij,ncijab->ocab", y, views, optimize=True)

    def pool(self, x: Values, size: int) -> Values:
        """The means of squares of `size` by `size`."""
        n, c, high, wide = x.shape
        return x.reshape(n, c, high // size, size, wide // size, size).mean(axis=(3, 5))

    def spread(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        return y.repeat(size, axis=2).repeat(size, axis=3) / size**2

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if activation.curve is ActivationKind.TANH:
            return np.tanh(u)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        rates = np.maximum(u, activation.low, out=u)
        return rates if activation.high == np.inf else np.minimum(rates, activation.high, out=rates)

    def softmax(self, u: Values) -> Values:
        """exp(u) over its sum along the last axis."""
        grown = np.exp(u - u.max(axis=-1, keepdims=True))
        return grown / grown.sum(axis=-1, keepdims=True)

    def normalise(self, x: Values) -> Values:
        """x less its mean, over its deviation, along the last axis."""
        moved = x - x.mean(axis=-1, keepdims=True)
        return moved / np.sqrt((moved * moved).mean(axis=-1, keepdims=True) + STEADY)

    def positive(self, u: Values) -> Values:
        """exp(u) below zero, 1 + u above."""
        return np.exp(np.minimum(u, 0.0)) + np.maximum(u, 0.0)

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        return values.sum(axis=0)

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        return np.asarray(np.abs(values).reshape(len(values), -1).max(axis=1), dtype=np.float64)

    def dots(self, a: Values, b: Values) -> Array:
        """For each sample, the scalar product of its values."""
        return np.asarray((a.conj() * b).reshape(len(a), -1).sum(axis=1))

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        return np.where(rows.reshape(-1, *[1] * (yes.ndim - 1)), yes, no)

    def norm(self, matrix: Values) -> float:
        """The largest singular value."""
        return float(np.linalg.norm(matrix, 2))
