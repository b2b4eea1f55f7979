"""Convolutions, average pooling before another operator, and max pooling after one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators.base import Operator, power_iteration_norm
from neuro_eqprop.networks.ops.protocol import Ops, Values


@dataclass(frozen=True, slots=True)
class Conv2d:
    """y[o, i, j] = sum over c, a, b of W[o, c, a, b] p[c, stride i + a, stride j + b].

    p is the image x with `padding` zeros on each side, as in `torch.nn.Conv2d`.
    """

    kernel: int
    padding: int = 0
    stride: int = 1
    stored_name: ClassVar[str] = "conv2d"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.padding < 0 or self.stride < 1:
            raise ValueError(
                f"a convolution needs padding >= 0 and stride >= 1, not padding {self.padding} and "
                f"stride {self.stride}"
            )

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """(target channels, source channels, kernel, kernel)."""
        if len(source) != 3 or len(target) != 3:
            raise ValueError(
                f"a convolution connects layers of shape (channels, height, width), not {source} "
                f"and {target}"
            )
        full = self.full_shape(source, target[0])
        size = tuple(-(-n // self.stride) for n in full[1:])
        if target[1:] != size or min(size) < 1:
            raise ValueError(
                f"a convolution with kernel {self.kernel}, padding {self.padding} and stride "
                f"{self.stride} maps {source[1:]} to {size}, not to {target[1:]}"
            )
        return (target[0], source[0], self.kernel, self.kernel)

    def padded_shape(self, source: Shape) -> Shape:
        """The shape of p."""
        return (*source[:-2], *(n + 2 * self.padding for n in source[-2:]))

    def full_shape(self, source: Shape, channels: int) -> Shape:
        """The shape of the output at stride 1."""
        return (channels, *(n - self.kernel + 1 for n in self.padded_shape(source)[-2:]))

    def unstride(self, ops: Ops, y: Values, source: Shape) -> Values:
        """y at every `stride`-th position of zeros: the transpose of striding."""
        if self.stride == 1:
            return y
        full = ops.zeros((len(y), *self.full_shape(source, y.shape[1])))
        full[:, :, :: self.stride, :: self.stride] = y
        return full

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + W * x."""
        y = ops.conv(x, weight, self.padding)
        if self.stride > 1:
            return y[:, :, :: self.stride, :: self.stride] + onto
        y += onto
        return y

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain times the transposed convolution of y, without the padding."""
        back = ops.conv_transpose(self.unstride(ops, y, shape), weight, self.padding)
        if gain != 1.0:
            back *= gain
        back += onto
        return back

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The sum over batch and positions of post times the window of pre."""
        full = self.unstride(ops, post, tuple(pre.shape[1:]))
        return ops.conv_weight_gradient(full, pre, self.padding)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm of the convolution, not of the reshaped kernel, by power iteration."""
        return [power_iteration_norm(self, ops, weight, source)]


@dataclass(frozen=True, slots=True)
class Pooled:
    """y = A(W) m, where m is x averaged over squares of `size` by `size`."""

    size: int
    inner: Operator
    stored_name: ClassVar[str] = "pooled"
    linear: ClassVar[bool] = True
    matrix: ClassVar[bool] = False

    def pooled_shape(self, source: Shape) -> Shape:
        """The shape of m."""
        if len(source) != 3 or source[1] % self.size or source[2] % self.size:
            raise ValueError(f"{source} cannot be divided into squares of {self.size}")
        return (source[0], source[1] // self.size, source[2] // self.size)

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """The shape of the inner operator's W."""
        return self.inner.weight_shape(self.pooled_shape(source), target)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + A(W) m."""
        return self.inner.forward(ops, weight, ops.pool(x, self.size), onto)

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """onto + gain A(W)^T y, each value divided among its square."""
        zero, inside = ops.zeros((1,)), self.pooled_shape(shape)
        back = self.inner.backward(ops, weight, y, zero, gain=gain, shape=inside)
        unpooled = ops.unpool(back, self.size)
        unpooled += onto
        return unpooled

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The gradient of the inner operator at the pooled rates."""
        return self.inner.weight_gradient(ops, weight, post, ops.pool(pre, self.size))

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """The spectral norm with pooling included, by power iteration."""
        return [power_iteration_norm(self, ops, weight, source)]


@dataclass(frozen=True, slots=True)
class MaxPooled:
    """y = the largest value of each square of `size` by `size` of A(W) x (Laborieux et al. 2021).

    Backwards, the value of a square goes to the place where A(W) x is largest, so that a symmetric
    connection has the energy -y . A(x) as a linear one has.
    """

    size: int
    inner: Operator
    stored_name: ClassVar[str] = "max_pooled"
    linear: ClassVar[bool] = False
    matrix: ClassVar[bool] = False

    def weight_shape(self, source: Shape, target: Shape) -> Shape:
        """The shape of the inner operator's W."""
        if len(target) != 3:
            raise ValueError(f"max pooling ends at (channels, height, width), not at {target}")
        return self.inner.weight_shape(source, (target[0], *(self.size * n for n in target[1:])))

    def pool(self, ops: Ops, weight: Values, x: Values) -> tuple[Values, Values]:
        """The largest values, and their places."""
        return ops.max_pool(self.inner.forward(ops, weight, x, ops.zeros((1,))), self.size)

    def forward(self, ops: Ops, weight: Values, x: Values, onto: Values) -> Values:
        """onto + y."""
        return self.pool(ops, weight, x)[0] + onto

    def backward(
        self, ops: Ops, weight: Values, y: Values, onto: Values, *, gain: float, shape: Shape
    ) -> Values:
        """Undefined: the operator is not linear, see `vjp`."""
        raise ValueError("max pooling is not linear and has no transpose")

    def vjp(self, ops: Ops, weight: Values, x: Values, y: Values) -> Values:
        """The transposed Jacobian at x, times y."""
        spread = ops.max_unpool(y, self.pool(ops, weight, x)[1], self.size)
        zero, shape = ops.zeros((1,)), tuple(x.shape[1:])
        return self.inner.backward(ops, weight, spread, zero, gain=1.0, shape=shape)

    def weight_gradient(self, ops: Ops, weight: Values, post: Values, pre: Values) -> Values:
        """The gradient of the inner operator, with post at the places of the largest values."""
        spread = ops.max_unpool(post, self.pool(ops, weight, pre)[1], self.size)
        return self.inner.weight_gradient(ops, weight, spread, pre)

    def spectral_norms(self, ops: Ops, weight: Values, source: Shape) -> list[float]:
        """Those of the inner operator: the largest factor by which y changes with x."""
        return self.inner.spectral_norms(ops, weight, source)
