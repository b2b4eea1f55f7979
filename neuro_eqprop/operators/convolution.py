"""Shared kernels over images, and means of squares before another operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators.base import Operator, largest_singular
from neuro_eqprop.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class Conv2d:
    """y[o, i, j] = sum over c, a, b of W[o, c, a, b] x[c, i + a, j + b], where it fits whole."""

    kernel: int
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 3 or len(target) != 3:
            raise ValueError(f"a convolution joins images, not {source} and {target}")
        size = tuple(n - self.kernel + 1 for n in source[1:])
        if target[1:] != size:
            raise ValueError(
                f"a kernel of {self.kernel} makes {size} of {source[1:]}, not {target[1:]}"
            )
        return (target[0], source[0], self.kernel, self.kernel)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W * x."""
        y = ops.convolve(x, weight)
        y += onto
        return y

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain times the transposed convolution of y."""
        back = ops.convolve_back(y, weight)
        if gain != 1.0:
            back *= gain
        back += onto
        return back

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """For each kernel weight, what the places it joins did together."""
        return ops.convolve_slope(post, pre)

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By power iteration on the whole operator, not on the reshaped kernel."""
        return [largest_singular(self, ops, weight, source)]


@dataclass(frozen=True, slots=True)
class Pooled:
    """y = A(W) m, with m the means of x over squares of `size` by `size`."""

    size: int
    inner: Operator
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def pooled(self, source: Shape) -> Shape:
        """The shape of m."""
        if len(source) != 3 or source[1] % self.size or source[2] % self.size:
            raise ValueError(f"{source} cannot be divided into squares of {self.size}")
        return (source[0], source[1] // self.size, source[2] // self.size)

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        return self.inner.parameter(self.pooled(source), target)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + A(W) m."""
        return self.inner.forward(ops, weight, ops.pool(x, self.size), onto)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain A(W)^T y, each value shared by its square."""
        nothing, inside = ops.zeros((1,)), self.pooled(shape)
        back = self.inner.backward(ops, weight, y, nothing, gain=gain, shape=inside)
        wide = ops.spread(back, self.size)
        wide += onto
        return wide

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """As the inner operator, from the means."""
        return self.inner.slope(ops, weight, post, ops.pool(pre, self.size))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By power iteration, the means included."""
        return [largest_singular(self, ops, weight, source)]
