"""The array operations of rate networks over the Python array API standard.

`ArrayOps(xp.float64, xp)` takes any namespace of the standard (2023.12): `array_api_strict`,
`jax.numpy` with 64 bits, `cupy`, or that of `array_api_compat` for torch. `NumpyOps` is the same
with what NumPy alone can do faster. Values leave as NumPy arrays by DLPack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints, Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.ops.protocol import Values

EPSILON = 1e-5
"""Added to the variance in a layer norm, as in torch."""


class StandardOps:
    """What all libraries of the standard share; a subclass has their namespace `xp` and a type."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def dtype(self) -> Any:  # noqa: ANN401
            """The floating-point type."""
            ...

        @property
        def xp(self) -> Any:  # noqa: ANN401
            """The namespace of the standard."""
            ...

    def from_numpy(self, array: Array) -> Values:
        """The array in this library."""
        return self.xp.asarray(np.ascontiguousarray(array), dtype=self.dtype)

    def to_numpy(self, values: Values) -> Array:
        """The values as float64."""
        return np.asarray(host(values), dtype=np.float64)

    def numpy_view(self, values: Values) -> Array | None:
        """No view: arrays may be immutable, or on another device."""
        return None

    def empty(self, shape: Shape) -> Values:
        """An uninitialized array."""
        return self.xp.empty(shape, dtype=self.dtype)

    def zeros(self, shape: Shape) -> Values:
        """An array of zeros."""
        return self.xp.zeros(shape, dtype=self.dtype)

    def affine(self, onto: Values, x: Values, matrix: Values, gain: float = 1.0) -> Values:
        """onto + gain x matrix, for rows x."""
        return onto + gain * (x @ matrix)

    def addmm(self, onto: Values, a: Values, b: Values, gain: float, into: Values) -> Values:
        """onto + gain a b, always in a new array."""
        return self.affine(onto, a, b, gain)

    def one_hot(self, index: Values, size: int) -> Values:
        """A row for each index, with a one at its place."""
        places = self.xp.arange(size)
        return self.xp.astype(self.xp.expand_dims(index, axis=-1) == places, self.dtype)

    def take_rows(self, table: Values, index: Values) -> Values:
        """table[index]."""
        flat = self.xp.astype(self.xp.reshape(index, (-1,)), self.xp.int64)
        rows = self.xp.take(table, flat, axis=0)
        return self.xp.reshape(rows, (*index.shape, *table.shape[1:]))

    def add_rows(self, values: Values, index: Values, rows: int) -> Values:
        """y[k] = the sum of `values` where the index is k."""
        flat = self.xp.astype(self.xp.reshape(index, (-1,)), self.xp.int64)
        return self.one_hot(flat, rows).T @ self.xp.reshape(values, (flat.shape[0], -1))

    def einsum(self, spec: str, *values: Values) -> Values:
        """Sum of products by index, of matrices in broadcast form."""
        inputs, output = spec.split("->")
        names = inputs.split(",")
        letters = output + "".join(sorted(set("".join(names)) - set(output)))
        product: Values = None
        for part, value in zip(names, values, strict=True):
            order = sorted(range(len(part)), key=lambda k: letters.index(part[k]))
            moved = self.xp.permute_dims(value, tuple(order))
            shape = tuple(value.shape[part.index(x)] if x in part else 1 for x in letters)
            wide = self.xp.reshape(moved, shape)
            product = wide if product is None else product * wide
        summed = tuple(range(len(output), len(letters)))
        return self.xp.sum(product, axis=summed) if summed else product

    def pad(self, x: Values, high: int, wide: int) -> Values:
        """Images with zeros on each side."""
        n, c, rows, columns = x.shape
        above = self.xp.zeros((n, c, high, columns), dtype=x.dtype)
        taller = self.xp.concat([above, x, above], axis=2)
        beside = self.xp.zeros((n, c, rows + 2 * high, wide), dtype=x.dtype)
        return self.xp.concat([beside, taller, beside], axis=3)

    def windows(self, x: Values, high: int, wide: int) -> Values:
        """All windows of that size (high, wide, n, c, i, j)."""
        rows, columns = x.shape[2] - high + 1, x.shape[3] - wide + 1
        return self.xp.stack(
            [
                self.xp.stack([x[:, :, a : a + rows, b : b + columns] for b in range(wide)])
                for a in range(high)
            ]
        )

    def conv(self, x: Values, kernel: Values, padding: int = 0) -> Values:
        """y[o, i, j] = sum kernel[o, c, a, b] x[c, i + a, j + b]."""
        views = self.windows(self.pad(x, padding, padding), *kernel.shape[2:])
        return self.einsum("abncij,ocab->noij", views, kernel)

    def conv_transpose(self, y: Values, kernel: Values, padding: int = 0) -> Values:
        """The transpose of `conv`: the flipped kernel over zero-padded y."""
        padded = self.pad(y, kernel.shape[2] - 1, kernel.shape[3] - 1)
        turned = self.xp.permute_dims(self.xp.flip(kernel, axis=(2, 3)), (1, 0, 2, 3))
        whole = self.conv(padded, turned)
        rows, columns = whole.shape[2] - padding, whole.shape[3] - padding
        return whole[:, :, padding:rows, padding:columns]

    def conv_weight_gradient(self, y: Values, x: Values, padding: int = 0) -> Values:
        """The gradient of y . conv(x, kernel) with respect to the kernel."""
        views = self.windows(self.pad(x, padding, padding), *y.shape[2:])
        return self.einsum("noij,ijncab->ocab", y, views)

    def pool(self, x: Values, size: int) -> Values:
        """Average pooling over squares of `size` by `size`."""
        n, c, high, wide = x.shape
        squares = self.xp.reshape(x, (n, c, high // size, size, wide // size, size))
        return self.xp.mean(squares, axis=(3, 5))

    def unpool(self, y: Values, size: int) -> Values:
        """The transpose of `pool`."""
        rows = self.xp.repeat(y, size, axis=2)
        return self.xp.repeat(rows, size, axis=3) / size**2

    def max_pool(self, x: Values, size: int) -> tuple[Values, Values]:
        """The largest value of each square of `size` by `size`, and its place there."""
        n, c, high, wide = x.shape
        squares = self.xp.reshape(x, (n, c, high // size, size, wide // size, size))
        rows = self.xp.permute_dims(squares, (0, 1, 2, 4, 3, 5))
        rows = self.xp.reshape(rows, (n, c, high // size, wide // size, size**2))
        return self.xp.max(rows, axis=-1), self.xp.argmax(rows, axis=-1)

    def max_unpool(self, y: Values, places: Values, size: int) -> Values:
        """y at those places of the squares, and zeros beside them."""
        n, c, high, wide = y.shape
        chosen = self.one_hot(self.xp.reshape(places, (-1,)), size**2)
        rows = self.xp.reshape(y, (-1, 1)) * self.xp.astype(chosen, y.dtype)
        squares = self.xp.reshape(rows, (n, c, high, wide, size, size))
        squares = self.xp.permute_dims(squares, (0, 1, 2, 4, 3, 5))
        return self.xp.reshape(squares, (n, c, high * size, wide * size))

    def sum_at(self, values: Values, index: Ints, size: int) -> Values:
        """y[:, k] = the sum of the columns j with index[j] = k."""
        return values @ self.one_hot(self.xp.asarray(index), size)

    def take_columns(self, x: Values, index: Ints) -> Values:
        """x[:, index]."""
        columns = self.xp.take(x, self.xp.asarray(index.ravel()), axis=1)
        return self.xp.reshape(columns, (x.shape[0], *index.shape))

    def concat_columns(self, parts: Sequence[Values]) -> Values:
        """The columns of all parts, side by side."""
        return self.xp.concat(parts, axis=1)

    def activate(self, activation: Activation, u: Values) -> Values:
        """The rate at drive u."""
        if not activation.piecewise_linear:
            return activation.curve.value(u, self.xp)
        if activation.low > -np.inf:
            u = self.xp.where(u < activation.low, activation.low, u)
        if activation.high < np.inf:
            u = self.xp.where(u > activation.high, activation.high, u)
        return u

    def softmax(self, u: Values) -> Values:
        """The softmax along the last axis."""
        exponentials = self.xp.exp(u - self.xp.max(u, axis=-1, keepdims=True))
        return exponentials / self.xp.sum(exponentials, axis=-1, keepdims=True)

    def log_softmax(self, u: Values) -> Values:
        """The logarithm of the softmax along the last axis."""
        most = self.xp.max(u, axis=-1, keepdims=True)
        total = self.xp.sum(self.xp.exp(u - most), axis=-1, keepdims=True)
        return u - most - self.xp.log(total)

    def argmax(self, values: Values) -> Values:
        """The index of the largest value of each row."""
        return self.xp.argmax(values, axis=1)

    def layer_norm(self, x: Values) -> Values:
        """(x - mean) / standard deviation along the last axis."""
        centred = x - self.xp.mean(x, axis=-1, keepdims=True)
        variance = self.xp.mean(centred * centred, axis=-1, keepdims=True)
        return centred / self.xp.sqrt(variance + EPSILON)

    def elu_plus_one(self, u: Values) -> Values:
        """elu(u) + 1."""
        zero = self.xp.zeros((), dtype=u.dtype)
        return self.xp.exp(self.xp.minimum(u, zero)) + self.xp.maximum(u, zero)

    def sum(self, values: Values, axes: tuple[int, ...] | None = None) -> Values:
        """The sum over some axes, or over all."""
        return self.xp.sum(values, axis=axes)

    def sum_batch(self, values: Values) -> Values:
        """The sum over the batch."""
        return self.xp.sum(values, axis=0)

    def max_change(self, new: Values, old: Values) -> Array:
        """The largest absolute difference of each sample."""
        rows = self.xp.reshape(self.xp.abs(new - old), (new.shape[0], -1))
        return np.asarray(host(self.xp.max(rows, axis=1)), dtype=np.float64)

    def dots(self, a: Values, b: Values) -> Array:
        """The scalar product of each sample's values."""
        conjugate = self.xp.conj(a) if self.xp.isdtype(a.dtype, "complex floating") else a
        rows = self.xp.reshape(conjugate * b, (a.shape[0], -1))
        return np.asarray(host(self.xp.sum(rows, axis=1)))

    def where(self, rows: Bits, yes: Values, no: Values) -> Values:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        wide = np.reshape(rows, (-1, *[1] * (yes.ndim - 1)))
        return self.xp.where(self.xp.asarray(wide), yes, no)

    def is_finite(self, values: Values) -> bool:
        """Whether no value is NaN or infinite."""
        return bool(self.xp.all(self.xp.isfinite(values)))

    def spectral_norm(self, matrix: Values) -> float:
        """The largest singular value."""
        return float(np.linalg.norm(host(matrix), 2))


@dataclass(frozen=True, slots=True)
class ArrayOps(StandardOps):
    """Arrays of one floating-point type of any library that has the array API standard."""

    dtype: Any
    xp: Any


def host(values: Values) -> Array:
    """The values as a NumPy array on the host: by DLPack, or by `get` of CuPy."""
    if isinstance(values, np.ndarray):
        return values
    return np.asarray(values.get() if hasattr(values, "get") else np.from_dlpack(values))
