"""The operations of rate networks in NumPy, without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.activations import Activation, Curve
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.operators import Operator
from neuro_eqprop.rate.ops import Values


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

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        return np.zeros(shape, dtype=self.dtype)

    def forward(self, operator: Operator, weight: Values, x: Values, onto: Values) -> Values:
        """Dense: onto + x W^T for rows x."""
        brought = x @ weight.T
        brought += onto
        return brought

    def backward(
        self, operator: Operator, weight: Values, y: Values, onto: Values, gain: float
    ) -> Values:
        """Dense: onto + gain y W for rows y."""
        brought = y @ weight
        if gain != 1.0:
            brought *= gain
        brought += onto
        return brought

    def correlate(self, operator: Operator, post: Values, pre: Values) -> Values:
        """Dense: the sum over the batch of post pre^T."""
        return post.T @ pre

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if activation.curve is Curve.TANH:
            return np.tanh(u)
        if activation.low == -np.inf and activation.high == np.inf:
            return u
        return np.minimum(np.maximum(u, activation.low), activation.high)

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        return values.sum(axis=0)

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        return np.asarray(np.abs(values).reshape(len(values), -1).max(axis=1), dtype=np.float64)

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        return np.where(rows.reshape(-1, *[1] * (yes.ndim - 1)), yes, no)

    def norm(self, weight: Values) -> float:
        """The largest singular value."""
        return float(np.linalg.norm(weight.reshape(len(weight), -1), 2))
