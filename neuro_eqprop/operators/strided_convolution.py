"""Kernels over an image with a margin of zeros, or at every second place of it, or third."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators.base import largest_singular
from neuro_eqprop.operators.convolution import Conv2d
from neuro_eqprop.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class StridedConv2d:
    """y[o, i, j] = (W * p)[o, step i, step j], with p the image x in a margin of zeros."""

    margin: int
    step: int
    inner: Conv2d
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.margin < 0 or self.step < 1:
            raise ValueError(f"a margin of {self.margin} with steps of {self.step} cannot be")

    def padded(self, source: Shape) -> Shape:
        """The shape of p."""
        return (*source[:-2], *(n + 2 * self.margin for n in source[-2:]))

    def everywhere(self, source: Shape, channels: int) -> Shape:
        """The shape of W * p, of which every `step`-th place is taken."""
        sides = (n - self.inner.kernel + 1 for n in self.padded(source)[-2:])
        return (channels, *sides)

    def parameter(self, source: Shape, target: Shape) -> Shape:
        """The shape of W."""
        if len(source) != 3 or len(target) != 3:
            raise ValueError(f"a convolution joins images, not {source} and {target}")
        whole = self.everywhere(source, target[0])
        size = tuple(-(-n // self.step) for n in whole[1:])
        if target[1:] != size or min(size) < 1:
            raise ValueError(
                f"a kernel of {self.inner.kernel} in steps of {self.step} makes {size} of "
                f"{source[1:]} with a margin of {self.margin}, not {target[1:]}"
            )
        return self.inner.parameter(self.padded(source), whole)

    def pad(self, ops: Ops, x: Values) -> Values:
        """The image in its margin."""
        if not self.margin:
            return x
        wide = ops.zeros(self.padded(tuple(x.shape)))
        wide[:, :, self.margin : -self.margin, self.margin : -self.margin] = x
        return wide

    def spread(self, ops: Ops, y: Values, shape: Shape) -> Values:
        """The values y at every `step`-th place of zeros; `shape` is the source's."""
        if self.step == 1:
            return y
        wide = ops.zeros((len(y), *self.everywhere(shape, y.shape[1])))
        wide[:, :, :: self.step, :: self.step] = y
        return wide

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + (W * p) at every `step`-th place."""
        return ops.convolve(self.pad(ops, x), weight)[:, :, :: self.step, :: self.step] + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain times the transpose of y, without what falls on the margin."""
        back = gain * ops.convolve_back(self.spread(ops, y, shape), weight)
        a, (high, wide) = self.margin, shape[1:]
        return onto + back[:, :, a : a + high, a : a + wide]

    def slope(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """For each kernel weight, what the places it joins did together."""
        wide = self.spread(ops, post, tuple(pre.shape[1:]))
        return ops.convolve_slope(wide, self.pad(ops, pre))

    def norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """By power iteration, margin and steps included."""
        return [largest_singular(self, ops, weight, source)]
