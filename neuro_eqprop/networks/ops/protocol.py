"""The array operations of rate networks, for libraries of the array API standard and for torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from neuro_eqprop.common.arrays import Array, Bits, Ints, Shape
from neuro_eqprop.networks.activations import Activation

Values: TypeAlias = Any
"""A NumPy array or a torch tensor; states have the shape (batch, *layer shape)."""


class Ops(Protocol):
    """Array operations of one library at one precision.

    `+`, `-`, `*`, `/`, `@`, `.T` and slices are common to all libraries; the operations below
    differ between them. Attention and embeddings also use `.sum` and `.reshape`,
    which NumPy, torch, JAX and CuPy have beside the standard.
    """

    def from_numpy(self, array: Array) -> Values:
        """A NumPy array in this library, at its precision."""
        ...

    def to_numpy(self, values: Values) -> Array:
        """The values as a float64 NumPy array."""
        ...

    def numpy_view(self, values: Values) -> Array | None:
        """A NumPy array that shares the memory of the values; None if there is no such view."""
        ...

    def empty(self, shape: Shape) -> Values:
        """An uninitialized array."""
        ...

    def zeros(self, shape: Shape) -> Values:
        """An array of zeros."""
        ...

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x; a new array."""
        ...

    def addmm(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b for matrices, written to `into`, or to a new array if that is None."""
        ...

    def take_rows(self, table: Values, index: Values) -> Values:
        """table[index]; the index has any shape and holds integers in floating point."""
        ...

    def add_rows(self, values: Values, index: Values, rows: int) -> Values:
        """y[k] = the sum of `values` (*index shape, units) where the index is k, for k < rows."""
        ...

    def einsum(self, spec: str, *values: Values) -> Values:
        """Sum of products by index, as in `numpy.einsum`."""
        ...

    def conv(self, x: Values, kernel: Values, padding: int = 0) -> Values:
        """Cross-correlation: y[o, i, j] = sum kernel[o, c, a, b] x[c, i + a, j + b].

        x has `padding` zeros on each side.
        """
        ...

    def conv_transpose(self, y: Values, kernel: Values, padding: int = 0) -> Values:
        """The transpose of `conv`."""
        ...

    def conv_weight_gradient(self, y: Values, x: Values, padding: int = 0) -> Values:
        """The gradient of y . conv(x, kernel) with respect to the kernel, summed over the batch."""
        ...

    def pool(self, x: Values, size: int) -> Values:
        """Average pooling over squares of `size` by `size`."""
        ...

    def unpool(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        ...

    def max_pool(self, x: Values, size: int) -> tuple[Values, Values]:
        """The largest value of each square of `size` by `size`, and its place there."""
        ...

    def max_unpool(self, y: Values, places: Values, size: int) -> Values:
        """y at those places of the squares, and zeros beside them."""
        ...

    def sum_at(self, values: Values, index: Ints, size: int) -> Values:
        """y[:, k] = the sum of the columns j of `values` with index[j] = k, for k < size."""
        ...

    def take_columns(self, x: Values, index: Ints) -> Values:
        """x[:, index]."""
        ...

    def concat_columns(self, parts: Sequence[Values]) -> Values:
        """The columns of all parts, side by side."""
        ...

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u; may overwrite u."""
        ...

    def softmax(self, u: Values) -> Values:
        """The softmax along the last axis."""
        ...

    def log_softmax(self, u: Values) -> Values:
        """The logarithm of the softmax along the last axis."""
        ...

    def argmax(self, values: Values) -> Values:
        """The index of the largest value of each row."""
        ...

    def layer_norm(self, x: Values) -> Values:
        """(x - mean) / standard deviation along the last axis."""
        ...

    def elu_plus_one(self, u: Values) -> Values:
        """elu(u) + 1: exp(u) below zero, 1 + u above."""
        ...

    def sum(self, values: Values, axes: tuple[int, ...] | None = None) -> Values:
        """The sum over some axes, or over all."""
        ...

    def sum_batch(self, values: Values) -> Values:
        """The sum over the batch."""
        ...

    def max_change(self, new: Values, old: Values) -> Array:
        """The largest absolute difference of each sample."""
        ...

    def dots(self, a: Values, b: Values) -> Array:
        """The scalar product of each sample's values; a is conjugated if complex."""
        ...

    def where(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        ...

    def is_finite(self, values: Values) -> bool:
        """Whether no value is NaN or infinite."""
        ...

    def spectral_norm(self, matrix: Values) -> float:
        """The largest singular value of a matrix."""
        ...


def reshape(values: Values, shape: Shape) -> Values:
    """The values in another shape, by their method or by the function of the standard."""
    if hasattr(values, "reshape"):
        return values.reshape(shape)
    return values.__array_namespace__().reshape(values, shape)
