"""The few operations that the array libraries spell differently."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from neuro_eqprop.activations import Activation
from neuro_eqprop.arrays import Array, Bits, Shape

Values: TypeAlias = Any
"""A NumPy array or a torch tensor, of shape (batch, *layer) for states; its `Ops` knows which."""


class Ops(Protocol):
    """A spelling: `+`, `-`, `*`, `/`, `.T`, `.reshape` are shared by all, the rest is here."""

    def bring(self, array: Array) -> Values:
        """The array in this library, at its precision."""
        ...

    def numpy(self, values: Values) -> Array:
        """The values as a float64 NumPy array."""
        ...

    def shared(self, values: Values) -> Array | None:
        """The values as a NumPy array in the same memory; None where that cannot be had."""
        ...

    def room(self, shape: Shape) -> Values:
        """Values of that shape, to be written before they are read."""
        ...

    def zeros(self, shape: Shape) -> Values:
        """Zeros of that shape."""
        ...

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x; a fresh array."""
        ...

    def add_product(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b for matrices; in the array `into`, or a fresh one if that is None."""
        ...

    def einsum(self, spec: str, *values: Values) -> Values:
        """Products summed by index, as in `numpy.einsum`."""
        ...

    def convolve(self, x: Values, kernel: Values) -> Values:
        """y[o, i, j] = sum of kernel[o, c, a, b] x[c, i + a, j + b], where it fits whole."""
        ...

    def convolve_back(self, y: Values, kernel: Values) -> Values:
        """The transpose of `convolve`."""
        ...

    def convolve_slope(self, y: Values, x: Values) -> Values:
        """The gradient of y . convolve(x, kernel) by kernel, summed over the batch."""
        ...

    def pool(self, x: Values, size: int) -> Values:
        """The means of squares of `size` by `size`."""
        ...

    def spread(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        ...

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u; u may be overwritten."""
        ...

    def softmax(self, u: Values) -> Values:
        """exp(u) over its sum along the last axis."""
        ...

    def normalise(self, x: Values) -> Values:
        """x less its mean, over its deviation, along the last axis."""
        ...

    def positive(self, u: Values) -> Values:
        """exp(u) below zero, 1 + u above: elu(u) + 1."""
        ...

    def total(self, values: Values) -> Values:
        """The sum over the batch."""
        ...

    def largest(self, values: Values) -> Array:
        """For each sample, the largest size of its values."""
        ...

    def dots(self, a: Values, b: Values) -> Array:
        """For each sample, the scalar product of its values (of conjugated a, where complex)."""
        ...

    def choose(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        ...

    def norm(self, matrix: Values) -> float:
        """The largest singular value of a matrix."""
        ...
