"""The few operations that the array libraries spell differently."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Array, Bits, Shape
from neuro_eqprop.operators import Operator

Values: TypeAlias = Any
"""A NumPy array or a torch tensor, of shape (batch, *layer) for states; its `Ops` knows which."""


class Ops(Protocol):
    """A spelling: `+`, `-`, `*`, `/` with numbers are shared by all, the rest is here."""

    def bring(self, array: Array) -> Values:
        """The array in this library, at its precision."""
        ...

    def numpy(self, values: Values) -> Array:
        """The values as a float64 NumPy array."""
        ...

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        ...

    def forward(self, operator: Operator, weight: Values, x: Values, onto: Values) -> Values:
        """`onto` plus what the operator makes of its source."""
        ...

    def backward(
        self, operator: Operator, weight: Values, y: Values, onto: Values, gain: float
    ) -> Values:
        """`onto` plus `gain` times what the transposed operator makes of its target."""
        ...

    def correlate(self, operator: Operator, post: Values, pre: Values) -> Values:
        """The gradient of post . forward(weight, pre) by weight, summed over the batch."""
        ...

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        ...

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        ...

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        ...

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        ...

    def norm(self, weight: Values) -> float:
        """The largest singular value of a matrix."""
        ...
